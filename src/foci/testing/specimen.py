"""Copy of the model under test, with reproducible random bags."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from foci.backbones import Backbone, Capabilities
from foci.backbones.freezing import home

PADDING = 5
"""How many places a check pads a bag with."""


@dataclass(frozen=True)
class Specimen:
    """The model and the bags of a check; the same seed gives every check the same bags.

    Attributes:
        model: The copy, in eval mode.
        d_in: Feature width.
        n_tiles: Bag sizes to try.
        long_bag: One larger size, for claims that may hold for short bags only.
        seed: Seed of the bags.
        dtype: Of the features.
        tolerance: Largest difference, relative where values exceed 1, that counts as equal.
        tiles: ``[M, D]`` real tiles that bags are drawn from; None for random numbers.
    """

    model: Backbone
    d_in: int
    n_tiles: tuple[int, ...]
    long_bag: int
    seed: int
    dtype: torch.dtype
    tolerance: float
    tiles: Tensor | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the model declares."""
        return self.model.capabilities

    @property
    def all_sizes(self) -> tuple[int, ...]:
        """All bag sizes, the long bag included."""
        return tuple(dict.fromkeys((*self.n_tiles, self.long_bag)))

    def random(self, *shape: int, salt: int = 0) -> Tensor:
        """Standard normal numbers that depend only on seed, shape and salt; tiles if there are any.

        A shape that ends with the feature width asks for tiles, if any were given.
        """
        key = zlib.crc32(repr((self.seed, salt, shape)).encode())
        generator = torch.Generator().manual_seed(key)
        if self.tiles is not None and len(shape) > 1 and shape[-1] == self.d_in:
            rows = torch.randint(len(self.tiles), shape[:-1], generator=generator)
            return self.tiles[rows]
        numbers = torch.randn(*shape, generator=generator, dtype=torch.float64)
        return numbers.to(home(self.model)[0], self.dtype)

    def bag(self, n: int, salt: int = 0) -> Tensor:
        """Features ``[n, D]``."""
        return self.random(n, self.d_in, salt=salt)

    def order(self, n: int) -> Tensor:
        """A permutation of n tiles that moves at least one of them (n > 1)."""
        order = self.random(n, salt=1).argsort()
        return order.flip(0) if torch.equal(order, order.sort().values) else order

    def subsets(self, n: int) -> Iterator[Tensor]:
        """Masks ``[n]``: about half of the tiles, all but the first, only the last.

        Only the first of them for the long bag, where a pass is expensive.
        """
        if n > 1:
            half = self.random(n, salt=2) > 0
            half[0], half[-1] = True, False
            yield half
            if n in self.n_tiles:
                index = torch.arange(n, device=half.device)
                yield from (index > 0, index == n - 1)

    def counts(self, n: int) -> Tensor:
        """Increasing counts up to n: all of them, a few for the long bag."""
        every = torch.arange(1, n + 1, device=home(self.model)[0])
        return every if n in self.n_tiles else every.flip(0)[:: max(1, n // 8)].flip(0)

    def compare(self, got: Tensor, want: Tensor) -> str | None:
        """Describe the difference of ``got`` from ``want``; None if they are equal."""
        if got.shape != want.shape:
            return f"have shape {list(got.shape)} instead of {list(want.shape)}"
        gap = (got - want).abs() / want.abs().clamp_min(1.0)
        if bool((gap <= self.tolerance).all()):
            return None
        return f"differ by {float(gap.max()):.2g} (tolerance {self.tolerance:.0e})"


def prepare(
    model: Backbone,
    *,
    d_in: int,
    n_tiles: tuple[int, ...],
    long_bag: int,
    seed: int,
    dtype: torch.dtype,
) -> Specimen:
    """Copy the model and cast it, as far as it can be copied and cast.

    A function that closes over float32 weights does not follow a cast: it is then checked in its
    own precision, with the tolerance of that precision.
    """
    _, own = home(model)
    for precision in (dtype, own):
        subject = _copy(model, precision).eval()
        tolerance = tolerance_of(precision)
        specimen = Specimen(subject, d_in, n_tiles, long_bag, seed, precision, tolerance)
        answer = _answer_precision(specimen)
        if answer is not None:
            return replace(specimen, tolerance=max(tolerance, tolerance_of(answer)))
    return specimen


def tolerance_of(dtype: torch.dtype) -> float:
    """Largest difference that counts as equal in a precision."""
    return {torch.float64: 1e-9, torch.float32: 1e-4}.get(dtype, 1e-2)


def _copy(model: Backbone, dtype: torch.dtype) -> Backbone:
    try:
        return copy.deepcopy(model).to(dtype)
    except Exception:  # a foreign model may refuse to be copied in any way: then check itself
        return model


@torch.no_grad()
def _answer_precision(specimen: Specimen) -> torch.dtype | None:
    try:
        logits: Tensor = specimen.model(specimen.bag(max(specimen.n_tiles)))
        return logits.dtype
    except Exception:  # in a foreign precision; if in its own, the checks will say what it raises
        return None
