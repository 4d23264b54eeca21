"""MHIM-MIL: masked hard instance mining (Tang et al., 2023), with both encoders of version 1."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.attention import (
    GatedAttention,
    ema_update,
    frozen_copy,
    head,
    pool,
    projection,
    softmax_weights,
)
from foci.backbones.base import (
    Batch,
    Objective,
    architecture,
    choose,
    declares,
    objective_of,
    preset,
)
from foci.backbones.models._pooled import OrderedBackbone, PooledBackbone
from foci.backbones.transformer import CroppedPPEG, NystromAttention, NystromLayer
from foci.errors import FociError


@architecture("mhim")
class MHIM(PooledBackbone):
    r"""Attention pooling, trained on bags without the tiles that a teacher finds easy.

    .. math:: h_i = \phi_p(W x_i), \quad
       a_i = w^\top(\phi(V h_i) \odot \sigma(U h_i)), \quad
       z = \sum_i \mathrm{softmax}(a)_i\, h_i, \quad \ell = \mathrm{head}(z)

    Masking belongs to training (:class:`MaskedHardMining`); the finished classifier sees the full
    bag. Native score: :math:`a_i` before the softmax.

    The arguments are those of :class:`~foci.backbones.models.abmil.ABMIL`, with :math:`\phi` as
    ``activation`` and :math:`\phi_p` as ``projection_activation``; ``attention_bias`` says whether
    V, U and w have biases.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        hidden: int,
        gated: bool = True,
        activation: str = "relu",
        attention_bias: bool = False,
        projection_activation: str = "relu",
        projection_bias: bool = True,
        head_hidden: int | None = None,
        dropout: float = 0.25,
    ) -> None:
        super().__init__(d_in, n_classes, d_token=d)
        self.projection = projection(
            d_in, d, bias=projection_bias, dropout=dropout, activation=projection_activation
        )
        self.attention = GatedAttention(
            d, hidden, gated=gated, activation=activation, bias=attention_bias
        )
        self.head = head(d, n_classes, head_hidden)
        self.homogeneous = not projection_bias and projection_activation == "relu"
        self.apply(_xavier)

    def bag_feature(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The pooled token z ``[B, d]`` and the attention logits ``[B, N]`` behind it."""
        logits = self.attend(tokens)
        pooled = pool(softmax_weights(logits, mask), self.values(tokens))
        return pooled.squeeze(-2), logits.squeeze(-1)

    def restart(self) -> None:
        """Reinitialise everything but the projection, as the student starts."""
        self.attention.apply(_xavier)
        self.head.apply(_xavier)


def _xavier(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_normal_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


@architecture("mhim-selfattn")
class MHIMSelfAttention(OrderedBackbone):
    r"""Two Nyström layers around a cropped position encoding, read out at the CLS token.

    .. math:: H_1 = L_1([c;\, \phi(W X + b)]), \quad
       H_2 = L_2([H_{1,0};\, \mathrm{PPEG}(H_{1,1:})]), \quad
       \ell = W_o\,\mathrm{LN}(H_2)_0 + b_o

    Unlike TransMIL it squares the bag only inside the position encoding, so no tile is attended
    to twice. It depends on the order of the tiles and has no mask. Native score: the CLS token's
    row of the approximate attention in the second layer, averaged over the heads; it may be
    negative. For trained weights: masked hard mining is offered with the attention-pooling
    encoder (:class:`MHIM`), this one trains with cross-entropy.

    Args:
        head_width: Width of a head, whatever their number; None for d / 8.
        landmarks: Nyström landmarks; None for d / 2.
        activation: :math:`\phi`, ``"relu"`` or ``"gelu"``.
        dropout: After the projection, while training.
        attention_dropout: After each attention block, while training.
    """

    tile_score = "native"

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        heads: int,
        head_width: int | None = None,
        landmarks: int | None = None,
        activation: str = "relu",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__(d_in, n_classes, d_token=d)
        head_width = d // 8 if head_width is None else head_width
        landmarks = d // 2 if landmarks is None else landmarks
        self.projection = projection(d_in, d, bias=True, dropout=dropout, activation=activation)
        self.cls = nn.Parameter(torch.randn(1, 1, d))
        settings = (d, heads, head_width, landmarks, attention_dropout)
        self.layer1 = NystromLayer(NystromAttention(*settings))
        self.position = CroppedPPEG(d)
        self.layer2 = NystromLayer(NystromAttention(*settings))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, n_classes)

    @declares("shared-tokens")
    def share(self, tokens: Tensor) -> Tensor:
        """See :meth:`OrderedBackbone.share`: queries, keys and values of the first layer."""
        return self.layer1.share(tokens)

    @declares("shared-tokens")
    def encode(self, tokens: Tensor) -> Tensor:
        """Tokens ``[B, n, d]``, or what :meth:`share` gives, to the input of the last layer."""
        if tokens.shape[-1] == self.d_token:
            tokens = self.share(tokens)
        cls = self.share(self.cls).expand(len(tokens), -1, -1)
        hidden = self.layer1.shared(torch.cat([cls, tokens], dim=1))
        return torch.cat([hidden[:, :1], self.position(hidden[:, 1:])], dim=1)

    @declares("shared-tokens")
    def classify(self, tokens: Tensor) -> Tensor:
        """Linear head on the CLS token."""
        cls = self.layer2(self.encode(tokens), rows=1)[:, 0]
        logits: Tensor = self.head(self.norm(cls))
        return logits

    def scores(self, tokens: Tensor) -> Tensor:
        """Approximate attention of the CLS token in layer 2, mean over heads."""
        rows = self.layer2.cls_row(self.encode(tokens.unsqueeze(0)))
        return rows[0, :, 1:].mean(dim=0)


def share(n: int, ratio: float) -> int:
    """``ceil(n * ratio)``, robust to rounding: 100 * 0.07 counts as 7.

    >>> share(10, 0.25), share(100, 0.07), share(5, 0.0)
    (3, 7, 0)
    """
    return math.ceil(n * ratio - 1e-9)


def mask_tiles(
    attention: Tensor, *, random: float, low: float, high: float, high_draw: float
) -> Tensor:
    r"""Choose the tiles of one bag to hide from the student; the three sets may overlap.

    .. math:: M = R_{\lceil rN \rceil} \cup L_{\lceil r_l N \rceil} \cup
       \mathrm{draw}_{r_{hr}}\big(H_{\lceil r_h N / r_{hr} \rceil}\big)

    with R random tiles, L the lowest and H the highest attention; r is ``random``, :math:`r_l` is
    ``low``, :math:`r_h` is ``high``. :math:`r_{hr}`, ``high_draw``, is the part of the candidates
    with the highest attention that is drawn: at 1 exactly the top share ``high``, below 1 a random
    part of the top ``high / high_draw``; not above ``high`` means that all tiles are candidates.
    One random tile stays visible where the union would leave none.

    ``attention`` is any monotone version of the teacher's, ``[N]``; the result is bool, True where
    a tile is hidden. Draws from torch's global generator.
    """
    n = len(attention)
    place = attention.argsort(descending=True, stable=True).argsort()
    tiles = torch.ones_like(place, dtype=torch.bool)
    draw = max(high_draw, high)
    candidates = share(n, high / draw) if draw > 0 else 0
    hidden = (
        choose(tiles, share(n, random))
        | (place >= n - share(n, low))
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


@objective_of(MHIM)
class MaskedHardMining(Objective):
    r"""Plain cross-entropy for the teacher, then masked bags for the student.

    Stage ``"teacher"`` trains the backbone with plain cross-entropy. When stage ``"student"``
    begins, a frozen copy becomes the teacher and the backbone keeps only its projection. From
    then on the teacher attends to the full bag, the student sees what
    :func:`mask_tiles` leaves of it, and

    .. math:: L = \mathrm{CE} + \alpha\, H\big(\mathrm{softmax}(t / T), \mathrm{softmax}(s)\big),
       \qquad \theta_t \leftarrow m\,\theta_t + (1 - m)\,\theta_s

    with t and s the two bag features (softmax over their d coordinates, not over classes). The
    default mask ratios are the published TCGA-NSCLC run with gated attention.

    Args:
        mask_random, mask_low, mask_high, mask_high_draw: Shares of a bag's tiles that are hidden;
            see :func:`mask_tiles`.
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
        self.ratios = {
            "random": mask_random, "low": mask_low, "high": mask_high, "high_draw": mask_high_draw
        }  # fmt: skip
        for name, ratio in self.ratios.items():
            if not 0 <= ratio <= 1:
                raise FociError(f"mask_{name}", f"is {ratio}", "choose it in [0, 1]")
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
    def current_ratios(self) -> dict[str, float]:
        """The mask ratios of this step, by argument of :func:`mask_tiles`."""
        if not self.decay_high:
            return self.ratios
        return {**self.ratios, "high": cosine_schedule(self.ratios["high"], 0.0, self.progress)}

    @property
    def current_momentum(self) -> float:
        """The teacher's momentum of this step."""
        if not self.anneal_momentum:
            return self.momentum
        return cosine_schedule(self.momentum, 1.0, self.progress)

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
            row[present] = ~mask_tiles(scores[present], **self.current_ratios)
        return feature, visible


preset(
    "mhim-mil",
    "paper",
    MHIM,
    d=512,
    hidden=256,
    activation="tanh",
    attention_bias=True,
    projection_bias=False,
    head_hidden=256,
)
preset("mhim-mil", "official", MHIM, d=512, hidden=128)
preset("mhim-mil", "official-ungated", MHIM, d=512, hidden=128, gated=False)
preset(
    "mhim-mil",
    "selfattn",
    MHIMSelfAttention,
    d=512,
    heads=8,
    dropout=0.25,
    attention_dropout=0.1,
)
