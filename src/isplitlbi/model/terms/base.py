"""What a term is: one way in which users differ, and what it is in the consensus."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from isplitlbi.data.layout import Sees, Shown
from isplitlbi.typing import Floats

__all__ = ["Term", "Trait"]


class Term(ABC):
    """One way in which users differ from each other.

    A term is frozen and can be hashed: votes are laid out once for the same terms.
    """

    name: str
    sees: ClassVar[Sees] = Sees.PAIR  # what it looks at in a vote


class Trait(Term):
    """A term of one number per user that enters the margin."""

    # Of the number of the consensus, around zero, by its prior.
    consensus_variance: ClassVar[float] = float("inf")

    @abstractmethod
    def column(self, shown: Shown) -> Floats:
        """Return what the number counts for in the margin of every pair shown.

        Unless the side is seen, exchanging the two items must change the sign.
        """
