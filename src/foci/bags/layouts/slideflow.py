"""slideflow: ``<slide>.pt`` with ``<slide>.index.npz`` (tile centres, level-0 pixels) beside it."""

from __future__ import annotations

from pathlib import Path

from foci.bags.layouts.arrays import load_npy, load_npz
from foci.bags.layouts.layout import Layout, Stored, json_beside, one_name, one_number
from foci.bags.layouts.tensor_file import load_array

_CONFIG = "bags_config.json"


def _read(path: Path, mpp: float | None) -> Stored:
    """The side of a tile is ``tile_um / mpp`` where the resolution is known, else inferred."""
    index, source = _index(path), path.parent / _CONFIG
    assert index is not None, "matches() has seen the index"  # noqa: S101
    centres = load_npy(index) if index.suffix == ".npy" else load_npz(index, "arr_0")["arr_0"]
    config = json_beside(source)
    tile_um, size = config.get("tile_um"), None
    if isinstance(tile_um, (int, float)) and mpp:  # "20x" where tiles are given so
        size = one_number(tile_um, "tile_um", source) / mpp
    extractor = config.get("extractor")
    name = extractor.get("class") if isinstance(extractor, dict) else extractor
    return Stored(
        features=load_array(path),
        coords=centres,
        origin="centre",
        patch_size=size,
        encoder=one_name(name, "extractor", source),
    )


def _index(path: Path) -> Path | None:
    for ending in (".index.npz", ".index.npy"):
        candidate = path.parent / f"{path.stem}{ending}"
        if candidate.is_file():
            return candidate
    return None


def _sidecars(path: Path) -> tuple[Path, ...]:
    files = (_index(path), path.parent / _CONFIG)
    return tuple(f for f in files if f is not None and f.is_file())


LAYOUT = Layout(
    "slideflow .pt + index", (".pt",), lambda path: _index(path) is not None, _read, _sidecars
)
