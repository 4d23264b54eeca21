"""Named configurations of a selector fit: the paper's, its controls, and the default."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, PositiveInt, field_validator, model_validator

from foci.backbones.base import GateSite
from foci.errors import FociError
from foci.registry import Registry
from foci.selectors.budgets import Adaptive, Budget, Fixed, Octaves
from foci.selectors.fitting import ChooseBy, Target
from foci.selectors.fitting.objective import Weights
from foci.selectors.fitting.schedule import Schedule
from foci.selectors.gates import Gate, Soft, Ste
from foci.selectors.heads.token import HIDDEN, paper_width


class SelectorRecipe(BaseModel):
    """Configuration of a fit: everything but the backbone, the slides and the seed.

    Attributes:
        name: Name of the recipe; a variation lists its changes here.
        note: One line about it.
        class_conditional: One score per class, read at the target class, instead of one score.
        width: Hidden width of the head; ``"paper"`` for the width at which a head with one score
            has the paper's 132,609 parameters, see :func:`foci.selectors.heads.token.paper_width`.
        start: What the scores are before the first step: ``"random"``, a head with random weights;
            ``"tuned"``, an :class:`~foci.selectors.evidence.head.EvidenceHead` with the mix of
            columns that did best on training slides. It learns a correction from the tokens where
            tiles interact, which is in every classifier without pooling.
        sites: Where the gate acts; the first site that the backbone offers is used.
        dense: Under a feature gate before a bias-free ReLU projection, whether a tile with gate 0
            has a gradient. In the paper it has none, because ReLU has no slope at 0.
        gate: How scores become gates.
        budget: How many tiles are kept.
        weights: Of the losses.
        schedule: Of the optimizer.
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

    def decided_by(self) -> dict[str, Any]:
        """The settings by name, for keys of runs; what chooses the epoch is in them anyway."""
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
