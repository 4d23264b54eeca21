"""Encode one slide: tissue, tiles, features, one file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foci.errors import SlideError
from foci.slides.encoders import Encoder
from foci.slides.encoding.record import EncodedSlide, EncodingRun, file_state
from foci.slides.find import FoundSlide
from foci.slides.image import SlideImage
from foci.slides.pictures import batched, tile_pictures
from foci.slides.tiling import lay_tiles, magnification
from foci.slides.trident import tile_geometry, write_trident


def encode_slide(
    found: FoundSlide, path: Path, encoder: Encoder, run: EncodingRun, batch: int
) -> EncodedSlide:
    """Encode the tissue tiles of one slide into a feature file.

    Args:
        found: The slide and its image.
        path: File to write.
        encoder: The tile encoder.
        run: Settings.
        batch: Tiles that are encoded together.

    Raises:
        SlideError: If the image cannot be read to the end, or holds no tissue.
    """
    state = file_state(found.path)
    with SlideImage(found.path, run.slide_mpp) as slide:
        grid = lay_tiles(slide, run.tiling)
        pictures = batched(tile_pictures(slide, grid), batch)
        features = np.concatenate([encoder.encode(tiles) for tiles in pictures])
        mpp = slide.known_mpp()
        encoded = EncodedSlide(
            slide_id=found.slide_id,
            path=str(found.path),
            how=found.how,
            tiles=len(grid),
            mpp=mpp,
            mpp_from=slide.mpp_from or "",
            **state,
        )
        size = slide.size
    if features.shape != (len(grid), encoder.width) or not np.isfinite(features).all():
        what = f"gave no {len(grid)} x {encoder.width} finite features"
        raise SlideError(found.path, f"the encoder {encoder.name} {what}", "check its weights")
    geometry = tile_geometry(
        tile=run.tiling.tile,
        side=grid.side,
        magnification=magnification(mpp),
        target_magnification=run.tiling.magnification,
        size=size,
    )
    write_trident(
        path,
        features,
        grid.coords,
        slide_id=found.slide_id,
        encoder=encoder.name,
        geometry={**geometry, **encoded.attributes(run)},
    )
    return encoded
