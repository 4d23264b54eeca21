"""MHIM-MIL's loss: masked hard instance mining with an EMA teacher (Tang et al., 2023)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones.batch import Batch
from foci.backbones.layers.mlp import ema_update, frozen_copy
from foci.backbones.objectives.base import Objective
from foci.backbones.objectives.random_subset import choose
from foci.errors import FociError

if TYPE_CHECKING:
    from foci.backbones.models.mhim import MHIM


@dataclass(frozen=True)
class MaskRatios:
    """Mask ratios: shares of a bag's N tiles that are hidden; the three sets may overlap.

    The defaults are the published TCGA-NSCLC run with gated attention.

    Attributes:
        random: Share drawn at random (r).
        low: Share with the lowest attention (r_l).
        high: Share hidden among the highest attention (r_h).
        high_draw: Which part of the candidates with the highest attention is drawn (r_hr): at 1
            exactly the top share ``high``, below 1 a random part of the top ``high / high_draw``;
            not above ``high`` means that all tiles are candidates.
    """

    random: float = 0.7
    low: float = 0.2
    high: float = 0.02
    high_draw: float = 1.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 <= value <= 1:
                raise FociError(f"mask ratio {name!r}", f"is {value}", "choose it in [0, 1]")


def share(n: int, ratio: float) -> int:
    """``ceil(n * ratio)``, robust to rounding: 100 * 0.07 counts as 7.

    >>> share(10, 0.25), share(100, 0.07), share(5, 0.0)
    (3, 7, 0)
    """
    return math.ceil(n * ratio - 1e-9)


def mask_tiles(attention: Tensor, ratios: MaskRatios) -> Tensor:
    r"""Choose the tiles of one bag to hide from the student.

    .. math:: M = R_{\lceil rN \rceil} \cup L_{\lceil r_l N \rceil} \cup
       \mathrm{draw}_{r_{hr}}\big(H_{\lceil r_h N / r_{hr} \rceil}\big)

    with R random tiles, L the lowest and H the highest attention. One random tile stays visible
    where the union would leave none.

    Args:
        attention: ``[N]``, any monotone version of the teacher's attention.
        ratios: How much is hidden.

    Returns:
        ``[N]`` bool, True where a tile is hidden. Draws from torch's global generator.
    """
    n = len(attention)
    place = attention.argsort(descending=True, stable=True).argsort()
    tiles = torch.ones_like(place, dtype=torch.bool)
    draw = max(ratios.high_draw, ratios.high)
    candidates = share(n, ratios.high / draw) if draw > 0 else 0
    hidden = (
        choose(tiles, share(n, ratios.random))
        | (place >= n - share(n, ratios.low))
        | choose(place < candidates, share(candidates, draw))
    )
    return hidden & ~choose(tiles, 1) if hidden.all() else hidden


def cosine_schedule(start: float, end: float, progress: float) -> float:
    r"""Cosine schedule from start to end: :math:`e + (s - e)\,(1 + \cos \pi p) / 2`.

    >>> [round(cosine_schedule(1.0, 0.0, p), 6) for p in (0.0, 0.5, 1.0)]
    [1.0, 0.5, 0.0]
    """
    return end + (start - end) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2


def soft_cross_entropy(teacher: Tensor, student: Tensor, temperature: float) -> Tensor:
    r"""Cross-entropy with the teacher's soft targets, averaged over the bags.

    .. math:: -\sum_j \mathrm{softmax}(t/T)_j \log\mathrm{softmax}(s)_j
    """
    target = torch.softmax(teacher / temperature, dim=-1)
    return -(target * F.log_softmax(student, dim=-1)).sum(dim=-1).mean()


class MaskedHardMining(Objective):
    r"""Plain cross-entropy for the teacher, then masked bags for the student.

    Stage ``"teacher"`` trains the backbone with plain cross-entropy. When stage ``"student"``
    begins, a frozen copy becomes the teacher and the backbone keeps only its projection. From
    then on the teacher attends to the full bag, the student sees what
    :func:`mask_tiles` leaves of it, and

    .. math:: L = \mathrm{CE} + \alpha\, H\big(\mathrm{softmax}(t / T), \mathrm{softmax}(s)\big),
       \qquad \theta_t \leftarrow m\,\theta_t + (1 - m)\,\theta_s

    with t and s the two bag features (softmax over their d coordinates, not over classes).

    Args:
        backbone: The classifier; it is the baseline first, the student after.
        mask_random: r, share of tiles hidden at random.
        mask_low: r_l, share with the lowest attention.
        mask_high: r_h, share hidden among the highest attention.
        mask_high_draw: r_hr, part of the highest-attention candidates that is drawn.
        decay_high: Let r_h fall to 0 over the student stage by half a cosine.
        alpha: Weight of the consistency term.
        temperature: T of the teacher's bag feature.
        momentum: m of the teacher.
        anneal_momentum: Let m rise to 1 over the student stage by half a cosine.
    """

    stages: ClassVar[tuple[str, ...]] = ("teacher", "student")
    backbone: MHIM
    stage: Tensor
    step: Tensor
    total_steps: Tensor

    def __init__(
        self,
        backbone: MHIM,
        *,
        mask_random: float = 0.7,
        mask_low: float = 0.2,
        mask_high: float = 0.02,
        mask_high_draw: float = 1.0,
        decay_high: bool = True,
        alpha: float = 0.5,
        temperature: float = 0.1,
        momentum: float = 0.9999,
        anneal_momentum: bool = True,
    ) -> None:
        super().__init__(backbone)
        self.ratios = MaskRatios(mask_random, mask_low, mask_high, mask_high_draw)
        self.decay_high = decay_high
        self.alpha, self.temperature = alpha, temperature
        self.momentum, self.anneal_momentum = momentum, anneal_momentum
        # Present from the start, so that a killed run's state fits a fresh objective.
        self.teacher = frozen_copy(backbone)
        for counter in ("stage", "step", "total_steps"):
            self.register_buffer(counter, torch.zeros((), dtype=torch.long))

    @property
    def progress(self) -> float:
        """Share of this stage's steps that are done."""
        return int(self.step) / max(1, int(self.total_steps))

    @property
    def current_ratios(self) -> MaskRatios:
        """The mask ratios of this step."""
        if not self.decay_high:
            return self.ratios
        return replace(self.ratios, high=cosine_schedule(self.ratios.high, 0.0, self.progress))

    @property
    def current_momentum(self) -> float:
        """The teacher's momentum of this step."""
        return (
            cosine_schedule(self.momentum, 1.0, self.progress)
            if self.anneal_momentum
            else self.momentum
        )

    def begin_stage(self, stage: str, total_steps: int) -> None:
        """Enter a stage; the student's begins from the trained baseline."""
        if stage not in self.stages:
            raise FociError("MHIM-MIL stage", f"is {stage!r}", f"use {' or '.join(self.stages)}")
        self.stage.fill_(self.stages.index(stage))
        self.step.zero_()
        self.total_steps.fill_(total_steps)
        if stage == "student":
            self.teacher.load_state_dict(self.backbone.state_dict())
            self.backbone.restart()

    def after_step(self) -> None:
        """EMA update of the teacher."""
        if self.stages[int(self.stage)] == "student":
            ema_update(self.teacher, self.backbone, self.current_momentum)
        self.step += 1

    def forward(self, batch: Batch) -> Tensor:
        """Mean over the batch."""
        if self.stages[int(self.stage)] == "teacher":
            logits = self.backbone(batch.features, batch.mask)
            return self.named_terms(bag=F.cross_entropy(logits, batch.labels))
        target, visible = self.teach(batch)
        feature, _ = self.backbone.bag_feature(self.backbone.embed(batch.features), visible)
        logits = self.backbone.readout(feature.unsqueeze(-2))
        return self.named_terms(
            bag=F.cross_entropy(logits, batch.labels),
            consistency=self.alpha * soft_cross_entropy(target, feature, self.temperature),
        )

    @torch.no_grad()
    def teach(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The teacher's bag features ``[B, d]`` and the tiles ``[B, N]`` it leaves visible."""
        self.teacher.train(self.backbone.training)  # its dropout is as active as the student's
        feature, attention = self.teacher.bag_feature(
            self.teacher.embed(batch.features), batch.mask
        )
        visible = batch.mask.clone()
        for row, present, scores in zip(visible, batch.mask, attention, strict=True):
            row[present] = ~mask_tiles(scores[present], self.current_ratios)
        return feature, visible
