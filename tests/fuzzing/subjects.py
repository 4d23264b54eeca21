"""The files that are damaged, by name: good ones, how they are damaged, and what reads them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numcodecs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from foci import backbones
from foci.audits import StoredAudit
from foci.audits.audit import recompute
from foci.audits.compare import compare
from foci.audits.settings import read_configuration
from foci.audits.truth import read_truth
from foci.backbones.checkpoints import open_checkpoint
from foci.bags import read_bag
from foci.bags.cohort import CohortOptions
from foci.bags.doctor import examine
from foci.bags.importers import read_slides
from foci.cli.commands.compare import comparison_text
from foci.cli.text import audit_text
from foci.exports import export
from foci.exports.tables import slides_to_export
from foci.rankings.from_file import read_scores
from foci.reports import write_comparison, write_report
from foci.reports.payload import to_json
from foci.slides.image import SlideImage
from foci.viewer.slides import Catalogue, cohort_of, slide_of
from tests.backbones.checkpoints.official_files import OFFICIAL
from tests.fuzzing.mutations import (
    BYTES,
    Mutation,
    colliding_keys,
    insert_token,
    inside_header,
    inside_zip,
    negative_bits,
    replace_value,
    wide_table,
)
from tests.fuzzing.odd_files import ODD_HDF5, odd_column
from tests.makers import features as write
from tests.makers.audits import model
from tests.makers.folders import write_folder
from tests.makers.slides import squares, write_slide
from tests.makers.workbooks import text_row, workbook

HDF5 = (*BYTES, *ODD_HDF5)
ZIP = (*BYTES, inside_zip, inside_zip, inside_zip)
TORCH = (*ZIP, colliding_keys, negative_bits)
TABLE = (*BYTES, insert_token, insert_token, insert_token, wide_table)
TEXT = (*BYTES, insert_token, insert_token, insert_token)
JSON = (*TEXT, replace_value, replace_value, replace_value, replace_value)
PARQUET = (*BYTES, odd_column, odd_column, odd_column)
SAFETENSORS = (*BYTES, inside_header, inside_header)
X, XY = write.features(40, 16), write.grid(40)


@dataclass(frozen=True)
class Subject:
    """A good file and its reader.

    Attributes:
        group: Kind of file, for the figures.
        make: Writes the good file, with what belongs beside it, into a folder.
        file: The one to damage, relative to the folder.
        read: Reads it out of the folder.
        mutations: Ways to damage it.
    """

    group: str
    make: Callable[[Path], object]
    file: str
    read: Callable[[Path], object]
    mutations: tuple[Mutation, ...] = tuple(BYTES)


# Feature files of every layout.


def bag(name: str) -> Callable[[Path], object]:
    return lambda folder: read_bag(folder / name, mpp=0.5)


def _hdf5(make: Callable[[Path], object], file: str = "s.h5", bag_file: str = "") -> Subject:
    return Subject("HDF5", make, file, bag(bag_file or file), HDF5)


def _clam(folder: Path) -> None:
    write.clam_h5(folder, "s", X, XY)


def _stamp(folder: Path) -> None:
    write.stamp(folder / "s.h5", X, XY, unit="um", tile_size_um=256.0, extractor="u")


def _slideflow(folder: Path) -> None:
    write.slideflow(folder / "s.pt", X, XY)


def _slide2vec(folder: Path) -> None:
    write.slide2vec(folder, "s", X, XY)


def _npz(folder: Path) -> None:
    np.savez(folder / "s.npz", features=X, coords=XY, patch_size_level0=256)


def _compressed_npz(folder: Path) -> None:
    np.savez_compressed(folder / "s.npz", features=X, coords=XY)


def _legacy(folder: Path) -> None:
    torch.save(torch.from_numpy(X), folder / "s.pt", _use_new_zipfile_serialization=False)


def _torchmil(folder: Path) -> None:
    for name, array in (("features", X), ("coords", XY)):
        (folder / name).mkdir()
        np.save(folder / name / "s.npy", array)


def _vectors(folder: Path) -> None:
    columns = {"features": X.tolist(), "x": XY[:, 0], "y": XY[:, 1]}
    pq.write_table(pa.table(columns), folder / "s.parquet")


def _zarr(file: str, version: int, mutations: tuple[Mutation, ...], **more: Any) -> Subject:
    def make(folder: Path) -> None:
        codec = "auto" if version == 3 else numcodecs.Blosc()
        write.wsidata(folder / "s.zarr", X, XY, version, compressors=codec, **more)

    return Subject("Zarr", make, f"s.zarr/{file}", bag("s.zarr"), mutations)


def _compressed(folder: Path) -> None:
    with h5py.File(folder / "s.h5", "w") as file:
        made = file.create_dataset("features", data=X, chunks=(8, 16), compression="gzip")
        made.attrs["encoder"] = "uni"
        file["coords"] = XY
        file["coords"].attrs["patch_size_level0"] = 256


FEATURE_FILES: dict[str, Subject] = {
    "trident .h5": _hdf5(lambda f: write.trident(f / "s.h5", X, XY)),
    "UNI2-h .h5": _hdf5(lambda f: write.uni2h(f / "s.h5", X, XY)),
    "CLAM .h5": _hdf5(_clam, "features/h5_files/s.h5"),
    "CLAM patches": _hdf5(_clam, "patches/s.h5", "features/h5_files/s.h5"),
    "STAMP .h5": _hdf5(_stamp),
    "compressed .h5": _hdf5(_compressed),
    "AnnData": _hdf5(lambda f: write.anndata(f / "s.h5ad", X, XY), "s.h5ad"),
    ".parquet": Subject("Parquet", _vectors, "s.parquet", bag("s.parquet"), PARQUET),
    "Zarr 3": _zarr("tables/uni_tiles/X/zarr.json", 3, JSON),
    "Zarr 2": _zarr("tables/uni_tiles/X/.zarray", 2, JSON),
    "Zarr table": _zarr("tables/uni_tiles/zarr.json", 3, JSON),
    "Zarr chunk": _zarr("tables/uni_tiles/X/c/0/0", 3, BYTES),
    "Zarr shard": _zarr("tables/uni_tiles/X/c/0/0", 3, BYTES, shards=(10, 8)),
    "Blosc chunk": _zarr("tables/uni_tiles/X/0.0", 2, BYTES),
    "slide2vec .pt": Subject(
        ".pt features", _slide2vec, "tile_embeddings/s.pt", bag("tile_embeddings/s.pt"), TORCH
    ),
    "slide2vec settings": Subject(
        "JSON", _slide2vec, "tile_embeddings/s.meta.json", bag("tile_embeddings/s.pt"), JSON
    ),
    "slide2vec tiles": Subject(
        "NumPy", _slide2vec, "tiles/s.coordinates.npz", bag("tile_embeddings/s.pt"), ZIP
    ),
    "CLAM .pt": Subject(
        ".pt features",
        lambda f: write.clam_pt(f, "s", X),
        "features/pt_files/s.pt",
        bag("features/pt_files/s.pt"),
        TORCH,
    ),
    "old .pt": Subject(".pt features", _legacy, "s.pt", bag("s.pt")),
    "NumPy in .pt": Subject(
        ".pt features", lambda f: torch.save(X, f / "s.pt"), "s.pt", bag("s.pt"), TORCH
    ),
    "slideflow .pt": Subject(".pt features", _slideflow, "s.pt", bag("s.pt"), TORCH),
    "slideflow index": Subject("NumPy", _slideflow, "s.index.npz", bag("s.pt"), ZIP),
    "slideflow config": Subject("JSON", _slideflow, "bags_config.json", bag("s.pt"), JSON),
    ".npz": Subject("NumPy", _npz, "s.npz", bag("s.npz"), ZIP),
    "compressed .npz": Subject("NumPy", _compressed_npz, "s.npz", bag("s.npz"), ZIP),
    ".npy": Subject("NumPy", _torchmil, "features/s.npy", bag("features/s.npy")),
    ".npy coordinates": Subject("NumPy", _torchmil, "coords/s.npy", bag("features/s.npy")),
}


# Tables, settings, audit folders, model folders and checkpoints.


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


def _tiles(column: str, values: list[Any]) -> Callable[[Path], None]:
    columns = {"slide_id": ["a"] * 6, "tile": list(range(6)), column: values}
    return lambda folder: pq.write_table(pa.table(columns), folder / "s.parquet")


def _doctor(folder: Path) -> object:
    return examine(CohortOptions(features=folder / "f", labels=folder / "labels.csv"))


def _doctored(folder: Path) -> None:
    (folder / "f").mkdir()
    for number in range(12):
        np.savez(folder / "f" / f"s{number}.npz", features=write.features(3, 16))
    (folder / "labels.csv").write_text(LABELS)


SHOWN = {"a", "b", "report.html", "comparison.html", "exports"}


def _audit(folder: Path) -> None:
    write_folder(
        folder / "a", {"native": [[9, 8]], "random": [[6, 6]] * 2}, ["A", "B"], ["tumour", None]
    )


def _opened(folder: Path) -> object:
    audit = StoredAudit.load(folder / "a")
    return audit.summary, audit.slides, list(audit.tiles()), recompute(audit, kappa=0.8)


def _audits(folder: Path) -> None:
    _audit(folder)
    write_folder(folder / "b", {"native": [[5, 8]], "random": [[7, 6]]}, ["A", "B"], [None] * 2)


def _shown(folder: Path) -> object:
    """What ``report``, ``compare``, ``export`` and ``view`` do with an audit of somebody else."""
    audit = StoredAudit.load(folder / "a", accept_changed=True)
    audit_text(audit)
    write_report(audit, folder / "report.html")
    both = [audit, StoredAudit.load(folder / "b")]
    comparison_text(compare(both))
    write_comparison(both, folder / "comparison.html")
    export(audit, folder / "exports", ["csv", "geojson"], slides_to_export(audit))
    catalogue = Catalogue(audit)
    numbers = range(len(audit.curves.slide_ids))
    shown = [to_json(cohort_of(catalogue)), *(to_json(slide_of(catalogue, n)) for n in numbers)]
    outside = {path.name for path in folder.iterdir()} - SHOWN
    if outside:
        raise AssertionError(f"wrote {outside}")
    return shown


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


def _labels(
    name: str, make: Callable[[Path], object], mutations: tuple[Mutation, ...] = TABLE
) -> Subject:
    return Subject("tables", make, name, lambda f: read_slides(f / name), mutations)


def _slide(folder: Path) -> object:
    with SlideImage(folder / "s.tif") as slide:
        return slide.read(slide.bounds, (32, 24))


def _opens(name: str) -> Callable[[Path], object]:
    return lambda folder: open_checkpoint(folder / name)


OTHER_FILES: dict[str, Subject] = {
    "labels .csv": _labels("t.csv", lambda f: (f / "t.csv").write_text(LABELS)),
    "labels .tsv": _labels("t.tsv", lambda f: (f / "t.tsv").write_text(LABELS.replace(",", "\t"))),
    "labels .xlsx": _labels(
        "t.xlsx",
        lambda f: workbook(f / "t.xlsx", text_row(1, "slide_id", "label") + text_row(2, "a", "x")),
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
        TABLE,
    ),
    "doctor": Subject("tables", _doctored, "labels.csv", _doctor, TABLE),
    "audit .yaml": Subject(
        "YAML",
        lambda f: (f / "a.yaml").write_text(CONFIG),
        "a.yaml",
        lambda f: read_configuration(f / "a.yaml", {}, {}),
        TEXT,
    ),
    "manifest.json": Subject("JSON", _audit, "a/manifest.json", _opened, JSON),
    "summary.json": Subject("JSON", _audit, "a/summary.json", _opened, JSON),
    "backbone.json": Subject("JSON", _trained, "m/backbone.json", _opens("m"), JSON),
    "curves.parquet": Subject("Parquet", _audit, "a/curves/part-00000.parquet", _opened, PARQUET),
    "slides.parquet": Subject("Parquet", _audit, "a/slides.parquet", _opened, PARQUET),
    "rankings.parquet": Subject(
        "Parquet", _audit, "a/rankings/part-00000.parquet", _opened, PARQUET
    ),
    **{
        f"{name} on pages": Subject("audits on pages", _audits, f"a/{name}", _shown, mutations)
        for name, mutations in (
            ("manifest.json", JSON),
            ("summary.json", JSON),
            ("curves/part-00000.parquet", PARQUET),
            ("slides.parquet", PARQUET),
            ("rankings/part-00000.parquet", PARQUET),
        )
    },
    "scores .parquet": Subject(
        "Parquet",
        _tiles("score", [0.5] * 6),
        "s.parquet",
        lambda f: read_scores(f / "s.parquet"),
        PARQUET,
    ),
    "marks .parquet": Subject(
        "Parquet",
        _tiles("witness", [True, False] * 3),
        "s.parquet",
        lambda f: read_truth(f / "s.parquet"),
        PARQUET,
    ),
    "weights.safetensors": Subject(
        "safetensors", _trained, "m/weights.safetensors", _opens("m"), SAFETENSORS
    ),
    "checkpoint .safetensors": Subject(
        "safetensors", _safetensors, "c.safetensors", _opens("c.safetensors"), SAFETENSORS
    ),
    "checkpoint .pt": Subject("checkpoints", _checkpoint, "c.pt", _opens("c.pt"), TORCH),
    "old checkpoint .pt": Subject("checkpoints", _legacy_checkpoint, "c.pt", _opens("c.pt")),
    "slide .tif": Subject(
        "slides",
        lambda f: write_slide(f / "s.tif", squares(4, 3, 64), mpp=0.5),
        "s.tif",
        _slide,
    ),
}

SUBJECTS: dict[str, Subject] = {**FEATURE_FILES, **OTHER_FILES}
