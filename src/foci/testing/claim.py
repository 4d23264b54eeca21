"""Registry of checks, one for each claim that a backbone makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from foci.backbones import Backbone
from foci.registry import Registry
from foci.testing.specimen import Specimen

Complaints = Callable[[Specimen], Iterator[str]]


@dataclass(frozen=True)
class Claim:
    """How a claim is checked, and which models make it.

    Attributes:
        complaints: Yields one line for every violation.
        made_by: Whether a model makes the claim at all.
    """

    complaints: Complaints
    made_by: Callable[[Backbone], bool]


CLAIMS: Registry[Claim] = Registry("backbone check")
"""All checks, in the order in which they run."""


def claim(
    made_by: Callable[[Backbone], bool] = lambda model: True,
) -> Callable[[Complaints], Complaints]:
    """Register a check under its function's name."""

    def decorate(complaints: Complaints) -> Complaints:
        CLAIMS.add(complaints.__name__, Claim(complaints, made_by))
        return complaints

    return decorate
