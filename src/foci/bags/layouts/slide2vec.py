"""slide2vec: ``tile_embeddings/<slide>.pt`` with ``tiles/<slide>.coordinates.npz`` beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foci.bags.layouts.arrays import load_npz
from foci.bags.layouts.layout import Layout, Stored, json_beside, one_name, one_number
from foci.bags.layouts.tensor_file import load_array
from foci.errors import BagError

_FOLDER = "tile_embeddings"


def _read(path: Path, mpp: float | None) -> Stored:
    """Encoder and tile size come from ``<slide>.meta.json``."""
    npz = path.suffix.lower() == ".npz"
    features = load_npz(path, "features")["features"] if npz else load_array(path)
    places, source = _coordinates(path), _settings(path)
    coords, settings = None, json_beside(source)
    if places is not None:
        arrays = load_npz(places, "x", also=("y",))
        if "y" not in arrays:
            raise BagError(places, "has no array 'y'", "extract the slide again")
        coords = np.stack([arrays["x"], arrays["y"]], axis=-1)
    size = settings.get("tile_size_lv0")
    return Stored(
        features=features,
        coords=coords,
        patch_size=None if size is None else one_number(size, "tile_size_lv0", source),
        encoder=one_name(settings.get("encoder_name"), "encoder_name", source),
    )


def _settings(path: Path) -> Path:
    return path.with_name(f"{path.stem}.meta.json")


def _coordinates(path: Path) -> Path | None:
    """In the folder ``tiles``; below a folder of the same name for one class of annotations."""
    for depth, folder in enumerate(path.parents[:2]):
        if folder.name == _FOLDER:
            below = path.parent.relative_to(folder) if depth else Path()
            found = folder.parent / "tiles" / below / f"{path.stem}.coordinates.npz"
            return found if found.is_file() else None
    return None


def _matches(path: Path) -> bool:
    return _coordinates(path) is not None or (
        path.parent.name == _FOLDER and _settings(path).is_file()
    )


def _sidecars(path: Path) -> tuple[Path, ...]:
    files = (_coordinates(path), _settings(path))
    return tuple(file for file in files if file is not None and file.is_file())


LAYOUT = Layout("slide2vec .pt + coordinates", (".pt", ".npz"), _matches, _read, _sidecars)
