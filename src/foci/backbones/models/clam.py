"""CLAM with a single attention branch or one per class (Lu et al., 2021)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.attention import GatedAttention, head, pool, projection, softmax_weights
from foci.backbones.base import Batch, Objective, architecture, declares, objective_of, preset
from foci.backbones.models._pooled import PooledBackbone
from foci.errors import FociError
from foci.outputs import Output
from foci.parts import Parts

Loss = Literal["ce", "svm"]

HARD_FROM = math.log(1000.0)
"""Lead of the best over the second-best class from which the hard form is used."""

_ATTENTION_DROPOUT = 0.25
"""Fixed by the authors: whatever the dropout after the projection, unless that is 0."""


@architecture("clam-sb")
class CLAMSB(PooledBackbone):
    r"""CLAM-SB: one attention score per tile, one weighted mean, one head.

    .. math:: h_i = \mathrm{ReLU}(W x_i), \quad
       a_i = w^\top(\tanh(V h_i) \odot \sigma(U h_i)), \quad
       \ell = \mathrm{head}\Big(\sum_i \mathrm{softmax}(a)_i\, h_i\Big)

    Trained with :class:`InstanceClustering`; its instance classifiers, one per class, take no part
    in a prediction. Native score: :math:`a_i` before the softmax.

    The arguments are those of :class:`~foci.backbones.models.abmil.ABMIL`. Unless the dropout after
    the projection is 0, the attention factors have a dropout of 0.25 each.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        hidden: int,
        projection_bias: bool = True,
        gated: bool = True,
        dropout: float = 0.0,
        head_hidden: int | None = None,
        projection_activation: str = "relu",
        projection_layers: int = 1,
    ) -> None:
        super().__init__(d_in, n_classes, d_token=d)
        self.projection = projection(
            d_in,
            d,
            bias=projection_bias,
            dropout=dropout,
            activation=projection_activation,
            layers=projection_layers,
        )
        self.homogeneous = not projection_bias and projection_activation == "relu"
        inner = _ATTENTION_DROPOUT if dropout else 0.0
        self.attention = GatedAttention(d, hidden, 1, gated=gated, dropout=inner)
        self.instance_classifiers = nn.ModuleList(nn.Linear(d, 2) for _ in range(n_classes))
        self.head = head(d, n_classes, head_hidden)


@architecture("clam-mb")
class CLAMMB(PooledBackbone):
    r"""CLAM-MB: one attention row, one weighted mean and one linear head per class.

    .. math:: a_{ci} = w_c^\top(\tanh(V h_i) \odot \sigma(U h_i)), \quad
       \ell_c = u_c^\top \sum_i \mathrm{softmax}(a_c)_i\, h_i + b_c

    Trained with :class:`InstanceClustering`, where the tiles of class c are chosen by row c.

    The arguments are those of :class:`CLAMSB`; with ``plus_one`` the tokens are pooled with
    softmax-plus-one, :math:`e^{a_i} / (1 + \sum_j e^{a_j})`.
    """

    structure = "rows"

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        hidden: int,
        projection_bias: bool = True,
        gated: bool = True,
        dropout: float = 0.0,
        projection_activation: str = "relu",
        plus_one: bool = False,
    ) -> None:
        super().__init__(d_in, n_classes, d_token=d)
        self.projection = projection(
            d_in, d, bias=projection_bias, dropout=dropout, activation=projection_activation
        )
        self.homogeneous = not projection_bias and projection_activation == "relu"
        self.plus_one = plus_one
        inner = _ATTENTION_DROPOUT if dropout else 0.0
        self.attention = GatedAttention(d, hidden, n_classes, gated=gated, dropout=inner)
        self.instance_classifiers = nn.ModuleList(nn.Linear(d, 2) for _ in range(n_classes))
        self.heads = nn.ModuleList(nn.Linear(d, 1) for _ in range(n_classes))

    @declares("split-readout", "parts")
    def readout(self, pooled: Tensor) -> Tensor:
        """Head c on the token pooled by row c."""
        rows = pooled.unbind(dim=-2)
        return torch.cat([head(row) for head, row in zip(self.heads, rows, strict=True)], dim=-1)

    @declares("split-readout")
    def project(self, values: Tensor) -> Tensor:
        """Head c on the token of a tile, for row c: ``[..., 1, d]`` to ``[..., C, 1]``."""
        return torch.cat([head(values) for head in self.heads], dim=-2)

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        """Each row is a logit already."""
        return projected.squeeze(-1)

    @declares("parts")
    def parts(self, tokens: Tensor) -> Parts:
        """See :meth:`Backbone.parts`; row c is evidence for class c alone."""

        def evidence(values: Tensor) -> Tensor:
            logits = torch.cat([head(values) for head in self.heads], dim=-1)
            return torch.diag_embed(logits.squeeze(-2))

        values = self.values(tokens)
        empty = evidence(torch.zeros_like(values[0])) if self.plus_one else None
        return Parts(self.attend(tokens), evidence(values), empty)

    def scores(self, tokens: Tensor) -> Tensor:
        r"""Attention before the softmax in the row of the class that the *full bag* predicts.

        :math:`a_{\hat c i}` with :math:`\hat c = \arg\max_c \ell_c`: tokens must be the whole bag.
        """
        attention = self.attend(tokens)
        weights = softmax_weights(attention, plus_one=self.plus_one)
        logits = self.readout(pool(weights, self.values(tokens)))
        return attention[:, int(logits.argmax())]


CLAM: TypeAlias = CLAMSB | CLAMMB


def smooth_top1_svm(scores: Tensor, labels: Tensor) -> Tensor:
    r"""Smooth top-1 SVM loss (Berrada, Zisserman and Kumar, 2018), averaged over the rows.

    .. math:: L(u, y) = \log \sum_c e^{\,u_c + [c \ne y] - u_y}
       \;\ge\; \max_c \big(u_c + [c \ne y]\big) - u_y

    Where the best class leads the second by :math:`\ln 1000` or more, the right-hand side (the
    multi-class hinge) is the loss. For two classes the left-hand side is
    :math:`\mathrm{softplus}(1 + u_\mathrm{other} - u_y)`.

    >>> two_classes = torch.tensor([[0.0, 0.0], [0.0, 8.0]])
    >>> smooth_top1_svm(two_classes[:1], torch.tensor([0]))  # softplus(1)
    tensor(1.3133)
    >>> smooth_top1_svm(two_classes[1:], torch.tensor([0]))  # hinge
    tensor(9.)
    """
    margin = torch.ones_like(scores).scatter(-1, labels[:, None], 0.0)
    excess = scores + margin - scores.gather(-1, labels[:, None])
    best, second = scores.topk(2, dim=-1).values.unbind(-1)
    hard = best - second >= HARD_FROM
    return torch.where(hard, excess.amax(dim=-1), excess.logsumexp(dim=-1)).mean()


_ABSENCE = re.compile(
    r"(?i)(^|[\W_])(benign|control|healthy|negative|no|non|none|normal|not|without)([\W_]|$)"
)
"""A word in the name of a class that is the absence of the other one."""


def are_subtypes(classes: Sequence[str]) -> bool:
    """Whether classes exclude each other, so that a tile of one is no evidence for another.

    As in the CLAM authors' tasks: subtypes of a tumour do; tumour and normal tissue do not, because
    a tumour slide has normal tissue too. Two classes count as subtypes unless the name of one says
    that it is an absence; more than two always do.

    >>> are_subtypes(["LUAD", "LUSC"]), are_subtypes(["normal", "tumour"])
    (True, False)
    >>> are_subtypes(["benign", "malignant"]), are_subtypes(["normal", "LUAD", "LUSC"])
    (False, True)
    """
    return len(classes) > 2 or not any(_ABSENCE.search(name) for name in classes)


_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "ce": F.cross_entropy,
    "svm": smooth_top1_svm,
}


@objective_of(CLAMSB, CLAMMB)
class InstanceClustering(Objective):
    r"""Bag loss plus instance clustering of the most and least attended tiles.

    .. math:: L = w\,L_\mathrm{bag} + (1 - w)\,L_\mathrm{inst}

    For a bag of class y with n tiles and :math:`k = \min(B, n)`, instance classifier y learns to
    call the k most attended tokens 1 and the k least attended 0. With mutually exclusive classes
    (subtyping) every other instance classifier learns to call the k most attended tokens 0, and
    :math:`L_\mathrm{inst}` is the mean over the classes. The choice of tiles is not
    differentiated; the gradient reaches the projection through the chosen tokens. Both losses are
    averaged over the bags of a batch.

    Args:
        subtyping: Whether the classes exclude each other (NSCLC, BRCA: yes; normal against
            tumour: no).
        bag_weight: w.
        n_instances: B.
        instance_loss: ``"svm"`` (smooth top-1 SVM, as the authors recommend) or ``"ce"``.
        bag_loss: ``"ce"`` or ``"svm"``.
    """

    backbone: CLAM

    def __init__(
        self,
        backbone: CLAM,
        *,
        subtyping: bool = False,
        bag_weight: float = 0.7,
        n_instances: int = 8,
        instance_loss: Loss = "svm",
        bag_loss: Loss = "ce",
    ) -> None:
        super().__init__(backbone)
        if n_instances < 1:
            raise FociError("n_instances", f"is {n_instances}", "choose at least one tile")
        for option, name in (("instance_loss", instance_loss), ("bag_loss", bag_loss)):
            if name not in _LOSSES:
                fix = f"choose one of {', '.join(_LOSSES)}"
                raise FociError(option, f"{name!r} is not a loss", fix)
        self.subtyping, self.bag_weight, self.n_instances = subtyping, bag_weight, n_instances
        self.instance_loss, self.bag_loss = _LOSSES[instance_loss], _LOSSES[bag_loss]

    @classmethod
    def departures(cls, classes: Sequence[str], output: Output) -> tuple[dict[str, Any], str]:
        """See :meth:`Objective.departures`: whether the classes exclude each other."""
        if output != "class":
            return {}, ""
        if are_subtypes(classes):
            why = "the classes are taken for subtypes, which exclude each other"
            return {"objective.subtyping": True}, why
        why = "one class is taken for the absence of the other"
        return {"objective.subtyping": False}, why

    def forward(self, batch: Batch) -> Tensor:
        """Weighted bag and instance loss, each averaged over the bags."""
        tokens = self.backbone.embed(batch.features)
        attention = self.backbone.attend(tokens)
        weights = softmax_weights(attention, batch.mask, plus_one=self.backbone.plus_one)
        logits = self.backbone.readout(pool(weights, self.backbone.values(tokens)))
        instance = torch.stack(
            [
                self.cluster(tokens[b, real], attention[b, real], int(batch.labels[b]))
                for b, real in enumerate(batch.mask)
            ]
        )
        return self.named_terms(
            bag=self.bag_weight * self.bag_loss(logits, batch.labels),
            instance=(1 - self.bag_weight) * instance.mean(),
        )

    def cluster(self, tokens: Tensor, attention: Tensor, label: int) -> Tensor:
        """Instance loss of one bag of class ``label``, from the real tiles ``[n, d]`` alone.

        The attention logits ``[n, R]`` have one row for all classes, or one for each.
        """
        k = min(self.n_instances, len(tokens))
        rows = attention.detach().expand(-1, self.backbone.n_classes)
        total = tokens.new_zeros(())
        for c, classifier in enumerate(self.backbone.instance_classifiers):
            most = rows[:, c].topk(k).indices
            if c == label:
                least = rows[:, c].topk(k, largest=False).indices
                chosen = torch.cat([most, least])
                targets = torch.arange(2 * k, device=tokens.device).lt(k).long()
            elif self.subtyping:
                chosen, targets = most, torch.zeros_like(most)
            else:
                continue
            total = total + self.instance_loss(classifier(tokens[chosen]), targets)
        return total / self.backbone.n_classes if self.subtyping else total


preset("clam-sb", "paper", CLAMSB, d=256, hidden=128, head_hidden=128, projection_bias=False)
preset("clam-sb", "official", CLAMSB, d=512, hidden=256, dropout=0.25)
preset("clam-sb", "big", CLAMSB, d=512, hidden=384, dropout=0.25)
preset("clam-mb", "official", CLAMMB, d=512, hidden=256, dropout=0.25)
preset("clam-mb", "plus-one", CLAMMB, d=512, hidden=128, dropout=0.25, plus_one=True)
