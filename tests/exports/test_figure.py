"""Figures: tissue where the tiles are, formats, and equal bytes for equal input."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from foci.errors import SlideError
from foci.exports.figures import DPI, WIDTH, Tissue, draw, draw_curves, look, write_figure
from tests.exports.ranked_squares import COLUMNS, ORIGIN, SIDE, ranked, write_image
from tests.makers.slides import squares, write_slide


@pytest.fixture(scope="module")
def tissue(tmp_path_factory: pytest.TempPathFactory) -> Tissue:
    return look(ranked(), write_image(tmp_path_factory.mktemp("image")), None, pictures=True)


def test_crops_are_the_first_tiles_in_order(tissue: Tissue) -> None:
    shades = squares(COLUMNS, 3, 1)
    slide = ranked()
    for column in slide.columns:
        crops = tissue.crops[column.name]
        assert len(crops) == 8
        for at, crop in zip(column.order, crops, strict=False):
            assert (crop == shades[at // COLUMNS, at % COLUMNS]).all()


def test_the_overview_shows_every_tile_at_its_place(tissue: Tissue) -> None:
    assert tissue.overview is not None
    assert tissue.mpp == pytest.approx(0.5)
    assert tissue.origin == ORIGIN
    height, width = tissue.overview.shape[:2]
    shades = squares(COLUMNS, 3, 1)
    for at, corner in enumerate(ranked().corners):
        x, y = corner + SIDE // 2
        pixel = tissue.overview[
            int((y - tissue.box.y) / tissue.box.height * height),
            int((x - tissue.box.x) / tissue.box.width * width),
        ]
        assert np.abs(pixel.astype(int) - shades[at // COLUMNS, at % COLUMNS]).max() <= 1


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_equal_input_gives_equal_bytes(tissue: Tissue, tmp_path: Path, kind: str) -> None:
    files = [tmp_path / f"{n}.{kind}" for n in "ab"]
    for file in files:
        write_figure(ranked(), tissue, file, kind)
    assert files[0].read_bytes() == files[1].read_bytes()
    if kind == "png":
        with Image.open(files[0]) as image:
            assert image.width == round(WIDTH * DPI)
    if kind == "pdf":
        assert files[0].read_bytes().startswith(b"%PDF-")
    if kind == "svg":
        text = "".join(ElementTree.parse(files[0]).getroot().itertext())
        for said in (
            "native: first 9 tiles (MSK 3)",
            "κ never reached",
            "100 µm",
            "#1*",
            "Δp 0.01",
        ):
            assert said in text


def test_without_an_image_the_lattice_is_drawn(tmp_path: Path) -> None:
    bare = look(ranked(), None, None, pictures=True)
    figure = draw(ranked(), bare)
    assert len(figure.axes) == 2, "one panel per ranking, no crops"
    assert "No scale bar" in figure.get_supxlabel()


def test_a_ranking_without_deciding_tiles_outlines_none(tmp_path: Path) -> None:
    slide = ranked(9)
    columns = tuple(replace(one, order=one.order[:0]) for one in slide.columns)
    figure = draw(replace(slide, columns=columns), look(slide, None, None, pictures=True))
    assert [axes.get_title() for axes in figure.axes] == [
        "native: 4 deciding tiles",
        "selector-0: decision survives",
    ]
    for axes, column in zip(figure.axes, columns, strict=True):
        assert len(axes.collections) == 2, "the lattice and the annotated tile, no outline"
        assert axes.title.get_color() == column.colour


def test_without_positions_the_curves_are_drawn(tmp_path: Path) -> None:
    slide = ranked()
    figure = draw_curves(slide)
    keep, remove = figure.axes
    for axes, name in ((keep, "keep"), (remove, "remove")):
        drawn = {line.get_label(): line for line in axes.lines}
        for column, label in zip(slide.columns, LABELS, strict=True):
            counts, values = getattr(column, name)
            assert drawn[label].get_xdata().tolist() == counts.tolist()
            assert drawn[label].get_ydata().tolist() == values.tolist()
            assert drawn[label].get_color() == column.colour
    write_figure(slide, None, tmp_path / "a.pdf", "pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-")


LABELS = ("native: 4 deciding tiles", "selector-0: decision survives")


def test_a_slide_of_other_tiles_is_refused(tmp_path: Path) -> None:
    small = write_slide(tmp_path / "s.tiff", squares(2, 2, SIDE))
    with pytest.raises(SlideError, match="12 of 12 tiles lie outside the image"):
        look(ranked(), small, None, pictures=True)
