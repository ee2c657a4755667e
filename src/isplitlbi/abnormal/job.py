"""The test of users as a job: on this machine, or on all machines that hold users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from isplitlbi.abnormal import Abnormality, find_abnormal, joined
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Consensus
from isplitlbi.runtime.base import Runtime, Workforce
from isplitlbi.runtime.progress import Progress, Reporter

__all__ = ["FindAbnormal", "find_abnormal_on"]


@dataclass(frozen=True, eq=False)
class FindAbnormal:
    """Test every user against the consensus; the attributes are those of `find_abnormal`."""

    link: Link
    consensus: Consensus
    fdr: float = 0.05
    seed: int = 0
    delta: float = 1e-3
    has_sides: bool = True

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> Abnormality:
        """Return what is found of the users here."""

        def tell(done: float) -> None:
            reporter.reach(Progress(done, doing="testing users"))

        return find_abnormal(
            votes, self.link, self.consensus, fdr=self.fdr, seed=self.seed, delta=self.delta,
            has_sides=self.has_sides, runtime=runtime, progress=tell,
        )  # fmt: skip

    def join(self, parts: Sequence[Abnormality]) -> Abnormality:
        """Put together what was found of all users."""
        return joined(parts)


def find_abnormal_on(
    runtime: Workforce, job: FindAbnormal, progress: Callable[[float], None] | None = None
) -> Abnormality:
    """Test every user, wherever they are; progress is called with the share of the work done."""

    def tell(reached: Progress) -> None:
        if progress is not None:
            progress(reached.done)

    found: Abnormality = runtime.run(job, Reporter(tell))
    return found
