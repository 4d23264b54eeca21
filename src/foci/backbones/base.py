"""Backbone, the abstract bag classifier: capabilities, shortcuts, batches, objective, registry."""

from __future__ import annotations

import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from foci.errors import FociError
from foci.outputs import Output
from foci.parts import Parts, Structure
from foci.registry import Registry

if TYPE_CHECKING:
    from foci.bags import Bag

GateSite = Literal["feature", "attention"]
Shortcut = Literal[
    "pooling",
    "prefix-sums",
    "split-readout",
    "mean-attention",
    "encoder",
    "shared-tokens",
    "parts",
    "best-tile",
]

SHORTCUTS: Mapping[Shortcut, tuple[str, ...]] = {
    "pooling": ("aggregate",),
    "prefix-sums": ("prefixes",),
    "split-readout": ("readout", "project", "read"),
    "mean-attention": ("scores",),
    "encoder": ("aggregate", "encode"),
    "shared-tokens": ("aggregate", "classify", "encode", "share"),
    "parts": ("aggregate", "readout", "parts"),
    "best-tile": ("aggregate", "compete", "parts"),
}
"""Methods that each shortcut computes around; all of them have to declare it."""

Method = TypeVar("Method", bound=Callable[..., Any])

_DECLARATIONS: WeakKeyDictionary[Callable[..., Any], frozenset[Shortcut]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Capabilities:
    """What a backbone can do; :func:`foci.testing.check_backbone` checks every claim.

    Attributes:
        order_free: Permuting the tiles leaves the logits unchanged.
        closed_form: ``prefixes`` gives every reveal count from one pass over the tiles.
        score: ``"native"`` if the classifier scores its tiles itself, ``"proxy"`` if ``scores``
            is a documented substitute (TransMIL), ``"none"`` if there is neither.
        gate_sites: Where a keep/drop gate may act: on the tile's feature before ``embed``
            (``"feature"``), on its unnormalised attention weight (``"attention"``).
        homogeneous: ``embed(g * x) == g * embed(x)`` for every gate g in [0, 1], so that gating a
            token *is* gating its feature (a bias-free projection followed by ReLU).
        structure: What ``parts`` gives, from which minima over all subsets are proven: one
            attention row with a ``"linear head"`` or with two layers and a ReLU between them
            (``"relu head"``), several ``"rows"``, the ``"best tile"``; or ``"none"``.
    """

    order_free: bool
    closed_form: bool
    score: Literal["native", "proxy", "none"]
    gate_sites: tuple[GateSite, ...]
    homogeneous: bool = False
    structure: Structure = "none"


def declares(*shortcuts: Shortcut) -> Callable[[Method], Method]:
    """Decorate a method to say that shortcuts may compute its result another way.

    The declaration belongs to this implementation alone: a subclass or an instance that replaces
    the method is computed the plain way, unless the new method declares the shortcut itself.
    """

    def decorate(method: Method) -> Method:
        _DECLARATIONS[method] = frozenset(shortcuts)
        return method

    return decorate


def declared(backbone: Backbone, shortcut: Shortcut) -> bool:
    """Whether all methods that a shortcut computes around still declare it.

    A subclass that calibrates, clips or otherwise changes an answer no longer does.
    """
    methods = (getattr(backbone, name, None) for name in SHORTCUTS[shortcut])
    # By the function itself, because functools.wraps copies attributes to the wrapper.
    functions = (getattr(method, "__func__", None) for method in methods)
    return all(f is not None and shortcut in _DECLARATIONS.get(f, ()) for f in functions)


@dataclass(frozen=True)
class Batch:
    """A batch of padded bags; ``mask`` is True where a tile is real.

    Attributes:
        features: ``[B, N, D]``, zero where padded.
        mask: ``[B, N]`` bool.
        labels: ``[B]`` class indices.
        coords: ``[B, N, 2]`` top-left positions, or None if the bags have none.
        strides: ``[B]`` distance between neighbouring tiles in the units of ``coords``, or None.
        outcomes: ``[B, M]`` numbers to learn in the place of a class, or None.
    """

    features: Tensor
    mask: Tensor
    labels: Tensor
    coords: Tensor | None = None
    strides: Tensor | None = None
    outcomes: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        parts = (self.features, self.mask, self.labels, self.coords, self.strides, self.outcomes)
        return Batch(*(None if part is None else part.to(device) for part in parts))  # type: ignore[arg-type]


def pad(
    features: Sequence[Tensor],
    labels: Sequence[int],
    coords: Sequence[Tensor] | None = None,
    strides: Sequence[int] | None = None,
) -> Batch:
    """Pad bags ``[N_b, D]`` to the longest of them.

    >>> batch = pad([torch.ones(2, 3), torch.ones(1, 3)], labels=[0, 1])
    >>> batch.mask.tolist()
    [[True, True], [True, False]]
    """
    lengths = torch.tensor([len(x) for x in features])
    return Batch(
        features=pad_sequence(list(features), batch_first=True),
        mask=torch.arange(int(lengths.max()))[None, :] < lengths[:, None],
        labels=torch.tensor(list(labels), dtype=torch.long),
        coords=None if coords is None else pad_sequence(list(coords), batch_first=True),
        strides=None if strides is None else torch.tensor(list(strides)),
    )


def choose(candidates: Tensor, count: Tensor | int, dim: int = -1) -> Tensor:
    """Mark ``count`` of the candidates at random, all subsets of that size being equally likely.

    Entries compete along ``dim``, and ``count`` is broadcast against the candidates; where there
    are fewer of them, all are chosen. Draws from torch's global generator.

    >>> choose(torch.tensor([True, False, True, True]), 2).sum().item()
    2
    """
    keys = torch.rand(candidates.shape, device=candidates.device)
    place = keys.masked_fill(~candidates, torch.inf).argsort(dim=dim).argsort(dim=dim)
    return (place < count) & candidates


class Objective(nn.Module):
    """Training loss of a backbone, with state that exists only while training.

    An EMA teacher, an anchor or a queue belongs to training, not to the frozen model, but a run
    that was killed has to resume with it: the state dict of an objective is saved beside the
    weights while training and left out of the finished model. It holds only what the objective
    adds, because the backbone is kept outside the module tree.

    Attributes:
        stages: Names of the consecutive training stages; all but MHIM-MIL have one.
        terms: Loss terms of the last batch by name, for logging.
    """

    stages: ClassVar[tuple[str, ...]] = ("train",)
    backbone: Backbone

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.__dict__["backbone"] = backbone
        self.terms: dict[str, float] = {}

    @classmethod
    def departures(cls, classes: Sequence[str], output: Output) -> tuple[dict[str, Any], str]:
        """Training settings that replace the shared defaults, by dotted name, and the reason."""
        return {}, ""

    def begin_stage(self, stage: str, total_steps: int) -> None:
        """Called once before the first epoch of a stage, with its number of optimizer steps."""

    def begin_epoch(self) -> None:
        """Called before every epoch."""

    def after_step(self) -> None:
        """Called after every optimizer step (EMA updates)."""

    def named_terms(self, **terms: Tensor) -> Tensor:
        """Sum of the loss terms; their values are kept in ``terms``."""
        self.terms = {name: float(value.detach()) for name, value in terms.items()}
        total: Tensor = sum(terms.values())  # type: ignore[assignment]
        return total


class CrossEntropy(Objective):
    r"""Plain cross-entropy on the slide logits: :math:`-\log p_y`."""

    def forward(self, batch: Batch) -> Tensor:
        """Mean over the batch."""
        logits = self.backbone(batch.features, batch.mask)
        return self.named_terms(bag=F.cross_entropy(logits, batch.labels))


class Backbone(nn.Module, ABC):
    """A bag classifier split into tile-wise and set-wise work.

    ``embed`` sees every tile alone and runs once per bag; ``aggregate`` sees sets of tokens and
    runs once per subset. A mask is True where a tile is present: what is masked out is *removed*.

    The arguments of a subclass's constructor are recorded when an object is made and come back as
    ``config``; the constructor need not hand them on.

    Attributes:
        architecture: Name under which the class is registered and stored.
        projection: What ``embed`` does, unless it is replaced.
        objective_type: The training objective; cross-entropy unless a class has its own.
        notes: What was assumed when the weights were loaded, because no tensor shows it.
        one_number: Whether its two logits stand for one number, their difference, as the ``[0, u]``
            of a sigmoid output u do: neither of them says anything alone.

    Args:
        d_in: Width of a tile feature D.
        n_classes: Number of classes C.
        d_token: Width of a token d.
        **resolved: Constructor arguments to record with another value than was given, such as a
            width that None left to be computed.
    """

    architecture: ClassVar[str]
    objective_type: ClassVar[type[Objective]] = CrossEntropy
    notes: tuple[str, ...] = ()
    one_number: bool = False
    projection: nn.Module
    _arguments: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An empty object that knows the arguments of its constructor, in signature order."""
        self = super().__new__(cls)
        named = self.__dict__["_arguments"] = {}
        signature = inspect.signature(cls.__init__)
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError:  # a copy is made without arguments; wrong ones are refused by __init__
            return self
        bound.apply_defaults()
        for parameter in list(signature.parameters.values())[1:]:
            value = bound.arguments[parameter.name]
            if parameter.kind is parameter.VAR_KEYWORD:
                named |= value
            elif parameter.kind is not parameter.VAR_POSITIONAL:
                named[parameter.name] = value
        return self

    def __init__(self, d_in: int, n_classes: int, *, d_token: int, **resolved: Any) -> None:
        super().__init__()
        self.d_in, self.n_classes, self.d_token = d_in, n_classes, d_token
        self._arguments.update(resolved)

    @property
    def config(self) -> dict[str, Any]:
        """The constructor's arguments: ``type(self)(**config)`` has the same shapes."""
        known = {"d_in": self.d_in, "n_classes": self.n_classes}
        return known | {k: v for k, v in self._arguments.items() if k not in known}

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this classifier can do."""

    @property
    def input_width(self) -> int:
        """Numbers per tile that ``embed`` reads: the feature width, unless positions are added."""
        return self.d_in

    def inputs(self, bag: Bag) -> Tensor:
        """What ``embed`` reads of a bag, ``[N, input_width]``: its features."""
        return bag.x

    def made_up_inputs(self, x: Tensor) -> Tensor:
        """Made-up features ``[..., N, D]`` as inputs ``[..., N, input_width]``, for checks."""
        return x

    def embed(self, x: Tensor) -> Tensor:
        """Features ``[..., N, D]`` to tokens ``[..., N, d]``, tile by tile: the projection."""
        tokens: Tensor = self.projection(x)
        return tokens

    @abstractmethod
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """Tokens ``[B, N, d]`` to logits ``[B, C]``.

        Args:
            tokens: Embedded tiles in bag order, padded to a common N.
            mask: ``[B, N]`` bool, True where a tile is present; None means all are.
            gate: ``[B, N]`` in [0, 1], multiplies the unnormalised attention weight, so that a
                hard 0/1 gate is removal; None means all ones.
        """

    @abstractmethod
    def scores(self, tokens: Tensor) -> Tensor:
        """The classifier's own ranking of one bag: tokens ``[N, d]`` to ``[N]``."""

    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        """Logits ``[len(ks), C]`` of the first k tokens for every k in ``ks`` (default 1..N).

        Only where ``capabilities.closed_form``; ``tokens`` are ``[N, d]`` in reveal order.
        """
        raise NotImplementedError(f"{type(self).__name__} has no closed form over prefixes")

    def parts(self, tokens: Tensor) -> Parts:
        """What the logits of every set of tokens follow from; tokens are ``[N, d]``, a whole bag.

        Only where ``capabilities.structure`` is not ``"none"``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not come apart")

    def make_objective(self, **settings: Any) -> Objective:
        """The classifier's own training objective, with the state that it needs in training."""
        return self.objective_type(self, **settings)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Features ``[B, N, D]`` (or one bag ``[N, D]``) to logits ``[B, C]`` (or ``[C]``)."""
        if x.dim() == 2:
            return self.forward(x.unsqueeze(0), None if mask is None else mask.unsqueeze(0))[0]
        return self.aggregate(self.embed(x), mask)

    @torch.no_grad()
    def predict(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Class probabilities, in float64 so that thresholds do not depend on the device."""
        logits: Tensor = self(x, mask)
        return torch.softmax(logits.double(), dim=-1)


def class_index(target: int, n_classes: int) -> int:
    """Check a class index and return it as a plain int; NumPy integers are accepted."""
    if not hasattr(target, "__index__") or not 0 <= operator.index(target) < n_classes:
        fix = f"give a class index from 0 to {n_classes - 1}, or None for the predicted class"
        raise FociError("target", f"is {target!r}", fix)
    return operator.index(target)


# Classes by the name that is stored, presets by the name to create

BACKBONES = "foci.backbones"
"""Entry points of third-party classes, and of factories of models."""

B = TypeVar("B", bound=type[Backbone])
Loss = TypeVar("Loss", bound=type[Objective])


def _plugged_class(name: str, loaded: Any) -> type[Backbone] | None:
    """A third-party class under the name of its entry point; None for a factory of models."""
    if not (isinstance(loaded, type) and issubclass(loaded, Backbone)):
        return None
    loaded.architecture = name
    return loaded


def _plugged_presets(name: str, loaded: Any) -> dict[str, Preset] | None:
    own = _plugged_class(name, loaded)
    return None if own is None else {"official": Preset(own, {})}


ARCHITECTURES: Registry[type[Backbone]] = Registry(
    "backbone architecture", BACKBONES, _plugged_class
)
"""Classes by the name that ``backbone.json`` stores."""


@dataclass(frozen=True)
class Preset:
    """A backbone class with constructor arguments."""

    architecture: type[Backbone]
    widths: dict[str, Any]


PRESETS: Registry[dict[str, Preset]] = Registry("backbone", BACKBONES, _plugged_presets)
"""Presets by classifier name, then by preset name."""


def architecture(name: str) -> Callable[[B], B]:
    """Class decorator that registers a backbone under the name stored with its weights."""

    def decorate(cls: B) -> B:
        ARCHITECTURES.add(name, cls)
        cls.architecture = name
        return cls

    return decorate


def objective_of(*classes: type[Backbone]) -> Callable[[Loss], Loss]:
    """Class decorator that makes an objective the one that these backbones are trained with."""

    def decorate(objective: Loss) -> Loss:
        for cls in classes:
            cls.objective_type = objective
        return objective

    return decorate


def preset(name: str, preset_name: str, cls: type[Backbone], **widths: Any) -> None:
    """Register what ``create(name, preset=preset_name)`` makes."""
    if name not in PRESETS:
        PRESETS.add(name, {})
    PRESETS[name][preset_name] = Preset(cls, widths)


def available() -> tuple[str, ...]:
    """Names of all classifiers that :func:`create` can make, sorted."""
    return tuple(sorted(PRESETS.with_plugins()))


def presets(name: str) -> tuple[str, ...]:
    """Names of a classifier's presets."""
    return tuple(PRESETS[name])


def create(
    name: str, preset: str = "paper", *, d_in: int, n_classes: int, **widths: Any
) -> Backbone:
    """Create a classifier with random weights, one of :func:`available`.

    The preset is ``"paper"`` (widths that reproduce the paper's parameter counts) or
    ``"official"`` (the authors' published architecture); some have more. ``widths`` are constructor
    arguments that replace the preset's.

    >>> from foci import backbones
    >>> model = backbones.create("abmil", d_in=1536, n_classes=2)
    >>> sum(p.numel() for p in model.parameters())
    492291
    """
    table = PRESETS[name]
    if preset not in table:
        raise FociError(name, f"has no preset {preset!r}", f"choose one of {', '.join(table)}")
    if n_classes < 2:
        what, fix = f"is {n_classes}", "give 2 or more: one logit u is the two [0, u]"
        raise FociError("n_classes", what, fix)
    chosen = table[preset]
    try:
        return chosen.architecture(d_in=d_in, n_classes=n_classes, **{**chosen.widths, **widths})
    except TypeError as error:
        raise FociError(f"{name} ({preset})", str(error), "see its documented widths") from error
