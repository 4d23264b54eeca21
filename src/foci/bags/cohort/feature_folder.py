"""Find the feature files in a folder."""

from __future__ import annotations

import os
from pathlib import Path

from foci.bags.layouts import suffixes
from foci.errors import BagError

_NOT_FEATURES = ("patches", "coords", "labels", "patch_labels", "masks", "stitches")
"""Other folders that the same tools write."""


def find_features(folder: str | Path) -> dict[str, Path]:
    """Feature file of every slide, by file name without suffix; sub-folders are searched too.

    Where CLAM's ``h5_files`` and ``pt_files`` hold the same slide, the ``.h5`` is taken because it
    has the coordinates. Any other name that occurs twice is ambiguous and is refused.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise BagError(folder, what, "give the folder that holds the feature files")
    found: dict[str, Path] = {}
    for path in _walk(folder):
        known = found.get(path.stem)
        if known is None or is_clam_pair(known, path):
            found[path.stem] = path
        elif not is_clam_pair(path, known):
            raise BagError(
                path,
                f"slide {path.stem!r} is also in {known}",
                "point at the folder of one encoder and one tile size",
            )
    if not found:
        endings = ", ".join(sorted(suffixes()))
        raise BagError(folder, f"holds no feature files ({endings})", "check the path")
    return found


def _walk(folder: Path) -> list[Path]:
    paths: list[Path] = []
    known = suffixes()
    visited: set[str] = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(root)) in visited:  # a link that leads back up
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(f for f in folders if f not in _NOT_FEATURES and f[0] not in "._")
        paths += [
            Path(root, name)
            for name in sorted(names)
            if Path(name).suffix.lower() in known and not _is_sidecar(name)
        ]
    return paths


def _is_sidecar(name: str) -> bool:
    return name.startswith(".") or name.endswith((".index.npz", ".index.npy", "_patches.h5"))


def is_clam_pair(tensor: Path, hdf5: Path) -> bool:
    """Whether two files of one name are CLAM's ``pt_files`` and ``h5_files``."""
    return tensor.parent.name == "pt_files" and hdf5.parent.name == "h5_files"
