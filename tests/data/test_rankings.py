from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.readers import read_pairs, read_votes
from isplitlbi.data.several import load_any
from isplitlbi.data.splits import split_folds
from votes import as_tuples, assert_same
