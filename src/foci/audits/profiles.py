"""Named defaults of an audit's settings: FOCI's own, and the paper's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from foci.registry import Registry

FOCI, PAPER = "foci", "paper"

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
            "every_count": True,
            "kappa": 0.9,
            "kappas": (0.7, 0.8, 0.9, 0.95),
            "k_max": 256,
            "counts": None,
            "deletion": (16, 32, 64, 128, 256),
        }
    ),
)
