"""Sides that mean nothing: nothing looks at them, in whatever a model is asked."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from crowds import ITEMS, QUICK, SCORES, assert_same, gather, vote
from isplitlbi import LBI, Comparisons, ISplitLBI, MarginMLE, PerUser, compare, load_model
from isplitlbi.errors import InvalidSetting
from isplitlbi.output.report import write_report
from isplitlbi.runtime.dask import client_of
from isplitlbi.storage import save_model
from votes import rebuilt

METHODS = {
    "all terms": lambda sides: ISplitLBI(**QUICK, sides=sides),
    "the paper's terms": lambda sides: ISplitLBI(terms="paper", **QUICK, sides=sides),
    "lbi": lambda sides: LBI(kappa=10.0, n_folds=2, with_tests=False, sides=sides),
    "margin-mle": lambda sides: MarginMLE(sides=sides),
    "per-user": lambda sides: PerUser(ridge=0.3, sides=sides),
}


def one_sided(n_users=25, seed=0):
    """Draw users who agree, one who always votes left, and one for the first name."""
    rng = np.random.default_rng(seed)
    scores = SCORES[[3, 6, 1, 4, 7, 0, 5, 2]]  # names do not tell which item is better
    voters = {f"normal-{number:02d}": vote(rng, 50, scores) for number in range(n_users)}
    left, right, _ = vote(rng, 120)
    voters["always left"] = left, right, np.ones(120, dtype=int)
    voters["first name"] = left, right, np.where(left < right, 1, -1)
    return gather(voters)


@pytest.fixture(scope="module")
def votes():
    return one_sided()


@pytest.fixture(scope="module")
def mirrored(votes):
    """The same votes, each of them with its sides exchanged or not, by chance."""
    return rebuilt(votes, swapped=np.random.default_rng(1).random(len(votes)) < 0.5)


@pytest.fixture(scope="module")
def unknown(votes):
    return ISplitLBI(**QUICK, sides="unknown").fit(votes)


def kinds_of(tested, users):
    return dict(zip(users, tested.kind, strict=True))


# --- tests of users ------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_who_always_votes_left_is_position_biased_only_where_sides_are_known(name, votes):
    known, unknown = (METHODS[name](sides).fit(votes) for sides in ("known", "unknown"))
    assert known.has_sides and not unknown.has_sides
    assert kinds_of(known.test_users(), votes.users)["always left"] == "position-biased"
    found = unknown.test_users()
    assert not {"position-biased", "leaning", "pattern"} & set(found.kind)
    assert kinds_of(found, votes.users)["always left"] == "careless"
    assert not any(side in words for words in found.explanation for side in ("left", "right"))
    assert not found.side.any()


def test_who_always_votes_for_the_first_name_has_a_taste_and_no_side(unknown, votes):
    assert kinds_of(unknown.abnormality_, votes.users)["first name"] == "different taste"


@pytest.mark.parametrize("name", ["the paper's terms", "margin-mle", "per-user"])
def test_nobody_is_position_biased_where_every_winner_is_on_the_left(name, votes):
    turned = votes.outcome < 0
    winners_first = rebuilt(votes, swapped=turned)
    found = METHODS[name]("known").fit(winners_first).test_users()
    assert "position-biased" not in found.kind
    assert found.kind.count("") > 20


@pytest.mark.parametrize("name", ["all terms", "the paper's terms", "margin-mle", "per-user"])
def test_tests_and_predictions_do_not_change_when_votes_are_mirrored(name, votes, mirrored):
    here, there = (METHODS[name]("unknown").fit(each) for each in (votes, mirrored))
    pairs = [[user, *ITEMS[[0, 5]]] for user in votes.users]
    assert np.abs(here.predict_proba(pairs) - there.predict_proba(pairs)).max() < 1e-10
    assert_same(here.test_users(), there.test_users())


@pytest.mark.parametrize("terms", ["all", "paper"])
def test_what_folds_choose_does_not_change_when_votes_are_mirrored(terms, votes, mirrored):
    settings = {"terms": terms, "n_folds": 2, "with_tests": False, "sides": "unknown"}
    here, there = (ISplitLBI(**settings).fit(each) for each in (votes, mirrored))
    assert (here.time_, here.nu_, here.kappa_) == (there.time_, there.nu_, there.kappa_)
    assert np.abs(here.scores("normal-01") - there.scores("normal-01")).max() < 1e-10
    assert_array_equal(here.entry_times_, there.entry_times_)


def test_features_follow_the_items_when_votes_are_mirrored(votes):
    rng = np.random.default_rng(2)
    votes = replace(votes, time=None)
    longer = Comparisons.from_arrays(
        votes.users[votes.user], votes.items[votes.left], votes.items[votes.right], votes.outcome,
        features={"length": rng.normal(size=len(votes))},
    )  # fmt: skip
    other = rebuilt(longer, swapped=rng.random(len(votes)) < 0.5)
    here, there = (
        ISplitLBI(**QUICK, sides="unknown", with_tests=False).fit(each) for each in (longer, other)
    )
    assert np.abs(here.scores() - there.scores()).max() < 1e-10
    effects = [model.features()[0].effect for model in (here, there)]
    assert effects[0] == pytest.approx(effects[1], abs=1e-10)


@pytest.mark.parametrize("estimator", [MarginMLE, PerUser, LBI])
def test_other_words_for_sides_are_refused(estimator, votes):
    with pytest.raises(InvalidSetting, match="sides 'top' is not one of known, unknown"):
        estimator(sides="top").fit(votes)


# --- what comes after ----------------------------------------------------------------------


def test_a_pair_is_one_question_among_the_votes_that_tell(unknown, mirrored):
    other = ISplitLBI(**QUICK, sides="unknown").fit(mirrored)
    told = unknown.telling_votes("always left")
    assert told == other.telling_votes("always left")
    assert len({(vote.left, vote.right, vote.outcome) for vote in told}) == len(told)
    assert all(vote.left < vote.right for vote in told)


def test_nobody_has_a_side_on_cards_and_in_the_report(unknown, tmp_path):
    assert unknown.user_card("always left").side is None
    assert "side" not in unknown.user_cards().to_frame().columns
    write_report(unknown, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("one side", "the left side", "Leans to", "decided vote is for", "change sides"):
        assert words not in text
    assert '"position-biased"' not in text.split("<script")[0]


def test_a_stored_model_still_knows_that_sides_mean_nothing(unknown, votes, tmp_path):
    save_model(unknown, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert not loaded.has_sides
    assert_same(loaded.abnormality_, unknown.abnormality_)
    assert "position-biased" not in loaded.test_users(fdr=0.2).kind
    assert not loaded.abnormality_.ordinary.has_sides
    one = MarginMLE(sides="unknown").fit(votes)
    save_model(one, tmp_path / "one")
    assert not load_model(tmp_path / "one").has_sides


def test_who_is_placed_and_always_votes_left_is_not_position_biased(unknown, votes):
    newcomer = votes.alone(votes.user == votes.users.tolist().index("always left"))
    newcomer = replace(newcomer, users=np.array(["new"]))
    assert unknown.place(newcomer).abnormality_.kind == ["careless"]
    known = ISplitLBI(**QUICK).fit(votes)
    assert known.place(newcomer).abnormality_.kind == ["position-biased"]


@pytest.mark.parametrize("retest", [False, True])
def test_an_update_keeps_that_sides_mean_nothing(votes, retest):
    is_new = votes.user == votes.users.tolist().index("always left")
    before = ISplitLBI(**QUICK, sides="unknown").fit(votes.alone(~is_new))
    after = before.update(votes.alone(is_new), retest=retest)
    assert not after.has_sides
    assert "side" not in after.terms_.names
    assert kinds_of(after.abnormality_, after.users_)["always left"] == "careless"


def test_mirrored_votes_are_the_same_votes_to_compare(votes, mirrored, unknown):
    other = ISplitLBI(**QUICK, sides="unknown", with_tests=False).fit(mirrored)
    changes = compare(unknown, other)
    assert changes.is_same
    assert (changes.added.votes_in_both, changes.added.votes_added) == (len(votes), 0)
    known = [MarginMLE().fit(each) for each in (votes, mirrored)]
    assert compare(*known).added.votes_added > len(votes) // 4


def test_workers_find_nobody_position_biased_either(votes, unknown):
    with client_of(None, 2) as client:  # processes that need not load what compiles the loops
        found = ISplitLBI(**QUICK, sides="unknown", backend="numpy").fit(votes, client=client)
    assert found.abnormality_.kind == unknown.abnormality_.kind
