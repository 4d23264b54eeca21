"""Parquet files that are whole but odd: columns of another type, missing, or null."""

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzzing.mutations import Rng

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
