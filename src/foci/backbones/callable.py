"""Wrap any function from features, or features and coordinates, to logits as a Backbone."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from foci.backbones.base import BACKBONES, Backbone, Capabilities
from foci.errors import BagError, FociError
from foci.registry import find_plugins

if TYPE_CHECKING:
    from foci.bags import Bag

_TWO_CLASSES = {
    "logits": "a single sigmoid output u is the logits [0, u], "
    "pick=lambda u: torch.stack([0 * u.squeeze(), u.squeeze()])",
    "probabilities": "a single sigmoid output p is the probabilities [1 - p, p], "
    "pick=lambda p: torch.stack([1 - p.squeeze(), p.squeeze()])",
}
"""How a classifier with one sigmoid output gives two classes."""

_PLACE = 3
"""Numbers behind the features of a tile that say where it is: x, y and the side of a tile."""

_EXACT_BYTES = 4
"""Coordinates up to 2^24 are exact in float32."""


def _takes(function: Callable[..., Any], name: str) -> bool:
    called = function.forward if isinstance(function, torch.nn.Module) else function
    return name in inspect.signature(called).parameters


class CallableBackbone(Backbone):
    """A backbone around any function from the features of one bag to class scores.

    Tokens are the features themselves; every bag, padded or not, is reduced to its present tiles,
    in bag order, and passed to the function alone. Nothing is assumed about the function, so there
    is no closed form, no attention gate, and order matters unless declared otherwise.

    A single sigmoid output u is the two logits ``[0, u]``: say so with ``pick``.

    With ``coords`` the function is called with the features and the coordinates ``[N, 2]`` of the
    same tiles, as the feature file has them (level-0 pixels, mostly), and with the side of a tile
    in the same unit if it has a parameter ``tile_size`` (None where the file does not say). A
    subset of tiles has the coordinates of its tiles. There is no gate on such features.

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
        coords: Whether ``function`` (and ``scores``) get coordinates too.

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
        function: Callable[..., Any],
        d_in: int,
        n_classes: int,
        *,
        output: Literal["logits", "probabilities"] = "logits",
        pick: Callable[[Any], Any] | None = None,
        scores: Callable[..., Tensor] | None = None,
        order_free: bool = False,
        differentiable: bool = True,
        coords: bool = False,
    ) -> None:
        if output not in ("logits", "probabilities"):
            raise FociError("output", f"is {output!r}", "choose 'logits' or 'probabilities'")
        if n_classes < 2:
            fix = f"give 2 or more: {_TWO_CLASSES[output]}"
            raise FociError("n_classes", f"is {n_classes}", fix)
        super().__init__(d_in, n_classes, d_token=d_in + (_PLACE if coords else 0))
        self.coords = coords
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
            gate_sites=("feature",) if self.differentiable and not self.coords else (),
            homogeneous=not self.coords,
        )

    @property
    def input_width(self) -> int:
        """Feature width, and three more with coordinates: x, y and the side of a tile."""
        return self.d_token

    def inputs(self, bag: Bag) -> Tensor:
        """Features, and with ``coords`` the place of every tile behind them; 0 for no tile size."""
        if not self.coords:
            return bag.x
        if bag.coords is None:
            what = f"has no coordinates, which {self.called} reads"
            raise BagError(bag.slide_id, what, "give feature files with coordinates")
        place = torch.empty(len(bag), _PLACE)
        place[:, :2] = torch.from_numpy(bag.coords)
        place[:, 2] = bag.patch_size or 0
        return torch.cat([bag.x, place], dim=1)

    @property
    def called(self) -> str:
        """The function by its name, for messages."""
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"function {name}"

    def made_up_inputs(self, x: Tensor) -> Tensor:
        """With ``coords``, tiles of 256 pixels row by row, eight to a row, far from the origin."""
        if not self.coords:
            return x
        tile = torch.arange(x.shape[-2], device=x.device)
        side = torch.full_like(tile, 256)
        place = torch.stack([side * (40 + tile % 8), side * (30 + tile // 8), side], dim=-1)
        return torch.cat([x, place.to(x).expand(*x.shape[:-1], _PLACE)], dim=-1)

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
        scores = torch.as_tensor(self._ask(self.score_function, tokens), device=tokens.device)
        if scores.shape != (len(tokens),):
            what = f"have shape {list(scores.shape)}"
            fix = f"return one score per tile, shape [{len(tokens)}]"
            raise FociError(f"scores of {self.called}", what, fix)
        return scores

    def _ask(self, function: Callable[..., Any], bag: Tensor) -> Any:
        """Call a function with the features of a bag, and where they are."""
        if not self.coords:
            return function(bag)
        if bag.dtype.itemsize < _EXACT_BYTES:
            what = f"computes in {str(bag.dtype).removeprefix('torch.')}, which rounds coordinates"
            raise FociError(self.called, what, "use float32")
        features, xy = bag[:, : self.d_in], bag[:, self.d_in : self.d_in + 2]
        if not _takes(function, "tile_size"):
            return function(features, xy)
        return function(features, xy, tile_size=round(float(bag[0, -1])) or None)

    def _logits(self, bag: Tensor) -> Tensor:
        """Ask the function about one bag and check what it returns."""
        if len(bag) == 0:
            raise FociError(self.called, "was asked about no tiles", "keep at least one")
        answer = self._ask(self.function, bag)
        answer = answer if self.pick is None else self.pick(answer)
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


_FACTORY = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)")


def is_factory(text: str) -> bool:
    """Whether a text names a factory: ``package.module:name``, or a plug-in of a package.

    >>> is_factory("my_lab.models:titan_probe"), is_factory("models/clam.pt")
    (True, False)
    """
    known = _FACTORY.fullmatch(text) is not None
    return known or any(plugin.name == text for plugin in find_plugins(BACKBONES))


def from_factory(text: str, arguments: Mapping[str, Any]) -> Backbone:
    """Import a factory from Python's own path and call it.

    It returns a backbone, or a function with attributes ``d_in`` and ``n_classes``, and perhaps
    others that are arguments of :class:`CallableBackbone`.

    Raises:
        FociError: If it cannot be imported or called, or returns something else.
    """
    if (named := _FACTORY.fullmatch(text)) is not None:
        try:
            factory = getattr(importlib.import_module(named[1]), named[2])
        except Exception as error:  # the user's code may fail anywhere
            why = " ".join(f"{type(error).__name__}: {error}".split())
            fix = "install its package, or put its folder on PYTHONPATH"
            raise FociError(f"model {text}", f"cannot be imported ({why})", fix) from error
    else:
        factory = next(one for one in find_plugins(BACKBONES) if one.name == text).load()
    try:
        made = factory(**arguments)
    except FociError:
        raise
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise FociError(f"model {text}", f"failed ({why})", "check its --model-arg") from error
    if isinstance(made, Backbone):
        return made.eval()
    parameters = inspect.signature(CallableBackbone.__init__).parameters
    settings = {name: getattr(made, name) for name in parameters if hasattr(made, name)}
    if not callable(made) or not {"d_in", "n_classes"} <= settings.keys():
        what = f"returns a {type(made).__name__}, neither a Backbone nor a function with d_in and "
        fix = "return foci.backbones.CallableBackbone(function, d_in=..., n_classes=...)"
        raise FociError(f"model {text}", f"{what}n_classes", fix)
    return CallableBackbone(made, **settings).eval()
