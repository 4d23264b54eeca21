"""Write the files of the demo: TRIDENT features, label table, answer key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from foci.bags.tables import write_csv
from foci.demo.patients import CLASSES, SITES, PlannedSlide
from foci.demo.planted import PATCH_SIZE, TARGET_MAGNIFICATION, PlantedSlide
from foci.demo.tissue import KINDS
from foci.slides.trident import tile_geometry, write_trident

ENCODER = "foci-demo"

_TRUTH = pa.schema(
    [
        ("slide_id", pa.string()),
        ("tile", pa.int64()),
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("tissue", pa.string()),
        ("witness", pa.bool_()),
    ]
)


def write_features(slide: PlantedSlide, path: Path) -> None:
    """One feature file as TRIDENT writes it: geometry as attributes of ``coords``."""
    geometry = tile_geometry(
        tile=PATCH_SIZE,
        side=slide.patch_size,
        magnification=slide.plan.magnification,
        target_magnification=TARGET_MAGNIFICATION,
        size=slide.size,
    )
    write_trident(
        path,
        slide.features,
        slide.coords,
        slide_id=slide.plan.slide_id,
        encoder=ENCODER,
        geometry=geometry,
    )


def write_cohort(plans: Sequence[PlannedSlide], path: Path) -> None:
    """The tidy table: ``slide_id, case_id, label, split, site``."""
    rows = [
        {
            "slide_id": plan.slide_id,
            "case_id": plan.case_id,
            "label": CLASSES[plan.label],
            "split": plan.split,
            "site": SITES[plan.site],
        }
        for plan in plans
    ]
    write_csv(path, list(rows[0]), rows)


def truth_rows(slide: PlantedSlide) -> pa.Table:
    """Answer key of one slide: what each tile of its feature file shows, in file order."""
    n = len(slide.coords)
    return pa.table(
        {
            "slide_id": [slide.plan.slide_id] * n,
            "tile": np.arange(n),
            "x": slide.coords[:, 0],
            "y": slide.coords[:, 1],
            "tissue": [KINDS[kind] for kind in slide.tissue.kind],
            "witness": slide.tissue.witness,
        },
        schema=_TRUTH,
    )


def write_truth(tables: Sequence[pa.Table], path: Path) -> None:
    """The answer key of the cohort."""
    pq.write_table(pa.concat_tables(tables).combine_chunks(), path, compression="zstd")
