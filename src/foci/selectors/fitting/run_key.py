"""Key of a fit: an interrupted fit is resumed only if everything it depends on is the same."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from foci.backbones.base import GateSite
from foci.backbones.training.resume import stored_key
from foci.bags import Cohort
from foci.bags.cohort.stamps import what_is_read
from foci.errors import FociError
from foci.files.digest import digest
from foci.selectors.fitting import Target
from foci.selectors.identity import Identity
from foci.selectors.recipes import SelectorRecipe

_FORMAT = "fit-2:"


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
    return _FORMAT + digest(what)


def check_format(state_file: Path) -> None:
    """Refuse the state of a fit whose key was made by an earlier FOCI.

    Its key also hashed the compiled code of the criterion, so no fit of today has the same key.
    """
    key = stored_key(state_file)  # None where there is none, or damaged: the fit starts anew
    if key is not None and not key.startswith(_FORMAT):
        raise FociError(
            state_file,
            "is an unfinished fit of an earlier FOCI, which cannot be resumed",
            "remove it, and the fit starts anew",
        )
