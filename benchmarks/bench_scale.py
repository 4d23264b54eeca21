"""Does an audit stay flat? Its summary on 1,000 slides and on 100,000, and its cost per slide.

The slides of one shard are revealed and measured; the shard is then copied under new names, with a
patient per slide. ``python benchmarks/bench_scale.py FOLDER 1000 100000`` takes about five minutes,
and 4 GB in FOLDER, where the reports stay. Each number of slides runs in a process of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from foci import backbones
from foci.audits.audit import StoredAudit
from foci.audits.folder import CURVES, PARTS, RANKINGS, SUFFIXES, SUMMARY, TABLES, part_name
from foci.audits.jobs import ranking_jobs
from foci.audits.manifest import BackboneRecord, Manifest, write_manifest
from foci.audits.measure import Shard, mean_curves
from foci.audits.null_maps import draw_null_maps
from foci.audits.numbers import summarise
from foci.audits.reveal import ShardReveal, SlideReveal, n_shards, shard_size
from foci.audits.run_folder import Shards
from foci.audits.settings import AuditSettings
from foci.audits.tables import write_tables
from foci.bags import Bag, Slide
from foci.bags.store import BagStore
from foci.files.atomic import write_whole
from foci.reports import write_report
from foci.reveal import Revealer

TILES, WIDTH, CLASSES = 256, 64, ("benign", "tumour")
PLACES = np.stack(np.divmod(np.arange(TILES), 16), axis=1) * 256
SETTINGS = AuditSettings(rankings=("native", "evidence", "random"))


class Drawn(BagStore):
    """Bags that are drawn, each from its own seed."""

    def bag(self, slide: Slide) -> Bag:
        """A bag with a few tiles of its class."""
        rng = np.random.default_rng(int(slide.slide_id))
        x = rng.standard_normal((TILES, WIDTH), dtype=np.float32)
        x[: rng.integers(4, 40), 0] += 3 if slide.label == CLASSES[1] else -3
        return Bag(slide.slide_id, x, coords=PLACES, patch_size=256)


def make(folder: Path, n: int) -> float:
    """Write the shards of ``n`` slides; returns the processor time of one slide."""
    torch.manual_seed(0)
    model = backbones.create("abmil", d_in=WIDTH, n_classes=2, d=64, hidden=32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    size = shard_size(n, SETTINGS.block)
    slides = tuple(Slide(str(i), str(i), CLASSES[i % 2]) for i in range(size))
    store = Drawn()
    nulls = draw_null_maps(SETTINGS, Revealer(model, recheck=()), slides, store)
    shards = Shards(folder)
    (folder / PARTS).mkdir(parents=True)
    settings = SETTINGS.model_copy(update={"block": size})
    work = ShardReveal(
        slides, store, SlideReveal(model, settings, CLASSES), ranking_jobs(SETTINGS, {}, nulls),
        shards,
    )  # fmt: skip
    start = time.process_time()
    for _ in work.compute(0):
        pass
    spent = (time.process_time() - start) / size
    first = shards.receipt(0)
    for number in range(1, n_shards(n, SETTINGS.block)):
        names = range(number * size, min(n, (number + 1) * size))
        for table in SUFFIXES:
            copied = folder / part_name(table, 0), folder / part_name(table, number)
            if table in (RANKINGS, CURVES):
                under_names(*copied, names)
            else:
                os.link(*copied)
        os.link(shards.means_path(0), shards.means_path(number))
        own = [
            replace(slide, slide_id=str(name), case_id=str(name))
            for name, slide in zip(names, first.slides, strict=False)
        ]
        files = {
            name.replace("00000", f"{number:05d}"): known for name, known in first.files.items()
        }
        shards._write_receipt(number, own, files)
    record = BackboneRecord(
        architecture="abmil", parameters=1, fingerprint="f", score="native", notes=[]
    )
    write_manifest(
        folder,
        Manifest(
            format=1, status="complete", key="0", run_inputs={}, versions={}, name="abmil",
            settings=SETTINGS, sources={}, classes=list(CLASSES), split="test", backbone=record,
            started="2026-01-01", maps={}, overlapping_patients={},
        ),
    )  # fmt: skip
    return spent


def under_names(source: Path, copy: Path, names: Sequence[int]) -> None:
    """Copy a part of a table, its slides under other names."""
    with pq.ParquetFile(source) as file:
        groups = [file.read_row_group(place) for place in range(file.num_row_groups)]
    with pq.ParquetWriter(copy, groups[0].schema, use_dictionary=["slide_id"]) as writer:
        for group in groups:
            place = group.column_names.index("slide_id")
            old = group["slide_id"].to_pylist()
            new = pa.array([str(names[int(one)]) for one in old], group.schema.types[place])
            field = group.schema.field(place)
            writer.write_table(group.set_column(place, field, new), row_group_size=len(group))


def reduce(folder: Path, n: int) -> None:
    """What the end of an audit does, and what it costs."""
    base = peak_memory()
    start, shards = time.process_time(), Shards(folder)
    _, means = shards.finish(n_shards(n, SETTINGS.block), [str(i) for i in range(n)], [])
    audit = StoredAudit(folder)
    read = time.process_time()
    measured = replace(
        audit.joined(SETTINGS), mean_curves=mean_curves([Shard.read(path) for path in means])
    )
    joined = time.process_time()
    summary = summarise(measured, audit.curves, CLASSES, SETTINGS, [], 0)
    summed = time.process_time()
    write_tables(folder / TABLES, summary, measured, audit.slides, ())
    done = time.process_time()
    peak = peak_memory()
    write_whole(folder / SUMMARY, summary.to_json())
    report = write_report(StoredAudit.load(folder), folder.parent / f"report-{n}.html")
    reported = time.process_time() - done
    print(
        f"{n:>8,} slides: {done - start:6.1f} s (receipts {read - start:.1f}, joined "
        f"{joined - read:.1f}, summary {summed - joined:.1f}, tables {done - summed:.1f}), "
        f"{(done - start) / n * 1e3:.2f} ms per slide; memory {base:,.0f} MB before, "
        f"{peak:,.0f} MB at most; report {report.stat().st_size / 1e6:.1f} MB in {reported:.1f} s, "
        f"{peak_memory():,.0f} MB at most",
        flush=True,
    )


def peak_memory() -> float:
    """MB of this process at most; ``ru_maxrss`` would count the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1e3


def main() -> None:
    """Print a line per number of slides."""
    place = Path(sys.argv[1])
    for asked in map(int, sys.argv[2:] or ("1000", "100000")):
        n = asked - asked % shard_size(asked, SETTINGS.block)  # all shards are copies of one
        folder = place / f"audit-{n}"
        shutil.rmtree(folder, ignore_errors=True)
        spent = make(folder, n)
        print(f"{n:>8,} slides: {spent * 1e3:.1f} ms to reveal and measure each", flush=True)
        process = multiprocessing.get_context("spawn").Process(target=reduce, args=(folder, n))
        process.start()
        process.join()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
