"""A bag embedded once, and a frozen classifier's answers about its subsets."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.base import class_index, declared
from foci.backbones.freezing import device_and_dtype, frozen, to_model
from foci.backbones.models._pooled import OrderedBackbone
from foci.bags import Bag
from foci.errors import FociError
from foci.reveal import KAPPA, Direction
from foci.reveal.engines import (
    Batches,
    Engine,
    GenericReveal,
    PackedReveal,
    Prefixes,
    PrefixLogits,
    PrefixReveal,
    ReferenceReveal,
    at_least_one,
    check_counts,
    check_order,
    choose_engine,
    default_counts,
)
from foci.reveal.pooled import BUDGET, Candidates, ForwardedCandidates, PooledTiles, pools

T = TypeVar("T")

_EMBEDDED_AT_ONCE = 4096

_HALF = (torch.float16, torch.bfloat16)
_MARGIN_SINGLE, _MARGIN_HALF = 1e-4, 5e-2
_TIE_SINGLE, _TIE_HALF = 2e-5, 5e-2
"""Largest gap between two leading classes that rounding might close; single precision has been
seen to shift a gap by 1e-6."""


class Revealer:
    """Opens bags for one frozen classifier, all with the same settings.

    Single precision, batch size and device shift a probability by about 1e-6. Where it lies that
    close to an operating confidence, or where the two leading classes lie that close to each other,
    the subset is forwarded again in float64, so that rounding can move neither a crossing nor a
    flip. The classifier is copied in float64 the first time that this is needed. One that cannot be
    copied, or cannot compute in float64 (a foreign callable with a float32 constant inside), is
    asked in its own precision, still one subset at a time and in bag order.

    Args:
        backbone: Used in eval mode and without gradients; never changed.
        engine: ``"auto"`` follows the declared capabilities; the others force one engine. The
            attribute names the one in use.
        recheck: Confidences at which a crossing must not depend on rounding, for the probability of
            any class. Empty for none, and no check of ties either.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        engine: Engine = "auto",
        recheck: Sequence[float] = (KAPPA,),
    ) -> None:
        self.backbone = backbone
        self.engine = choose_engine(backbone, engine)
        self.recheck = tuple(recheck)
        self._double: Backbone | None = None
        self._batches: Batches | None = None

    def open(self, bag: Bag | Tensor, tokens: Tensor | None = None) -> EmbeddedBag:
        """A bag that is embedded once, when its first curve is computed; see EmbeddedBag."""
        return EmbeddedBag(self.backbone, bag, tokens=tokens, revealer=self)

    @contextlib.contextmanager
    def precision(self) -> Iterator[None]:
        """Eval mode, without gradients, in the model's own precision whatever the caller's is."""
        with frozen(self.backbone):
            if not torch.is_autocast_enabled("cpu") | torch.is_autocast_enabled("cuda"):
                yield
                return
            with torch.autocast(device_and_dtype(self.backbone)[0].type, enabled=False):
                yield

    def batches(self, tokens: Tensor) -> Batches:
        """How many tokens are forwarded at once; what a GPU learns of one bag serves the next."""
        if self._batches is None:
            self._batches = Batches.fitting(self.backbone, tokens)
        return self._batches

    def double(self, features: Tensor) -> Backbone:
        """The float64 copy, or the model where it has none; tried on features ``[n, D]``."""
        if self._double is None:
            try:
                self._double = copy.deepcopy(self.backbone).double().eval()
                self._double(to_model(features, self._double))
            except Exception:
                self._double = self.backbone
        return self._double

    def tie(self, dtype: torch.dtype) -> float:
        """Largest gap between leading classes that rounding might close; 0 without a recheck."""
        if not self.recheck or dtype == torch.float64:
            return 0.0
        return _TIE_HALF if dtype in _HALF else _TIE_SINGLE

    def near(self, probabilities: NDArray[np.float64], dtype: torch.dtype) -> NDArray[np.bool_]:
        """Where ``[O, J]`` of ``[O, J, C]`` rounding might move a crossing or a flip."""
        margin = _MARGIN_HALF if dtype in _HALF else _MARGIN_SINGLE
        by_class = np.ascontiguousarray(np.moveaxis(probabilities, -1, 0))  # [C, O, J]
        leading = by_class.max(axis=0) - by_class < self.tie(dtype)
        near: NDArray[np.bool_] = leading.sum(axis=0) > 1
        for threshold in self.recheck:
            near |= (np.abs(by_class - threshold) < margin).any(axis=0)
        return near


class EmbeddedBag:
    """One bag before a frozen classifier; tokens and answers are computed when first needed.

    Curves, rankings and searches of a bag all start from the same tokens.

    Attributes:
        slide_id: The slide; ``"bag"`` for a plain tensor.
        bag: The bag, or None for a plain tensor.
        inputs: ``[N, input_width]``, what ``embed`` reads, on the classifier's device and in its
            dtype.
        features: ``[N, D]`` of them.

    Args:
        backbone: The frozen classifier.
        bag: A bag, or its features ``[N, D]``.
        target: Class that rankings are about; None for the class the full bag predicts.
        tokens: ``[N, d]``, where the bag is embedded already.
        revealer: How curves are computed; None for the defaults of :class:`Revealer`.

    >>> from foci import backbones
    >>> model = backbones.create("abmil", d_in=8, n_classes=2)
    >>> bag = EmbeddedBag(model, torch.randn(5, 8), target=1)
    >>> bag, bag.tokens.shape, bag.curve([3, 1, 0, 2, 4]).shape
    (EmbeddedBag('bag', 5 tiles, target 1), torch.Size([5, 256]), torch.Size([5, 2]))
    """

    def __init__(
        self,
        backbone: Backbone,
        bag: Bag | Tensor,
        target: int | None = None,
        *,
        tokens: Tensor | None = None,
        revealer: Revealer | None = None,
    ) -> None:
        self.backbone = backbone
        self.bag = bag if isinstance(bag, Bag) else None
        self.slide_id = bag.slide_id if isinstance(bag, Bag) else "bag"
        given = bag.x if isinstance(bag, Bag) else torch.as_tensor(bag).detach()
        width = backbone.d_in if isinstance(bag, Bag) else backbone.input_width
        if given.dim() != 2 or not len(given) or given.shape[1] != width:
            shape = " x ".join(map(str, given.shape))
            what = f"has features of shape {shape}, not tiles x {width}"
            fix = "give one bag of the features that the backbone was trained on"
            raise FociError(self.slide_id, what, fix)
        self.inputs = to_model(backbone.inputs(bag) if isinstance(bag, Bag) else given, backbone)
        self.features = self.inputs[:, : backbone.d_in]
        self._revealer = Revealer(backbone) if revealer is None else revealer
        self._computed: dict[str, Any] = {} if tokens is None else {"tokens": tokens}
        self._target = target if target is None else class_index(target, backbone.n_classes)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        target = "the predicted class" if self._target is None else self._target
        return f"EmbeddedBag({self.slide_id!r}, {len(self)} tiles, target {target})"

    def with_target(self, target: int) -> EmbeddedBag:
        """The same bag for another target class; what either computes serves both."""
        other = copy.copy(self)
        other._target = class_index(target, self.backbone.n_classes)
        return other

    def cached(self, name: str, compute: Callable[[], T]) -> T:
        """What ``compute`` returns, kept under a name for all targets of the bag."""
        if name not in self._computed:
            with self._revealer.precision():
                self._computed[name] = compute()
        answer: T = self._computed[name]
        return answer

    @property
    def tokens(self) -> Tensor:
        """``[N, d]`` of the embedded tiles."""
        return self.cached("tokens", lambda: self.backbone.embed(self.inputs))

    @property
    def shared_tokens(self) -> Tensor:
        """The tokens, with what else of a tile is the same in every subset, ``[N, >= d]``.

        A classifier that forwards subsets takes them instead of the tokens.
        """
        backbone = self.backbone
        if not isinstance(backbone, OrderedBackbone) or not declared(backbone, "shared-tokens"):
            return self.tokens
        return self.cached("shared tokens", lambda: backbone.share(self.tokens))

    @property
    def logits(self) -> Tensor:
        """``[C]`` of the full bag."""
        return self.cached("logits", lambda: self.candidates().full())

    @property
    def target(self) -> int:
        """Class that rankings are about."""
        if self._target is None:
            self._target = int(self.logits.argmax())
        return self._target

    def probability(self, logits: Tensor) -> Tensor:
        """Logits ``[..., C]`` to the target's probability ``[...]``, in float64."""
        return torch.softmax(logits.double(), dim=-1)[..., self.target]

    def log_odds(self, logits: Tensor) -> Tensor:
        r"""Logits ``[..., C]`` to the target's log-odds ``[...]``, in float64.

        .. math:: \log\frac{p_t}{1 - p_t} = \ell_t - \log\sum_{c \ne t} e^{\ell_c}

        They sort sets as :math:`p_t` does, also where that rounds to 1.
        """
        logits = logits.double()
        rivals = torch.arange(logits.shape[-1], device=logits.device) != self.target
        return logits[..., self.target] - torch.logsumexp(logits[..., rivals], dim=-1)

    def curve(
        self,
        order: Tensor | Sequence[int],
        ks: Tensor | Sequence[int] | None = None,
        direction: Direction = "insert",
    ) -> Tensor:
        """Class probabilities at every count, ``[len(ks), C]`` in float64 on the CPU.

        Arguments are those of :func:`foci.reveal.curve`.
        """
        ks = default_counts(len(self), direction) if ks is None else ks
        return self.curves([order], ks, direction)[0]

    def curves(
        self,
        orders: Sequence[Tensor | Sequence[int]],
        ks: Tensor | Sequence[int],
        direction: Direction = "insert",
        *,
        rechecked: int | None = None,
    ) -> list[Tensor]:
        """:meth:`curve` of several orders at the same counts; cheaper than one by one.

        Probabilities at counts above ``rechecked`` are those of the classifier's own precision.
        """
        if not len(orders):
            return []
        n, device = len(self), self.features.device
        counts = check_counts(ks, n, direction).to(device)
        checked = [check_order(order, n).to(device) for order in orders]
        every = [Prefixes.of(order, counts, direction) for order in checked]
        with self._revealer.precision():
            engine = self._engine
            if isinstance(engine, PooledTiles):
                sequences = torch.stack([own.sequence for own in every])
                logits = engine.logits_of(sequences, every[0].sizes)
            else:
                logits = torch.stack([engine.logits(own) for own in every])
            probs = torch.softmax(logits.double(), dim=-1).cpu()
            upto = len(counts) if rechecked is None else int((counts <= rechecked).sum())
            self._recheck(probs[:, :upto], every)
            return list(probs)

    @property
    def _engine(self) -> PrefixLogits:
        """What computes the curves of this bag."""
        return self.cached("engine", self._make_engine)

    def _make_engine(self) -> PrefixLogits:
        backbone, engine = self.backbone, self._revealer.engine
        if engine == "reference":
            return ReferenceReveal(backbone, self.inputs)
        if engine == "closed-form":
            return self.pooled or PrefixReveal(backbone, self.tokens)
        batches = self._revealer.batches(self.tokens)
        if engine == "packed":
            return PackedReveal(backbone, self.tokens, batches)  # type: ignore[arg-type]
        return GenericReveal(backbone, self.shared_tokens, batches)

    def _recheck(self, probabilities: Tensor, curves: Sequence[Prefixes]) -> None:
        """Replace probabilities ``[O, J, C]`` that rounding might move, in place."""
        revealer, features = self._revealer, self.inputs
        if not revealer.tie(features.dtype):
            return
        near = revealer.near(probabilities.numpy(), features.dtype)
        for place in np.flatnonzero(near.any(axis=1)).tolist():
            own, prefixes = probabilities[place], curves[place]
            rows = torch.from_numpy(np.flatnonzero(near[place]))
            sizes = prefixes.sizes[rows.to(features.device)]
            # beyond N tiles in all, embedding the bag once more is cheaper than every subset
            if revealer.engine == "closed-form" and int(sizes.sum()) > len(features):
                nested = features[prefixes.sequence[: int(sizes.max())]]
                own[rows] = self._in_float64(nested, sizes).cpu()
                continue
            for row in rows.tolist():
                own[row] = self._in_float64(features[prefixes.subset(row)]).cpu()

    def _in_float64(self, features: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Probabilities of all these tiles, or of the first tiles for each of ``sizes``."""
        model = self._revealer.double(features[:1])
        x = to_model(features, model)
        logits = model(x) if sizes is None else model.prefixes(model.embed(x), sizes)
        return torch.softmax(logits.double(), dim=-1)

    @property
    def margin(self) -> float:
        """Distance from a threshold or a tie below which :meth:`exact_curve` should be asked."""
        return self._revealer.tie(self.inputs.dtype)

    def exact_curve(
        self, order: Tensor, ks: Tensor | Sequence[int], direction: Direction = "insert"
    ) -> Tensor:
        """:meth:`curve` in float64, from tiles embedded once more in float64, block by block.

        For classifiers with a closed form, whose curves of thousands of counts may stay near a
        threshold for long: an audit asks again only for the counts that could be the first to
        decide. The first call costs some inferences of the bag, all others next to nothing.
        """

        def closed_form() -> PrefixLogits:
            double = self._revealer.double(self.inputs[:1])
            blocks = torch.split(self.inputs, _EMBEDDED_AT_ONCE)
            tokens = (double.embed(to_model(block, double)) for block in blocks)
            if pools(double):
                return PooledTiles(double, tokens)
            return PrefixReveal(double, torch.cat(list(tokens)))

        counts = check_counts(ks, len(self), direction).to(self.features.device)
        prefixes = Prefixes.of(order.to(self.features.device), counts, direction)
        engine = self.cached("float64 tiles", closed_form)
        with self._revealer.precision():
            return torch.softmax(engine.logits(prefixes).double(), dim=-1).cpu()

    def without_first(self, orders: Tensor, ks: Sequence[int]) -> Tensor:
        """Class probabilities without the first k tiles of many orders, at few counts.

        For controls, whose probabilities need no recheck: a pooling classifier answers them all
        from one sum over its tiles. From the first tiles of every order ``[O, >= max(ks)]``, with
        counts that increase from at least 1, to ``[O, len(ks), C]`` in float64 on the CPU.
        """
        engine = self._engine
        if not isinstance(engine, PooledTiles):
            whole = [self._completed(order) for order in orders]
            return torch.stack([self.curve(order, ks, "delete") for order in whole])
        counts = check_counts(ks, len(self), "delete").to(self.features.device)
        with self._revealer.precision():
            logits = engine.without_first(orders.to(self.features.device), counts)
            probs = torch.softmax(logits.double(), dim=-1)
        return probs.view(len(orders), len(counts), -1).cpu()

    def _completed(self, first: Tensor) -> Tensor:
        """An order of all tiles that begins with some; the others follow as they are stored."""
        left = torch.ones(len(self), dtype=torch.bool)
        left[first] = False
        return torch.cat([first, left.nonzero().flatten()])

    def full(self) -> Tensor:
        """Probabilities ``[C]`` of the full bag, in float64 on the CPU."""
        return self.curve(torch.arange(len(self)), ks=[0], direction="delete")[0]

    def candidates(self, budget: int = BUDGET) -> Candidates:
        """Logits of sets with one tile more or fewer, in closed form where there is one.

        ``budget`` is the most tokens forwarded at once; of no effect for pooling classifiers.
        """
        budget = at_least_one(budget, "budget")
        return self.pooled or ForwardedCandidates(self.backbone, self.shared_tokens, budget)

    @property
    def pooled(self) -> PooledTiles | None:
        """The tiles before a pooling classifier, for curves and searches; None before any other."""
        backbone = self.backbone
        if not pools(backbone):
            return None
        return self.cached("pooled tiles", lambda: PooledTiles(backbone, self.tokens))

    def single_tiles(self, budget: int = BUDGET) -> Tensor:
        """Logits ``[N, C]`` of every tile as the only tile of the bag; see :meth:`candidates`."""
        index = torch.arange(len(self), device=self.features.device)
        nothing = torch.zeros_like(index, dtype=torch.bool)
        candidates = self.candidates(budget)
        return self.cached(f"single tiles {budget}", lambda: candidates.adding(nothing, index))
