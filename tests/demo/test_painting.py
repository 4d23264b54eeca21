"""Painted slides: encoding them finds the tiles of the cohort."""

from pathlib import Path

import numpy as np
import pytest

from foci.bags import read_bag
from foci.demo import make
from foci.demo.folder import FEATURES, Parameters
from foci.demo.painting import DISTRACTOR, HARD_WITNESS, WITNESS, looks, tile_picture, write_slide
from foci.slides.image import Box, SlideImage
from foci.slides.tiling import TilingSettings, lay_tiles

PARAMETERS = Parameters(seed=0, slides=24, classes=2)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("demo") / "demo", slides=24)


@pytest.mark.parametrize("magnification", [20, 40])
def test_tiles_of_a_painted_slide_are_the_cohort_s(
    demo: Path, tmp_path: Path, magnification: int
) -> None:
    palette = PARAMETERS.palette()
    slides = PARAMETERS.planted(PARAMETERS.plans())
    slide = next(s for s in slides if s.plan.magnification == magnification)
    path, seen = tmp_path / "a.tiff", looks(slide, palette)
    write_slide(slide, seen, path)
    bag = read_bag(demo / FEATURES / f"{slide.plan.slide_id}.h5")
    with SlideImage(path) as image:
        assert image.size == slide.size
        assert image.mpp == pytest.approx(0.5 * 20 / magnification)
        grid = lay_tiles(image, TilingSettings())
        assert np.array_equal(grid.coords, bag.coords)
        assert grid.side == bag.patch_size
        for tile in range(0, len(grid), 40):
            box = Box(*map(int, grid.coords[tile]), grid.side, grid.side)
            assert (np.asarray(image.read(box, (256, 256))) == tile_picture(*seen[tile])).all()


def test_witnesses_show_the_class_and_distractors_a_hint() -> None:
    palette = PARAMETERS.palette()
    for slide in list(PARAMETERS.planted(PARAMETERS.plans()))[:8]:
        kinds, labels, glands, _ = np.array(looks(slide, palette)).T
        tissue, plan = slide.tissue, slide.plan
        assert np.array_equal(kinds, tissue.kind)
        assert (labels[tissue.witness] == plan.label).all()
        assert set(glands[tissue.witness]) == {HARD_WITNESS if plan.hard else WITNESS}
        assert (glands[tissue.distractor] == DISTRACTOR).all()
        assert len(set(labels[tissue.distractor])) == 1
        assert not glands[~tissue.witness & ~tissue.distractor].any()


def test_classes_look_different() -> None:
    a, b, c = (tile_picture(5, label, WITNESS, 0).astype(int) for label in range(3))
    assert min(np.abs(x - y).mean() for x, y in ((a, b), (b, c), (a, c))) > 5
