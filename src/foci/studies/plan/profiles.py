"""Defaults of a study: the paper's protocol, and FOCI's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foci.audits.profiles import FOCI, PAPER
from foci.errors import FociError

BACKBONES: Mapping[str, str] = {
    "transmil": "Soft-aggregation/Transformer",
    "acmil": "Soft-aggregation/Multi-branch attention",
    "abmil": "Attention pooling/Attention pool",
    "clam-sb": "Attention pooling/Attention pool",
    "attrimil": "Attention pooling/Attribution-based",
    "asmil": "Hard selection/Hard selection",
    "mhim-mil": "Hard selection/Hard instance mining",
}
"""The seven backbones of the paper, in the order of its SHI table, and their families."""

_SWEPT = "transmil"


def with_profile(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of ``study.yaml`` with those of its profile where nothing was given.

    ``audit`` and ``read`` are merged setting by setting. ``backbones``, ``sweeps`` and
    ``efficiency`` are replaced as a whole: an empty block means none.

    Args:
        given: Content of the file.
    """
    name = given.get("profile", PAPER)
    if name not in (FOCI, PAPER):
        raise FociError("profile", f"cannot be {name!r}", f"choose {PAPER} or {FOCI}")
    for block in ("cohorts", "backbones", "audit", "read", "sweeps", "efficiency"):
        if not isinstance(given.get(block) or {}, dict):
            raise FociError(block, f"cannot be {given[block]!r}", "give names and their settings")
    cohorts = list(given.get("cohorts") or ())
    named = {key: {"family": family} for key, family in BACKBONES.items()}
    backbones = given.get("backbones") or named
    common: dict[str, Any] = {"profile": name, "backbones": backbones, "audit": {}, "read": {}}
    seeds = given.get("seeds") or ((42, 43, 44) if name == PAPER else (0, 1, 2))
    own: dict[str, Any]
    if name == PAPER:
        own = {
            "seeds": seeds,
            "std": "population",
            "audit": {"rankings": ["native", "selector", "random", "evidence"]},
            "sweeps": _paper_sweeps(cohorts, list(backbones), list(seeds)),
            "efficiency": {},
            "published": True,
        }
    else:
        own = {"seeds": seeds, "std": "sample", "sweeps": {}, "efficiency": {}, "published": False}
    result = {**common, **own, **given}
    result["sweeps"] = result["sweeps"] or {}
    for block in ("audit", "read"):
        result[block] = {**(own.get(block) or {}), **(given.get(block) or {})}
    result["backbones"] = {
        key: {"family": BACKBONES.get(key, ""), **(entry or {})}
        if isinstance(entry, dict | None)
        else entry
        for key, entry in backbones.items()
    }
    return result


def _paper_sweeps(
    cohorts: Sequence[str], backbones: Sequence[str], seeds: Sequence[int]
) -> dict[str, Any]:
    """The paper's ablations: of TransMIL, most of them on the first cohort."""
    if _SWEPT not in backbones:
        return {}
    one, first = {"backbones": [_SWEPT]}, list(cohorts[:1])
    here = {**one, "cohorts": first}
    return {
        "adaptive": {"recipes": ["paper-adaptive"], **one},
        "alpha": {
            "recipe": "paper-adaptive",
            "vary": {"budget.alpha": [0.01, 0.05]},
            "seeds": list(seeds[:1]),
            "audit": False,
            **here,
        },
        "gate": {"recipes": ["paper-soft"], **here},
        "losses": {"recipes": ["no-suff", "no-excl", "no-contig"], **here},
        "freeze": {"recipes": ["freeze-only"], "seeds": list(seeds[:2]), **here},
        "n_cap": {"values": [256, 512, 2048], "refit": False, **one},
        "joint": {"epochs": 2, "seeds": list(seeds[:1]), **here},
    }
