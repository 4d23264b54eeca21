"""Every family of files that is recognised, and which one a file belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foci.backbones.checkpoints.formats import abmil, acmil, attrimil, clam, mhim, transmil
from foci.backbones.checkpoints.formats.base import Family
from foci.backbones.checkpoints.state_dict import StateDict, listed

FAMILIES: tuple[Family, ...] = (
    *transmil.FAMILIES,
    *clam.FAMILIES,
    *attrimil.FAMILIES,
    *acmil.FAMILIES,
    *mhim.FAMILIES,
    *abmil.FAMILIES,
)
"""Tried in this order."""


def recognised(state: StateDict) -> Family:
    """The family that a file's names belong to."""
    for family in FAMILIES:
        if family.recognises(state):
            return family
    known = ", ".join(dict.fromkeys(family.name.split()[0] for family in FAMILIES))
    raise state.refused(
        f"is of no known architecture; its tensors are {listed(list(state))}",
        f"give one of {known}, or wrap the model in foci.backbones.CallableBackbone",
    )


def chosen(
    family: Family, given: Mapping[str, Any], state: StateDict
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """All options of a family, and what was assumed about those that were not given."""
    for name, value in given.items():
        if name not in family.options:
            known = (
                f"its options are {', '.join(family.options)}" if family.options else "it has none"
            )
            raise state.refused(f"{family.name} files have no option {name!r}", known)
        if not family.options[name].allows(value):
            raise state.refused(
                f"option {name} is {value!r}", f"choose {family.options[name].allowed}"
            )
    values = {name: option.default for name, option in family.options.items()}
    assumed = tuple(
        option.assumption
        for name, option in family.options.items()
        if name not in given and option.assumption
    )
    return {**values, **given}, assumed
