"""NumPy files: a ``.npz`` per slide, or torchmil's ``features/`` and ``coords/`` of ``.npy``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foci.bags.layouts.stored import Layout, ReadOptions, Stored
from foci.errors import BagError

_FEATURE_KEYS = ("features", "feats", "arr_0")


def _read_npz(path: Path, options: ReadOptions) -> Stored:
    """Keys ``features`` (or ``feats``), optionally ``coords`` and ``patch_size_level0``."""
    arrays = _load(path)
    key = next((key for key in _FEATURE_KEYS if key in arrays), None)
    if key is None:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise BagError(path, f"has no array 'features' (it holds {found})", "rename the array")
    size = arrays.get("patch_size_level0")
    return Stored(
        features=arrays[key],
        coords=arrays.get("coords"),
        patch_size=None if size is None else float(size),
    )


def _read_npy(path: Path, options: ReadOptions) -> Stored:
    """Coordinates are grid indices: right for neighbours, not for drawing on a slide."""
    features = _load(path)["array"]
    (beside,) = _npy_sidecars(path) or (None,)
    if beside is None:
        return Stored(features=features)
    coords = _load(beside)["array"]
    note = "coordinates are grid indices: they cannot be placed on a slide"
    return Stored(features=features, coords=coords, unit="grid", patch_size=1.0, notes=(note,))


def _load(path: Path) -> dict[str, NDArray[Any]]:
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return {"array": content}
        with content:
            return {key: content[key] for key in content.files}
    except FileNotFoundError:
        raise BagError(path, "does not exist", "check the feature folder") from None
    except (OSError, ValueError, EOFError) as error:
        raise BagError(
            path, f"is not a readable NumPy file ({error})", "write it again without pickle"
        ) from error


def _npy_sidecars(path: Path) -> tuple[Path, ...]:
    beside = path.parent.parent / "coords" / path.name
    return (beside,) if beside.is_file() and path.parent.name == "features" else ()


LAYOUT_NPZ = Layout("NumPy .npz", (".npz",), lambda path: True, _read_npz)
LAYOUT_NPY = Layout("NumPy .npy (torchmil)", (".npy",), lambda path: True, _read_npy, _npy_sidecars)
