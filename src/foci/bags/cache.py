"""On-disk cache of pre-filtered bags, so that an epoch costs milliseconds per slide.

A file of 12,000 tiles (74 MB) is read once. The 1,024 candidate tiles that the pre-filter keeps are
stored under a key that covers everything the result depends on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from foci.bags.bag import Bag, Provenance
from foci.errors import FociError
from foci.files.atomic import sweep, write_whole

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
