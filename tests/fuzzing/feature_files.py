"""Feature files of every layout."""

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import torch

from foci.bags import read_bag
from tests.fuzzing.mutations import BYTES
from tests.fuzzing.odd_hdf5 import ODD
from tests.fuzzing.subject import JSON, ZIP, Subject
from tests.makers import features as write

X, XY = write.features(40, 16), write.grid(40)
HDF5 = (*BYTES, *ODD)


def bag(name: str) -> Callable[[Path], object]:
    return lambda folder: read_bag(folder / name, mpp=0.5)


def _legacy(folder: Path) -> None:
    torch.save(torch.from_numpy(X), folder / "s.pt", _use_new_zipfile_serialization=False)


def _torchmil(folder: Path) -> None:
    for name, array in (("features", X), ("coords", XY)):
        (folder / name).mkdir()
        np.save(folder / name / "s.npy", array)


def _compressed(folder: Path) -> None:
    with h5py.File(folder / "s.h5", "w") as file:
        made = file.create_dataset("features", data=X, chunks=(8, 16), compression="gzip")
        made.attrs["encoder"] = "uni"
        file["coords"] = XY
        file["coords"].attrs["patch_size_level0"] = 256


FEATURE_FILES: dict[str, Subject] = {
    "trident .h5": Subject(
        "HDF5", lambda f: write.trident(f / "s.h5", X, XY), "s.h5", bag("s.h5"), HDF5
    ),
    "UNI2-h .h5": Subject(
        "HDF5", lambda f: write.uni2h(f / "s.h5", X, XY), "s.h5", bag("s.h5"), HDF5
    ),
    "CLAM .h5": Subject(
        "HDF5",
        lambda f: write.clam_h5(f, "s", X, XY),
        "features/h5_files/s.h5",
        bag("features/h5_files/s.h5"),
        HDF5,
    ),
    "CLAM patches": Subject(
        "HDF5",
        lambda f: write.clam_h5(f, "s", X, XY),
        "patches/s.h5",
        bag("features/h5_files/s.h5"),
        HDF5,
    ),
    "STAMP .h5": Subject(
        "HDF5",
        lambda f: write.stamp(f / "s.h5", X, XY, unit="um", tile_size_um=256.0, extractor="u"),
        "s.h5",
        bag("s.h5"),
        HDF5,
    ),
    "compressed .h5": Subject("HDF5", _compressed, "s.h5", bag("s.h5"), HDF5),
    "CLAM .pt": Subject(
        ".pt features",
        lambda f: write.clam_pt(f, "s", X),
        "features/pt_files/s.pt",
        bag("features/pt_files/s.pt"),
        ZIP,
    ),
    "old .pt": Subject(".pt features", _legacy, "s.pt", bag("s.pt")),
    "NumPy in .pt": Subject(
        ".pt features", lambda f: torch.save(X, f / "s.pt"), "s.pt", bag("s.pt"), ZIP
    ),
    "slideflow .pt": Subject(
        ".pt features", lambda f: write.slideflow(f / "s.pt", X, XY), "s.pt", bag("s.pt"), ZIP
    ),
    "slideflow index": Subject(
        "NumPy", lambda f: write.slideflow(f / "s.pt", X, XY), "s.index.npz", bag("s.pt"), ZIP
    ),
    "slideflow config": Subject(
        "JSON", lambda f: write.slideflow(f / "s.pt", X, XY), "bags_config.json", bag("s.pt"), JSON
    ),
    ".npz": Subject(
        "NumPy",
        lambda f: np.savez(f / "s.npz", features=X, coords=XY, patch_size_level0=256),
        "s.npz",
        bag("s.npz"),
        ZIP,
    ),
    "compressed .npz": Subject(
        "NumPy",
        lambda f: np.savez_compressed(f / "s.npz", features=X, coords=XY),
        "s.npz",
        bag("s.npz"),
        ZIP,
    ),
    ".npy": Subject("NumPy", _torchmil, "features/s.npy", bag("features/s.npy")),
    ".npy coordinates": Subject("NumPy", _torchmil, "coords/s.npy", bag("features/s.npy")),
}
