"""Tables, settings, audit folders, model folders and checkpoints."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from foci import backbones
from foci.audits import StoredAudit
from foci.audits.audit import read_marks, recompute
from foci.audits.settings import read_configuration
from foci.backbones.checkpoints import open_checkpoint
from foci.bags.cohort import CohortOptions
from foci.bags.doctor import examine
from foci.bags.importers import read_slides
from foci.rankings.from_file import read_scores
from tests.backbones.checkpoints.official_files import OFFICIAL
from tests.fuzzing.mutations import BYTES, inside_header
from tests.fuzzing.odd_parquet import odd_column
from tests.fuzzing.subject import JSON, TEXT, ZIP, Subject
from tests.makers import features as write
from tests.makers.audits import model
from tests.makers.folders import write_folder
from tests.makers.workbooks import text_row, workbook

LABELS = "slide_id,case_id,label,split\n" + "".join(
    f"s{n},p{n // 2},{'ab'[n % 2]},{('train', 'val', 'test')[n % 3]}\n" for n in range(12)
)
CONFIG = """model: m
features: f
out: o
kappas: &k [0.8, 0.9]
rankings: [native, random]
recipe_settings: {schedule.epochs: 2}
"""


def _scores(folder: Path) -> None:
    columns = {"slide_id": ["a"] * 6, "tile": list(range(6)), "score": [0.5] * 6}
    pq.write_table(pa.table(columns), folder / "s.parquet")


def _marks(folder: Path) -> None:
    columns = {"slide_id": ["a"] * 6, "tile": list(range(6)), "witness": [True, False] * 3}
    pq.write_table(pa.table(columns), folder / "s.parquet")


def _doctor(folder: Path) -> object:
    return examine(CohortOptions(features=folder / "f", labels=folder / "labels.csv"))


def _doctored(folder: Path) -> None:
    (folder / "f").mkdir()
    for number in range(12):
        np.savez(folder / "f" / f"s{number}.npz", features=write.features(3, 16))
    (folder / "labels.csv").write_text(LABELS)


def _audit(folder: Path) -> None:
    write_folder(
        folder / "a", {"native": [[9, 8]], "random": [[6, 6]] * 2}, ["A", "B"], ["tumour", None]
    )


def _opened(folder: Path) -> object:
    audit = StoredAudit.load(folder / "a")
    return audit.summary, audit.slides, list(audit.tiles()), recompute(audit, kappa=0.8)


def _trained(folder: Path) -> None:
    backbones.save(model(), folder / "m", classes=["a", "b"], n_cap=9)


def _foreign() -> dict[str, torch.Tensor]:
    return OFFICIAL["clam-sb"].state()


def _checkpoint(folder: Path) -> None:
    torch.save({"model": _foreign(), "epoch": 3, "args": {"hidden": 8}}, folder / "c.pt")


def _legacy_checkpoint(folder: Path) -> None:
    torch.save(_foreign(), folder / "c.pt", _use_new_zipfile_serialization=False)


def _safetensors(folder: Path) -> None:
    from safetensors.torch import save_file

    save_file({k: v.contiguous() for k, v in _foreign().items()}, folder / "c.safetensors")


PARQUET = (*BYTES, odd_column, odd_column, odd_column)
SAFETENSORS = (*BYTES, inside_header, inside_header)
OTHER_FILES: dict[str, Subject] = {
    "labels .csv": Subject(
        "tables",
        lambda f: (f / "t.csv").write_text(LABELS),
        "t.csv",
        lambda f: read_slides(f / "t.csv"),
        TEXT,
    ),
    "labels .tsv": Subject(
        "tables",
        lambda f: (f / "t.tsv").write_text(LABELS.replace(",", "\t")),
        "t.tsv",
        lambda f: read_slides(f / "t.tsv"),
        TEXT,
    ),
    "labels .xlsx": Subject(
        "tables",
        lambda f: workbook(f / "t.xlsx", text_row(1, "slide_id", "label") + text_row(2, "a", "x")),
        "t.xlsx",
        lambda f: read_slides(f / "t.xlsx"),
        ZIP,
    ),
    "splits .csv": Subject(
        "tables",
        lambda f: (
            (f / "t.csv").write_text(LABELS),
            (f / "p.csv").write_text(",train,val,test\n0,s0,s1,s2\n1,s3,s4,\n"),
        ),
        "p.csv",
        lambda f: read_slides(f / "t.csv", splits=f / "p.csv"),
        TEXT,
    ),
    "doctor": Subject("tables", _doctored, "labels.csv", _doctor, TEXT),
    "audit .yaml": Subject(
        "YAML",
        lambda f: (f / "a.yaml").write_text(CONFIG),
        "a.yaml",
        lambda f: read_configuration(f / "a.yaml", {}, {}),
        TEXT,
    ),
    "manifest.json": Subject("JSON", _audit, "a/manifest.json", _opened, JSON),
    "summary.json": Subject("JSON", _audit, "a/summary.json", _opened, JSON),
    "backbone.json": Subject(
        "JSON", _trained, "m/backbone.json", lambda f: open_checkpoint(f / "m"), JSON
    ),
    "curves.parquet": Subject("Parquet", _audit, "a/curves.parquet", _opened, PARQUET),
    "slides.parquet": Subject("Parquet", _audit, "a/slides.parquet", _opened, PARQUET),
    "rankings.parquet": Subject("Parquet", _audit, "a/rankings.parquet", _opened, PARQUET),
    "scores .parquet": Subject(
        "Parquet", _scores, "s.parquet", lambda f: read_scores(f / "s.parquet"), PARQUET
    ),
    "marks .parquet": Subject(
        "Parquet", _marks, "s.parquet", lambda f: read_marks(f / "s.parquet"), PARQUET
    ),
    "weights.safetensors": Subject(
        "safetensors",
        _trained,
        "m/weights.safetensors",
        lambda f: open_checkpoint(f / "m"),
        SAFETENSORS,
    ),
    "checkpoint .safetensors": Subject(
        "safetensors",
        _safetensors,
        "c.safetensors",
        lambda f: open_checkpoint(f / "c.safetensors"),
        SAFETENSORS,
    ),
    "checkpoint .pt": Subject(
        "checkpoints", _checkpoint, "c.pt", lambda f: open_checkpoint(f / "c.pt"), ZIP
    ),
    "old checkpoint .pt": Subject(
        "checkpoints", _legacy_checkpoint, "c.pt", lambda f: open_checkpoint(f / "c.pt")
    ),
}
