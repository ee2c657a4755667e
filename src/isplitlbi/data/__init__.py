"""What comes in: files, votes, and where the parameters of users lie."""

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.features import Features, Units
from isplitlbi.data.formats import FORMATS
from isplitlbi.data.layout import Layout, Sees, tally
from isplitlbi.data.notes import Note
from isplitlbi.data.outcomes import OUTCOMES, WINNERS
from isplitlbi.data.presets import PRESETS, Preset
from isplitlbi.data.readers import Parts, Reading, read_pairs, read_votes
from isplitlbi.data.splits import (
    folds_within_user,
    held_out_parts,
    in_order,
    split_within_user,
)
from isplitlbi.data.summary import Summary
from isplitlbi.data.vocabulary import Vocabulary

__all__ = [
    "FORMATS",
    "OUTCOMES",
    "PRESETS",
    "WINNERS",
    "Comparisons",
    "Features",
    "Layout",
    "Note",
    "Parts",
    "Preset",
    "Reading",
    "Sees",
    "Summary",
    "Units",
    "Vocabulary",
    "folds_within_user",
    "held_out_parts",
    "in_order",
    "read_pairs",
    "read_votes",
    "split_within_user",
    "tally",
]
