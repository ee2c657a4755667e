"""The evaluation: fair splits, the same for all, and what numbers and sentences follow."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student
from sklearn.metrics import f1_score, log_loss, precision_score, recall_score

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.diagnostics.check import check
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators import AlphaCut, MarginMLE, PerUser, VoteEstimator
from isplitlbi.evaluation.protocol import (
    FAMILIES,
    METHODS,
    METRICS,
    STATISTICS,
    Evaluation,
    MethodSettings,
    evaluate,
    methods_named,
)
from isplitlbi.evaluation.simulate import few_votes_study, simulate
from isplitlbi.model.metrics import confusion, paper_f1
from votes import multiset, random_votes

COMMON = "margin-mle-bt"


@pytest.fixture(scope="module")
def votes():
    return simulate(
        n_users=6, n_items=5, votes_per_user=(20, 45), score_sd=1.0, deviation_sd=3.0,
        threshold=0.7, random_state=4,
    ).votes  # fmt: skip


@pytest.fixture(scope="module")
def weighted_votes():
    return random_votes(3, n_users=4, n_votes=120, tie_share=0.3, weighted=True)


class Spy(VoteEstimator):
    """Remembers what it is given; predicts ties."""

    def __init__(self, seen):
        self.seen = seen

    def fit(self, X):
        self.seen.append([X])
        return self._know(X.users, X.items)

    def predict(self, X):
        self.seen[-1].append(X)
        return np.zeros(len(X), dtype=np.int8)


@pytest.fixture
def spies(monkeypatch):
    """Two methods that remember their settings and splits, by name."""
    seen = {"spy-one": [], "spy-two": []}
    told = {name: [] for name in seen}
    for name, own in seen.items():

        def make(setting, name=name, own=own):
            told[name].append(setting)
            return Spy(own)

        monkeypatch.setitem(METHODS, name, make)
    return seen, told


def splits_of(votes, spies, **options):
    """Return the training and held-out votes of every repeat."""
    seen, _ = spies
    evaluate(votes, ["spy-one"], **{"repeats": 5} | options)
    return seen["spy-one"]


def made_up(scores, test_share=0.2):
    """Return an evaluation with these micro-F1s, by method, and nothing else of interest."""
    rows = [
        {"method": method, "repeat": repeat} | dict.fromkeys(METRICS, 0.5) | {"micro_f1": value}
        for method, values in scores.items()
        for repeat, value in enumerate(values)
    ]
    settings = {"repeats": len(rows) // len(scores), "test_share": test_share}
    return Evaluation(settings, pl.DataFrame(rows), {})


def test_methods_with_a_path_predict_by_the_estimate_asked_for(votes):
    dense, sparse = (
        evaluate(votes, ["lbi", COMMON], repeats=1, estimate=estimate)
        for estimate in ("dense", "sparse")
    )
    assert dense.of("lbi", "log_loss") != sparse.of("lbi", "log_loss")
    assert dense.of(COMMON, "log_loss") == sparse.of(COMMON, "log_loss")
    assert sparse.settings["estimate"] == "sparse"
    with pytest.raises(InvalidSetting, match="estimate 'thin' is not one of dense, sparse"):
        evaluate(votes, [COMMON], repeats=1, estimate="thin")


# --- names ---------------------------------------------------------------------------------


def test_families_stand_for_their_methods_each_once_and_in_order():
    assert methods_named(["margin-mle"]) == [
        f"margin-mle-{link}" for link in ("uniform", "bt", "tm")
    ]
    assert methods_named([COMMON, "lbi", "margin-mle"]) == [
        COMMON, "lbi", "margin-mle-uniform", "margin-mle-tm",
    ]  # fmt: skip
    assert methods_named(["all"]) == list(METHODS)
    assert len(FAMILIES["alpha-cut"]) == 8
    assert all(name.startswith("alpha-cut-") for name in FAMILIES["alpha-cut"])


@pytest.mark.parametrize(
    ("name", "near"),
    [("isplitlb", "isplitlbi"), ("margin-mle-b", COMMON), ("peruser", "per-user")],
)
def test_an_unknown_method_is_an_error_that_names_the_nearest(votes, name, near):
    with pytest.raises(
        InvalidSetting, match=f"no method '{name}'; the nearest is '{near}'"
    ) as caught:
        evaluate(votes, [COMMON, name])
    assert all(known in str(caught.value) for known in METHODS)


def test_at_least_one_method_must_be_named(votes):
    with pytest.raises(InvalidSetting, match="at least one method"):
        evaluate(votes, [])


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_the_settings_that_concern_it(name, monkeypatch, votes):
    made = []
    original = METHODS[name]

    def make(setting):
        made.append(original(setting).get_params())
        return Spy([])

    monkeypatch.setitem(METHODS, name, make)
    evaluate(votes, [name], repeats=1, rule="threshold", scoring="macro_f1", seed=9, n_jobs=2)
    (settings,) = made
    given = {"rule": "threshold", "scoring": "macro_f1", "random_state": 9, "n_jobs": 2}
    expected = {key: value for key, value in given.items() if key in settings}
    assert expected
    assert {key: settings[key] for key in expected} == expected


@pytest.mark.parametrize("name", ["isplitlbi", "lbi"])
def test_no_time_is_spent_on_testing_users(name):
    settings = MethodSettings("map", "log_loss", None, 0)
    assert METHODS[name](settings).get_params()["with_tests"] is False


# --- splits --------------------------------------------------------------------------------


@pytest.mark.parametrize("test_share", [0.2, 0.35])
def test_a_share_of_every_users_votes_and_outcomes_is_held_out(votes, spies, test_share):
    options = {} if test_share == 0.2 else {"test_share": test_share}
    for training, held_out in splits_of(votes, spies, **options):
        assert multiset(training) + multiset(held_out) == multiset(votes)
        for part in ([1, 0, -1], [1], [0], [-1]):
            every, out = (
                np.bincount(some.user, np.isin(some.outcome, part), minlength=votes.n_users)
                for some in (votes, held_out)
            )
            assert np.abs(out - test_share * every).max() < 1.0 + 1e-9


@pytest.mark.parametrize("grouped", [True, False], ids=["grouped", "not"])
def test_votes_of_one_group_stay_on_one_side_and_others_do_not(spies, grouped):
    # Four users with twelve groups of four votes, each on a pair of its own.
    group = np.arange(192) // 4
    outcome = np.random.default_rng(0).choice([1, 0, -1], size=192)
    columns = (group // 12, group, group + 1000, outcome)
    votes = Comparisons.from_arrays(*columns, group=group if grouped else None)
    torn = 0
    for training, held_out in splits_of(votes, spies):
        assert multiset(training) + multiset(held_out) == multiset(votes)
        out = np.unique(held_out.items[held_out.left])
        torn += len(np.intersect1d(training.items[training.left], out))
        if grouped:
            assert np.abs(np.bincount(out // 12, minlength=4) - 0.2 * 12).max() < 1.0
    assert (torn == 0) == grouped


def test_repeats_are_different_splits_which_all_methods_share(votes, spies):
    seen, _ = spies
    evaluate(votes, ["spy-two", "spy-one"], repeats=4)
    assert len(seen["spy-one"]) == 4
    for one, other in zip(seen["spy-one"], seen["spy-two"], strict=True):
        assert [multiset(part) for part in one] == [multiset(part) for part in other]
    held_out = [multiset(part) for _, part in seen["spy-one"]]
    assert all(held_out[0] != other for other in held_out[1:])


def test_more_repeats_begin_with_the_same_splits(votes, spies):
    few = [multiset(held_out) for _, held_out in splits_of(votes, spies, repeats=2)]
    spies[0]["spy-one"].clear()
    many = [multiset(held_out) for _, held_out in splits_of(votes, spies, repeats=3)]
    assert many[:2] == few


def test_methods_are_told_rule_threads_and_seed(votes, spies):
    _, told = spies
    evaluate(votes, ["spy-one"], repeats=2, rule="threshold", seed=5, n_jobs=3)
    for setting in told["spy-one"]:
        assert (setting.rule, setting.n_jobs, setting.seed) == ("threshold", 3, 5)
    assert len(told["spy-one"]) == 2


def test_users_with_few_votes_are_left_out(votes, spies):
    counts = votes.votes_per_user
    least = int(np.sort(counts)[2])
    seen, _ = spies
    found = evaluate(votes, ["spy-one"], repeats=1, min_votes=least)
    ((training, held_out),) = seen["spy-one"]
    kept = set(training.users[training.user]) | set(held_out.users[held_out.user])
    assert kept == set(votes.users[counts >= least])
    assert 0 < len(kept) < votes.n_users
    assert found.settings["users"] == len(kept)
    assert found.settings["votes"] == counts[counts >= least].sum()
    assert found.settings["votes"] == len(training) + len(held_out)


def test_more_votes_than_anybody_has_are_an_error(votes):
    most = votes.votes_per_user.max()
    evaluated = evaluate(votes, [COMMON], repeats=1, min_votes=most)
    assert evaluated.settings["users"] == 1
    with pytest.raises(InvalidVotes, match=f"no user has {most + 1} votes; .* one has {most}"):
        evaluate(votes, [COMMON], min_votes=most + 1)


def test_a_single_vote_cannot_be_split():
    vote = Comparisons.from_arrays(["ann"], ["tea"], ["milk"], [1])
    with pytest.raises(InvalidVotes, match="1 vote is too few to hold any out"):
        evaluate(vote, [COMMON])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"repeats": 0}, "repeats is 0"),
        ({"rule": "dice"}, "rule 'dice' is not one of map, threshold"),
        ({"scoring": "auc"}, "scoring 'auc' is not one of log_loss"),
        ({"test_share": 0.0}, "test_share is 0.0"),
        ({"test_share": 1.0}, "test_share is 1.0"),
    ],
)
def test_settings_that_cannot_be_are_errors(votes, options, said):
    with pytest.raises(InvalidSetting, match=said):
        evaluate(votes, [COMMON], **options)


def test_progress_goes_from_nothing_to_all(votes, spies):
    told = []
    evaluate(
        votes, ["spy-one", "spy-two"], repeats=2, progress=lambda *said: told.append(said)
    )  # fmt: skip
    assert told == [
        (0.0, "repeat 1, spy-one"), (0.25, "repeat 1, spy-two"),
        (0.5, "repeat 2, spy-one"), (0.75, "repeat 2, spy-two"), (1.0, "done"),
    ]  # fmt: skip


# --- scores --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evaluation(votes):
    """A short one, of a method with probabilities and one without."""
    with pytest.MonkeyPatch.context() as patch:
        quick = AlphaCut("ls-ridge", penalties=[0.01], n_members=5, n_folds=2)
        patch.setitem(METHODS, "alpha-cut-ls-ridge", lambda setting: quick)
        patch.setitem(METHODS, "per-user", lambda setting: PerUser(0.3, rule=setting.rule))
        return evaluate(votes, ["per-user", "alpha-cut-ls-ridge", COMMON], repeats=3, seed=2)


@pytest.mark.parametrize("rule", ["map", "threshold"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_every_score_equals_a_count_by_hand(request, spies, rule, weighted):
    votes = request.getfixturevalue("weighted_votes" if weighted else "votes")
    found = evaluate(votes, ["spy-one", "margin-mle-tm"], repeats=2, rule=rule, seed=1)
    for repeat, (training, held_out) in enumerate(spies[0]["spy-one"]):
        model = MarginMLE("probit", rule=rule).fit(training)
        truth, predicted = held_out.outcome, model.predict(held_out)
        options = {"labels": [1, 0, -1], "zero_division": 0, "sample_weight": held_out.weight}
        precisions = precision_score(truth, predicted, average=None, **options)
        recalls = recall_score(truth, predicted, average=None, **options)
        by_threshold = model.predict(held_out, rule="threshold")
        papers = paper_f1(confusion(truth, by_threshold, held_out.weight))
        expected = {
            "micro_f1": f1_score(truth, predicted, average="micro", **options),
            "macro_f1": f1_score(truth, predicted, average="macro", **options),
            "log_loss": log_loss(
                truth, model.predict_proba(held_out), labels=[-1, 0, 1],
                sample_weight=held_out.weight,
            ),
            "paper_micro_f1": papers[0],
            "paper_macro_f1": papers[1],
        }  # fmt: skip
        for side, p, r in zip(("left", "tie", "right"), precisions, recalls, strict=True):
            expected |= {f"precision_{side}": p, f"recall_{side}": r}
        scores = {metric: found.of("margin-mle-tm", metric)[repeat] for metric in expected}
        assert scores == pytest.approx(expected)
        assert set(METRICS) - set(expected) == {"seconds"}


def test_the_papers_f1s_do_not_depend_on_the_rule(votes):
    one, other = (evaluate(votes, [COMMON], repeats=2, rule=rule) for rule in ("map", "threshold"))
    for metric in ("paper_micro_f1", "paper_macro_f1", "log_loss"):
        np.testing.assert_array_equal(one.of(COMMON, metric), other.of(COMMON, metric))
    assert not np.array_equal(one.of(COMMON, "micro_f1"), other.of(COMMON, "micro_f1"))


def test_there_is_a_row_per_method_and_repeat(evaluation):
    assert evaluation.methods == ["per-user", "alpha-cut-ls-ridge", COMMON]
    assert evaluation.scores.columns == ["method", "repeat", *METRICS]
    assert evaluation.scores["repeat"].to_list() == [0, 1, 2] * 3
    assert evaluation.scores["seconds"].min() > 0.0


def test_the_same_seed_gives_the_same_table_and_another_another(votes, monkeypatch):
    def quick(setting):
        return PerUser((0.1, 1.0), n_folds=2, random_state=setting.seed)

    monkeypatch.setitem(METHODS, "per-user", quick)

    def table(seed):
        found = evaluate(votes, ["per-user", COMMON], repeats=2, seed=seed)
        return found.scores.drop("seconds"), found.reliability

    (one, bins), (again, same_bins) = table(0), table(0)
    assert one.equals(again)
    np.testing.assert_array_equal(bins["per-user"], same_bins["per-user"])
    other, _ = table(1)
    assert not one.equals(other)


def test_methods_without_probabilities_have_no_log_loss(evaluation):
    assert evaluation.scores.filter(method="alpha-cut-ls-ridge")["log_loss"].null_count() == 3
    assert evaluation.statistics("alpha-cut-ls-ridge", "log_loss") == dict.fromkeys(STATISTICS)
    assert set(evaluation.reliability) == {"per-user", COMMON}
    assert evaluation.statistics(COMMON, "log_loss")["median"] > 0.3
    assert evaluation.statistics("alpha-cut-ls-ridge", "paper_micro_f1")["median"] > 0.3


def test_reliability_pools_the_held_out_votes_of_all_repeats(votes, spies):
    splits = splits_of(votes, spies, repeats=3, seed=2)
    found = evaluate(votes, [COMMON], repeats=3, seed=2)
    bins = found.reliability[COMMON]
    assert bins[:, 0].sum() == 3 * sum(len(held_out) for _, held_out in splits)
    chances = np.concatenate([
        MarginMLE().fit(training).predict_proba(held_out) for training, held_out in splits
    ])  # fmt: skip
    truth = np.concatenate([held_out.outcome for _, held_out in splits])
    happened = truth[:, None] == [-1, 0, 1]
    likely = (chances >= 0.6) & (chances < 0.7)
    expected = [likely.sum(), chances[likely].mean(), happened[likely].mean()]
    np.testing.assert_allclose(bins[6], expected)


# --- what is made of them ------------------------------------------------------------------


def test_statistics_are_those_of_numpy():
    values = [0.7, 0.5, 0.9, 0.6]
    found = made_up({"lbi": values}).statistics("lbi", "micro_f1")
    assert list(found) == ["min", "median", "max", "std"]
    assert found == pytest.approx(
        {"min": 0.5, "median": 0.65, "max": 0.9, "std": np.std(values, ddof=1)}
    )
    one = made_up({"lbi": [0.7]}).statistics("lbi", "micro_f1")
    assert one == {"min": 0.7, "median": 0.7, "max": 0.7, "std": None}


def test_the_median_lies_between_the_extremes(evaluation):
    varied = 0
    for method in evaluation.methods:
        for metric in METRICS:
            found = evaluation.statistics(method, metric)
            if found["min"] is not None:
                assert found["min"] <= found["median"] <= found["max"]
                varied += found["min"] < found["median"] < found["max"]
    assert varied > 10


def test_the_summary_has_a_row_per_method_and_four_columns_per_metric(evaluation):
    table = evaluation.summary()
    names = [f"{metric}_{statistic}" for metric in METRICS for statistic in STATISTICS]
    assert table.columns == ["method", *names]
    assert table["method"].to_list() == evaluation.methods
    assert table["log_loss_std"].to_list()[1] is None
    expected = [evaluation.statistics(m, "macro_f1")["max"] for m in evaluation.methods]
    assert table["macro_f1_max"].to_list() == expected


def test_all_of_it_can_be_written_as_json(evaluation):
    whole = evaluation.as_dict()
    assert json.loads(json.dumps(whole, allow_nan=False)) == whole
    assert set(whole) == {"settings", "verdict", "comparison", "methods"}
    assert [method["name"] for method in whole["methods"]] == evaluation.methods
    own, ensemble, common = whole["methods"]
    assert own["micro_f1"] == evaluation.statistics("per-user", "micro_f1")
    assert set(METRICS) < set(own)
    assert ensemble["log_loss"]["median"] is None
    assert ensemble["reliability"] is None
    assert len(common["reliability"]) == 10
    bins = [bin for bin in common["reliability"] if bin["predictions"]]
    assert all(0.0 <= bin["predicted"] <= 1.0 for bin in bins)
    empty = [bin for bin in common["reliability"] if not bin["predictions"]]
    assert all(bin["predicted"] is bin["happened"] is None for bin in empty)
    assert whole["verdict"] == evaluation.verdict()
    assert whole["comparison"] == evaluation.comparison()


def test_the_settings_say_what_was_done(evaluation, votes):
    expected = {
        "votes": len(votes), "users": 6, "items": 5, "repeats": 3, "test_share": 0.2,
        "min_votes": 1, "grouped": False, "rule": "map", "seed": 2,
        "methods": evaluation.methods,
    }  # fmt: skip
    assert {name: evaluation.settings[name] for name in expected} == expected
    grouped = random_votes(6, n_users=4, n_votes=80, group_size=2)
    assert evaluate(grouped, [COMMON], repeats=1).settings["grouped"]


def test_the_summary_of_one_repeat_has_no_spread(votes):
    found = evaluate(votes, [COMMON], repeats=1)
    json.dumps(found.as_dict(), allow_nan=False)
    assert found.summary()["micro_f1_std"].to_list() == [None]
    assert found.summary()["micro_f1_median"].null_count() == 0


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_the_test_is_the_corrected_one_of_nadeau_and_bengio(share):
    rng = np.random.default_rng(0)
    one, other = rng.uniform(0.5, 0.7, size=(2, 7))
    found = made_up({"lbi": one, "per-user": other}, test_share=share)
    difference = one - other
    spread = np.sqrt(difference.var(ddof=1) * (1 / 7 + share / (1 - share)))
    p = 2 * student.cdf(-abs(difference.mean() / spread), df=6)
    assert found.compare("lbi", "per-user") == pytest.approx((difference.mean(), p))
    assert found.compare("per-user", "lbi") == pytest.approx((-difference.mean(), p))
    assert 0.01 < p < 1.0
    # The plain paired test would be surer than it may be.
    plain = 2 * student.cdf(-abs(difference.mean()) / difference.std(ddof=1) * np.sqrt(7), df=6)
    assert plain < p


def test_another_metric_can_be_compared(evaluation):
    gain, _ = evaluation.compare("per-user", COMMON, "log_loss")
    difference = evaluation.of("per-user", "log_loss") - evaluation.of(COMMON, "log_loss")
    assert gain == pytest.approx(difference.mean())


def test_one_repeat_has_a_difference_but_no_test():
    gain, p = made_up({"lbi": [0.7], "per-user": [0.6]}).compare("lbi", "per-user")
    assert gain == pytest.approx(0.1)
    assert np.isnan(p)


def test_differences_without_any_spread_are_sure_or_none():
    assert made_up({"a": [0.75] * 3, "b": [0.5] * 3}).compare("a", "b") == (0.25, 0.0)
    assert made_up({"a": [0.75] * 3, "b": [0.75] * 3}).compare("a", "b") == (0.0, 1.0)


# --- what is said of it ---------------------------------------------------------------------

NOISE = np.array([0.01, -0.01, 0.005, -0.005, 0.0])
BETTER, WORSE = 0.70 + NOISE[::-1], 0.50 + NOISE[::-1]
FLAT = np.full(5, 0.6) + NOISE


def test_isplitlbi_is_compared_with_one_score_per_item():
    found = made_up({COMMON: FLAT, "isplitlbi": BETTER - 0.09})
    _, p = found.compare("isplitlbi", COMMON)
    assert p > 1e-4
    assert found.comparison() == (
        "isplitlbi predicts 61.0 % of the held-out votes, margin-mle-bt 60.0 %: +1.0 points "
        f"(corrected paired t-test over 5 repeats, p = {p:.2g})."
    )
    # Whatever else was tried, and in whatever order.
    more = made_up({"per-user": FLAT + 0.2, "isplitlbi": BETTER - 0.09, COMMON: FLAT})
    assert more.comparison() == found.comparison()
    sure = made_up({"isplitlbi": FLAT + 0.1, COMMON: FLAT})
    assert sure.comparison().endswith("over 5 repeats, p < 0.0001).")


def test_one_repeat_does_not_tell_how_sure_a_difference_is():
    found = made_up({"isplitlbi": [0.9], COMMON: [0.3]}).comparison()
    assert found.endswith("+60.0 points (one repeat does not tell how sure that is).")


def test_a_single_method_is_compared_with_nothing():
    found = made_up({"per-user": [0.5, 0.625, 0.75]}).comparison()
    assert found == "per-user predicts 62.5 % of the held-out votes."


def test_without_the_common_model_the_next_best_is_compared_with():
    found = made_up({"lbi": FLAT, "isplitlbi": WORSE, "per-user": WORSE}).comparison()
    assert found.startswith("isplitlbi predicts 50.0 %")
    assert "lbi 60.0 %: -10.0 points" in found


def test_without_isplitlbi_the_two_best_are_compared():
    found = made_up({COMMON: WORSE, "lbi": FLAT, "per-user": BETTER}).comparison()
    assert found.startswith("per-user predicts 70.0 %")
    assert "lbi 60.0 %: +10.0 points" in found


def test_the_verdict_is_that_of_check_on_the_users_who_are_kept():
    votes = few_votes_study(0).votes
    fewest = int(np.median(votes.votes_per_user))
    found = evaluate(votes, [COMMON], repeats=1, min_votes=fewest)
    kept = votes.subset((votes.votes_per_user >= fewest)[votes.user])
    (said,) = [each for each in check(kept).findings if each.code == "individual-rankings"]
    assert found.verdict() == said.sentence
    assert found.verdict() != evaluate(votes, [COMMON], repeats=1).verdict()


def test_of_a_single_user_there_is_no_verdict():
    votes = simulate(n_users=3, votes_per_user=(30, 40), random_state=0).votes
    found = evaluate(votes.subset(votes.user == 0), [COMMON], repeats=1)
    assert found.verdict() is None
    assert found.comparison().startswith("margin-mle-bt predicts")


# --- votes without ties, with features, and terms --------------------------------------------


@pytest.mark.parametrize("method", ["isplitlbi", "lbi", "per-user", COMMON, "alpha-cut-ls-ridge"])
def test_votes_without_ties_and_with_features_are_evaluated(method):
    forced = simulate(
        n_users=6, n_items=5, votes_per_user=(20, 45), score_sd=1.0, threshold=None,
        features={"length": 0.5}, random_state=4,
    ).votes  # fmt: skip
    found = evaluate(forced, [method], repeats=1)
    assert found.settings["ties"] == "none"
    (loss,) = found.of(method, "log_loss")
    assert np.isnan(loss) if method.startswith("alpha-cut") else 0.0 < loss < 2.0
    assert 0.4 < found.of(method, "micro_f1")[0] <= 1.0
    json.dumps(found.as_dict(), allow_nan=False)


def test_whether_there_are_ties_is_found_from_all_votes():
    """A single tie may be held out; the training votes must still know of it."""
    votes = simulate(
        n_users=4, n_items=4, votes_per_user=(20, 30), score_sd=1.0, threshold=None, random_state=1
    ).votes
    outcome = votes.outcome.copy()
    outcome[0] = 0
    one_tie = Comparisons.from_arrays(
        votes.users[votes.user], votes.items[votes.left], votes.items[votes.right], outcome
    )
    found = evaluate(one_tie, ["isplitlbi"], repeats=2)
    assert found.settings["ties"] == "allowed"
    assert np.all(found.of("isplitlbi", "log_loss") < 2.0)


def test_terms_ties_and_sides_reach_the_method():
    told = MethodSettings("map", "log_loss", None, 0, "taste,side", "allowed", "unknown")
    model = METHODS["isplitlbi"](told)
    assert (model.terms, model.ties, model.sides) == ("taste,side", "allowed", "unknown")
    assert model.nu is None
    paper = METHODS["isplitlbi"](told._replace(terms="paper"))
    assert len(paper.nu) == len(paper.kappa) == 3


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"terms": "mood"}, "term 'mood' is not one of all, paper"),
        ({"ties": "few"}, "ties 'few' is not one of auto, allowed, none"),
        ({"sides": "both"}, "sides 'both' is not one of known, unknown"),
    ],
    ids=["terms", "ties", "sides"],
)
def test_terms_that_cannot_be_are_refused_before_anything_else(votes, asked, message):
    with pytest.raises(InvalidSetting, match=message):
        evaluate(votes, [COMMON], repeats=1, **asked)
