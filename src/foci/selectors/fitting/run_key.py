"""Key of a fit: an interrupted fit is resumed only if everything it depends on is the same."""

from __future__ import annotations

from dataclasses import asdict

from foci.backbones.base import GateSite
from foci.bags import Cohort
from foci.bags.cohort.stamps import what_is_read
from foci.files.digest import digest
from foci.selectors.fitting import Target
from foci.selectors.identity import Identity
from foci.selectors.recipes import SelectorRecipe


def run_key(
    identity: Identity,
    recipe: SelectorRecipe,
    *,
    seed: int,
    target: Target,
    site: GateSite,
    train: Cohort,
    val: Cohort,
    criterion: str,
) -> str:
    """Digest of everything that decides a selector.

    Slides are identified by name, label and feature file (its name, size and time of change), with
    the classes, layout, resolution and cap of their cohort.
    """
    what = [asdict(identity), recipe.decided_by(), seed, target, site,
            what_is_read(train), what_is_read(val), criterion]  # fmt: skip
    return digest(what)
