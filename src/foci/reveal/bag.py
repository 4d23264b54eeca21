"""A bag embedded once, and a frozen classifier's answers about its subsets."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.base import class_index, declared
from foci.backbones.freezing import device_and_dtype, frozen, to_model
from foci.backbones.models._pooled import OrderedBackbone, PooledBackbone
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
from foci.reveal.recheck import Float64Recheck

T = TypeVar("T")

_EMBEDDED_AT_ONCE = 8192


class Revealer:
    """Opens bags for one frozen classifier, all with the same settings.

    Args:
        backbone: Used in eval mode and without gradients; never changed.
        engine: ``"auto"`` follows the declared capabilities; the others force one engine. The
            attribute names the one in use.
        recheck: Confidences at which a crossing must not depend on rounding: every probability
            close to one of them is computed again in float64, and so is every tie between the two
            leading classes, at which the decision flips. Empty for neither.
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
        closed_form = self.engine == "closed-form"
        self.recheck = Float64Recheck(backbone, tuple(recheck), closed_form=closed_form)
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

    def prefix_logits(self, bag: EmbeddedBag) -> PrefixLogits:
        """The engine, ready for the tiles of one bag."""
        backbone = self.backbone
        if self.engine == "reference":
            return ReferenceReveal(backbone, bag.inputs)
        tokens = bag.tokens
        if self.engine == "closed-form":
            if isinstance(backbone, PooledBackbone) and declared(backbone, "pooled-prefixes"):
                return bag.pooled_tiles(backbone)
            return PrefixReveal(backbone, tokens)
        if self._batches is None:  # kept: what a GPU has learned of one bag serves the next
            self._batches = Batches.fitting(backbone, tokens)
        if self.engine == "packed":
            return PackedReveal(backbone, tokens, self._batches)  # type: ignore[arg-type]
        return GenericReveal(backbone, bag.shared_tokens, self._batches)


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
            engine = self._prefix_logits()
            if isinstance(engine, PooledTiles):
                sequences = torch.stack([own.sequence for own in every])
                logits = engine.logits_of(sequences, every[0].sizes)
            else:
                logits = torch.stack([engine.logits(own) for own in every])
            probs = torch.softmax(logits.double(), dim=-1).cpu()
            upto = len(counts) if rechecked is None else int((counts <= rechecked).sum())
            self._revealer.recheck(probs[:, :upto], self.inputs, every)
            return list(probs)

    @property
    def margin(self) -> float:
        """Distance from a threshold or a tie below which :meth:`exact_curve` should be asked."""
        return self._revealer.recheck.margin(self.inputs.dtype)

    def exact_curve(
        self, order: Tensor, ks: Tensor | Sequence[int], direction: Direction = "insert"
    ) -> Tensor:
        """:meth:`curve` in float64, from tiles embedded once more in float64, block by block.

        For classifiers with a closed form. The first call costs some inferences of the bag, all
        others next to nothing.
        """
        double = self._revealer.recheck.double(self.inputs[:1])

        def closed_form() -> PrefixLogits:
            blocks = torch.split(self.inputs, _EMBEDDED_AT_ONCE)
            tokens = torch.cat([double.embed(to_model(block, double)) for block in blocks])
            if isinstance(double, PooledBackbone) and declared(double, "pooled-prefixes"):
                return PooledTiles(double, tokens)
            return PrefixReveal(double, tokens)

        counts = check_counts(ks, len(self), direction).to(self.features.device)
        prefixes = Prefixes.of(order.to(self.features.device), counts, direction)
        with self._revealer.precision(), frozen(double):
            engine = self.cached("float64 tiles", closed_form)
            return torch.softmax(engine.logits(prefixes).double(), dim=-1).cpu()

    def without_first(self, orders: Tensor, ks: Sequence[int]) -> Tensor:
        """Class probabilities without the first k tiles of many orders, at few counts.

        For controls, whose probabilities need no recheck: a pooling classifier answers them all
        from one sum over its tiles. From the first tiles of every order ``[O, >= max(ks)]``, with
        counts that increase from at least 1, to ``[O, len(ks), C]`` in float64 on the CPU.
        """
        engine = self._prefix_logits()
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
        budget, backbone = at_least_one(budget, "budget"), self.backbone
        if pools(backbone):
            return self.pooled_tiles(backbone)
        return ForwardedCandidates(backbone, self.shared_tokens, budget)

    def pooled_tiles(self, backbone: PooledBackbone) -> PooledTiles:
        """The tiles before the bag's own pooling classifier, the same for curves and searches."""
        return self.cached("pooled tiles", lambda: PooledTiles(backbone, self.tokens))

    def single_tiles(self, budget: int = BUDGET) -> Tensor:
        """Logits ``[N, C]`` of every tile as the only tile of the bag; see :meth:`candidates`."""
        index = torch.arange(len(self), device=self.features.device)
        nothing = torch.zeros_like(index, dtype=torch.bool)
        candidates = self.candidates(budget)
        return self.cached(f"single tiles {budget}", lambda: candidates.adding(nothing, index))

    def _prefix_logits(self) -> PrefixLogits:
        return self.cached("prefix logits", lambda: self._revealer.prefix_logits(self))
