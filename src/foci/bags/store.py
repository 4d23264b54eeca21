"""Load bags on demand: from memory, from the cache, or from their files."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from foci.bags.bag import Bag, Skipped, Slide
from foci.bags.cache import BagCache, cache_key
from foci.bags.layouts import LAYOUTS, candidates, read_bag
from foci.bags.layouts.layout import check_file, reading
from foci.bags.patients import joined
from foci.errors import BagError, FociError, WidthError

N_CAP = 1024
"""The paper's cap on the tiles of a bag, which ``foci train`` keeps unless told otherwise."""

WORTH_CACHING = 2
"""A file is cached if it has more tiles than so many times those that are kept of it: any other is
as fast to read as the cache."""

_HELD = 2**29
"""Bytes of features that are held in memory at any time; one bag may be larger."""


def prefilter(bag: Bag, n_cap: int | None) -> Bag:
    r"""Keep the ``n_cap`` tiles with the largest :math:`\lVert x_i \rVert_2`, in bag order.

    Ties go to the earlier tile. A bag that is small enough, or ``n_cap`` None, is left as it is.

    >>> bag = Bag("s", np.array([[3.0], [1.0], [2.0]], dtype=np.float32))
    >>> prefilter(bag, 2).tiles.tolist()
    [0, 2]
    """
    if n_cap is None or len(bag) <= n_cap:
        return bag
    squared = np.einsum("nd,nd->n", bag.features, bag.features, dtype=np.float64)
    keep = np.sort(np.argsort(-squared, kind="stable")[:n_cap])
    return replace(
        bag,
        features=bag.features[keep],
        coords=None if bag.coords is None else bag.coords[keep],
        kept=bag.tiles[keep],
        n_in_file=bag.n_total,
    )


class BagStore:
    """Reads and pre-filters bags; the last few stay in memory.

    Args:
        n_cap: Most candidate tiles per bag; None keeps all.
        layout: Force a layout, or ``"auto"``.
        mpp: Micrometres per level-0 pixel, for layouts that measure in micrometres.
        cache: On-disk cache of pre-filtered bags, or None; unused where all tiles are kept.
        keep: Most bags held in memory at any time; fewer where they are large.

    Attributes:
        encoders: Tile encoder of every slide read so far; None where the file names none.
    """

    def __init__(
        self,
        *,
        n_cap: int | None = None,
        layout: str = "auto",
        mpp: float | None = None,
        cache: BagCache | None = None,
        keep: int = 16,
    ) -> None:
        self.n_cap, self.layout, self.mpp, self.cache, self.keep = n_cap, layout, mpp, cache, keep
        self.encoders: dict[str, str | None] = {}
        self._held: OrderedDict[str, Bag] = OrderedDict()
        self._first: tuple[str, int] | None = None
        self._width: int | None = None

    def for_model(self, width: int) -> BagStore:
        """A store that refuses bags of another feature width than the model reads.

        Without a model the first bag read decides which width is right.
        """
        other = copy.copy(self)
        fitting = ((name, bag) for name, bag in self._held.items() if bag.width == width)
        other._width, other._held = width, OrderedDict(fitting)
        return other

    def with_cap(self, n_cap: int | None) -> BagStore:
        """An empty store of the same files that keeps another number of tiles per bag."""
        return BagStore(
            n_cap=n_cap, layout=self.layout, mpp=self.mpp, cache=self.cache, keep=self.keep
        )

    def read_once(self) -> BagStore:
        """An empty store of the same files for slides that are read one after the other.

        It holds the bag in use and the next one.
        """
        other = copy.copy(self)
        other.keep, other._held = 2, OrderedDict()
        return other

    def bag(self, slide: Slide) -> Bag:
        """The slide's candidate tiles.

        Raises:
            BagError: If the slide has no feature file, or the file is bad, or its features are not
                as wide as those of the bags read before.
        """
        held = self._held.pop(slide.slide_id, None)
        bag = self._read(slide) if held is None else held
        self._held[slide.slide_id] = bag
        size = sum(held.features.nbytes for held in self._held.values())
        while len(self._held) > self.keep or (size > _HELD and len(self._held) > 1):
            size -= self._held.popitem(last=False)[1].features.nbytes
        return bag

    def _read(self, slide: Slide) -> Bag:
        if slide.parts:
            bag = joined(slide.slide_id, [self._read(part) for part in slide.parts])
            self.encoders[slide.slide_id] = bag.provenance.encoder
            return bag
        path = slide.feature_path
        if path is None:
            raise BagError(slide.slide_id, "has no feature file", "extract its features")
        with reading(path):
            check_file(path)
            bag = replace(self._cached(path), slide_id=slide.slide_id)
            self._check_width(bag, path)
            self.encoders[slide.slide_id] = bag.provenance.encoder
            return bag

    def _cached(self, path: Path) -> Bag:
        key, bag = "", None
        cache = None if self.n_cap is None else self.cache  # it would be a copy of the file
        if cache is not None:
            beside = self.read_beside(path)
            key = cache_key(path, beside, layout=self.layout, n_cap=self.n_cap, mpp=self.mpp)
            bag = cache.get(key)
        if bag is None:
            bag = prefilter(read_bag(path, layout=self.layout, mpp=self.mpp), self.n_cap)
            if cache is not None and bag.n_total > WORTH_CACHING * len(bag):
                cache.put(key, bag)
        return bag

    def read_beside(self, path: Path) -> tuple[Path, ...]:
        """Files beside a feature file that its bag may depend on too."""
        # By its ending, not its content: a bag that is in the cache must not cost an open file.
        names = candidates(path) if self.layout == "auto" else (self.layout,)
        return tuple(sorted({file for name in names for file in LAYOUTS[name].sidecars(path)}))

    def _check_width(self, bag: Bag, path: Path) -> None:
        if self._width is not None:
            wanted, whose = self._width, f"the model reads {self._width}"
            fix = "use the features that the model was trained on"
        else:
            self._first = self._first or (bag.slide_id, bag.width)
            name, wanted = self._first
            whose, fix = f"those of {name} {wanted}", "use one encoder for the whole cohort"
        if bag.width != wanted:
            raise WidthError(path, f"features are {bag.width} wide, {whose}", fix)


class BagStream(Iterable[Bag]):
    """Iterates over bags one at a time; bad slides are listed with their reason.

    Attributes:
        skipped: Slides left out so far, each with one line that says why.
    """

    def __init__(self, store: BagStore, slides: Iterable[Slide]) -> None:
        self._store, self._slides = store, tuple(slides)
        self.skipped: list[Skipped] = []

    def __len__(self) -> int:
        return len(self._slides)

    def __iter__(self) -> Iterator[Bag]:
        self.skipped.clear()
        for slide in self._slides:
            try:
                bag = self._store.bag(slide)
            except FociError as error:
                self.skipped.append(Skipped(slide.slide_id, str(error)))
            else:
                yield bag
