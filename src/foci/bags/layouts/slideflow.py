"""slideflow: ``<slide>.pt`` with ``<slide>.index.npz`` (tile centres, level-0 pixels) beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foci.bags.layouts.stored import Layout, ReadOptions, Stored
from foci.bags.layouts.tensor_file import load_array
from foci.errors import BagError


def _matches(path: Path) -> bool:
    """An ``.index.npz`` lies beside the file."""
    return _index(path) is not None


def _read(path: Path, options: ReadOptions) -> Stored:
    """The side of a tile is ``tile_um / mpp`` where the resolution is known, else inferred."""
    config = _config(path)
    tile_um = config.get("tile_um")
    size = tile_um / options.mpp if isinstance(tile_um, (int, float)) and options.mpp else None
    extractor = config.get("extractor")
    return Stored(
        features=load_array(path),
        coords=_centres(path),
        origin="centre",
        patch_size=size,
        encoder=extractor.get("class") if isinstance(extractor, dict) else extractor,
    )


def _centres(path: Path) -> NDArray[Any]:
    index = _index(path)
    assert index is not None, "_matches() has seen the index"  # noqa: S101
    try:
        content = np.load(index, allow_pickle=False)
        return content if isinstance(content, np.ndarray) else np.asarray(content["arr_0"])
    except (OSError, ValueError, KeyError) as error:
        raise BagError(index, f"is not a tile index ({error})", "extract the bag again") from error


def _config(path: Path) -> dict[str, Any]:
    source = path.parent / "bags_config.json"
    if not source.is_file():
        return {}
    try:
        content = json.loads(source.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise BagError(source, f"is not JSON ({error})", "restore or delete it") from error
    return content if isinstance(content, dict) else {}


def _index(path: Path) -> Path | None:
    for ending in (".index.npz", ".index.npy"):
        candidate = path.parent / f"{path.stem}{ending}"
        if candidate.is_file():
            return candidate
    return None


def _sidecars(path: Path) -> tuple[Path, ...]:
    files = (_index(path), path.parent / "bags_config.json")
    return tuple(f for f in files if f is not None and f.is_file())


LAYOUT = Layout("slideflow .pt + index", (".pt",), _matches, _read, _sidecars)
