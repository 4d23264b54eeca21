"""Slides and an audit to look at: ten slides of 1,024 tiles and one of 30,000, painted."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import tifffile
import torch
from PIL import Image

import foci
from foci import backbones
from foci.demo.painting import VARIANTS, tile_picture

SIDE = 256
SMALL, LARGE = (40, 32, 1024), (200, 170, 30_000)
"""Columns, rows and tiles of a slide."""

_D_IN = 32
_DOWN = (4, 16)


def make(folder: Path) -> Path:
    """Write slides, features and audit; return the audit's folder."""
    shapes = {f"small-{i:02d}": SMALL for i in range(14)} | {"large": LARGE}
    slides, features = folder / "slides", folder / "features"
    slides.mkdir()
    features.mkdir()
    rng = np.random.default_rng(0)
    rows = ["slide_id,case_id,label,split"]
    for number, (name, (columns, lines, n)) in enumerate(shapes.items()):
        write_slide(slides / f"{name}.tif", columns, lines)
        cells = np.sort(rng.permutation(columns * lines)[:n])
        coords = np.column_stack([cells % columns, cells // columns]) * SIDE
        with h5py.File(features / f"{name}.h5", "w") as file:
            file["features"] = rng.normal(size=(n, _D_IN)).astype(np.float32)
            file["coords"] = coords
            file["coords"].attrs["patch_size_level0"] = SIDE
        rows.append(f"{name},P{number},{'AB'[number % 2]},test")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    torch.manual_seed(0)
    model = backbones.create("abmil", d_in=_D_IN, n_classes=2).eval().requires_grad_(False)
    cohort = foci.Cohort.read(features=features, labels=folder / "labels.csv", n_cap=LARGE[2])
    foci.audit(
        model, cohort, folder / "audit", rankings=("native", "evidence", "random"),
        random_orders=2, k_max=LARGE[2], n_boot=50, progress=False,
    )  # fmt: skip
    return folder / "audit"


def write_slide(path: Path, columns: int, rows: int) -> None:
    """A pyramid of three levels, from a few painted tiles."""
    looks = [
        np.asarray(tile_picture(kind, 0, 0, variant))
        for kind, variant in itertools.product(range(3), range(VARIANTS))
    ]
    common: dict[str, Any] = {
        "dtype": np.uint8, "photometric": "rgb", "compression": "zlib", "metadata": None,
        "tile": (SIDE, SIDE),
    }  # fmt: skip
    scale = {"resolution": (2e4, 2e4), "resolutionunit": "CENTIMETER"}
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        for down in (1, *_DOWN):
            small = [Image.fromarray(look).reduce(down) for look in looks]
            shape = (-(-rows // down) * SIDE, -(-columns // down) * SIDE, 3)
            exact = (rows * SIDE // down, columns * SIDE // down, 3)
            blocks = list(_blocks(small, shape[1] // SIDE, shape[0] // SIDE, down))
            more = scale if down == 1 else {"subfiletype": 1}
            file.write(iter(blocks), shape=exact, **common, **more)


def _blocks(looks: list[Image.Image], columns: int, rows: int, down: int) -> Iterator[bytes]:
    """Compressed tiles of one level; only a few different ones are encoded."""
    encoded = {}
    for number in range(columns * rows):
        key = (number * 7 + number // columns) % (4 * len(looks))
        if key not in encoded:
            block = Image.new("RGB", (SIDE, SIDE))
            for i, (x, y) in enumerate(itertools.product(range(down), repeat=2)):
                look = looks[(key + i) % len(looks)]
                block.paste(look, (x * SIDE // down, y * SIDE // down))
            encoded[key] = zlib.compress(block.tobytes(), 6)
        yield encoded[key]
