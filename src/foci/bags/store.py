"""Load bags on demand: from memory, from the cache, or from their files."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import logging
import os
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from foci.bags.bag import Bag, Provenance, Skipped, Slide, joined
from foci.bags.layouts import LAYOUTS, candidates, read_bag
from foci.bags.layouts.layout import reading
from foci.errors import BagError, FociError, WidthError
from foci.files.atomic import sweep, write_whole

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
        keep: Most bags held in memory at any time, of 512 MB together.

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
        keep: int = 1024,
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
        """A store of the same files for slides that are read one after the other, in its place.

        It holds the last bag only: the one in use belongs to its user while the next is read.
        """
        self._held.clear()
        other = copy.copy(self)
        other.keep, other._held = 1, OrderedDict()
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


# On-disk cache, so that an epoch costs milliseconds per slide. A file of 12,000 tiles (74 MB) is
# read once; the 1,024 candidate tiles that the pre-filter keeps are stored under a key that covers
# everything the result depends on.

_LOG = logging.getLogger(__name__)

_VERSION = 3
_DEFAULT_LIMIT_GB = 100.0
_SIZE, _LOCK = "size", "size.lock"
_LEFT = 0.9
"""Share of the limit that is left when entries are removed, so that not every new one removes."""


class BagCache:
    """Least-recently-used cache of bags in a folder; safe to share between processes.

    Entries are written under a temporary name and renamed, so a reader sees a whole entry or
    none. Each carries a checksum: one that cannot be read, or that was damaged on the disk, counts
    as absent, and its slide is read from the feature file again. Opening the cache removes what
    killed processes left behind. The least recently used entries are removed before one is written
    that would exceed the limit: all processes add to the size in a file of the folder, under a
    lock.

    Args:
        root: Folder; defaults to ``$FOCI_CACHE`` or ``foci/bags`` in the user's cache folder.
        limit_gb: Size that the entries never exceed.
    """

    def __init__(
        self, root: str | Path | None = None, *, limit_gb: float = _DEFAULT_LIMIT_GB
    ) -> None:
        self.root = default_root() if root is None else Path(root)
        self.limit = int(limit_gb * 1e9)
        self._announced = False
        if self.root.is_dir():
            with contextlib.suppress(OSError), FileLock(self.root / _LOCK):
                self._prune(self.limit)

    def get(self, key: str) -> Bag | None:
        """The bag under ``key``, or None."""
        from safetensors import SafetensorError, safe_open

        path = self._path(key)
        try:
            with safe_open(path, framework="np") as file:
                stored = json.loads(file.metadata()["entry"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if _checksum(arrays, stored["bag"]) != stored["crc32"]:
                return None
            os.utime(path)
        except (OSError, SafetensorError, KeyError, TypeError, ValueError):
            return None
        facts = json.loads(stored["bag"])
        origin = facts.pop("provenance")
        origin |= {"path": Path(origin["path"]), "notes": tuple(origin["notes"])}
        return Bag(
            features=arrays["features"].astype(np.float32, copy=False),
            coords=arrays.get("coords"),
            kept=arrays.get("kept"),
            provenance=Provenance(**origin),
            **facts,
        )

    def put(self, key: str, bag: Bag) -> None:
        """Store a bag; on a full or read-only disk nothing is stored."""
        from safetensors.numpy import save

        arrays: dict[str, np.ndarray[Any, Any]] = {"features": bag.features}
        with np.errstate(over="ignore"):
            half = bag.features.astype(np.float16)
        if np.array_equal(half.astype(np.float32), bag.features):
            arrays["features"] = half
        if bag.coords is not None:
            arrays["coords"] = bag.coords
        if bag.kept is not None:
            arrays["kept"] = bag.kept
        names = ("slide_id", "unit", "patch_size", "patch_size_inferred", "n_in_file")
        facts = {name: getattr(bag, name) for name in names}
        provenance = {**asdict(bag.provenance), "path": str(bag.provenance.path)}
        text = json.dumps({**facts, "provenance": provenance})
        entry = json.dumps({"bag": text, "crc32": _checksum(arrays, text)})
        content = save(arrays, {"entry": entry})
        with contextlib.suppress(OSError):
            self.root.mkdir(parents=True, exist_ok=True)
            if not self._announced:
                text = "bags are cached in %s, at most %g GB (--no-cache reads the files each time)"
                _LOG.info(text, self.root, self.limit / 1e9)
                self._announced = True
            if len(content) > self.limit:
                return
            with FileLock(self.root / _LOCK):
                size = self._size()
                if size + len(content) > self.limit:
                    left = min(self.limit - len(content), int(_LEFT * self.limit))
                    size = self._prune(max(left, 0))
                (self.root / _SIZE).write_text(str(size + len(content)))
                # not forced to disk: what a power cut damages has another checksum
                write_whole(self._path(key), content, durable=False)

    def _size(self) -> int:
        """Bytes of all entries, as the last process has noted them."""
        try:
            return int((self.root / _SIZE).read_text())
        except (OSError, ValueError):
            return self._prune(self.limit)

    def _prune(self, limit: int) -> int:
        """Remove the least recently used entries until the rest has ``limit`` bytes; its size."""
        sweep(self.root)
        entries = []
        for path in self.root.glob("*.safetensors"):
            with contextlib.suppress(OSError):
                facts = path.stat()
                entries.append((facts.st_mtime_ns, facts.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= limit:
                break
            path.unlink(missing_ok=True)
            total -= size
        (self.root / _SIZE).write_text(str(total))
        return total

    def _path(self, key: str) -> Path:
        return self.root / f"{key}.safetensors"


def cache_key(path: Path, sidecars: tuple[Path, ...], **settings: Any) -> str:
    """Hash of path, size and modification time of all files read, and of the settings."""
    stats = [(str(file.absolute()), file.stat()) for file in (path, *sidecars)]
    files = [[name, facts.st_size, facts.st_mtime_ns] for name, facts in stats]
    content = json.dumps([_VERSION, files, settings], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:40]


def default_root() -> Path:
    """``$FOCI_CACHE``, or ``foci/bags`` in the user's cache folder."""
    if chosen := os.environ.get("FOCI_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "foci" / "bags"
    except RuntimeError:  # a container without HOME and without an entry in /etc/passwd
        what, fix = "is unknown, and the cache would be there", "set FOCI_CACHE to a folder"
        raise FociError("home folder", what, fix) from None


def _checksum(arrays: dict[str, np.ndarray[Any, Any]], facts: str) -> str:
    """CRC-32 of everything in an entry: it finds accidents, at the speed of memory."""
    crc = zlib.crc32(facts.encode())
    for name, array in sorted(arrays.items()):
        crc = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), crc)
        crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
    return f"{crc:08x}"
