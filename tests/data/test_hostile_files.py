"""Whatever stands in a file, votes are read from it or one sentence says why not, with the row.

`benchmarks/hostile_files.py` tries the same with as many files as one likes.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import DRAWN, frame_of, judged, judged_frame
from isplitlbi.data.presets import PRESETS
from layouts import LAYOUTS

quick = settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("name", DRAWN)
@quick
@given(random=st.randoms(use_true_random=True))
def test_any_values_are_read_or_refused_in_one_sentence(tmp_path, name, random):
    draw, example = DRAWN[name]
    assert judged(random, draw(random, example), tmp_path)


@pytest.mark.parametrize("name", LAYOUTS)
@quick
@given(random=st.randoms(use_true_random=True))
def test_frames_with_columns_of_any_type_are_read_or_refused_in_one_sentence(name, random):
    assert judged_frame(frame_of(random, name))


def test_every_preset_is_tried_with_every_kind_of_value():
    tried = {name.split(",")[0] for name in LAYOUTS} | {"counts", "llmfao"}
    assert tried == set(PRESETS)
