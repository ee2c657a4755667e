"""The pages of the documentation: what the hook makes of them, and what `make docs` has built."""

import importlib.util
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from commands import invoke
from test_docs import api, script

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "site"

cli = script("cli")


# --- the reference of the command line ------------------------------------------------------


def test_the_page_of_commands_is_up_to_date():
    assert cli.main(["--check"]) == 0, "run: python docs/cli.py"


@pytest.mark.parametrize("command", cli.COMMANDS, ids=cli.name_of)
def test_the_page_has_the_options_that_help_has(command):
    text = invoke(cli.name_of(command), "--help").output
    shown = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*(?=[ ,]+<|[ ,]+-|\s)", text))
    told = {
        name
        for parameter in cli.parameters_of(command)
        for name in re.findall(r"`(--?[a-z][a-z-]*)`", parameter.spelling)
    }
    assert told
    assert not {name for name in told if name not in text}
    listed = {name for name in shown if re.search(rf"^│[ *]+(-\w, )?{name}\b", text, re.M)}
    assert listed - {"--help"} <= told


def test_an_old_page_of_commands_is_noticed_and_written_anew(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "PAGE", tmp_path / "cli.md")
    assert cli.main(["--check"]) == 1
    assert "python docs/cli.py" in capsys.readouterr().err
    assert cli.main([]) == 0
    assert cli.main(["--check"]) == 0


# --- the glossary ---------------------------------------------------------------------------


def anchors_of_glossary():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    return [word.lower().replace(" ", "-") for word in re.findall(r"^## (.+)$", text, re.MULTILINE)]


def test_the_glossary_is_in_the_order_of_the_alphabet():
    anchors = anchors_of_glossary()
    assert anchors == sorted(set(anchors))
    assert len(anchors) > 25


# --- the hook -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages():
    """Return the hook of MkDocs."""
    for library in ("mkdocs", "griffe"):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed; pip install '.[docs]'")
    return script("pages")


def test_every_word_that_leads_to_the_glossary_is_in_it(pages):
    assert set(pages.GLOSSED.values()) <= set(anchors_of_glossary())
    assert set(pages.glossary()) == set(anchors_of_glossary())


def test_only_the_first_use_of_a_word_in_running_text_leads_to_the_glossary(pages):
    content = (
        "<h2>Tiers</h2><p>A <code>tier</code>, a <b>tier</b> and tiers; a tie\nthreshold.</p>"
        "<pre>tier</pre>"
    )
    found = pages.with_glosses(content, "glossary.html")
    assert 'href="glossary.html#tie-threshold"' in found
    assert found.count('href="glossary.html#tier"') == 1
    assert '<b><a class="gloss"' in found


def test_code_is_left_alone(pages):
    text = "a `x` b\n\n```python\n[a](b.md)\n```\n\n[`c`](d.md)\n"
    changed = pages.outside_code(text, lambda part: part.replace("(d.md)", "(e.md)").upper())
    assert "```python\n[a](b.md)\n```" in changed
    assert "A `x` B" in changed
    assert "[`c`](E.MD)" in changed


def test_lists_stand_apart_and_lists_in_lists_are_indented_by_four(pages):
    text = "A text\n- one\n  - two\n- three\n\n```text\nx\n- y\n```\n"
    expected = "A text\n\n- one\n    - two\n- three\n\n```text\nx\n- y\n```\n"
    assert pages.lists_apart(text) == expected


def test_every_public_name_has_its_place_in_the_reference(pages):
    lines = {line for room in sum(pages.rooms(), ()) for line in pages.room_page(room)}
    text = "\n".join(lines)
    for module in api.public_modules():
        for name in module.__all__:
            path = pages.homes()[module.__name__, name]
            assert f"::: {path}" in lines or f"{{ #{path} }}" in text


# --- what was built -------------------------------------------------------------------------


class Page(HTMLParser):
    """What a page loads, where its links lead, and which anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: set[str] = set()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag refers to."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.loads.add(given.get("href", ""))
        elif tag in ("script", "img", "iframe", "source", "video", "audio", "object", "embed"):
            self.loads |= {given[name] for name in ("src", "srcset", "data") if name in given}
        for address in re.findall(r"url\(([^)]*)\)", given.get("style", "")):
            self.loads.add(address.strip("'\""))

    handle_startendtag = handle_starttag


@pytest.fixture(scope="module")
def built():
    """Return every page of the site, by its place."""
    if not (SITE / "index.html").is_file():
        pytest.skip("the documentation is not built; make docs")
    begun = (SITE / "index.html").stat().st_mtime
    if any(page.stat().st_mtime > begun for page in (ROOT / "docs").rglob("*.md")):
        pytest.skip("the documentation that was built is older than its pages; make docs")
    files = sorted(SITE.rglob("*.html"))
    return {file: Page(file.read_text(encoding="utf-8")) for file in files}


def test_no_page_loads_anything_from_another_host(built):
    for file, page in built.items():
        elsewhere = [a for a in page.loads if urlsplit(a).netloc or a.startswith("//")]
        assert not elsewhere, file


def test_no_style_loads_anything_from_another_host(built):
    for file in SITE.rglob("*.css"):
        addresses = re.findall(r"url\(([^)]*)\)", file.read_text(encoding="utf-8"))
        addresses += re.findall(r"@import\s+([^;]+)", file.read_text(encoding="utf-8"))
        assert not [a for a in addresses if re.match(r"""['"]?(https?:)?//""", a)], file


def test_every_file_that_a_page_loads_is_there(built):
    for file, page in built.items():
        if file.name == "404.html":  # for hosts: its addresses begin at the root
            continue
        local = [unquote(urlsplit(a).path) for a in page.loads if not a.startswith("data:")]
        assert not [a for a in local if a and not (file.parent / a).is_file()], file


def test_links_lead_to_pages_and_anchors_that_exist(built):
    dead = []
    for file, page in built.items():
        if file.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.is_file():
                dead.append((file.name, link))
            elif parts.fragment and target in built:
                anchor = unquote(parts.fragment)
                if anchor not in built[target].anchors and not anchor.startswith("__"):
                    dead.append((file.name, link))
    assert not dead


def test_the_site_has_every_page_and_every_public_name(built):
    names = {file.relative_to(SITE).as_posix() for file in built}
    sources = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    assert {s.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for s in sources} <= names
    anchors = set().union(*(page.anchors for page in built.values()))
    package = sys.modules["isplitlbi"]
    assert not [name for name in package.__all__ if f"isplitlbi.{name}" not in anchors]
