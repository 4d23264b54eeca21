"""Named configurations of a selector fit: the paper's, its controls, and the default."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    field_validator,
    model_validator,
)

from foci.backbones.base import GateSite
from foci.configuration import configure
from foci.errors import FociError
from foci.registry import Registry
from foci.selectors import ChooseBy, Target
from foci.selectors.objective import Adaptive, Budget, Fixed, Gate, Octaves, Soft, Ste, Weights

_MOST = 1e30  # a larger rate overflows single precision in AdamW


HIDDEN = 256
"""Hidden width of the head, unless a recipe says otherwise."""

PAPER_PARAMETERS = 132_609
"""Size of the paper's head, on any of its classifiers."""


def paper_width(d: int) -> int:
    r"""Hidden width at which a head with one score has the paper's number of parameters.

    LayerNorm, two linear layers and their biases are

    .. math:: 2d + (dh + h) + (h + 1) = (d + 2)(h + 2) - 3

    parameters on tokens of width d. Width and token width may be exchanged: :math:`512 \to 256` and
    :math:`256 \to 512` have 132,609 both. Solved for h and rounded, for other token widths the
    number is reached to within :math:`d / 2 + 1`.

    >>> [paper_width(d) for d in (512, 256, 384)]
    [256, 512, 342]
    """
    return max(1, round((PAPER_PARAMETERS + 3) / (d + 2)) - 2)


class Schedule(BaseModel):
    r"""Epochs, learning rate and batch size of a fit; the defaults are the paper's.

    .. math:: \eta(t) = \begin{cases}
       \eta_{\max}\,(t + 1) / W & t < W \\
       \eta_{\min} + \tfrac12 (\eta_{\max} - \eta_{\min})
       \big(1 + \cos \pi \tfrac{t - W}{T - 1 - W}\big) & t \ge W
       \end{cases}

    over the optimizer steps :math:`t = 0 \dots T - 1`, of which W warm up. The rate is a plain
    function of the step, not a scheduler of torch.optim: a resumed fit has no state to restore.

    Attributes:
        warmup: Epochs of warm-up.
        peak: :math:`\eta_{\max}` of AdamW: a base rate of 1e-4, times 5 for the selector.
        floor: :math:`\eta_{\min}`: 1e-5 times 5.
        batch_size: Bags per step, padded to the longest.
        patience: Stop after this many epochs without a better one; None for no early stopping.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epochs: PositiveInt = 30
    warmup: NonNegativeInt = 5
    peak: Annotated[float, Field(gt=0, le=_MOST)] = 5e-4
    floor: Annotated[float, Field(ge=0, le=_MOST)] = 5e-5
    weight_decay: NonNegativeFloat = 0.3
    batch_size: PositiveInt = 2
    patience: PositiveInt | None = None

    def rate(self, step: int, steps_per_epoch: int) -> float:
        """Learning rate of one step, counted from 0 over all epochs.

        >>> [round(Schedule().rate(step, 10), 6) for step in (0, 49, 50, 299)]
        [1e-05, 0.0005, 0.0005, 5e-05]
        """
        warm = self.warmup * steps_per_epoch
        if step < warm:
            return self.peak * (step + 1) / warm
        way = (step - warm) / max(self.epochs * steps_per_epoch - 1 - warm, 1)
        return self.floor + 0.5 * (self.peak - self.floor) * (1 + math.cos(math.pi * way))


class SelectorRecipe(BaseModel):
    """Configuration of a fit: everything but the backbone, the slides and the seed.

    Attributes:
        name: Name of the recipe; a variation lists its changes here.
        note: One line about it.
        class_conditional: One score per class, read at the target class, instead of one score.
        width: Hidden width of the head; ``"paper"`` for the width at which a head with one score
            has the paper's 132,609 parameters, see :func:`paper_width`.
        start: What the scores are before the first step: ``"random"``, a head with random weights;
            ``"tuned"``, an :class:`~foci.selectors.selector.EvidenceHead` with the mix of columns
            that did best on training slides. It learns a correction from the tokens where tiles
            interact, which is in every classifier without pooling.
        sites: Where the gate acts; the first site that the backbone offers is used.
        dense: Under a feature gate before a bias-free ReLU projection, whether a tile with gate 0
            has a gradient. In the paper it has none, because ReLU has no slope at 0.
        target: The class that the kept tiles should support: the slide's label, or the frozen
            model's own full-bag prediction (which needs no labels).
        choose_by: What chooses the epoch, unless something else is asked for.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    note: str
    class_conditional: bool = False
    width: PositiveInt | Literal["paper"] = HIDDEN
    start: Literal["random", "tuned"] = "random"
    sites: tuple[GateSite, ...] = ("feature",)
    dense: bool = False
    gate: Gate = Ste()
    budget: Budget = Fixed()
    weights: Weights = Weights()
    schedule: Schedule = Schedule()
    target: Target = "label"
    choose_by: ChooseBy = "aukc"

    @field_validator("width", mode="before")
    @classmethod
    def _countable(cls, width: Any) -> Any:
        if width == "paper" or (type(width) is int and width > 0):
            return width
        raise FociError("width", f"cannot be {width!r}", "give a whole number above 0, or 'paper'")

    def hidden(self, d_token: int) -> int:
        """Hidden width of the head on tokens of this width."""
        return paper_width(d_token) if self.width == "paper" else self.width

    @model_validator(mode="after")
    def _evidence_of_classes(self) -> SelectorRecipe:
        if self.start != "random" and not self.class_conditional:
            what = "evidence is about a class, the recipe has one score for all"
            raise FociError("start", what, "set class_conditional, or start='random'")
        return self

    def hash_fields(self) -> dict[str, Any]:
        """The settings by name, for keys of runs; what chooses the epoch is hashed by itself."""
        return self.model_dump(mode="json", exclude={"choose_by"})


RECIPES: Registry[SelectorRecipe] = Registry("selector recipe")


def _add(name: str, note: str, **settings: Any) -> None:
    RECIPES.add(name, SelectorRecipe(name=name, note=note, **settings))


_add("paper-ste", "FOCI-STE as published: feature gate, hard top 32", width="paper")
_add(
    "paper-soft",
    "FOCI-Soft as published: Gumbel-sigmoid gate with entropy penalty",
    width="paper",
    gate=Soft(),
    weights=Weights(entropy=0.1),
)
_add("paper-adaptive", "FOCI-STE with K = max(16, 0.03 N)", width="paper", budget=Adaptive())

_add(
    "freeze-only",
    "control: no rationale loss, the head stays as it was drawn",
    width="paper",
    weights=Weights(suff=0, hinge=0, excl=0, contig=0, budget=0),
)
for _term in ("suff", "hinge", "excl", "contig", "budget"):
    _add(
        f"no-{_term}",
        f"control: paper-ste with the {_term} loss set to 0",
        width="paper",
        weights=Weights(**{_term: 0.0}),
    )

_add(
    "tuned",
    "evidence with the powers of attention that need the fewest tiles, corrected where tiles "
    "interact: kept tiles suffice and the rest flips, K from 1 to 256",
    class_conditional=True,
    start="tuned",
    sites=("attention", "feature"),
    gate=Ste(centred=True),
    budget=Octaves(),
    weights=Weights(suff=0.5, hinge=0.0, excl=0.0, contig=0.0, budget=0.0, flip=0.5),
    schedule=Schedule(epochs=10, warmup=1),
    target="prediction",
    choose_by="decisive",
)

DEFAULT = "tuned"
"""The recipe that ``"default"`` stands for."""


def recipe(name: str = "default") -> SelectorRecipe:
    """Get a recipe by name.

    >>> recipe("paper-ste").budget.k
    32
    >>> recipe("paper-st")
    Traceback (most recent call last):
    foci.errors.FociError: paper-st: is not a known selector recipe; did you mean 'paper-ste'? ...
    """
    return RECIPES[DEFAULT if name == "default" else name]


def vary(base: SelectorRecipe, changes: Mapping[str, Any]) -> SelectorRecipe:
    """A recipe with some settings replaced; its name lists them.

    Changes are new values by dotted name. Another kind of gate or budget starts from the defaults
    of that kind.

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
