r"""Models of risks, numbers or labels: what they learn, and how they are read as a decision.

A number f is held as two logits whose difference it is, as a sigmoid output u is held as [0, u];
labels have one logit each. Hazards :math:`h_t` of time bins become the risk

.. math:: f = -\sum_t S(t), \qquad S(t) = \prod_{u \le t} (1 - \sigma(h_u)).

:func:`two_sides` makes a classifier of the two sides of a cut of it, see :mod:`foci.outputs`. Where
the logits are the last layer of a head, its weights are scaled and everything that holds of the
classifier still does: closed form, proven minima. Any other model is wrapped.

Every backbone learns such outputs on its slide logits alone: the further terms of CLAM, ACMIL,
DSMIL and others are defined by classes.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from foci.backbones.base import Backbone, Batch, Capabilities, Objective, declared
from foci.errors import CohortError, FociError
from foci.outputs import SURVIVAL, Cut, Output

if TYPE_CHECKING:
    from foci.bags import Bag


def scalar(logits: Tensor, output: Output, label: int | None = None) -> Tensor:
    """The number f ``[...]`` that a model's logits ``[..., C]`` stand for.

    >>> scalar(torch.tensor([1.0, 3.0]), "cox").item()
    2.0
    >>> round(scalar(torch.tensor([0.0, 0.0]), "hazards").item(), 4)  # -(1/2 + 1/4)
    -0.75
    """
    if output == "hazards":
        return -torch.cumprod(torch.sigmoid(-logits), dim=-1).sum(dim=-1)
    if output == "multilabel":
        if label is None:
            raise FociError("output multilabel", "names no label", "give --target-class NAME")
        return logits[..., label]
    if logits.shape[-1] != 2:
        what = f"has {logits.shape[-1]} outputs, not one number"
        fix = "give hazards, multilabel or class"
        raise FociError(f"output {output}", what, fix)
    return logits[..., 1] - logits[..., 0]


def two_sides(
    backbone: Backbone, output: Output, cut: Cut, kappa: float, label: int | None = None
) -> Backbone:
    """The same model as a classifier of the sides below and above a cut; the model stays as it is.

    Its log-odds are (f - c) logit(kappa) / tau.
    """
    slope = cut.slope(kappa)
    by_head = declared(backbone, "split-readout") or declared(backbone, "encoder")
    one_head = backbone.capabilities.structure in ("linear head", "relu head")
    if (output in ("cox", "regression") and by_head) or (output == "multilabel" and one_head):
        sided = copy.deepcopy(backbone)
        head = getattr(sided, "head", None)
        last = head[-1] if isinstance(head, nn.Sequential) else head
        if isinstance(last, nn.Linear) and last.out_features == backbone.n_classes:
            with torch.no_grad():
                weight = last.weight
                bias = weight.new_zeros(len(weight)) if last.bias is None else last.bias.clone()
                if label is not None:
                    weight, bias = (
                        torch.stack([torch.zeros_like(one[label]), one[label]])
                        for one in (weight, bias)
                    )
                    sided.n_classes = sided._arguments["n_classes"] = last.out_features = 2
                last.weight = nn.Parameter(weight * slope, requires_grad=False)
                bias = bias * slope + bias.new_tensor([0.0, -slope * cut.value])
                last.bias = nn.Parameter(bias, requires_grad=False)
            sided.one_number = True
            return sided
    return Sides(backbone, output, slope, cut.value, label)


class Sides(Backbone):
    """A model whose output is read against a cut, as a classifier of two classes.

    Args:
        backbone: The model.
        output: What its logits are.
        slope: Log-odds per unit of the output.
        cut: The cut.
        label: Which of the outputs, where they are labels.
    """

    one_number = True
    slope: Tensor
    cut: Tensor

    def __init__(
        self, backbone: Backbone, output: Output, slope: float, cut: float, label: int | None = None
    ) -> None:
        super().__init__(backbone.d_in, 2, d_token=backbone.d_token)
        self.backbone, self.output, self.label = backbone, output, label
        self.architecture = backbone.architecture  # type: ignore[misc]
        self.notes = backbone.notes
        self.register_buffer("slope", torch.tensor(slope, dtype=torch.float64))
        self.register_buffer("cut", torch.tensor(cut, dtype=torch.float64))

    def _sides(self, logits: Tensor) -> Tensor:
        f = scalar(logits, self.output, self.label)
        z = (f - self.cut.to(f)) * self.slope.to(f)
        return torch.stack([torch.zeros_like(z), z], dim=-1)

    @property
    def config(self) -> dict[str, Any]:
        """The model's own, and what is read of it."""
        own = {"output": self.output, "label": self.label}
        return {**self.backbone.config, **own, "slope": float(self.slope), "cut": float(self.cut)}

    @property
    def capabilities(self) -> Capabilities:
        """The model's own; its logits no longer come apart."""
        return replace(self.backbone.capabilities, structure="none")

    @property
    def input_width(self) -> int:
        """The model's own."""
        return self.backbone.input_width

    def inputs(self, bag: Bag) -> Tensor:
        """The model's own."""
        return self.backbone.inputs(bag)

    def made_up_inputs(self, x: Tensor) -> Tensor:
        """The model's own."""
        return self.backbone.made_up_inputs(x)

    def embed(self, x: Tensor) -> Tensor:
        """The model's own."""
        return self.backbone.embed(x)

    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`."""
        return self._sides(self.backbone.aggregate(tokens, mask, gate))

    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        """See :meth:`Backbone.prefixes`."""
        return self._sides(self.backbone.prefixes(tokens, ks))

    def scores(self, tokens: Tensor) -> Tensor:
        """The model's own map."""
        return self.backbone.scores(tokens)


BINS = 4
"""Time bins of discrete hazards, as published for MCAT, PORPOISE and SurvPath."""


def cox_loss(risk: Tensor, time: Tensor, event: Tensor) -> Tensor:
    r"""Negative log partial likelihood of Cox, per event, with Breslow's rule for equal times.

    .. math:: L = -\frac{1}{\sum_i \delta_i} \sum_{i: \delta_i = 1} \Big(r_i -
       \log \sum_{j: t_j \ge t_i} e^{r_j}\Big)

    0 where no event was seen.

    >>> risk, time, event = torch.zeros(3), torch.tensor([1.0, 2.0, 3.0]), torch.ones(3)
    >>> cox_loss(risk, time, event)  # (log 3 + log 2 + log 1) / 3
    tensor(0.5973)
    """
    at_risk = time[None, :] >= time[:, None]
    over = risk[None, :].masked_fill(~at_risk, -torch.inf).logsumexp(dim=1)
    return ((over - risk) * event).sum() / event.sum().clamp(min=1)


def hazards_loss(logits: Tensor, time: Tensor, event: Tensor, edges: Sequence[float]) -> Tensor:
    r"""Negative log-likelihood of discrete hazards :math:`h_t = \sigma(\ell_t)`, per slide.

    .. math:: L_i = -\delta_i\,\big(\log S(k_i - 1) + \log h_{k_i}\big) -
       (1 - \delta_i) \log S(k_i), \qquad S(k) = \prod_{u \le k} (1 - h_u)

    with the bin :math:`k_i` of the slide's time; ``edges`` are the times between the bins.

    >>> one = torch.tensor([5.0]), torch.tensor([1.0]), [2.0]
    >>> hazards_loss(torch.zeros(1, 2), *one)  # survives bin 1, dies in bin 2: 2 log 2
    tensor(1.3863)
    """
    place = torch.bucketize(time.contiguous(), torch.tensor(list(edges)).to(time), right=True)
    bins = torch.arange(logits.shape[-1], device=logits.device)
    alive = bins[None, :] < (place + 1 - event.long())[:, None]
    died = (bins[None, :] == place[:, None]) & (event[:, None] > 0)
    likely = F.logsigmoid(-logits) * alive + F.logsigmoid(logits) * died
    return -likely.sum(dim=1).mean()


def time_edges(time: Sequence[float], event: Sequence[float], bins: int = BINS) -> list[float]:
    """Times between the bins, at equal quantiles of the times at which events were seen.

    >>> time_edges([1, 2, 3, 4, 100], [1, 1, 1, 1, 0], bins=2)
    [2.5]
    """
    seen = [t for t, one in zip(time, event, strict=True) if one]
    if not seen:
        what = "has no event to learn from: all its slides are censored"
        raise CohortError("split train", what, "write 1 where the event was seen")
    edges = [float(q) for q in np.quantile(seen, np.arange(1, bins) / bins)]
    if any(b <= a for a, b in pairwise(edges)):
        what = f"has too few different event times for {bins} bins"
        raise CohortError("split train", what, "give fewer with --bins")
    return edges


@dataclass(frozen=True)
class OutcomeTask:
    """What is learned from the numbers of a label table.

    Attributes:
        output: What the logits are.
        n_outputs: How many of them.
        edges: Times between the bins of hazards.
        units: Mean and standard deviation of the value over the training slides; a model of numbers
            learns in these units.
    """

    output: Output
    n_outputs: int
    edges: tuple[float, ...] = ()
    units: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(
        cls,
        output: Output,
        outcomes: Sequence[tuple[float, ...]],
        labels: Sequence[str],
        bins: int = BINS,
    ) -> OutcomeTask:
        """The task of the training slides, whose ``outcomes`` are as their table has them."""
        columns = 1 if output == "regression" else 2 if output in SURVIVAL else len(labels)
        if not outcomes or any(len(row) != columns for row in outcomes):
            option = {"regression": "--value", "multilabel": "--label-columns"}
            what = f"learns from {option.get(output, '--time and --event')}"
            raise CohortError(f"--output {output}", what, "name the columns of the label table")
        if output == "multilabel" and len(labels) < 2:
            fix = "give --label-column, and train classes"
            raise CohortError("--label-columns", "names a single label", fix)
        if output == "hazards":
            time, event = zip(*outcomes, strict=True)
            return cls(output, bins, tuple(time_edges(time, event, bins)))
        if output == "multilabel":
            for label, marks in zip(labels, zip(*outcomes, strict=True), strict=True):
                if len(set(marks)) == 1:
                    what = f"has {label} {marks[0]:g} on every slide"
                    raise CohortError("split train", what, "leave the label out, or add slides")
            return cls(output, len(labels))
        if output == "regression":
            values = np.array(outcomes)[:, 0]
            if not values.std():
                what = f"has the same value ({values[0]:g}) on every slide"
                raise CohortError("split train", what, "give a column that differs")
            return cls(output, 2, (), (float(values.mean()), float(values.std())))
        if not any(event for _, event in outcomes):
            what = "has no event to learn from: all its slides are censored"
            raise CohortError("split train", what, "write 1 where the event was seen")
        return cls(output, 2)

    def loss(self, logits: Tensor, outcomes: Tensor) -> Tensor:
        """Loss of logits ``[B, C]`` on outcomes ``[B, M]``: Cox, hazards, squared error or BCE."""
        if self.output == "cox":
            return cox_loss(scalar(logits, "cox"), outcomes[:, 0], outcomes[:, 1])
        if self.output == "hazards":
            return hazards_loss(logits, outcomes[:, 0], outcomes[:, 1], self.edges)
        if self.output == "regression":
            mean, scale = self.units
            return F.mse_loss(scalar(logits, "regression"), (outcomes[:, 0] - mean) / scale)
        return F.binary_cross_entropy_with_logits(logits, outcomes)

    def values(self, logits: Tensor) -> Tensor:
        """What the model says: a risk or a number ``[S, 1]``, or the log-odds of labels."""
        if self.output == "multilabel":
            return logits
        mean, scale = self.units
        return (mean + scale * scalar(logits, self.output)).unsqueeze(-1)


class OutcomeObjective(Objective):
    """The loss of a task on the slide logits, whatever the backbone."""

    def __init__(self, backbone: Backbone, task: OutcomeTask) -> None:
        super().__init__(backbone)
        self.task = task

    def forward(self, batch: Batch) -> Tensor:
        """Loss of one batch."""
        if batch.outcomes is None:
            raise FociError("batch", "has no outcomes to learn", "give slides with numbers")
        logits = self.backbone(batch.features, batch.mask)
        return self.named_terms(bag=self.task.loss(logits, batch.outcomes.to(logits.dtype)))


@dataclass(frozen=True)
class OutcomePredictions:
    """What a model says of the slides of a cohort, and what is known of them.

    Attributes:
        values: ``[S, 1]`` risks or numbers, or ``[S, L]`` log-odds of labels.
        outcomes: ``[S, M]``, as the label table has them.
        loss: Of all slides together.
    """

    output: Output
    slide_ids: tuple[str, ...]
    values: NDArray[np.float64]
    outcomes: NDArray[np.float64]
    loss: float
