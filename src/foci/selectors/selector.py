"""A selector: a small network that scores the tiles of one frozen backbone.

It scores a tile from its token, and from its evidence. It belongs to that backbone alone, which a
hash of the weights and the logits of a fixed bag identify, and which a fit leaves as it is to the
last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import ConfigDict
from torch import Tensor, nn

from foci.backbones.base import Backbone, GateSite, class_index
from foci.backbones.freezing import device_and_dtype, eval_mode, fingerprint, frozen, to_model
from foci.errors import ChangedError, FociError
from foci.selectors import Target
from foci.selectors.evidence import evidence_columns
from foci.selectors.gated import Tiles
from foci.selectors.recipes import HIDDEN, SelectorRecipe


class SelectorHead(nn.Module):
    r"""One score per tile, or one per tile and class.

    .. math:: a_i = W_2\,\mathrm{GELU}(W_1\,\mathrm{LN}(t_i) + b_1) + b_2

    The paper's head has one output and 132,609 parameters; see
    :func:`~foci.selectors.recipes.paper_width`. A class-conditional head has one output per class,
    so that the tiles that support one class need not be those that support another.

    >>> sum(p.numel() for p in SelectorHead(512).parameters())
    132609
    """

    def __init__(self, d: int, outputs: int = 1, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.d, self.outputs, self.hidden = d, outputs, hidden
        self.norm = nn.LayerNorm(d)
        self.widen = nn.Linear(d, hidden)
        self.score = nn.Linear(hidden, outputs)

    def forward(self, tokens: Tensor, evidence: Tensor | None = None) -> Tensor:
        """Tokens ``[..., N, d]`` to all scores, ``[..., N, outputs]``; evidence is not read."""
        scores: Tensor = self.score(F.gelu(self.widen(self.norm(tokens))))
        return scores


class EvidenceHead(nn.Module):
    r"""A mix of evidence columns, and a correction from the token.

    .. math:: a_{ic} = \sum_p \beta_p\, e_{icp} + h_c(t_i)

    with the columns :math:`e_{icp}` of :func:`~foci.selectors.evidence.evidence_columns` and the
    paper's head h. Only the first column, evidence, has a weight :math:`\beta` at first, and the
    last layer of h is 0: before the first step the order is that of evidence. :math:`\beta` is no
    parameter, see :func:`~foci.selectors.criterion.tune`; weight decay draws h back to 0. A
    ``hidden`` width of 0 leaves h out.
    """

    mix: Tensor

    def __init__(self, d: int, outputs: int, hidden: int, columns: int) -> None:
        super().__init__()
        self.d, self.outputs, self.hidden, self.columns = d, outputs, hidden, columns
        self.register_buffer("mix", torch.eye(columns)[0])
        self.correction = SelectorHead(d, outputs, hidden) if hidden else None
        if self.correction is not None:
            nn.init.zeros_(self.correction.score.weight)
            nn.init.zeros_(self.correction.score.bias)

    def forward(self, tokens: Tensor, evidence: Tensor) -> Tensor:
        """Tokens ``[..., N, d]`` and columns ``[..., N, C, P]`` to scores ``[..., N, C]``."""
        scores: Tensor = evidence @ self.mix.to(evidence.dtype)
        if self.correction is not None:
            scores = scores + self.correction(tokens).to(evidence.dtype)
        return scores


Head = SelectorHead | EvidenceHead


def scores_at(head: Head, tiles: Tiles, targets: Tensor) -> Tensor:
    """Scores ``[B, N]`` of prepared bags: the only ones, or those of the target classes ``[B]``."""
    tokens = tiles["tokens"]
    scores: Tensor = head(tokens, tiles.get("evidence"))
    if scores.shape[-1] > 1:
        scores = scores.gather(-1, targets[:, None, None].expand(*scores.shape[:2], 1))
    return scores.squeeze(-1).to(tokens.dtype)


@contextmanager
def keep_frozen(backbone: Backbone, bags: Sequence[Tensor]) -> Iterator[Callable[[], None]]:
    """Eval mode and ``requires_grad=False``, restored on exit; an error if the backbone changed.

    Yields:
        The comparison that is made at the end of the block, to be called in between as well.

    Raises:
        ChangedError: If a parameter, a buffer or a full-bag logit of the bags has changed.
    """
    learning = [parameter for parameter in backbone.parameters() if parameter.requires_grad]
    backbone.requires_grad_(False)
    try:
        with eval_mode(backbone):
            weights, logits = fingerprint(backbone), full_logits(backbone, bags)

            def compare() -> None:
                same = {
                    "parameters or buffers": fingerprint(backbone) == weights,
                    "full-bag logits": torch.equal(full_logits(backbone, bags), logits),
                }
                if not all(same.values()):
                    changed = " and ".join(what for what, kept in same.items() if not kept)
                    raise ChangedError(
                        f"backbone {backbone.architecture}",
                        f"{changed} changed while it was read out",
                        "discard this fit: something else trains or edits the backbone meanwhile",
                    )

            yield compare
            compare()
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


@torch.no_grad()
def full_logits(backbone: Backbone, bags: Sequence[Tensor]) -> Tensor:
    """Logits ``[len(bags), C]`` of full bags, without gradients."""
    return torch.stack([backbone(to_model(bag, backbone)) for bag in bags])


_PROBE_TILES = 8
_PROBE_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Identity:
    """What identifies a backbone: a hash of its parameters and buffers.

    A function without parameters has nothing to hash, so its logits for a fixed random bag, the
    probe, are kept too; NaN where the backbone gives none.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    architecture: str
    fingerprint: str
    probe: tuple[float, ...]

    @classmethod
    def of(cls, backbone: Backbone) -> Identity:
        """The identity of a backbone in eval mode."""
        rng = np.random.default_rng(0)
        bag = torch.from_numpy(rng.standard_normal((_PROBE_TILES, backbone.d_in), np.float32))
        with eval_mode(backbone):
            logits = full_logits(backbone, [backbone.made_up_inputs(bag)])[0]
        return cls(backbone.architecture, fingerprint(backbone), tuple(logits.double().tolist()))

    def matches(self, other: Identity) -> bool:
        """Same weights, and the same logits up to differences between machines."""
        return (
            self.fingerprint == other.fingerprint
            and len(self.probe) == len(other.probe)
            and all(map(_same_logit, self.probe, other.probe))
        )

    def check(self, backbone: Backbone) -> None:
        """Refuse any other backbone, and the same one in another precision."""
        found = Identity.of(backbone)
        if self.matches(found):
            return
        where = f"backbone {backbone.architecture}"
        precision = None if found.fingerprint == self.fingerprint else self._precision(backbone)
        if precision is not None:
            given, wanted = (
                str(dtype).removeprefix("torch.")
                for dtype in (device_and_dtype(backbone)[1], precision)
            )
            raise FociError(
                where,
                f"computes in {given}, the selector was fitted on it in {wanted}",
                f"convert it back with backbone.to({precision})",
            )
        raise FociError(
            where,
            "is not the one that the selector was fitted on "
            f"({self.architecture} {self.fingerprint[:12]})",
            "load that backbone, or fit a selector for this one",
        )

    def _precision(self, backbone: Backbone) -> torch.dtype | None:
        """The precision in which the backbone has this fingerprint, if there is one."""
        weights = backbone.state_dict()

        class Cast(nn.Module):
            def state_dict(self, *_: Any, **__: Any) -> Any:
                return {k: v.to(dtype) if v.is_floating_point() else v for k, v in weights.items()}

        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            if fingerprint(Cast()) == self.fingerprint:
                return dtype
        return None


def _same_logit(a: float, b: float) -> bool:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= _PROBE_TOLERANCE * max(1.0, abs(a))


class Selector:
    """Scores the tiles of a bag for one frozen backbone, which it recognises by its identity."""

    def __init__(self, head: Head, backbone: Backbone, identity: Identity) -> None:
        self.head, self.backbone, self.identity = head, backbone, identity

    @property
    def class_conditional(self) -> bool:
        """Whether there is one score per tile and class, not one per tile."""
        return self.head.outputs > 1

    @property
    def reads_evidence(self) -> bool:
        """Whether the head reads the columns of evidence beside the tokens."""
        return isinstance(self.head, EvidenceHead)

    def check(self, backbone: Backbone) -> None:
        """Refuse any backbone but the one that the head was trained on."""
        self.identity.check(backbone)

    @torch.no_grad()
    def __call__(self, tokens: Tensor, evidence: Tensor | None = None) -> Tensor:
        """Scores ``[N, outputs]`` of one embedded bag: one column, or one per class.

        Args:
            tokens: ``[N, d]`` of the selector's own backbone.
            evidence: Columns of :func:`~foci.selectors.evidence.evidence_columns`, where they are
                known already; only a head that starts as evidence reads them.
        """
        if self.reads_evidence and evidence is None:
            with frozen(self.backbone):
                evidence = evidence_columns(self.backbone, tokens)
        scores: Tensor = self.head(tokens, evidence)
        return scores

    @torch.no_grad()
    def scores(
        self, tokens: Tensor, target: int | None = None, evidence: Tensor | None = None
    ) -> Tensor:
        """Scores ``[N]`` of one embedded bag; higher is revealed earlier.

        Those of a class-conditional selector are for the target class; None is the full-bag
        prediction.
        """
        if target is not None:
            class_index(target, self.backbone.n_classes)
        if not self.class_conditional:
            target = 0
        elif target is None:
            target = self.predicted(tokens)
        return self(tokens, evidence)[:, target]

    def rank(self, features: Tensor, target: int | None = None) -> Tensor:
        """Scores ``[N]`` of one bag of features ``[N, D]``; see :meth:`scores`."""
        with frozen(self.backbone):
            tokens = self.backbone.embed(to_model(features, self.backbone))
        return self.scores(tokens, target)

    def predicted(self, tokens: Tensor) -> int:
        """The class that the backbone predicts for the full bag."""
        with frozen(self.backbone):
            return int(self.backbone.aggregate(tokens.unsqueeze(0))[0].argmax())


@dataclass(frozen=True)
class FitEpoch:
    """Losses and score of one epoch, counted from 1, of all epochs.

    Attributes:
        rate: Learning rate of its last step.
        loss: Mean training loss; ``val_loss`` is the same objective on the validation slides.
        terms: Mean of each loss before its weight; ``full``, the full-bag cross-entropy, is only
            monitored.
        score: Value of the criterion, higher is better; ``-val_loss`` for the criterion ``"loss"``.
        best: Whether the score is the highest so far.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    epoch: int
    epochs: int
    rate: float
    loss: float
    terms: dict[str, float]
    val_loss: float
    val_terms: dict[str, float]
    score: float
    best: bool


@dataclass(frozen=True, repr=False)
class FittedSelector:
    """Result of :func:`foci.selectors.fit`: the best epoch, and how it was made.

    Attributes:
        best: The selector of the best validation epoch.
        seed: Of its initialisation, order and noise.
        target: Which class the kept tiles should support.
        site: Where the gate acted.
        metadata: Further entries of ``selector.json``: classes, slides, versions, ``notes``.
    """

    best: Selector
    recipe: SelectorRecipe
    seed: int
    target: Target
    site: GateSite
    history: tuple[FitEpoch, ...]
    metadata: dict[str, Any]

    def __repr__(self) -> str:
        epochs = f"epoch {self.best_epoch} of {len(self.history)}"
        where = f"gate at the {self.site}, target {self.target}"
        return f"FittedSelector({self.recipe.name!r}, seed {self.seed}, {epochs}, {where})"

    @property
    def best_epoch(self) -> int:
        """The epoch of ``best``, counted from 1; 0 if none was better than the start."""
        return max((entry.epoch for entry in self.history if entry.best), default=0)

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats to read before using the selector."""
        return tuple(self.metadata.get("notes", ()))

    def __call__(self, tokens: Tensor, evidence: Tensor | None = None) -> Tensor:
        """All scores of the best epoch; see :meth:`Selector.__call__`."""
        return self.best(tokens, evidence)

    def scores(
        self, tokens: Tensor, target: int | None = None, evidence: Tensor | None = None
    ) -> Tensor:
        """Scores of the best epoch; see :meth:`Selector.scores`."""
        return self.best.scores(tokens, target, evidence)

    def rank(self, features: Tensor, target: int | None = None) -> Tensor:
        """Scores of the best epoch; see :meth:`Selector.rank`."""
        return self.best.rank(features, target)
