"""Run the Python code of pages, and write what it prints into the text block that follows it.

python docs/shown.py            writes the output anew
python docs/shown.py --check    says which pages are out of date, and changes nothing
"""

import argparse
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "gallery.md",
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
)

# Code, and right after it the text that it prints, if the page shows any.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def run(page: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Run the code of a page from top to bottom; yield each block with what it prints.

    It runs in a folder of its own, in which `docs` is that of the project.
    """
    namespace: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        os.symlink(ROOT / "docs", "docs", target_is_directory=True)
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(block[1], page.name, "exec"), namespace)
            yield block, printed.getvalue()


def renewed(page: Path) -> str:
    """Return a page with what its code prints now."""
    text, end = [], 0
    whole = page.read_text(encoding="utf-8")
    for block, printed in run(page):
        if block[2] is not None:
            text += [whole[end : block.start(2)], printed]
            end = block.end(2)
    return "".join([*text, whole[end:]])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    asked = parser.parse_args(arguments)
    n_old = 0
    for page in PAGES:
        text = renewed(page)
        if text == page.read_text(encoding="utf-8"):
            continue
        n_old += 1
        if asked.check:
            print(f"{page.name} is out of date: run python docs/shown.py", file=sys.stderr)
        else:
            page.write_text(text, encoding="utf-8")
    return int(asked.check and n_old > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
