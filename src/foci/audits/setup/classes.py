"""The order of the classes: the model's own, whatever order somebody gives."""

from __future__ import annotations

from collections.abc import Sequence

from foci.audits.records import Alarm
from foci.errors import CohortError


def check_class_names(given: Sequence[str], model: Sequence[str]) -> None:
    """Refuse class names that are not those of the model.

    Raises:
        CohortError: If a name is missing or not known to the model.
    """
    if sorted(given) != sorted(model):
        raise CohortError(
            "classes",
            f"are {', '.join(given)}, but the model was trained on {', '.join(model)}",
            "leave them out, and name the labels as in training",
        )


def other_order(given: Sequence[str], model: Sequence[str]) -> Alarm | None:
    """Say that classes were given in another order than the model's, which is used instead.

    >>> other_order(("a", "b"), ("a", "b")) is None
    True
    """
    if not given or tuple(given) == tuple(model):
        return None
    return Alarm(
        kind="class order",
        sentence=(
            f"The classes were given in the order {', '.join(given)}; the model was trained with "
            f"{', '.join(model)}, and that order is used: outputs and labels are matched by name."
        ),
        numbers={"classes": len(model)},
    )
