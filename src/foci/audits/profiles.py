"""Defaults of settings: of FOCI and of the paper; and what an analysis reads of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, Protocol

from foci.registry import Registry

FOCI, PAPER = "foci", "paper"

View = Literal["prediction", "label"]
"""Which class is the target: the one predicted on the full bag, or the label."""

KAPPAS = (0.7, 0.8, 0.9, 0.95)
"""Confidences of the paper's sensitivity table."""

SHARES = (0.8, 0.9, 0.95, 0.99)
"""Shares of a slide's own full-bag confidence at which the relative form is given."""

SHARE = 0.95
"""The one of them whose counts stand in every table."""

PROFILES: Registry[Mapping[str, Any]] = Registry("profile")
"""Settings by profile; each replaces a default, and gives way to whatever is given."""

PROFILES.add(FOCI, MappingProxyType({}))
PROFILES.add(
    PAPER,
    MappingProxyType(
        {
            "rankings": ("native", "selector", "random"),
            "recipe": "paper-ste",
            "fit_target": "label",
            "target": "label",
            "seeds": (0, 1, 2),
            "seeds_as": "each",
            "kappa": 0.9,
            "kappas": KAPPAS,
            "k_max": 256,
            "deletion": (16, 32, 64, 128, 256),
        }
    ),
)


STORED = {"stored": True}
"""Context to validate settings with that a run has stored. Their names were checked before the run,
and rankings and recipes stay unloaded: an audit folder is read without torch."""


class AnalysisSettings(Protocol):
    """Settings that turn stored curves into numbers."""

    @property
    def kappa(self) -> float:
        """Operating confidence."""

    @property
    def kappas(self) -> tuple[float, ...]:
        """Thresholds at which the answers are repeated."""

    @property
    def relative(self) -> bool:
        """Whether the answers are also given relative to each slide's own confidence."""

    @property
    def k_max(self) -> int:
        """Largest reveal count; a slide that never reaches ``kappa`` counts as ``k_max``."""

    @property
    def target(self) -> View:
        """The view that is shown first."""

    @property
    def deletion(self) -> tuple[int, ...]:
        """Deletion counts."""

    @property
    def readout(self) -> str:
        """The ranking that may be a better order; ``"auto"`` where none was chosen."""

    @property
    def n_boot(self) -> int:
        """Bootstrap draws."""

    @property
    def level(self) -> float:
        """Coverage of the intervals."""
