"""Named configurations of a selector fit: the paper's, its controls, and our own."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, PositiveInt, field_validator, model_validator

from foci.backbones.base import GateSite
from foci.errors import FociError
from foci.registry import Registry
from foci.selectors.budgets import Adaptive, Budget, Fixed, Nested, Octaves
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
            ``"evidence"``, an :class:`~foci.selectors.evidence.head.EvidenceHead`; ``"tuned"``, one
            with the mix of columns that did best on training slides.
        correction: Whether a head that starts as evidence also learns a correction from the tokens:
            always, never, or for classifiers whose tiles interact, which are those without pooling.
        head: Whether the network scores a tile from its own token (``"token"``), or also from
            summaries of the bag that it attends to (``"attending"``), see
            :class:`~foci.selectors.heads.attending.BagContext`.
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
    start: Literal["random", "evidence", "tuned"] = "random"
    correction: Literal["always", "never", "interacting"] = "always"
    head: Literal["token", "attending"] = "token"
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
        """The settings by name, for keys of runs.

        Settings that an earlier FOCI did not have are left out where they have their usual value.
        What chooses the epoch is in the key of a fit anyway.
        """
        settings = self.model_dump(mode="json", exclude={"choose_by"})
        usual = {"width": HIDDEN, "start": "random", "correction": "always", "head": "token"}
        for name, value in usual.items():
            if settings[name] == value:
                del settings[name]
        for name in ("flip", "shapley", "gap"):
            if settings["weights"][name] == Weights.model_fields[name].default:
                del settings["weights"][name]
        return settings


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

_NOTHING = Weights(suff=0, hinge=0, excl=0, contig=0, budget=0)
_CONTROL = "control: no rationale loss, the head stays as it was drawn"
_add("freeze-only", _CONTROL, width="paper", weights=_NOTHING)
for _term in ("suff", "hinge", "excl", "contig", "budget"):
    _add(
        f"no-{_term}",
        f"control: paper-ste with the {_term} loss set to 0",
        width="paper",
        weights=Weights(**{_term: 0.0}),
    )

_OURS: dict[str, Any] = {
    "sites": ("attention", "feature"),
    "budget": Nested(),
    "weights": Weights(budget=0.0),
}
_add("nested-attention", "attention gate, K drawn between 1 and 32", **_OURS)
_add(
    "class-conditional",
    "attention gate, K drawn between 1 and 32, one score per class",
    class_conditional=True,
    **_OURS,
)
_add(
    "centred",
    "as class-conditional, the surrogate steepest at the rank-K score",
    class_conditional=True,
    gate=Ste(centred=True),
    **_OURS,
)

_BOTH: dict[str, Any] = {
    "class_conditional": True,
    "sites": ("attention", "feature"),
    "gate": Ste(centred=True),
    "budget": Octaves(),
    "weights": Weights(suff=0.5, hinge=0.0, excl=0.0, contig=0.0, budget=0.0, flip=0.5),
    "target": "prediction",
    "choose_by": "decisive",
}
_add("both-conditions", "kept tiles suffice and the rest flips, K from 1 to 256", **_BOTH)
_add(
    "shapley",
    "regression on contributions to random subsets",
    **{**_BOTH, "weights": _NOTHING.model_copy(update={"shapley": 1.0})},
)
_add(
    "evidence-residual",
    "as both-conditions; starts as evidence and learns a correction from the token",
    start="evidence",
    **_BOTH,
)
_add(
    "attending-residual",
    "as evidence-residual; the correction also attends to summaries of the bag",
    start="evidence",
    head="attending",
    **_BOTH,
)
_add(
    "tuned-evidence",
    "evidence with the powers of attention that need the fewest tiles on training slides",
    start="tuned",
    correction="never",
    **{**_BOTH, "weights": _NOTHING, "schedule": Schedule(epochs=1, warmup=0)},
)
_add(
    "tuned",
    "tuned-evidence for pooling classifiers, a correction of evidence for all others",
    start="tuned",
    correction="interacting",
    **{**_BOTH, "schedule": Schedule(epochs=10, warmup=1)},
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
