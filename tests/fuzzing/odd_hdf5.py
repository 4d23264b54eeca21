"""HDF5 files that are whole but odd: attributes, types, links and shapes that no tool writes."""

import io
from collections.abc import Callable

import h5py
import numpy as np

from tests.fuzzing.mutations import Mutation, Rng, flip_bits

VALUES = [
    [256, 256], [1, 2, 3], float("nan"), float("inf"), -1, 0, 2**62, "wide", b"\xff\xfe", "\x1b[2J",
    np.array([]), True, 1 + 2j, h5py.Empty("f4"), ["a", "b"], "None", np.float16(3), "x" * 30000,
]  # fmt: skip
ATTRIBUTES = [
    "patch_size_level0", "patch_size", "downsample", "custom_downsample", "encoder", "unit",
    "tile_size_um", "feat_type", "extractor",
]  # fmt: skip
DATASETS: list[Callable[[h5py.File, str], object]] = [
    lambda file, name: file.create_group(name),
    lambda file, name: file.create_dataset(name, data=h5py.Empty("f4")),
    lambda file, name: file.create_dataset(name, (10**9, 64), "f4", chunks=(64, 64)),
    lambda file, name: file.create_dataset(name, (40, 16), "f4", chunks=(8, 16)),
    lambda file, name: file.create_dataset(name, data=np.ones((40, 16), "c8")),
    lambda file, name: file.create_dataset(name, data=np.ones((40, 16), "i8")),
    lambda file, name: file.create_dataset(name, data=np.ones((40, 2), bool)),
    lambda file, name: file.create_dataset(name, data=np.full((40, 2), 1e300)),
    lambda file, name: file.create_dataset(name, data=np.full((40, 2), 2**63 - 1)),
    lambda file, name: file.create_dataset(name, data=np.ones((0, 16), "f4")),
    lambda file, name: file.create_dataset(name, data=3.0),
    lambda file, name: file.create_dataset(name, data="text"),
    lambda file, name: file.create_dataset(name, data=["a"] * 40),
    lambda file, name: file.create_dataset(name, data=np.ones((2, 2, 40, 16), "f2")),
    lambda file, name: file.create_dataset(name, data=np.zeros(40, [("x", "f4"), ("y", "O")][:1])),
    lambda file, name: file.create_dataset(name, (4,), h5py.vlen_dtype(np.float32)),
    lambda file, name: file.__setitem__(name, h5py.ExternalLink("/dev/zero", "/x")),
    lambda file, name: file.__setitem__(name, h5py.SoftLink(f"/{name}")),
    lambda file, name: file.create_dataset(name, (40, 2), "f4", external=[("/dev/zero", 0, 9999)]),
]


def _edited(content: bytes, edit: Callable[[h5py.File], object]) -> bytes:
    held = io.BytesIO(content)
    with h5py.File(held, "a") as file:
        edit(file)
    return held.getvalue()


def odd_attribute(content: bytes, rng: Rng) -> bytes:
    def edit(file: h5py.File) -> None:
        holders = [file, *(item for item in file.values() if item is not None)]
        name = ATTRIBUTES[int(rng.integers(len(ATTRIBUTES)))]
        value = VALUES[int(rng.integers(len(VALUES)))]
        for holder in holders:
            holder.attrs[name] = value

    return _edited(content, edit)


def odd_dataset(content: bytes, rng: Rng) -> bytes:
    def edit(file: h5py.File) -> None:
        name = sorted(file)[int(rng.integers(len(file)))]
        del file[name]
        DATASETS[int(rng.integers(len(DATASETS)))](file, name)

    return _edited(content, edit)


def odd_and_damaged(content: bytes, rng: Rng) -> bytes:
    return flip_bits(odd_attribute(content, rng), rng)


ODD: tuple[Mutation, ...] = (odd_attribute, odd_dataset, odd_dataset, odd_and_damaged)
