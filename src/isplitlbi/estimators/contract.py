"""What scikit-learn asks of an estimator, without scikit-learn.

Its tools take whatever has settings, tags and a ``fit``. Inheriting them from its base classes
would mean to import it, which takes longer than most of what is asked of a stored model.
"""

from __future__ import annotations

from copy import deepcopy
from inspect import signature
from typing import Any, Self, TypeVar

from isplitlbi.errors import InvalidSetting

__all__ = ["Estimator", "check_is_fitted", "clone"]


class Estimator:
    """A classifier with settings: the parameters of its constructor, kept under their names."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return what every setting is where nothing else is said."""
        parameters = signature(cls).parameters
        return {name: parameters[name].default for name in sorted(parameters)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all settings by name; none of them has settings of its own (``deep``)."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change settings."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise InvalidSetting(
                    f"{type(self).__name__} has no setting {name!r}, only {', '.join(known)}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Show the settings that are not the default ones."""
        default = self._defaults()
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(default[name])
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that this is a classifier."""
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
        )


AnyEstimator = TypeVar("AnyEstimator", bound=Estimator)


def clone(model: AnyEstimator) -> AnyEstimator:
    """Return an estimator with the same settings that is not fitted."""
    return type(model)(**deepcopy(model.get_params()))


def check_is_fitted(model: Estimator, attribute: str = "classes_") -> None:
    """Refuse a model without what a fit sets."""
    if attribute not in vars(model):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"this {type(model).__name__} is not fitted yet; call its fit first.")
