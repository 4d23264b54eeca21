"""Reading tiles for an encoder against the bare OpenSlide loop; GeoJSON of 20,000 tiles.

The bare loop reads the same regions from the same level with ``read_region``, one after the
other, and converts them to RGB. ``--data SLIDE`` takes a slide of your own; else two are painted.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import openslide

from foci.audits import AuditedSlide, RankedTiles
from foci.demo.folder import Parameters
from foci.demo.painting import looks, write_slide
from foci.exports.tables import RankedColumn, RankedSlide, feature_collection, to_text
from foci.slides.image import SlideImage
from foci.slides.tiling import TileGrid, TilingSettings, lay_tiles, tile_pictures
from timing import alternately


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, help="a slide to read instead of painted ones")
    given = parser.parse_args().data
    with tempfile.TemporaryDirectory() as folder:
        for path in [given] if given else painted(Path(folder)):
            compare(path)
    geojson()


def compare(path: Path) -> None:
    """Time both ways over the same tiles."""
    with SlideImage(path) as slide:
        grid = lay_tiles(slide, TilingSettings())

    def bare() -> None:
        with openslide.OpenSlide(path) as opened:
            level = opened.get_best_level_for_downsample(grid.side / grid.pixels * 1.001)
            side = round(grid.side / opened.level_downsamples[level])
            for x, y in grid.coords.tolist():
                np.asarray(opened.read_region((x, y), level, (side, side)).convert("RGB"))

    def ours() -> None:
        with SlideImage(path) as slide:
            assert sum(1 for _ in tile_pictures(slide, grid)) == len(grid)

    def tiled() -> TileGrid:
        with SlideImage(path) as slide:
            return lay_tiles(slide, TilingSettings())

    slow, fast = alternately(bare, ours, 7)
    laying, _ = alternately(tiled, tiled, 3)
    print(f"{path.name}: {len(grid)} tiles of {grid.side} px at level 0")
    print(f"  bare OpenSlide loop    {slow / len(grid) * 1e3:8.2f} ms per tile")
    print(f"  tiles for the encoder  {fast / len(grid) * 1e3:8.2f} ms per tile")
    print(f"  finding the tissue     {laying / len(grid) * 1e3:8.2f} ms per tile")
    print(f"  speed, reading         {slow / fast:8.2f}  (must be at least 0.80)")
    print(f"  speed, with tissue     {slow / (fast + laying):8.2f}")


def painted(folder: Path) -> list[Path]:
    """One slide of the demo at 20x and one at 40x."""
    parameters = Parameters(seed=0, slides=24, classes=2)
    palette, paths = parameters.palette(), []
    for slide in parameters.planted(parameters.plans()):
        path = folder / f"painted-{slide.plan.magnification}x.tiff"
        if path not in paths:
            write_slide(slide, looks(slide, palette), path)
            paths.append(path)
    return paths


def geojson(n: int = 20_000) -> None:
    """Write and open a file of ``n`` tiles."""
    corners = np.stack([np.arange(n) % 200, np.arange(n) // 200], axis=1) * 256
    tiles = RankedTiles("slide", np.arange(n), corners, {"native": np.arange(n) * 1.0})
    nothing = np.empty(0, np.int64), np.empty(0)
    column = RankedColumn(
        name="native", ranking="native", order=tiles.order("native"), revealed=np.full(n, 0.5),
        delta_p=np.full(n, 0.1), msk=None, decisive=None, why_none="", as_asked=True,
        keep=nothing, remove=nothing,
    )  # fmt: skip
    slide = AuditedSlide("slide", "patient", None, n, n, "px", 256)
    ranked = RankedSlide(slide, tiles, (column,), "A", 0.9, 0.9, None)
    start = time.perf_counter()
    text = to_text(feature_collection(ranked, column))
    middle = time.perf_counter()
    assert len(json.loads(text)["features"]) == n
    end = time.perf_counter()
    print(f"GeoJSON of {n} tiles: {len(text) / 1e6:.1f} MB, written in {middle - start:.2f} s")
    print(f"  opened in {end - middle:.2f} s  (must be below 2)")


if __name__ == "__main__":
    main()
