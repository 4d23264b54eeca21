"""What a fit depends on: a state of another fit is not resumed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from foci.backbones.contract import GateSite
from foci.bags import Cohort
from foci.digest import digest
from foci.selectors.content import content, held
from foci.selectors.frozen import Identity
from foci.selectors.recipes import SelectorRecipe, Target
from foci.selectors.selector import Criterion


def run_key(
    identity: Identity,
    recipe: SelectorRecipe,
    *,
    seed: int,
    target: Target,
    site: GateSite,
    train: Cohort,
    val: Cohort,
    criterion: Criterion | None,
) -> str:
    """Digest of everything that decides a selector.

    Slides are known by name, label and feature file (its name, size and time of change), with
    the classes, layout, resolution and cap of their cohort; the criterion as :func:`judge` says.
    """
    what = [asdict(identity), recipe.model_dump(), seed, target, site, content(train), content(val),
            judge(criterion)]  # fmt: skip
    return digest(what)


def judge(criterion: Criterion | None) -> Any:
    """What a criterion is known by: its attribute ``name`` if it has one, else its content.

    An object that is called is known by its class and its attributes; see
    :func:`~foci.selectors.content.content` for what counts.

    >>> class Constant:
    ...     def __init__(self, value): self.value = value
    ...     def __call__(self, selector): return self.value
    >>> judge(Constant(1.0)) == judge(Constant(2.0))
    False
    """
    name = getattr(criterion, "name", None)
    if isinstance(name, str):
        return ["name", name]
    is_object = criterion is not None and not hasattr(criterion, "__qualname__")
    return content([criterion, held(criterion) if is_object else None])
