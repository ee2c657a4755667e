"""Are abnormal users flagged at the rate that was promised, and is the right kind named?

    python benchmarks/abnormal.py [--studies 5] [--seeds 20] [--first-seed 0]

    null       everybody follows the consensus, 5, 20, 100 or 300 votes each: p-values are uniform
    mixtures   10 or 30 % of the users have a taste of their own: the share named wrongly
    paper      the paper's simulation: precision and recall at fdr 0.05
    harder     deviations of standard deviation 1 instead of 5: AUC of the p-values
    malicious  one user in ten reversed, random, always left or always tie: found, and named so
    files      real votes, where they are (see data.py): who is flagged
    time       of the tests, beside the cross-validated fit in the same minute

The exit code is 1 where a target is missed; each line says which.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from statistics import median
from time import perf_counter

import numpy as np
from scipy.stats import kstest
from sklearn.metrics import roc_auc_score

import data
from isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import (
    MALICIOUS_KINDS,
    Study,
    malicious_study,
    paper_study,
    simulate,
)

FDR = 0.05
NAMED = dict(
    zip(MALICIOUS_KINDS, ("reversed", "careless", "position-biased", "tie-happy"), strict=True)
)
missed: list[str] = []


def hold(name: str, is_well: bool, line: str) -> None:
    print(f"{name:<10} {line}{'' if is_well else '   MISSED'}", flush=True)
    if not is_well:
        missed.append(name)


def fitted(study: Study) -> ISplitLBI:
    return ISplitLBI(fdr=FDR).fit(study.votes)


def null(seeds: range) -> None:
    for n_votes in (5, 20, 100, 300):
        p_values = np.concatenate(
            [
                fitted(
                    simulate(
                        n_users=200, votes_per_user=(n_votes, n_votes), abnormal_share=0.0,
                        random_state=seed,
                    )
                ).abnormality_.p_value
                for seed in seeds
            ]
        )  # fmt: skip
        below, ks = float(np.mean(p_values < 0.05)), float(kstest(p_values, "uniform").pvalue)
        line = (
            f"{n_votes:>3} votes: {below:.3f} of p-values below 0.05, Kolmogorov-Smirnov p {ks:.3f}"
        )
        hold("null", 0.03 <= below <= 0.07 and ks > 0.05, f"{line} ({len(p_values)} users)")


def mixtures(seeds: range) -> None:
    for share in (0.1, 0.3):
        wrong, recalls = [], []
        for seed in seeds:
            study = simulate(
                n_users=200, votes_per_user=(20, 100), abnormal_share=share, random_state=seed
            )
            flagged, abnormal = fitted(study).abnormality_.flagged, study.truth.abnormal
            wrong.append(float(np.mean(~abnormal[flagged])) if flagged.any() else 0.0)
            recalls.append(float(np.mean(flagged[abnormal])))
        line = (
            f"{100 * share:.0f} % abnormal: {np.mean(wrong):.3f} of those named are not; "
            f"recall {np.mean(recalls):.3f} ({len(seeds)} studies)"
        )
        hold("mixtures", np.mean(wrong) <= 0.06, line)


def paper(seeds: range) -> None:
    precisions, recalls = [], []
    for seed in seeds:
        study = paper_study(seed)
        flagged, abnormal = fitted(study).abnormality_.flagged, study.truth.abnormal
        precisions.append(float(np.mean(abnormal[flagged])) if flagged.any() else 0.0)
        recalls.append(float(np.mean(flagged[abnormal])))
    precision, recall = np.mean(precisions), np.mean(recalls)
    line = f"precision {precision:.3f}, recall {recall:.3f} (means of {len(seeds)} seeds)"
    hold("paper", precision >= 0.93 and recall >= 0.98, line)


def harder(seeds: range) -> None:
    areas = []
    for seed in seeds:
        study = simulate(deviation_sd=1.0, votes_per_user=(200, 400), random_state=seed)
        areas.append(roc_auc_score(study.truth.abnormal, -fitted(study).abnormality_.p_value))
    line = f"AUC {np.mean(areas):.4f}, at least {min(areas):.4f} (mean of {len(seeds)} seeds)"
    hold("harder", float(np.mean(areas)) >= 0.98, line)


def malicious(seeds: range) -> None:
    for kind in MALICIOUS_KINDS:
        recalls, names = [], Counter[str]()
        for seed in seeds:
            study = malicious_study(kind, seed)
            found, abnormal = fitted(study).abnormality_, study.truth.abnormal
            recalls.append(float(np.mean(found.flagged[abnormal])))
            names.update(found.kind[user] for user in np.flatnonzero(found.flagged & abnormal))
        right = names[NAMED[kind]] / max(names.total(), 1)
        said = ", ".join(f"{name} {count}" for name, count in names.most_common())
        line = f"{kind}: recall {np.mean(recalls):.3f}, named right {right:.3f} ({said})"
        hold("malicious", np.mean(recalls) >= 0.9 and right >= 0.9, line)


def files() -> None:
    for name in ("age", "college", "llmfao"):
        votes = data.load(name)
        if votes is not None:
            found = ISplitLBI(fdr=FDR).fit(votes).abnormality_
            kinds = Counter(kind for kind in found.kind if kind)
            said = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
            few = int((found.votes_needed > 0).sum())
            n_users = len(found.flagged)
            flagged = f"{int(found.flagged.sum())} of {n_users} flagged"
            hold("files", True, f"{name}: {flagged} ({said}); {few} with too few votes")


def time() -> None:
    studies = {"simulation": paper_study(0).votes}
    studies |= {name: data.load(name) for name in ("age", "college", "llmfao")}
    for name, votes in studies.items():
        if votes is None:
            continue
        ratios, fits = [], []
        for _ in range(5):
            begun = perf_counter()
            model = ISplitLBI(with_tests=False).fit(votes)
            after = perf_counter()
            model.test_users()
            fits.append(after - begun)
            ratios.append((perf_counter() - after) / (after - begun))
        line = f"{name}: tests take {median(ratios):.2f} of the fit's time ({median(fits):.2f} s)"
        hold("time", median(ratios) < 1.0, line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=5, help="studies of 200 users each")
    parser.add_argument("--seeds", type=int, default=20, help="draws of the smaller studies")
    parser.add_argument("--first-seed", type=int, default=0, help="of the simulated studies")
    asked = parser.parse_args()
    first = asked.first_seed
    seeds = range(first, first + asked.seeds)
    null(range(first, first + asked.studies))
    mixtures(seeds)
    paper(seeds)
    harder(seeds)
    malicious(seeds)
    files()
    time()
    print(f"missed: {', '.join(dict.fromkeys(missed))}" if missed else "all targets reached")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
