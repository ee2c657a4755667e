"""What `make docs` adds to the pages of docs/: a hook of MkDocs, named in mkdocs.yml.

The pages are written for a repository browser, and stay so. Here, the README becomes the first
page, links between pages are named after the pages, links to files that are not on the site become
plain text, and the first use of a word of the glossary on a page leads there. The reference of
Python is made from what `isplitlbi` and its modules list in ``__all__``.
"""

from __future__ import annotations

import ast
import html
import importlib.util
import inspect
import posixpath
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent
ROOT = DOCS.parent

# Pages that are made of files beside docs/.
BESIDE = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}

# What a user of the library looks for, in this order; all other rooms are for developers.
ROOMS_FOR_USERS = (
    *("data", "estimators", "abnormal", "diagnostics", "evaluation", "planning"),
    *("output", "path", "model", "selection", "storage", "errors", "nouns"),
)

# What most programs need of the package, in this order; the others follow by the alphabet.
FIRST = (
    *("ISplitLBI", "Comparisons", "load_model", "save_model", "compare", "evaluate", "simulate"),
    *("RegularizationPath", "ISplitLBIError", "InvalidVotes"),
)

# Words whose first use on a page leads to the glossary, and the entry that they lead to. Words that
# mean the same everywhere are enough: an "item" or a "time" would be underlined on every page.
GLOSSED = {
    "consensus": "consensus",
    "deviation": "deviation",
    "deviations": "deviation",
    "entry time": "entry",
    "entry times": "entry",
    "log-loss": "log-loss",
    "margin": "margin",
    "margins": "margin",
    "sharpness": "sharpness",
    "tie habit": "tie-habit",
    "tie habits": "tie-habit",
    "tie threshold": "tie-threshold",
    "tie thresholds": "tie-threshold",
    "tier": "tier",
    "tiers": "tier",
    "unreliable": "unreliable",
}
GLOSSARY = "glossary.md"
WITHOUT_GLOSSES = (GLOSSARY, "api.md", "cli.md", "changelog.md", "reference/")

FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`]+`")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
LIST_ITEM = re.compile(r"([-*]|\d+\.) ")


# --- which pages there are ------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the Python reference where the navigation has a place for them."""
    for_users, for_developers = rooms()
    beside = {"reference/index.md": for_users, "reference/inside.md": for_developers}
    for place in entries_of(config.nav):
        for first, names in beside.items():
            if first in place:
                place += [{title_of(name): page_of(name)} for name in names]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    for page, source in BESIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if page == "index.md":  # it has no neighbours to list beside it
            text = f"---\nhide:\n  - navigation\n---\n\n{text}"
        files.append(File.generated(config, page, content=text))
    for_users, for_developers = rooms()
    for name in (*for_users, *for_developers):
        files.append(File.generated(config, page_of(name), content="\n".join(room_page(name))))
    for page, lines in (
        ("reference/index.md", overview(USERS_HEAD, for_users)),
        ("reference/inside.md", overview(DEVELOPERS_HEAD, for_developers)),
    ):
        files.append(File.generated(config, page, content="\n".join(lines)))
    return files


def entries_of(nav: Any) -> Iterator[list[Any]]:
    """Return every list of the navigation."""
    if isinstance(nav, list):
        yield nav
        for entry in nav:
            yield from entries_of(entry)
    elif isinstance(nav, dict):
        for entry in nav.values():
            yield from entries_of(entry)


# --- the reference of Python ----------------------------------------------------------------

USERS_HEAD = """\
# Python

What is listed here is public: the package lists it in `__all__`, or one of its modules does. Most
programs need the first page alone. What is not listed may change from one version to the next.
"""

DEVELOPERS_HEAD = """\
# Inside

Public names that programs seldom need: how fits are computed, and where the work is done. They are
for those who change the library ([Contributing](../contributing.md)).
"""


@cache
def public_modules() -> list[ModuleType]:
    """Return the package and its modules that say what they export."""
    spec = importlib.util.spec_from_file_location("docs_api", DOCS / "api.py")
    assert spec is not None
    assert spec.loader is not None
    api = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = api
    spec.loader.exec_module(api)
    return list(api.public_modules())


def room_of(module: ModuleType) -> str:
    """Return the room of a module: the name below the package; that of the package is empty."""
    return module.__name__.partition(".")[2].partition(".")[0]


@cache
def rooms() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rooms that have a page: those for users, and those for developers."""
    known = {room_of(module) for module in public_modules()}
    for_users = ("", *(name for name in ROOMS_FOR_USERS if name in known))
    return for_users, tuple(sorted(known - set(for_users)))


def title_of(room: str) -> str:
    """Return what a room is called in Python."""
    return f"isplitlbi.{room}" if room else "isplitlbi"


def page_of(room: str) -> str:
    """Return the page on a room."""
    return f"reference/{title_of(room)}.md"


@cache
def homes() -> dict[tuple[str, str], str]:
    """Return where each public name is described, as (module, name) -> dotted name.

    A name of the package itself is described there; any other in the module that defines it.
    """
    package = public_modules()[0]
    found = {(package.__name__, name): f"{package.__name__}.{name}" for name in package.__all__}
    first = {id(getattr(package, name)): path for (_, name), path in found.items()}
    for module in public_modules()[1:]:
        for name in module.__all__:
            thing = getattr(module, name)
            path = f"{defining(module, name)}.{name}"
            if inspect.isclass(thing) or inspect.isroutine(thing):
                path = first.setdefault(id(thing), path)
            found[module.__name__, name] = path
    return found


def defining(module: ModuleType, name: str) -> str:
    """Return the public module that defines a name, or the one that offers it."""
    thing = getattr(module, name)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        listed = [other for other in public_modules() if other.__name__ == thing.__module__]
        return listed[0].__name__ if listed and name in listed[0].__all__ else module.__name__
    for other in public_modules():
        is_same = name in other.__all__ and getattr(other, name) is thing
        if is_same and name in assigned(other):
            return other.__name__
    return module.__name__


@cache
def assigned(module: ModuleType) -> set[str]:
    """Return the names that a module assigns itself."""
    tree, names = ast.parse(inspect.getsource(module)), set()
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {part.id for target in targets if target for part in ast.walk(target)
                  if isinstance(part, ast.Name)}  # fmt: skip
    return names


@cache
def sources() -> griffe.Object | griffe.Alias:
    """Return what the reading of the sources knows of the package."""
    return griffe.load("isplitlbi", search_paths=[ROOT / "src"])


def is_in_sources(path: str) -> bool:
    """Say whether the sources have a name: some are made when a module is loaded, or imported."""
    try:
        found = sources()[path.partition(".")[2]]
        return not found.is_alias or found.final_target is not None
    except (KeyError, griffe.AliasResolutionError):
        return False


def in_order(module: ModuleType) -> list[str]:
    """Return the public names of a module, in the order in which they are described."""
    first = FIRST if module is public_modules()[0] else ()
    return [*first, *(name for name in module.__all__ if name not in first)]


def address_of(path: str) -> str:
    """Return the second half of a link to a public name."""
    page = posixpath.basename(page_of(path.split(".")[1]))
    return f"[{path}]" if is_in_sources(path) else f"({page}#{path})"


def room_page(room: str) -> Iterator[str]:
    """Return the page on a room, as lines: every public name, where it is defined."""
    modules = [module for module in public_modules() if room_of(module) == room]
    yield f"# {title_of(room)}"
    yield ""
    described: set[str] = set()
    for module in modules:
        if module is not modules[0] or module.__name__ != title_of(room):
            yield f"## {module.__name__}"
            yield ""
        yield (inspect.getdoc(module) or "").partition("\n\n")[0].replace("\n", " ")
        yield ""
        elsewhere = []
        for name in in_order(module):
            path = homes()[module.__name__, name]
            if path.rpartition(".")[0] != module.__name__ or path in described:
                elsewhere.append(f"[`{name}`]{address_of(path)}")
                continue
            described.add(path)
            thing = getattr(module, name)
            if not is_in_sources(path):
                is_code = inspect.isclass(thing) or inspect.isroutine(thing)
                yield f"### {name} {{ #{path} }}"
                yield ""
                yield inspect.getdoc(thing) or "" if is_code else f"`{thing!r}`"
                yield ""
                continue
            yield f"::: {path}"
            if room == "" and name in ("ISplitLBI", "Comparisons"):
                yield "    options:"
                yield "      inherited_members: true"
            yield ""
        if elsewhere:
            yield f"Described elsewhere: {', '.join(elsewhere)}."
            yield ""


def overview(head: str, names: tuple[str, ...]) -> Iterator[str]:
    """Return a page that lists rooms, as lines."""
    yield head
    yield "| module | what it is for |"
    yield "|---|---|"
    for name in names:
        module = importlib.import_module(title_of(name))
        first = (inspect.getdoc(module) or "").partition("\n")[0]
        yield f"| [`{title_of(name)}`]({posixpath.basename(page_of(name))}) | {first} |"


# --- links ----------------------------------------------------------------------------------


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links and lists of a page those of the site."""
    page.meta.setdefault("search", {"boost": boost_of(page.file.src_uri)})
    if page.file.src_uri.startswith("reference/"):
        return markdown
    return outside_code(lists_apart(markdown), lambda text: with_links(text, page, files))


def boost_of(page: str) -> float:
    """Return how near the top a search lists a page: what explains a word before what uses it."""
    if page == GLOSSARY:
        return 4.0
    if page in ("api.md", "changelog.md") or page in map(page_of, rooms()[1]):
        return 0.1
    return 0.4 if page.startswith("reference/") else 1.0


def outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """Return a text with everything changed but its code."""
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [around_code(markdown[end : fence.start()], change), fence[0]]
        end = fence.end()
    return "".join([*parts, around_code(markdown[end:], change)])


def around_code(text: str, change: Callable[[str], str]) -> str:
    """Return running text with everything changed but the code in its lines.

    The code is hidden meanwhile, and not cut out: it may be a part of the words of a link.
    """
    code = CODE.findall(text)
    numbers = iter(range(len(code)))
    hidden = change(CODE.sub(lambda _: f"\0{next(numbers)}\0", text))
    return re.sub("\0(\\d+)\0", lambda place: code[int(place[1])], hidden)


def lists_apart(markdown: str) -> str:
    """Return a text with an empty line before each list, and steps of four for lists in lists."""
    lines: list[str] = []
    in_code = False
    for line in markdown.splitlines():
        in_code ^= line.startswith(("```", "~~~"))
        before = lines[-1] if lines else ""
        if not in_code and LIST_ITEM.match(line) and before and not before[0].isspace():
            if not LIST_ITEM.match(before):
                lines.append("")
        elif not in_code and re.match(r"  [-*] ", line):
            line = "  " + line
        lines.append(line)
    return "\n".join(lines) + "\n"


def with_links(text: str, page: Page, files: Files) -> str:
    """Return a text whose links lead to pages and files of the site, or are none."""
    source = BESIDE.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def anew(link: re.Match[str]) -> str:
        mark, words, target = link.groups()
        place, hash_, anchor = target.partition("#")
        if "://" in target or not place:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), place))
        name = next((made for made, of in BESIDE.items() if of == path), path.removeprefix("docs/"))
        file = files.get_file_from_path(name)
        is_outside = path not in BESIDE.values() and not path.startswith("docs/")
        if file is None or is_outside or file.inclusion.is_excluded():
            if words.startswith("\0"):  # it is code already
                return words
            return f"`{path}`" if words == path else f"{words} (`{path}`)"
        if words.endswith(".md") and file.page is not None and file.page.title:
            words = str(file.page.title)
        to = posixpath.relpath(name, posixpath.dirname(page.file.src_uri) or ".")
        return f"{mark}[{words}]({to}{hash_}{anchor})"

    return LINK.sub(anew, text)


# --- the glossary ---------------------------------------------------------------------------


@cache
def glossary() -> dict[str, str]:
    """Return what the glossary says of each of its words, by anchor."""
    text = (DOCS / GLOSSARY).read_text(encoding="utf-8")
    entries = re.findall(r"^## ([^\n]+)\n\n(.+?)\n(?:\n|\Z)", text, re.MULTILINE | re.DOTALL)
    plain = {word: re.sub(r"\[([^\]]*)\]\([^)]*\)|[*`]", r"\1", said) for word, said in entries}
    return {word.lower().replace(" ", "-"): " ".join(said.split()) for word, said in plain.items()}


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the first use of a word on a page lead to the glossary, and say what it means."""
    if page.file.src_uri.startswith(WITHOUT_GLOSSES):
        return content
    target = files.get_file_from_path(GLOSSARY)
    assert target is not None
    return with_glosses(content, target.url_relative_to(page.file))


def with_glosses(content: str, address: str) -> str:
    """Return HTML in which the first use of each word in running text is a link."""
    words = sorted(GLOSSED, key=len, reverse=True)
    any_word = "|".join(re.escape(word).replace("\\ ", r"\s+") for word in words)
    use = re.compile(rf"(?<![\w-])({any_word})(?![\w-])", re.IGNORECASE)
    used: set[str] = set()
    open_tags: list[str] = []

    def gloss(word: re.Match[str]) -> str:
        anchor = GLOSSED[" ".join(word[0].lower().split())]
        if anchor in used:
            return word[0]
        used.add(anchor)
        said = html.escape(glossary()[anchor])
        return f'<a class="gloss" href="{address}#{anchor}" title="{said}">{word[0]}</a>'

    parts = re.split(r"(<[^>]*>)", content)
    for place, part in enumerate(parts):
        if tag := re.match(r"<(/?)(\w+)", part):
            if not tag[1] and not part.endswith("/>"):
                open_tags.append(tag[2])
            elif tag[1] and tag[2] in open_tags:
                while open_tags.pop() != tag[2]:
                    pass
        elif {"p", "li"} & set(open_tags) and not {"a", "code", "pre", "th"} & set(open_tags):
            parts[place] = use.sub(gloss, part)
    return "".join(parts)
