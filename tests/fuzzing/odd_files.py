"""HDF5 and Parquet files that are whole but odd: types, links and shapes that no tool writes."""

import io
from collections.abc import Callable

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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


ODD_HDF5: tuple[Mutation, ...] = (odd_attribute, odd_dataset, odd_dataset, odd_and_damaged)

COLUMNS: list[Callable[[int], pa.Array]] = [
    lambda n: pa.nulls(n),
    lambda n: pa.array(["\x1b[2J"] * n),
    lambda n: pa.array([float("nan")] * n),
    lambda n: pa.array([2**63 - 1] * n),
    lambda n: pa.array([-1] * n),
    lambda n: pa.array([[1.0, None]] * n),
    lambda n: pa.array([{"a": 1}] * n),
    lambda n: pa.array([b"\xff"] * n),
    lambda n: pa.array([None, *[0.5] * (n - 1)]),
    lambda n: pa.array(["a"] * n).dictionary_encode(),
]


def odd_column(content: bytes, rng: Rng) -> bytes:
    table = pq.read_table(io.BytesIO(content))
    chosen = int(rng.integers(table.num_columns))
    if rng.random() < 0.2:
        table = table.remove_column(chosen)
    elif rng.random() < 0.1:
        table = table.slice(0, 0)
    else:
        name = table.column_names[chosen]
        made = COLUMNS[int(rng.integers(len(COLUMNS)))](table.num_rows)
        table = table.set_column(chosen, name, made)
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()
