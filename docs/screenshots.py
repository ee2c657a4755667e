"""Take the screenshots of images/: the reports of the demo and of real votes, as people see them.

They need Chromium, and the votes: python docs/screenshots.py FOLDER, where llmfao.csv is.
"""

import argparse
import shutil
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.data.splits import split_within_user
from isplitlbi.evaluation.simulate import paper_study
from isplitlbi.output.report import write_report

FOLDER = Path(__file__).parent / "images"
SCREENS = {"desktop": (1200, 900), "phone": (390, 844)}


def main() -> None:
    """Write both reports and look at each in light and dark, on a large and on a small screen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with llmfao.csv")
    arguments = parser.parse_args()
    votes, _ = paper_study(0)
    training, _ = split_within_user(votes, 0.2, rng=0)
    studies = {
        "demo": (training, "The simulated study of isplitlbi demo"),
        "llmfao": (
            Comparisons.read(arguments.data / "llmfao.csv"),
            "Which answer of a language model is better?",
        ),
    }
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for study, (of_study, title) in studies.items():
            file = Path(folder) / f"{study}.html"
            write_report(ISplitLBI().fit(of_study), file, title=title)
            for screen, (width, height) in SCREENS.items():
                for scheme in ("light", "dark"):
                    page = browser.new_page(
                        viewport={"width": width, "height": height}, color_scheme=scheme
                    )
                    page.goto(file.as_uri())
                    page.locator("html[data-ready=yes]").wait_for()
                    page.wait_for_timeout(500)
                    take(page, f"report-{study}-{screen}-{scheme}", full_page=True)
                    if (study, screen, scheme) == ("llmfao", "desktop", "light"):
                        page.set_viewport_size({"width": 1200, "height": 1500})
                        page.locator("#path").evaluate("section => section.scrollIntoView()")
                        page.wait_for_timeout(500)
                        take(page, "report")
                    page.close()
        browser.close()


def take(page: Page, name: str, **options: bool) -> None:
    """Save a picture of the page, without loss and small."""
    taken = Image.open(BytesIO(page.screenshot(**options)))
    taken.convert("RGB").save(FOLDER / f"{name}.webp", lossless=True, quality=100, method=6)


if __name__ == "__main__":
    main()
