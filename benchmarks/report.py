"""The report of large studies: how long it takes to write, how large it is, how soon it answers.

Two simulated studies, 500 users on 300 items and 20,000 users on 100 items, are fitted; their
reports are written and opened in Chromium from file://, at 1200 by 900 pixels:

    read       from opening the file until its tables are there
    ready      until the charts are there, too: most of it is starting the charting library
    slider     from a move of the slider until the page is painted anew, with the user's ranking
    pick       from picking another user until the page is painted anew
    search     from a letter in the search field until the list is there
    table      from asking for everybody until the table is there

    python benchmarks/report.py [--runs 5] [--quick]

Times are medians, in milliseconds, of a browser without a graphics card. The exit code is 1 where
the smaller study's report is not under 8 MB, or either page complains or asks for another address.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from playwright.sync_api import Browser, sync_playwright

from isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.report import write_report

STUDIES = {"500 x 300": (500, 300, (200, 400)), "20,000 x 100": (20_000, 100, (20, 40))}
QUICK = {"50 x 20": (50, 20, (20, 40))}
MOST_MEGABYTES = 8.0

ANSWERS = """async (runs) => {
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const timed = async (act) => {
    const begun = performance.now();
    act();
    await painted();
    return performance.now() - begun;
  };
  const set = (id, event, value) => () => {
    const element = document.getElementById(id);
    element.value = value;
    element.dispatchEvent(new Event(event));
  };
  const found = { slider: [], pick: [], search: [], table: [] };
  const last = Number(document.getElementById("time").max);
  for (let run = 0; run < runs; run++) {
    const position = Math.round(((run + 1) * last) / (runs + 2));
    found.slider.push(await timed(set("time", "input", position)));
    found.pick.push(await timed(set("pick", "change", String(run + 1))));
    found.table.push(await timed(set("show-kind", "change", run % 2 ? "abnormal" : "everybody")));
  }
  for (let run = 0; run < runs; run++)
    found.search.push(await timed(set("search", "input", String(run))));
  return found;
}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a small study instead")
    asked = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        print("There is no Chromium here (Debian: apt-get install chromium).", file=sys.stderr)
        return 2
    names = ("read", "ready", "slider", "pick", "search", "table")
    print(f"{'users x items':<14}{'votes':>10}{'write s':>9}{'MB':>7}", end="")
    print("".join(f"{name + ' ms':>11}" for name in names))
    fine = True
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (users, items, votes_each) in (QUICK if asked.quick else STUDIES).items():
            votes = simulate(
                n_users=users, n_items=items, votes_per_user=votes_each, abnormal_share=0.1,
                random_state=0,
            ).votes  # fmt: skip
            model = ISplitLBI(n_folds=3).fit(votes)
            file = Path(folder) / "report.html"
            begun = perf_counter()
            write_report(model, file)
            seconds, size = perf_counter() - begun, file.stat().st_size / 1e6
            times, complaints = looked_at(browser, file, asked.runs)
            row = f"{name:<14}{len(votes):>10,}{seconds:>9.1f}{size:>7.2f}"
            print(row + "".join(f"{times[each]:>11.0f}" for each in names), flush=True)
            fine &= not complaints and (users > 500 or size < MOST_MEGABYTES)
            for complaint in complaints:
                print(f"  {complaint}")
        browser.close()
    print(f"report: under {MOST_MEGABYTES:g} MB and silent: {'yes' if fine else 'NO'}")
    return int(not fine)


def looked_at(browser: Browser, file: Path, runs: int) -> tuple[dict[str, float], list[str]]:
    """Open a report several times and use it; return medians, and what went wrong."""
    times: dict[str, list[float]] = {}
    complaints: list[str] = []
    for _ in range(runs):
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: request.url == file.as_uri() or complaints.append(request.url),
        )
        begun = perf_counter()
        page.goto(file.as_uri(), wait_until="commit")
        page.locator("#users tbody tr").first.wait_for()
        times.setdefault("read", []).append(1e3 * (perf_counter() - begun))
        page.locator("html[data-ready=yes]").wait_for(timeout=120_000)
        times.setdefault("ready", []).append(1e3 * (perf_counter() - begun))
        for name, found in page.evaluate(ANSWERS, runs).items():
            times.setdefault(name, []).extend(found)
        page.close()
    return {name: median(found) for name, found in times.items()}, complaints


if __name__ == "__main__":
    raise SystemExit(main())
