"""The report: one HTML file that a person can open, send and present, without a network.

`content` says what was found, for the page as it is read and printed; `boards` has the rankings of
everybody and without users on a list, `people` how people differ, with the pictures of `strips`,
`parts` what deviations are made of, `plan` whether one can stop, `since` what changed since an
earlier model; `study` is what the page's script works on: everybody's ranking along the path. The
page itself is in page.html, style.css and page.js. Ids come from strangers: the template escapes
all it is given, the script only ever writes text, and the page's policy runs no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from isplitlbi.errors import MissingLibrary
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.estimators.comparing import compare
from isplitlbi.files import written_whole
from isplitlbi.nouns import Nouns
from isplitlbi.output.report import content
from isplitlbi.output.report.ids import shown_id
from isplitlbi.output.report.people import cards_of
from isplitlbi.output.report.since import since_of
from isplitlbi.output.report.study import packed, study_of

__all__ = ["TITLE", "write_report"]

TITLE = "Who agrees, on what, and who does not"
TITLE_OF_CROWD = "What comes first, and how sure that is"

# In JSON these mean the same written as escapes; in HTML they could end the script.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


def write_report(
    model: ScoreEstimator,
    file: str | Path,
    *,
    title: str | None = None,
    since: ScoreEstimator | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> None:
    """Write the report of a fitted model: one self-contained file.

    The same model gives the same file, to the byte. It needs ``isplitlbi[report]``.

    Parameters
    ----------
    title
        Its heading; there is one by default.
    since
        An earlier model of the study: the report then also says what changed since.
    progress
        Called now and then with the share of the work done and what comes next.
    """
    target = Path(file)
    if title is None:
        title = TITLE if model.has_users else TITLE_OF_CROWD
    page = render(model, title, progress, since)
    with written_whole(target) as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")


def render(
    model: ScoreEstimator,
    title: str,
    progress: Callable[[float, str], None] | None = None,
    since: ScoreEstimator | None = None,
) -> str:
    """Return the page."""
    try:
        import plotly  # noqa: F401
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as missing:
        raise MissingLibrary(
            f"the report needs {missing.name}; install it with: pip install 'isplitlbi[report]'"
        ) from None
    environment = Environment(
        loader=PackageLoader("isplitlbi.output.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["id"] = shown_id
    folder = resources.files("isplitlbi.output.report")
    script = folder.joinpath("page.js").read_text(encoding="utf-8")
    charts, hash_of_charts = _charts(model.has_users)
    progress = progress or (lambda _share, _what: None)
    progress(0.0, "describing users")
    cards = cards_of(model)
    told = content.tell(model, cards, progress)
    told["since"] = None if since is None else since_of(compare(since, model))
    page = folder.joinpath("page.html").read_text(encoding="utf-8")
    return environment.from_string(_in_nouns_of(page, model.nouns)).render(
        **told,
        title=title,
        script=script,
        script_hashes=[_hash(script), hash_of_charts],
        charts=charts,
        style=folder.joinpath("style.css").read_text(encoding="utf-8"),
        study=_as_json(study_of(model, cards)),
    )


@cache  # several reports of a process need not compress the same library again
def _charts(has_path: bool) -> tuple[str, str]:
    """Return what draws the charts of a path, a third of its size, and its hash."""
    from plotly.offline import get_plotlyjs

    library = get_plotlyjs() if has_path else ""
    return packed(library.encode("utf-8")), _hash(library)


# What is no text for people: what the template fills in, code, and tags but for their labels.
_FILLED_IN = r"\{\{.*?\}\}|\{%.*?%\}"
_NO_TEXT = re.compile(rf"({_FILLED_IN}|<code>.*?</code>|<(?:{_FILLED_IN}|[^>{{])*>)", re.DOTALL)
_LABEL = re.compile(r'((?:aria-label|data-unit)=")([^"{]*)')


def _in_nouns_of(page: str, nouns: Nouns) -> str:
    """Return the template in the words of the study, before any id is in it."""
    parts = _NO_TEXT.split(page)
    parts[::2] = [nouns.in_text(text) for text in parts[::2]]
    parts[1::2] = [
        _LABEL.sub(lambda label: label[1] + nouns.in_text(label[2]), tag) for tag in parts[1::2]
    ]
    return "".join(parts)


def _as_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def _hash(script: str) -> str:
    """Return what the page's policy knows a script by."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
