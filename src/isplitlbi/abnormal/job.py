"""The test of users as a job: on this machine, or on all machines that hold users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.finding import find_abnormal_in
from isplitlbi.abnormal.found import Abnormality, joined
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Consensus
from isplitlbi.runtime.base import Runtime, Workforce
from isplitlbi.runtime.progress import Progress, Reporter

__all__ = ["FindAbnormal", "find_abnormal_on"]


@dataclass(frozen=True, eq=False)
class FindAbnormal:
    """Test every user against the consensus; the attributes are those of `find_abnormal`.

    Besides, ``has_sides`` says whether left and right mean something.
    """

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

        inputs = Inputs.of(
            votes, self.link, self.consensus, delta=self.delta, seed=self.seed, runtime=runtime,
            has_sides=self.has_sides,
        )  # fmt: skip
        return find_abnormal_in(inputs, self.fdr, tell)

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
