"""How stored curves are read: everything that can change without running a model again."""

from __future__ import annotations

from typing import Literal, Protocol

View = Literal["prediction", "label"]
"""Which class is followed: what the model says of the full bag, or what is true."""

VIEWS: tuple[View, ...] = ("prediction", "label")


class Reading(Protocol):
    """The settings of an audit that its numbers depend on, beside the curves."""

    @property
    def kappa(self) -> float:
        """Operating confidence."""

    @property
    def k_max(self) -> int:
        """Largest count; a slide that does not reach within it counts as ``k_max``."""

    @property
    def target(self) -> View:
        """The view that is shown first."""

    @property
    def deletion(self) -> tuple[int, ...]:
        """Counts of deleted tiles."""

    @property
    def n_boot(self) -> int:
        """Bootstrap draws."""

    @property
    def level(self) -> float:
        """Coverage of the intervals."""

    @property
    def margin(self) -> float:
        """Tiles that count as nothing in the verdict."""
