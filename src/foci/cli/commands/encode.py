"""``foci encode``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foci.cli.options import Device, SlideMpp, choose_device
from foci.cli.terminal import resumable, starting
from foci.errors import FociError
from foci.words import counted


def encode(
    slides: Annotated[Path, typer.Argument(help="Folder of whole-slide images, or one image.")],
    out: Annotated[Path, typer.Option(help="Folder for the features, in TRIDENT's layout.")],
    encoder: Annotated[str, typer.Option(help="uni2-h or toy (colours and edges; no weights).")],
    weights: Annotated[
        Path | None, typer.Option(help="Local file of the encoder's weights.")
    ] = None,
    mpp: Annotated[float, typer.Option(help="Micrometres per pixel of the tiles.")] = 0.5,
    tile: Annotated[int, typer.Option(help="Side of a tile in pixels.")] = 256,
    min_tissue: Annotated[float, typer.Option(help="Least share of tissue on a tile.")] = 0.25,
    slide_mpp: SlideMpp = None,
    batch: Annotated[int, typer.Option(min=1, help="Tiles encoded together.")] = 64,
    device: Device = "auto",
    force: Annotated[
        bool, typer.Option("--force", help="Encode again, also over other settings.")
    ] = False,
) -> None:
    """Turn whole-slide images into tile features: tissue, tiles, encoder.

    An interrupted run resumes when the same command is run again. A bad slide is listed and
    costs only itself.
    """
    starting("looking for slides")
    from foci.configuration import configure
    from foci.slides.encode import encode_slides
    from foci.slides.encoders import ENCODERS, EncoderOptions
    from foci.slides.find import every_image
    from foci.slides.tiling import TilingSettings

    tiling = configure(TilingSettings, {"tile": tile, "mpp": mpp, "min_tissue": min_tissue})
    found = every_image(slides)
    build = ENCODERS[encoder]
    ready = build(EncoderOptions(weights, "cpu" if encoder == "toy" else choose_device(device)))
    with resumable():
        done = encode_slides(
            found, out, ready, tiling, slide_mpp=slide_mpp, batch=batch, force=force
        )
    if not done.slides:
        raise FociError(slides, "holds no slide that could be encoded", "see the lines above")
    tiles = sum(slide.tiles for slide in done.slides)
    typer.echo(f"{counted(len(done.slides), 'slide')}, {counted(tiles, 'tile')} in {done.folder}")
