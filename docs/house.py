"""Draw the map of the house in CONTRIBUTING.md: the rooms, from the imports of their modules.

    python docs/house.py            writes the map anew
    python docs/house.py --check    exits with 1 if the map is out of date

A room is a package of `isplitlbi`, or a module that stands alone. Lazy imports count as well; those
for type checkers only do not.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "isplitlbi"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN = "<!-- The map: written by docs/house.py from the imports. -->"
END = "<!-- The end of the map. -->"


@dataclass
class Room:
    """What is known of a room: its modules, the line it opens with, the rooms it imports from."""

    name: str
    title: str = ""
    modules: list[str] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)

    def add(self, module: str) -> None:
        """Note a module of the room, or a folder of modules."""
        if module not in self.modules:
            self.modules.append(module)

    @property
    def path(self) -> str:
        """Its name as a path: a folder, or a file."""
        return f"{self.name}/" if self.modules else f"{self.name}.py"


def rooms_of(package: Path = PACKAGE) -> list[Room]:
    """Return the rooms from bottom to top: each imports from those before it only.

    Rooms that import from each other in a circle have no such order: `graphlib.CycleError`.
    """
    rooms: dict[str, Room] = {}
    for file in sorted(package.rglob("*.py")):
        name, *inside = file.relative_to(package).with_suffix("").parts
        if name.startswith("__"):  # the package itself and its entry point: they lead to all rooms
            continue
        room = rooms.setdefault(name, Room(name))
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if inside in ([], ["__init__"]):
            room.title = (ast.get_docstring(tree) or "").partition("\n")[0]
        else:
            room.add(inside[0] if len(inside) == 1 else f"{inside[0]}/")
        room.imports |= {target.split(".")[1] for target in imported(tree, file, package)}
    for room in rooms.values():
        room.imports &= set(rooms) - {room.name}
    floors = floors_of(rooms)
    return sorted(rooms.values(), key=lambda room: (floors[room.name], room.name))


def floors_of(rooms: dict[str, Room]) -> dict[str, int]:
    """Return how high each room lies: above all that it imports from."""
    floors: dict[str, int] = {}
    below = {room.name: room.imports for room in rooms.values()}
    for name in TopologicalSorter(below).static_order():
        floors[name] = 1 + max((floors[other] for other in below[name]), default=-1)
    return floors


def imported(tree: ast.AST, file: Path, package: Path = PACKAGE) -> set[str]:
    """Return what a file imports of the package, wherever in the file: dotted names."""
    parts = (package.name, *file.relative_to(package).parent.parts)
    found: set[str] = set()
    for node in at_run_time(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), ".".join(parts))
            found |= {f"{origin}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith(f"{package.name}.")}


def at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """Walk through a tree, but not into what stands under ``if TYPE_CHECKING``."""
    yield node
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        children = node.orelse
        if isinstance(node.test, ast.UnaryOp):  # if not TYPE_CHECKING
            children = node.body
    for child in children:
        if not isinstance(child, ast.expr):  # which holds no imports
            yield from at_run_time(child)


def drawn(rooms: list[Room]) -> str:
    """Return the map as a table in Markdown, from the bottom of the house to its top.

    Rooms that import from no other are the ground: all may stand on it, so it is not told of each.
    """
    ground = [room for room in rooms if not room.imports]
    upper = [room for room in rooms if room.imports]
    lines = ["| room | holds | imports from |", "|---|---|---|"]
    for room in [*ground, *upper]:
        modules = ", ".join(f"`{module}`" for module in room.modules)
        below = ", ".join(f"`{other.name}`" for other in upper if other.name in room.imports)
        told = below if room.imports - {other.name for other in ground} else "the ground"
        holds = f"{room.title} {modules}".strip()
        lines.append(f"| `{room.path}` | {holds} | {told if room.imports else 'nothing'} |")
    return "\n".join(lines)


def page_with(drawing: str, page: str) -> str:
    """Return the page with the drawing between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE.name} has no place for the map: the lines {BEGIN} and {END}.")
    return f"{before}{begin}\n\n{drawing}\n\n{end}{after}"


def main(arguments: list[str] | None = None) -> int:
    """Write the map, or say whether it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if out of date")
    check = parser.parse_args(arguments).check
    page = PAGE.read_text(encoding="utf-8")
    anew = page_with(drawn(rooms_of()), page)
    if not check:
        PAGE.write_text(anew, encoding="utf-8")
    elif anew != page:
        print(f"The map in {PAGE.name} is out of date. Run: python docs/house.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
