"""The parts of a pooling classifier's answer: what the logits of every set of tiles follow from."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from foci.errors import FociError

Structure = Literal["linear head", "relu head", "rows", "best tile", "none"]

Floats = NDArray[np.float64]


class Parts:
    r"""Attention and evidence of the tiles of one bag, in float64.

    .. math:: \ell_c(S) = \sum_r \frac{\sum_{i \in S} w_{ri} E_{irc}}{\sum_{i \in S} w_{ri}},
       \qquad w_{ri} = e^{a_{ri}}

    where the evidence :math:`E_{irc}` is what tile i adds to the logit of class c if it has all of
    the weight in row r, biases included. With ``output`` these are pre-activations, and a ReLU and
    a linear layer follow.

    Args:
        attention: ``[N, R]`` logits, or with ``hard`` the scores by which tiles compete.
        evidence: ``[N, R, C]`` per row, which are added up, or ``[N, 1, C]`` for all rows, which
            are averaged. With ``output`` the pre-activations ``[N, 1, H]``.
        empty: Softmax-plus-one: evidence ``[1 or R, C]`` of the empty tile, which is the bias.
        output: ``[C, H + 1]`` weights and, last, bias of the layer after a ReLU.
        hard: Each row gives all weight to its best tile: one row for all classes, or one for each
            whose scores are the tile logits (max pooling).
    """

    def __init__(
        self,
        attention: Any,
        evidence: Any,
        empty: Any = None,
        output: Any = None,
        *,
        hard: bool = False,
    ) -> None:
        self.attention, self.evidence = _array(attention), _array(evidence)
        self.empty = None if empty is None else _array(empty)
        self.output = None if output is None else _array(output)
        self.hard = hard
        (n, rows), shape = self.attention.shape, self.evidence.shape
        fits = n > 0 and len(shape) == 3 and shape[0] == n and shape[1] in (1, rows)
        if self.empty is not None:
            fits &= self.empty.shape == shape[1:] and not hard and self.output is None
        if self.output is not None:
            fits &= rows == 1 and self.output.shape[1] == shape[2] + 1 and not hard
        if fits and hard and rows > 1:
            fits = np.array_equal(self.evidence, self.attention[..., None] * np.eye(rows))
        if not fits:
            what = f"of {n} tiles and {rows} rows do not fit evidence of shape {shape}"
            raise FociError("parts", what, "see foci.parts.Parts")

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return self.evidence.shape[2] if self.output is None else len(self.output)

    @property
    def structure(self) -> Structure:
        """What these parts are; a backbone declares it in its capabilities."""
        if self.hard:
            return "best tile"
        if self.output is not None:
            return "relu head"
        return "linear head" if self.attention.shape[1] == 1 else "rows"

    def logits(self, present: NDArray[np.bool_]) -> Floats:
        """Logits ``[C]`` of the tiles that are present, ``[N]``."""
        scores = np.where(present[:, None], self.attention, -np.inf)
        nothing = np.zeros(scores.shape[1])  # weight of the empty tile
        if self.hard:
            weights = np.zeros_like(scores)
            weights[scores.argmax(axis=0), np.arange(scores.shape[1])] = 1.0
        else:
            peaks = scores.max(axis=0)
            if self.empty is not None:
                peaks = np.maximum(peaks, 0.0)
                nothing = np.exp(-peaks)
            weights = np.exp(scores - peaks)
            total = weights.sum(axis=0) + nothing
            weights, nothing = weights / total, nothing / total
        if self.evidence.shape[1] == 1:
            weights, nothing = weights.mean(axis=1, keepdims=True), nothing.mean(keepdims=True)
        pooled: Floats = np.tensordot(weights, self.evidence, axes=2)
        if self.empty is not None:
            pooled += nothing @ self.empty
        if self.output is None:
            return pooled
        logits: Floats = self.output[:, :-1] @ np.maximum(pooled, 0.0) + self.output[:, -1]
        return logits


def _array(values: Any) -> Floats:
    """Of an array, a list or a tensor on any device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=np.float64)
