"""What an audit of large slides costs: official presets, all tiles, default settings.

20 generated slides of 30,000 tiles x 1,024 features, and 2 of 100,000; ABMIL and CLAM-SB. Printed
are inferences per slide by part, as ``bench_audit`` counts them, the whole in plain forward passes,
the peak memory of the process, and the sizes of tables and report. Classifiers are trained briefly,
and selectors fitted, on small slides of the same kind; that is not part of the cost.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from pathlib import Path

import h5py
import numpy as np
import torch

from bench_audit import PARTS, SHORT, audited
from classifiers import created, fitted
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone
from foci.bags import Cohort
from foci.reports import write_report

WIDTH = 1024
FITTED = 6 * (1024,)


def main() -> None:
    """Print one row per classifier."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--slides", type=int, default=20)
    parser.add_argument("--tiles", type=int, default=30_000)
    parser.add_argument("--largest", type=int, default=2, help="slides of 100,000 tiles")
    parser.add_argument("--only", nargs="+", default=["abmil", "clam-sb"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes = [options.tiles] * options.slides + [100_000] * options.largest
    head = " ".join(f"{part:>9s}" for part in (*PARTS, "whole", "plain"))
    print(f"{'classifier':12s} {head}  peak memory, tables, report", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        cohort = generated(Path(folder), sizes)
        for name in options.only:
            row(name, cohort, Path(folder, name), sum(sizes) / options.tiles)


def row(name: str, cohort: Cohort, out: Path, n_slides: float) -> None:
    """Audit the cohort and print what each part cost; 100,000 tiles count as 3.3 slides."""
    model = briefly_trained(name)
    done, cells = audited(model, cohort, AuditSettings(recipe_settings=SHORT), out, n_slides)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report = write_report(done).stat().st_size / 1e6
    tables = sum(path.stat().st_size for path in out.glob("*.parquet")) / 1e6
    print(f"{name:12s} {cells}  {memory:.2f} GB, {tables:.1f} MB, {report:.2f} MB", flush=True)


def bag_of(rng: np.random.Generator, n: int, label: int) -> np.ndarray:
    """Noise, and on about two tiles in a hundred the direction of the class."""
    x = rng.standard_normal((n, WIDTH), dtype=np.float32)
    marked = rng.permutation(n)[: max(1, n // 50)]
    x[marked, label * 64 : (label + 1) * 64] += 2.0
    return x


def briefly_trained(name: str) -> Backbone:
    """An official preset that tells the classes apart, after some steps on small bags."""
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    model = created(f"{name}:official", WIDTH)
    return fitted(model, lambda label: torch.from_numpy(bag_of(rng, 128, label)), 300)


def generated(folder: Path, sizes: list[int]) -> Cohort:
    """Half-precision features on a grid, to audit and to fit on."""
    rng, lines = np.random.default_rng(0), ["slide_id,case_id,label,split"]
    (folder / "features").mkdir()
    for i, n in enumerate([*sizes, *FITTED]):
        x = bag_of(rng, n, i % 2)
        side = int(n**0.5) + 1
        coords = np.stack([np.arange(n) % side, np.arange(n) // side], axis=1) * 256
        with h5py.File(folder / "features" / f"s{i}.h5", "w") as file:
            file["features"] = x.astype(np.float16)
            file["coords"] = coords
            file["coords"].attrs["patch_size_level0"] = 256
        split = "test" if i < len(sizes) else "val" if i >= len(sizes) + 4 else "train"
        lines.append(f"s{i},c{i},{'ab'[i % 2]},{split}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return Cohort.read(folder / "features", folder / "labels.csv", keep=1)


if __name__ == "__main__":
    main()
