"""Wrap any function from features to logits as a Backbone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from foci.backbones.base import Backbone, Capabilities
from foci.errors import FociError

_TWO_CLASSES = {
    "logits": "a single sigmoid output u is the logits [0, u], "
    "pick=lambda u: torch.stack([0 * u.squeeze(), u.squeeze()])",
    "probabilities": "a single sigmoid output p is the probabilities [1 - p, p], "
    "pick=lambda p: torch.stack([1 - p.squeeze(), p.squeeze()])",
}
"""How a classifier with one sigmoid output gives two classes."""


class CallableBackbone(Backbone):
    """A backbone around any function from the features of one bag to class scores.

    Tokens are the features themselves; every bag, padded or not, is reduced to its present tiles,
    in bag order, and passed to the function alone. Nothing is assumed about the function, so there
    is no closed form, no attention gate, and order matters unless declared otherwise.

    A single sigmoid output u is the two logits ``[0, u]``: say so with ``pick``.

    Args:
        function: Features ``[N, D]`` to class scores ``[C]`` or ``[1, C]``. A module is registered
            as a submodule, so that moving, freezing and hashing the backbone reach it.
        d_in: Feature width D.
        n_classes: Number of classes C, at least 2.
        output: What the function returns: ``"logits"``, or ``"probabilities"``, which are turned
            into log-probabilities.
        pick: Takes the class scores out of what the function returns, where that is a tuple or a
            dict, for instance ``lambda out: out[0]``.
        scores: Features ``[N, D]`` to one score ``[N]`` per tile, the higher the earlier: the
            model's attention, or any other map. It becomes the native ranking; without it there is
            none, and an audit cannot say whether the map can be believed.
        order_free: Declare that the order of the tiles makes no difference.
        differentiable: Whether gradients flow from the class scores back to the features.

    >>> model = CallableBackbone(lambda x: x.mean(0)[:2], d_in=8, n_classes=2)
    >>> model(torch.ones(5, 8))
    tensor([1., 1.])

    With its attention as the native ranking:

    >>> attention = torch.nn.Linear(8, 1)
    >>> model = CallableBackbone(
    ...     lambda x: (attention(x).softmax(0) * x).sum(0)[:2], d_in=8, n_classes=2,
    ...     scores=lambda x: attention(x).squeeze(-1))
    >>> model.capabilities.score, model.scores(torch.ones(5, 8)).shape
    ('native', torch.Size([5]))
    """

    architecture = "callable"

    def __init__(
        self,
        function: Callable[[Tensor], Any],
        d_in: int,
        n_classes: int,
        *,
        output: Literal["logits", "probabilities"] = "logits",
        pick: Callable[[Any], Any] | None = None,
        scores: Callable[[Tensor], Tensor] | None = None,
        order_free: bool = False,
        differentiable: bool = True,
    ) -> None:
        if output not in ("logits", "probabilities"):
            raise FociError("output", f"is {output!r}", "choose 'logits' or 'probabilities'")
        if n_classes < 2:
            fix = f"give 2 or more: {_TWO_CLASSES[output]}"
            raise FociError("n_classes", f"is {n_classes}", fix)
        super().__init__(d_in, n_classes, d_token=d_in)
        self.function = function
        self.pick = pick
        self.score_function = scores
        self.output, self.order_free, self.differentiable = output, order_free, differentiable

    @property
    def config(self) -> dict[str, Any]:
        """The constructor's arguments without the functions, which no file can hold."""
        functions = ("function", "pick", "scores")
        return {name: value for name, value in super().config.items() if name not in functions}

    @property
    def capabilities(self) -> Capabilities:
        """As declared in the constructor."""
        return Capabilities(
            order_free=self.order_free,
            closed_form=False,
            score="none" if self.score_function is None else "native",
            gate_sites=("feature",) if self.differentiable else (),
            homogeneous=True,
        )

    @property
    def called(self) -> str:
        """The function by its name, for messages."""
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"function {name}"

    def embed(self, x: Tensor) -> Tensor:
        """Identity."""
        return x

    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`; one call of the function per bag."""
        if gate is not None:
            raise FociError(self.called, "has no attention to gate", "use gate site 'feature'")
        bags: Iterable[Tensor] = tokens
        if mask is not None:
            bags = (bag[keep] for bag, keep in zip(tokens, mask, strict=True))
        return torch.stack([self._logits(bag) for bag in bags])

    def scores(self, tokens: Tensor) -> Tensor:
        """The user's own tile scores."""
        if self.score_function is None:
            others = "(a fitted selector, gradient, norm, greedy, random)"
            fix = f"pass scores=..., or use a ranking that needs none {others}"
            raise FociError(self.called, "gives no tile scores", fix)
        scores = torch.as_tensor(self.score_function(tokens), device=tokens.device)
        if scores.shape != (len(tokens),):
            what = f"have shape {list(scores.shape)}"
            fix = f"return one score per tile, shape [{len(tokens)}]"
            raise FociError(f"scores of {self.called}", what, fix)
        return scores

    def _logits(self, bag: Tensor) -> Tensor:
        """Ask the function about one bag and check what it returns."""
        if len(bag) == 0:
            raise FociError(self.called, "was asked about no tiles", "keep at least one")
        answer = self.function(bag) if self.pick is None else self.pick(self.function(bag))
        c = self.n_classes
        try:
            answer = torch.as_tensor(answer, device=bag.device)
        except (TypeError, ValueError, RuntimeError) as error:
            what = f"returned {type(answer).__name__} instead of class scores [{c}] or [1, {c}]"
            fix = "say with pick=... where they are, for instance pick=lambda out: out[0]"
            raise FociError(self.called, what, fix) from error
        if answer.shape not in ((c,), (1, c)):
            what = f"returned shape {list(answer.shape)} for a bag of shape {list(bag.shape)}"
            fix = "check n_classes, or say with pick=... where they are"
            if answer.numel() == 1:
                fix = _TWO_CLASSES[self.output]
            raise FociError(self.called, what, f"expected [{c}] or [1, {c}]: {fix}")
        answer = answer.reshape(c)
        if self.output == "logits":
            return answer
        if not answer.is_floating_point():
            kind = str(answer.dtype).removeprefix("torch.")
            what = f"returned {kind} values, which are no probabilities"
            fix = "return floating-point probabilities, not a class or votes"
            raise FociError(self.called, what, fix)
        total = float(answer.detach().sum())
        if bool((answer < 0).any()) or not abs(total - 1) <= 1e-3:
            what = f"returned values that sum to {total:.4g} and are no probabilities"
            raise FociError(self.called, what, "use output='logits'")
        return answer.clamp_min(torch.finfo(answer.dtype).tiny).log()
