"""Replace single settings of a recipe by their dotted names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from foci.configuration import configure
from foci.errors import FociError
from foci.selectors.recipes import SelectorRecipe


def vary(base: SelectorRecipe, changes: Mapping[str, Any]) -> SelectorRecipe:
    """A recipe with some settings replaced; its name lists them.

    Another kind of gate or budget starts from the defaults of that kind.

    Args:
        base: The recipe to change.
        changes: New values by dotted name.

    >>> from foci.selectors.recipes import recipe
    >>> vary(recipe("paper-adaptive"), {"budget.alpha": 0.05}).name
    'paper-adaptive (budget.alpha=0.05)'
    >>> vary(recipe("paper-adaptive"), {"budget.kind": "octaves", "budget.k_max": 8}).budget
    Octaves(kind='octaves', k_max=8)
    """
    if not changes:
        return base
    tree = base.model_dump()
    for key, value in sorted(changes.items(), key=lambda change: not change[0].endswith(".kind")):
        *parents, leaf = key.split(".")
        branch: Any = tree
        for parent in parents:
            branch = branch.get(parent) if isinstance(branch, dict) else None
        if not isinstance(branch, dict) or leaf not in branch:
            known = ", ".join(_leaves(tree))
            raise FociError(key, f"is no setting of {base.name}", f"choose one of {known}")
        if leaf == "kind" and value != branch[leaf]:
            tree[parents[0]] = branch = _defaults(parents[0], value)
        branch[leaf] = value
    shown = ", ".join(f"{key}={value!r}" for key, value in changes.items())
    return configure(SelectorRecipe, {**tree, "name": f"{base.name} ({shown})"})


def _defaults(setting: str, kind: Any) -> dict[str, Any]:
    """Default settings of one kind of gate or budget; empty for an unknown kind."""
    kinds = get_args(SelectorRecipe.model_fields[setting].annotation)
    known = {model.model_fields["kind"].default: model for model in kinds}
    return known[kind]().model_dump() if isinstance(kind, str) and kind in known else {}


def _leaves(tree: dict[str, Any], prefix: str = "") -> list[str]:
    names = []
    for key, value in tree.items():
        names += _leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]
    return names
