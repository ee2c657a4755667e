"""The documents are true: the map of the house, the page of public names, and what pages name."""

import ast
import importlib
import importlib.util
import inspect
import re
import sys
from graphlib import CycleError
from itertools import product
from pathlib import Path

import pytest

from isplitlbi import ISplitLBI

ROOT = Path(__file__).resolve().parents[1]
DOCS = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
DATA = sorted((ROOT / "docs" / "data").glob("*.py"))
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def script(name):
    """Return a script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(
        f"docs_{name.replace('/', '_')}", ROOT / "docs" / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


house = script("house")
api = script("api")
shown = script("shown")


def built(folder, **modules):
    """Write a package of some modules; the name of one in a package has two underscores."""
    for name, text in modules.items():
        file = folder / "isplitlbi" / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder / "isplitlbi"


# --- the map ------------------------------------------------------------------------------------


def test_the_map_in_contributing_is_that_of_the_imports():
    assert house.main(["--check"]) == 0, "run: python docs/house.py"


def test_a_room_lies_above_all_that_it_imports_from_lazily_too(tmp_path):
    package = built(
        tmp_path,
        attic="from isplitlbi.cellar.wine import red",
        cellar__wine="def red():\n    from isplitlbi import zero",
        zero="'''The ground.'''",
    )
    rooms = house.rooms_of(package)
    assert [room.name for room in rooms] == ["zero", "cellar", "attic"]
    assert [room.imports for room in rooms] == [set(), {"zero"}, {"cellar"}]
    assert rooms[0].title == "The ground."
    assert rooms[1].modules == ["wine"]


def test_relative_imports_are_seen(tmp_path):
    package = built(tmp_path, a__one="from ..b import x\nfrom . import two", b="")
    assert house.rooms_of(package)[1].imports == {"b"}


def test_imports_for_type_checkers_do_not_count(tmp_path):
    checked = "if TYPE_CHECKING:\n    import isplitlbi.b\nelse:\n    import isplitlbi.c"
    package = built(tmp_path, a=checked, b="import isplitlbi.a", c="")
    assert {room.name: room.imports for room in house.rooms_of(package)} == {
        "a": {"c"},
        "b": {"a"},
        "c": set(),
    }


def test_rooms_in_a_circle_cannot_be_drawn(tmp_path):
    package = built(tmp_path, a="import isplitlbi.b", b="def f():\n    import isplitlbi.a")
    with pytest.raises(CycleError):
        house.rooms_of(package)


def test_an_old_map_is_noticed_and_drawn_anew(tmp_path, monkeypatch, capsys):
    page = tmp_path / "CONTRIBUTING.md"
    page.write_text(f"before\n{house.BEGIN}\nold\n{house.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(house, "PAGE", page)
    assert house.main(["--check"]) == 1
    assert "python docs/house.py" in capsys.readouterr().err
    assert house.main([]) == 0
    assert house.main(["--check"]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "`kernels/`" in text


# --- the public surface -------------------------------------------------------------------------


def test_the_page_of_public_names_is_up_to_date():
    assert api.main(["--check"]) == 0, "run: python docs/api.py"


def test_an_old_page_of_public_names_is_noticed_and_written_anew(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(api, "PAGE", tmp_path / "api.md")
    assert api.main(["--check"]) == 1
    assert "python docs/api.py" in capsys.readouterr().err
    assert api.main([]) == 0
    assert api.main(["--check"]) == 0


@pytest.mark.parametrize("module", api.public_modules(), ids=lambda module: module.__name__)
def test_every_public_name_exists_and_says_what_it_is_for(module):
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    things = {name: getattr(module, name) for name in module.__all__}
    described = {n: t for n, t in things.items() if inspect.isclass(t) or inspect.isroutine(t)}
    assert not [name for name, thing in described.items() if not api.first_line(thing)]


# --- what pages show -----------------------------------------------------------------------


@pytest.mark.parametrize("page", shown.PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_prints_what_the_page_shows(page):
    outputs = [(block[2], printed) for block, printed in shown.run(page)]
    assert any(expected for expected, _ in outputs)
    for expected, printed in outputs:
        assert printed == (expected or ""), "run: python docs/shown.py"


def test_an_old_output_is_noticed_and_written_anew(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text("a\n\n```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\nb\n", encoding="utf-8")
    monkeypatch.setattr(shown, "PAGES", (page,))
    assert shown.main(["--check"]) == 1
    assert "python docs/shown.py" in capsys.readouterr().err
    assert shown.main([]) == 0
    assert shown.main(["--check"]) == 0
    assert "```text\n2\n```\n\nb\n" in page.read_text(encoding="utf-8")


# --- the votes of pages -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["votes", *(f"data/{file.stem}" for file in DATA)])
def test_a_script_draws_the_votes_that_pages_read(name, tmp_path, monkeypatch):
    drawn = script(name)
    monkeypatch.setattr(drawn, "__file__", str(tmp_path / "drawn.py"))  # files are written beside
    drawn.main()
    written = sorted(tmp_path.iterdir())
    assert written
    for file in written:
        kept = (ROOT / "docs" / name).with_name(file.name)
        assert file.read_text(encoding="utf-8") == kept.read_text(encoding="utf-8"), file.name


def test_the_curves_of_attacks_are_those_of_the_table_on_their_page():
    pytest.importorskip("matplotlib")
    figures = script("figures")
    votes, ranks = figures.read_attacks()
    assert votes[0] == 0
    assert votes == sorted(set(votes))
    for panel in product(figures.STRATEGIES, figures.ACCOUNTS, figures.RANKINGS):
        assert len(ranks[panel]) == len(votes)
        assert all(1 <= rank <= 20 for rank in ranks[panel])


# --- what pages name ----------------------------------------------------------------------------


def resolves(dotted):
    """Say whether a dotted name leads to a module or to something in one."""
    parts = dotted.split(".")
    for n_modules in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n_modules]))
        except ModuleNotFoundError:
            continue
        for name in parts[n_modules:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


@each_page
def test_names_of_the_package_in_pages_exist(page):
    named = set(re.findall(r"\bisplitlbi(?:\.[A-Za-z_]\w*)+", page.read_text(encoding="utf-8")))
    assert not [name for name in named if not name.endswith(".py") and not resolves(name)]


@each_page
def test_imports_in_the_code_of_pages_work(page):
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    nodes = [node for block in blocks for node in ast.walk(ast.parse(block))]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        exec(compile(ast.unparse(node), page.name, "exec"), {})


@each_page
def test_what_pages_ask_of_a_model_is_there(page):
    text = page.read_text(encoding="utf-8")
    asked = set(re.findall(r"(?<![.\w])model\.([a-z]\w*)", text)) - {"md", "json"}
    known = {"nu_", "kappa_"}.union(
        dir(ISplitLBI), *(vars(part).get("__annotations__", {}) for part in ISplitLBI.__mro__)
    )
    assert not asked - known


def test_files_named_in_the_recipes_exist():
    recipes = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(house.END)[2]
    files = set(re.findall(r"`([\w/.]+\.(?:py|md|html|js|css))`", recipes))
    places = (ROOT, ROOT / "src" / "isplitlbi", ROOT / "docs")
    missing = [file for file in files if not any((place / file).is_file() for place in places)]
    assert len(files) > 10
    assert not missing
