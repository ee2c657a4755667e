"""Files of votes in which anything may stand: is each read, or refused in one sentence of ours?

    python benchmarks/hostile_files.py [--files 10000] [--first-seed 0]

A seed is a file: the small example of a layout or of an export, as JSON lines, an array, CSV, TSV
or Parquet, in which some values are others of any type: truths, lists, objects, infinities, numbers
of thousands of digits, values 2,000 deep, NUL, control characters, halves of characters, columns of
binary, dates, spans of time, decimals and nothing. Each is read as a file, compressed, in a folder,
through standard input, batch by batch, as pairs to predict and, of tables, as frames of polars,
pandas and Arrow. What is read must have the ids that stand in the file, and what is refused the
name of the file, the row, and one line. Everything else is a failure: another exception, a warning,
an id that nobody wrote, or more than 2 seconds of the processor.

The files and what is asked of them are in `tests/hostile.py`; a line names the seed of a failure,
and the exit code is 1 where there is one.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import hostile

MOST_SECONDS = 2.0


def trial(seed: int, folder: Path) -> tuple[str, float]:
    """Read the file of a seed in all ways; return `read` or `refused`, and the seconds it took."""
    drawn = random.Random(seed)
    name = drawn.choice(sorted(hostile.DRAWN))
    draw, example = hostile.DRAWN[name]
    file = draw(drawn, example)
    start = process_time()
    told = hostile.judged(drawn, file, folder)
    if draw is hostile.of_parquet:
        hostile.judged_frame(hostile.frame_of(drawn, example))
    return "read" if told == "read" else "refused", process_time() - start


def main() -> int:
    """Try all files; print what failed, and one line at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first-seed", type=int, default=0)
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    slowest = 0.0
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(asked.first_seed, asked.first_seed + asked.files):
            try:
                outcome, seconds = trial(seed, Path(folder))
                slowest = max(slowest, seconds)
                if seconds > MOST_SECONDS:
                    outcome = "failed"
                    print(f"seed {seed}: {seconds:.1f} seconds of the processor")
            except (Exception, hostile.PanicException) as error:
                outcome = "failed"
                print(f"seed {seed}: {type(error).__name__}: {str(error)[:200]!r}")
            counts[outcome] += 1
    logging.disable(logging.NOTSET)
    print(
        f"hostile files: {asked.files} files, {counts['read']} read, {counts['refused']} refused, "
        f"{counts['failed']} failed, at most {slowest:.1f} s"
    )
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
