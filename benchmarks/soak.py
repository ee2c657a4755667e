"""Does it hold where the world is unkind: for long, side by side, on a full disk, when killed?

    python benchmarks/soak.py --only fits       300 fits in one process: memory, files and threads
    python benchmarks/soak.py --only bits       threads, joblib, fork, spawn: the same bits
    python benchmarks/soak.py --only compiling  eight processes compile at once into an empty folder
    python benchmarks/soak.py --only places     no folder for compiled code, no HOME, odd outputs
    python benchmarks/soak.py --only disk       disks of many sizes that fill up in every command
    python benchmarks/soak.py --only signals    SIGTERM and Ctrl-C in every phase of every command
    python benchmarks/soak.py --only together   a reader while --force replaces; two fits at once

fits: settings take turns, with a report and a figure now and then. Memory, open files and threads
of the last third are compared with those of the middle third.
bits: all arrays of the model folder, by their digests. In a process that was forked, a fit and a
leaderboard; reading and saving need polars, which does not survive a fork.
compiling: with other links and solvers among the eight. A ninth and a tenth find all on disk.
disk: a small disk is mounted where that is allowed; elsewhere, files may only grow so large. What
was there before is there afterwards, nothing half-made is left, and the error is one sentence.
signals: a signal comes at a random moment of a phase. The process ends within some seconds, in one
sentence and with 130 or 143; nothing half-made is left; what can be resumed gives the same model.

The exit code is 1 where anything failed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from resource import RLIMIT_FSIZE, RUSAGE_CHILDREN, getrusage, setrlimit
from time import monotonic, sleep
from typing import Any, NamedTuple

import joblib
import numpy as np

from isplitlbi import ISplitLBI, load_model, save_model, simulate

PARTS = ("fits", "bits", "compiling", "places", "disk", "signals", "together")
SOURCE = Path(importlib.import_module("isplitlbi").__file__).parents[1]
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"link": "probit"},
    {"sides": "unknown"},
    {"terms": "paper"},
    {"time": 0.3, "with_tests": False},
    {"n_jobs": 2},
    {"link": "uniform", "scoring": "micro_f1"},
)
MORE_MEMORY = 1.02  # of the middle third
SOON = 2.0  # seconds of the processor in which a process ends that is asked to


class Verdict:
    """What was tried, and what failed."""

    def __init__(self, name: str) -> None:
        self.name, self.n_tried, self.failures = name, 0, list[str]()

    def check(self, holds: bool, failure: str) -> bool:
        self.n_tried += 1
        if not holds:
            self.failures.append(failure)
            print(f"{self.name}: FAILED: {failure}", flush=True)
        return holds

    def tell(self, more: str = "") -> bool:
        said = "NOT MET" if self.failures or not self.n_tried else "met"
        print(f"{self.name}: {self.n_tried} checks, {len(self.failures)} failed{more}: {said}")
        return said == "met"


# --- processes and folders -----------------------------------------------------------------------


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


def environment(**changed: str | None) -> dict[str, str]:
    """Return that of this process, where some variables are others or, with None, are not there."""
    own = {**os.environ, "PYTHONPATH": str(SOURCE), **changed}
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):  # which hide what people see
        own.pop(name, None)
    return {name: value for name, value in own.items() if value is not None}


def command(*arguments: Any) -> list[str]:
    return [sys.executable, "-m", "isplitlbi", *map(str, arguments)]


def run(*arguments: Any, env: dict[str, str] | None = None, **more: Any) -> Ended:
    """Run a command of isplitlbi to its end."""
    done = subprocess.run(
        command(*arguments), env=env or environment(), timeout=600, check=False,
        **{"capture_output": True, "encoding": "utf-8", "errors": "replace"} | more,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout or "", done.stderr or "")


def is_one_sentence(text: str) -> bool:
    return text.startswith("isplitlbi: ") and text.count("\n") == 1


def digests(folder: Path) -> dict[str, str]:
    """Return what tells the files of a model apart, but for the day of the fit."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
        if file.name != "about.json"
    }


def of_model(model: ISplitLBI) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, Path(folder) / "model")
        return digests(Path(folder) / "model")


def content(folder: Path) -> dict[str, Any]:
    """Return all that is in a folder, hidden or not."""
    return {
        str(each.relative_to(folder)): digests(each) if each.name == "model" else each.read_bytes()
        for each in sorted(folder.iterdir())
        if each.is_file() or each.name == "model"
    } | {each.name: None for each in folder.iterdir() if each.is_dir() and each.name != "model"}


def study(users: int = 12, items: int = 6, seed: int = 0):
    return simulate(n_users=users, n_items=items, votes_per_user=(30, 40), random_state=seed).votes


@contextmanager
def workspace(**sizes: int) -> Iterator[Path]:
    """Give a folder with votes.csv and a fitted model of it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        told = [each for name, size in sizes.items() for each in (f"--{name}", str(size))]
        assert run("simulate", "-o", place / "votes.csv", *told).code == 0
        assert run("fit", place / "votes.csv", "-o", place / "model", "--quiet").code == 0
        yield place


# --- fits ----------------------------------------------------------------------------------------


def resources() -> tuple[int, int, int]:
    """Return kilobytes in memory, open files and threads of this process."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    files = len(os.listdir("/proc/self/fd"))
    return int(status["VmRSS"].split()[0]), files, int(status["Threads"])


def fits(n_fits: int) -> bool:
    """Fit, save, load and report in one process, and look at what it holds."""
    import gc

    verdict, found = Verdict("fits"), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(n_fits):
            votes = study(seed=number % 5)
            model = ISplitLBI(**SETTINGS[number % len(SETTINGS)]).fit(votes)
            save_model(model, Path(folder) / "model", force=True)
            load_model(Path(folder) / "model").leaderboard()
            model.predict_proba(votes)
            if number % 10 == 0:
                draw_and_report(model, Path(folder))
            gc.collect()
            found.append(resources())
    third = n_fits // 3
    middle, last = (
        np.array(found[part]) for part in (slice(third, 2 * third), slice(-third, None))
    )
    names = ("kB of memory", "open files", "threads")
    for name, before, after in zip(names, middle.T, last.T, strict=True):
        grown = np.median(after) / np.median(before)
        print(
            f"{n_fits} fits: {name}: first {found[0][names.index(name)]:,}, middle third "
            f"{np.median(before):,.0f}, last third {np.median(after):,.0f} ({grown - 1:+.1%})"
        )
        most = MORE_MEMORY * np.median(before) if name == names[0] else before.max()
        verdict.check(bool(np.median(after) <= most), f"{name} grow")
    return verdict.tell()


def draw_and_report(model: ISplitLBI, folder: Path) -> None:
    from isplitlbi.output import plots
    from isplitlbi.output.report import write_report

    write_report(model, folder / "report.html")
    plots.consensus_ladder(model).figure.savefig(folder / "figure.png")


# --- bits ----------------------------------------------------------------------------------------


def fit_and_digest(settings: dict[str, Any]) -> dict[str, str]:
    return of_model(ISplitLBI(**settings).fit(study()))


def fit_in_a_fork(votes: Any, settings: dict[str, Any], answers: Any) -> None:
    model = ISplitLBI(**settings).fit(votes)
    model.leaderboard()
    answers.put([each.tobytes() for each in (model.consensus_, model.parameters_.deviation)])


def bits() -> bool:
    """Fit in threads and in processes of every kind."""
    verdict, some = Verdict("bits"), SETTINGS[:4]
    expected = [fit_and_digest(settings) for settings in some]
    with ThreadPoolExecutor(2) as pool:
        verdict.check(list(pool.map(fit_and_digest, some)) == expected, "two threads differ")
        same = list(pool.map(fit_and_digest, [{}, {}]))
        verdict.check(same == [expected[0]] * 2, "two threads with the same votes differ")
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(fit_and_digest)(each) for each in some)
    verdict.check(found == expected, "processes of joblib differ")
    for way in ("spawn", "forkserver"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            found = pool.map_async(fit_and_digest, some).get(timeout=300)
        verdict.check(found == expected, f"{way}: processes differ")
    votes, context = study(), multiprocessing.get_context("fork")
    for settings in some:
        both = {**settings, "n_jobs": 2}
        model, answers = ISplitLBI(**both).fit(votes), context.Queue()
        mine = [each.tobytes() for each in (model.consensus_, model.parameters_.deviation)]
        child = context.Process(target=fit_in_a_fork, args=(votes, both, answers))
        child.start()
        child.join(60)
        hangs = child.is_alive()
        child.kill()
        verdict.check(not hangs and answers.get(timeout=5) == mine, f"a fork with {settings}")
    return verdict.tell()


# --- compiling -----------------------------------------------------------------------------------

COUNT = """
import json, sys
sys.path[:0] = sys.argv[1:3]
import soak
from numba.core import event

class Compiled(event.Listener):
    n = 0
    def on_start(self, event):
        self.n += 1
    def on_end(self, event):
        pass

compiled = Compiled()
event.register("numba:compile", compiled)
found = [soak.fit_and_digest(soak.SETTINGS[int(number)]) for number in sys.argv[3].split(",")]
print(json.dumps([compiled.n, found]))
"""


def compile_in(cache: Path, *numbers: int) -> subprocess.Popen[str]:
    """Start a process that fits with some of the settings."""
    places = (str(Path(__file__).parent), str(SOURCE), ",".join(map(str, numbers)))
    return subprocess.Popen(
        [sys.executable, "-c", COUNT, *places], env=environment(NUMBA_CACHE_DIR=str(cache)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def compiling(n_processes: int = 8) -> bool:
    """Compile in many processes at once, and see that the folder is whole afterwards."""
    verdict = Verdict("compiling")
    kinds = ((0,), (1,), (0,), (1,), (6,), (3,), (0,), (2,))[:n_processes]
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        expected = {kind: [fit_and_digest(SETTINGS[k]) for k in kind] for kind in {*kinds}}
        started = [(kind, compile_in(cache, *kind)) for kind in kinds]
        for kind, process in started:
            out, err = process.communicate(timeout=900)
            if verdict.check(process.returncode == 0, f"exit code {process.returncode}: {err}"):
                n, found = json.loads(out)
                verdict.check(found == expected[kind], f"other bits with {SETTINGS[kind[0]]}")
                print(f"compiling: {n} loops with {SETTINGS[kind[0]]}")
        for kind in dict.fromkeys(kinds):
            out, err = compile_in(cache, *kind).communicate(timeout=900)
            n, found = json.loads(out)
            verdict.check(n == 0 and found == expected[kind], f"afterwards {n} loops are compiled")
        left = [file.name for file in cache.rglob("*") if file.suffix not in ("", ".nbc")]
        verdict.check(not left, f"left behind: {left}")
    return verdict.tell()


# --- places --------------------------------------------------------------------------------------


def places() -> bool:
    """Run commands where a person would not expect them to run, and look at how they end."""
    verdict = Verdict("places")
    with workspace(users=12, items=6) as place:
        rows = (place / "votes.csv").read_text(encoding="utf-8").replace("item-", "чай-")
        (place / "чай.csv").write_text(rows.replace("user-", "жюри-"), encoding="utf-8")
        board = run("rank", place / "model", "--format", "csv").out
        _unkept(verdict, place)
        _spoken(verdict, place)
        _closed(verdict, place, board)
        for columns, name in ((c, n) for c in (1, 20) for n in ("rank", "abnormal", "groups")):
            done = run(name, place / "model", env=environment(COLUMNS=str(columns), TERM="dumb"))
            verdict.check(done.code == 0, f"{name} in {columns} columns: {done.err[-200:]}")
    return verdict.tell()


def _unkept(verdict: Verdict, place: Path) -> None:
    """Fit where no compiled code can be kept."""
    below_a_file = str(place / "votes.csv" / "cache")
    with_no_home = {"HOME": None, "XDG_CACHE_HOME": below_a_file}
    ways = {
        "a cache below a file": environment(NUMBA_CACHE_DIR=below_a_file),
        "neither HOME nor TERM": environment(HOME=None, TERM=None),
        "nowhere to write": environment(
            NUMBA_CACHE_DIR=below_a_file, NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator",
            **with_no_home,
        ),
    }  # fmt: skip
    expected = digests(place / "model")
    for name, env in ways.items():
        done = run("fit", place / "votes.csv", "-o", place / "again", "--force", env=env)
        same = done.code == 0 and digests(place / "again") == expected
        verdict.check(same and "Traceback" not in done.err, f"{name}: {done.err[-300:]}")
        if name == "nowhere to write":
            verdict.check("NUMBA_CACHE_DIR" in done.err, f"{name}: what to do is not said")
    with small_disk(place / "full", 300) as full:
        if full is not None:
            env = environment(NUMBA_CACHE_DIR=str(full))
            done = run("fit", place / "votes.csv", "-o", place / "again", "--force", env=env)
            same = done.code == 0 and digests(place / "again") == expected
            verdict.check(same, f"a full disk of compiled code: {done.err[-300:]}")


def _spoken(verdict: Verdict, place: Path) -> None:
    """Read, fit and show ids that are not ASCII, in other languages and encodings."""
    ways = {
        "C": (environment(LC_ALL="C", LANG=None, PYTHONIOENCODING=None), True),
        "POSIX, nothing else": ({"LC_ALL": "POSIX", "PYTHONPATH": str(SOURCE)}, True),
        "ascii": (environment(PYTHONIOENCODING="ascii"), False),
        "latin-1": (environment(PYTHONIOENCODING="latin-1"), False),
    }
    for name, (env, has_signs) in ways.items():
        done = run("fit", place / "чай.csv", "-o", place / "чай", "--force", "--quiet", env=env)
        verdict.check(done.code == 0 and done.err == "", f"{name}: fit: {done.err[-300:]}")
        done = run("rank", place / "чай", env=env)
        verdict.check(done.code == 0 and done.err == "", f"{name}: rank: {done.err[-300:]}")
        done = run("rank", place / "чай", "--format", "csv", env=env)
        if has_signs:
            verdict.check(done.code == 0 and "чай-01" in done.out, f"{name}: csv: {done.err}")
        else:
            told = done.code == 2 and is_one_sentence(done.err)
            verdict.check(told, f"{name}: csv: {done.code} {done.err[-300:]}")


def _closed(verdict: Verdict, place: Path, board: str) -> None:
    """Close what a command writes to, or let somebody read only a part of it."""
    rank = " ".join(command("rank", place / "model", "--format", "csv"))
    fit = " ".join(command("fit", place / "votes.csv", "-o", place / "again", "--force"))
    wrong = " ".join(command("rank", place / "nothing"))
    cases = {  # what a shell runs: exit code, standard output, sentences on standard error
        f"{rank} >&-": (0, "", 0),
        f"{rank} 2>&-": (0, board, 0),
        f"{rank} >&- 2>&-": (0, "", 0),
        f"{rank} <&-": (0, board, 0),
        f"{fit} --quiet >&- 2>&-": (0, "", 0),
        f"set -o pipefail; {rank} | head -1": (0, board.splitlines(True)[0], 0),
        f"set -o pipefail; {rank} | true": (0, "", 0),
        f"set -o pipefail; {fit} --quiet | true": (0, "", 0),
        f"{wrong} 2>&-": (2, "", 0),
        f"{wrong} 2>/dev/full": (2, "", 0),
        f"{rank} >/dev/full": (2, "", 1),
        f"{fit} --quiet >/dev/full": (2, "", 1),
    }
    for case, (code, out, n_sentences) in cases.items():
        done = subprocess.run(
            ["bash", "-c", case], env=environment(), capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        found = done.returncode, done.stdout, done.stderr.count("\n")
        name = case.replace(str(place), "").replace(sys.executable, "python")
        verdict.check(found == (code, out, n_sentences), f"{name}: {found}: {done.stderr[-300:]}")


# --- disk ----------------------------------------------------------------------------------------


@contextmanager
def small_disk(place: Path, kilobytes: int) -> Iterator[Path | None]:
    """Mount a disk of that size; nothing where that is not allowed."""
    place.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)]
    try:
        is_there = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        is_there = False
    try:
        yield place if is_there else None
    finally:
        if is_there:
            subprocess.run(["umount", "-l", str(place)], check=True)


def no_file_above(kilobytes: int) -> None:
    """Let no file of this process grow larger; a signal would tell, which is ignored."""

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    setrlimit(RLIMIT_FSIZE, (1024 * kilobytes,) * 2)


def writers(place: Path, at: Path) -> dict[str, tuple[list[Any], bool]]:
    """Return all commands that write, and whether they replace what is there."""
    votes, model, new = place / "votes.csv", place / "model", place / "new.csv"
    more = ["--quiet", "--force"]
    found: dict[str, list[Any]] = {
        "fit": ["fit", votes, "-o", at / "model", "--checkpoint-seconds", 0, *more],
        "update": ["update", model, new, "-o", at / "model", *more],
        "report": ["report", model, "-o", at / "report.html", *more],
        "simulate": ["simulate", "-o", at / "s.csv", "--truth", at / "t.csv", "--force"],
        "demo": ["demo", "--report", at / "report.html", "--users", 8, "--items", 5, *more],
    }
    for ending in ("csv", "jsonl", "parquet"):
        found[f"predict {ending}"] = ["predict", model, votes, "-o", at / f"p.{ending}", *more]
        found[f"place {ending}"] = ["place", model, votes, "-o", at / f"q.{ending}", *more]
    return {name: (arguments, True) for name, arguments in found.items()}


def disk(cell: str, n_sizes: int = 6) -> bool:
    """Give every command that writes disks of many sizes, with and without something there."""
    verdict, ended = Verdict("disk"), Counter[str]()
    with workspace(users=12, items=6) as place:
        shutil.copyfile(place / "votes.csv", place / "new.csv")
        for name, (arguments, _) in writers(place, place / "disk").items():
            if not any(each in name for each in cell.split(",")):
                continue
            with tempfile.TemporaryDirectory() as roomy:
                run(*writers(place, Path(roomy))[name][0])
                needed = sum(f.stat().st_size for f in Path(roomy).rglob("*")) // 1024 + 1
                keep = Path(shutil.copytree(roomy, place / f"kept {name}"))
            sizes = np.unique(np.linspace(4, 1.1 * needed, n_sizes).astype(int))
            for is_old, kilobytes in ((o, int(k)) for o in (False, True) for k in sizes):
                try_disk(
                    verdict, ended, name, arguments, place, keep if is_old else None, kilobytes
                )
    told = ", ".join(f"{count} {what}" for what, count in ended.items())
    return verdict.tell(f" ({told})")


def try_disk(
    verdict: Verdict, ended: Counter[str], name: str, arguments: list[Any], place: Path,
    old: Path | None, kilobytes: int,
) -> None:  # fmt: skip
    """Run a command on a disk that fills up; with the result of an earlier run there, or not."""
    room = kilobytes + (
        0 if old is None else 2 + sum(f.stat().st_size // 1024 + 4 for f in old.rglob("*"))
    )
    shutil.rmtree(place / "disk", ignore_errors=True)
    with small_disk(place / "disk", room) as at:
        if old is not None:
            shutil.copytree(old, place / "disk", dirs_exist_ok=True)
        before = content(place / "disk")
        limit = None if at is not None else partial(no_file_above, kilobytes)
        done = run(*arguments, preexec_fn=limit)
        after = content(place / "disk")
        case = f"{name}, {kilobytes} kB{', over an old one' if old else ''}"
        if done.code == 0:
            ended["done"] += 1
            verdict.check(set(after) >= set(before) and after != {}, f"{case}: nothing is there")
            return
        ended["refused"] += 1
        # What can be resumed may stay, hidden; of two files, the first may be new.
        after.pop(".model.unfinished", None)
        if name == "simulate" and done.code == 2:
            after.pop("s.csv", None), before.pop("s.csv", None)
        verdict.check(
            done.code == 2 and is_one_sentence(done.err), f"{case}: {done.code} {done.err}"
        )
        verdict.check(after == before, f"{case}: left {sorted(after)} of {sorted(before)}")


# --- signals -------------------------------------------------------------------------------------

# Where a phase begins and ends: the name of a phase, and the function that it is.
PHASES = {
    "reading": "data.readers:read_votes",
    "loading": "storage:load_model",
    "scales": "fitting:_Fit._size",
    "folds": "fitting:_Fit._cross_validate",
    "path": "jobs:FollowPath.run",
    "tests": "estimators.isplitlbi:ISplitLBI._test_after_fit",
    "saving": "storage:save_model",
    "report": "output.report:write_report",
    "evaluating": "evaluation.protocol:evaluate",
    "placing": "output.placing:place_in_bulk",
    "predicting": "output.predictions:predict_in_bulk",
}


def tell_phases(place: str, arguments: list[str]) -> None:
    """Run a command in this process, and write to a file when phases begin and end."""
    log = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for name, where in PHASES.items():
        module, path = where.split(":")
        *owners, attribute = path.split(".")
        owner = importlib.import_module(f"isplitlbi.{module}")
        for each in owners:
            owner = getattr(owner, each)
        setattr(owner, attribute, _telling(log, name, getattr(owner, attribute)))
    from isplitlbi.cli import main

    sys.argv = ["isplitlbi", *arguments]
    os.write(log, f"{monotonic()} begin command\n".encode())
    main()


def _telling(log: int, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        os.write(log, f"{monotonic()} begin {name}\n".encode())
        found = function(*args, **kwargs)
        os.write(log, f"{monotonic()} end {name}\n".encode())
        return found

    return told


class Watched(NamedTuple):
    """A command whose phases are known."""

    name: str
    arguments: list[Any]
    target: str  # what it writes
    resumes: bool


def start_watched(watched: Watched, log: Path) -> subprocess.Popen[str]:
    told = [sys.executable, __file__, "--phases", str(log), *map(str, watched.arguments)]
    return subprocess.Popen(
        told, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def processor_time() -> float:
    """Return what all processes that have ended have taken."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processor_time_of(process: subprocess.Popen[str]) -> float:
    """Return what a process that still runs has taken by now."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def durations(log: Path) -> dict[str, float]:
    """Return how long each phase went on."""
    found, begun = {}, {}
    for line in log.read_text().splitlines():
        time, what, name = line.split()
        if what == "begin":
            begun.setdefault(name, float(time))
        else:
            found[name] = float(time) - begun[name]
    return found


def commands_to_kill(place: Path) -> list[Watched]:
    votes, model, at = place / "votes.csv", place / "model", place / "at"
    often = ["--checkpoint-seconds", "0.05", "--quiet"]
    return [
        Watched("fit", ["fit", votes, "-o", at / "model", *often], "model", True),
        Watched("update", ["update", model, votes, "-o", at / "model", "--quiet"], "model", True),
        Watched("report", ["report", model, "-o", at / "r.html", "--quiet"], "r.html", False),
        Watched("place", ["place", model, votes, "-o", at / "q.csv", "--quiet"], "q.csv", False),
        Watched("predict", ["predict", model, votes, "-o", at / "p.csv"], "p.csv", False),
        Watched("evaluate", ["evaluate", votes, "--repeats", 1, "--quiet"], "", False),
    ]


def signals(n_kills: int, cell: str, seed: int = 0) -> bool:
    """Send signals in every phase of commands that take a while."""
    verdict, rng, count = Verdict("signals"), np.random.default_rng(seed), Counter[str]()
    slowest = 0.0
    with workspace(users=30, items=8, least=30, most=40) as place:
        log, at = place / "log", place / "at"
        for watched in commands_to_kill(place):
            if not any(name in watched.name for name in cell.split(",")):
                continue
            at.mkdir()
            errors = start_watched(watched, log).communicate(timeout=600)[1]
            expected, phases = content(at), durations(log)
            verdict.check(errors == "" and len(phases) > 0, f"{watched.name}: {errors}")
            for phase in phases:
                for number in range(n_kills):
                    shutil.rmtree(at)
                    at.mkdir()
                    log.unlink()
                    after = rng.uniform(0, phases[phase])
                    kind = (signal.SIGTERM, signal.SIGINT)[number % 2]
                    seconds, result = kill(verdict, watched, log, phase, after, kind, at, expected)
                    slowest = max(slowest, seconds)
                    count[f"{watched.name}, {phase}: {result}"] += 1
                for what, number in count.items():
                    if f", {phase}: " in what and what.startswith(watched.name):
                        print(f"{number:>5}  {what}", flush=True)
            shutil.rmtree(at)
            log.unlink()
    return verdict.tell(
        f", {count.total()} signals, the longest end took {slowest:.1f} s of the processor"
    )


def kill(
    verdict: Verdict, watched: Watched, log: Path, phase: str, after: float, kind: int, at: Path,
    expected: dict[str, Any],
) -> tuple[float, str]:  # fmt: skip
    """Send a signal so long after a phase has begun; return what the end took, and what it was."""
    before, process = processor_time(), start_watched(watched, log)
    while not (log.exists() and f"begin {phase}\n" in log.read_text()):
        sleep(0.01)
    sleep(after)
    taken = processor_time_of(process)
    process.send_signal(kind)
    out, err = process.communicate(timeout=300)
    seconds, left = processor_time() - before - taken, content(at)
    case = f"{watched.name}, {signal.Signals(kind).name} {after:.3f} s into {phase}"
    verdict.check(seconds < SOON, f"{case}: {seconds:.1f} s until it ended")
    if process.returncode == 0:
        verdict.check(
            left == expected and err == "", f"{case}: ended, but left {sorted(left)} {err}"
        )
        return seconds, "had ended"
    codes = {signal.SIGTERM: 143, signal.SIGINT: 130}
    told = process.returncode == codes[kind] and is_one_sentence(err)
    verdict.check(told, f"{case}: exit code {process.returncode}: {out}{err}")
    resumes = left.pop(".model.unfinished", 0) is None
    clean = left in ({}, expected)  # a file may be there whole before the command says so
    verdict.check(clean, f"{case}: left {sorted(left)}")
    verdict.check(resumes == ("--resume" in err), f"{case}: {err} but resumes: {resumes}")
    if not watched.resumes or left == expected:
        return seconds, "nothing left" if not left else "all was written"
    done = run(*watched.arguments, *(["--resume"] if resumes else []))
    same = done.code == 0 and content(at) == expected
    verdict.check(same, f"{case}: another model with --resume: {done.err}{sorted(content(at))}")
    return seconds, "resumed to the same model" if resumes else "nothing left"


# --- together ------------------------------------------------------------------------------------

READ = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import soak
from isplitlbi import load_model
from isplitlbi.errors import ISplitLBIError
found = set()
while not Path(sys.argv[4]).exists():
    try:
        model = load_model(sys.argv[3])
        numbers = model.consensus_.tobytes() + model.abnormality_.p_value.tobytes()
        found.add((model.get_params()["random_state"], soak.hashlib.sha256(numbers).hexdigest()))
    except ISplitLBIError as error:
        found.add(("refused", str(error)))
print(soak.json.dumps(sorted(map(list, found), key=str)), soak.json.dumps(len(found)))
"""


def together(n_times: int, n_pairs: int) -> bool:
    """Replace a model while others read it; fit twice into one folder at the same time."""
    verdict = Verdict("together")
    with workspace(users=12, items=6) as place:
        _read_while_replaced(verdict, place, n_times)
        _fit_twice(verdict, place, n_pairs)
    return verdict.tell()


def _read_while_replaced(verdict: Verdict, place: Path, n_times: int) -> None:
    models = [ISplitLBI(random_state=seed).fit(study()) for seed in (0, 1)]
    whole = {}
    for seed, model in enumerate(models):
        numbers = model.consensus_.tobytes() + model.abnormality_.p_value.tobytes()
        whole[seed] = hashlib.sha256(numbers).hexdigest()
    target, stop = place / "shared", place / "stop"
    save_model(models[0], target)
    places = (str(Path(__file__).parent), str(SOURCE), str(target), str(stop))
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READ, *places], env=environment(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    sleep(3.0)
    for number in range(n_times):
        save_model(models[number % 2], target, force=True)
    stop.touch()
    for reader in readers:
        out, err = reader.communicate(timeout=120)
        if verdict.check(reader.returncode == 0, f"the reader fell: {err}"):
            found = json.JSONDecoder().raw_decode(out)[0]
            verdict.check(
                {tuple(each) for each in found} <= set(whole.items()),
                f"a reader saw {[each for each in found if tuple(each) not in whole.items()]}",
            )
            print(f"together: a reader saw {len(found)} models while {n_times} were written")


def _fit_twice(verdict: Verdict, place: Path, n_pairs: int) -> None:
    """Start two fits at once; one may be refused, and what is there is of one of them."""
    run("fit", place / "votes.csv", "-o", place / "other", "--seed", 1, "--quiet")
    either = [digests(place / "model"), digests(place / "other")]
    count = Counter[str]()
    for number in range(n_pairs):
        more = ["--force"] * (number % 2)
        target = place / f"twice-{number}"
        if more:
            shutil.copytree(place / "model", target)
        started = [
            subprocess.Popen(
                command("fit", place / "votes.csv", "-o", target, "--seed", seed, "--quiet", *more),
                env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )
            for seed in (0, 1)
        ]  # fmt: skip
        errors = [process.communicate(timeout=300)[1] for process in started]
        codes = sorted(process.returncode for process in started)
        verdict.check(codes in ([0, 2], [0, 0]), f"two fits ended with {codes}: {errors}")
        for process, err in zip(started, errors, strict=True):
            told = err == "" if process.returncode == 0 else is_one_sentence(err)
            verdict.check(told, f"two fits said {err}")
            count[err.replace(str(place), "").strip() or "done"] += 1
        verdict.check(digests(target) in either, "two fits made a mix")
        left = [each.name for each in place.iterdir() if each.name.startswith(f".{target.name}")]
        verdict.check(not left, f"two fits left {left}")
    for what, n in count.items():
        print(f"together: {n} of {count.total()} fits: {what}")


def main() -> int:
    if sys.argv[1:2] == ["--phases"]:
        tell_phases(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--fits", type=int, default=300)
    parser.add_argument("--kills", type=int, default=4, help="signals in each phase")
    parser.add_argument("--sizes", type=int, default=6, help="of disks, for each command")
    parser.add_argument("--replacements", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=10, help="of fits into one folder")
    parser.add_argument("--cell", default="", help="only commands with one of these in their names")
    asked = parser.parse_args()
    logging.getLogger("isplitlbi").setLevel(logging.ERROR)
    parts = {
        "fits": lambda: fits(asked.fits),
        "bits": bits,
        "compiling": compiling,
        "places": places,
        "disk": lambda: disk(asked.cell, asked.sizes),
        "signals": lambda: signals(asked.kills, asked.cell),
        "together": lambda: together(asked.replacements, asked.pairs),
    }
    met = [part() for name, part in parts.items() if name in asked.only]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
