"""What a notebook shows of a model."""

from __future__ import annotations

from typing import Any

from isplitlbi.markup import as_html

__all__ = ["shown_in_notebook"]

FIRST_TIERS = 10  # of the consensus


def shown_in_notebook(model: Any) -> str:
    """Return what was fitted and the first tiers, as HTML; the settings, where nothing was."""
    if not hasattr(model, "fitted_"):
        told = [f"{type(model).__name__}, not fitted yet."]
        return as_html(told, ["setting", "value"], model.get_params().items())
    nouns = model.nouns
    told = [f"{type(model).__name__}, fitted on {model.summary_.in_words(nouns)}."]
    if hasattr(model, "abnormality_"):
        n_unreliable, n_different = len(model.unreliable_users_), len(model.different_users_)
        told.append(
            f"Unreliable {nouns.users}: {n_unreliable}. Different {nouns.users}: {n_different}."
        )
    tiers = [
        [number, ", ".join(map(str, tier))]
        for number, tier in enumerate(model.ranking().tiers[:FIRST_TIERS], start=1)
    ]
    return as_html(told, ["tier" if model.terms_.has_ties else "rank", nouns.items], tiers)
