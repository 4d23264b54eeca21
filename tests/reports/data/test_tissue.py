"""Pictures of slides on the page: the most interesting first, within the page's size."""

import base64
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from foci.audits import StoredAudit
from foci.reports import write_report
from foci.reports.payload import PICTURE_BYTES, payload, to_json
from foci.slides.image import Box
from foci.slides.thumbnails import _INDEX, FOLDER, INDEX, Thumbnail
from tests.makers.synthetic import Plan, make
from tests.reports.test_report import data_of

BOX = Box(1024, 512, 48 * 256, 40 * 256)


def picture(audit: StoredAudit, quality: int) -> None:
    """Give every slide a noisy thumbnail, as large as thumbnails get."""
    folder = audit.folder / FOLDER
    folder.mkdir()
    rng = np.random.default_rng(0)
    index = {}
    for number, slide in enumerate(audit.slides):
        noise = Image.fromarray(rng.integers(0, 256, size=(427, 512, 3), dtype=np.uint8))
        noise.save(folder / f"{number}.jpg", quality=quality)
        index[slide.slide_id] = Thumbnail(
            file=f"{number}.jpg", image=Path("x.svs"), how="name", box=BOX, mpp=0.5
        )
    (folder / INDEX).write_bytes(_INDEX.dump_json(index))


@pytest.fixture(scope="module")
def pictured(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    audit = make(tmp_path_factory.mktemp("pictured"), Plan(n_slides=8, k_max=40))
    picture(audit, 50)
    return audit


def test_a_small_audit_shows_every_slide_that_has_positions(pictured: StoredAudit) -> None:
    data = payload(pictured, pictured.summary, pictured.manifest.settings)
    shown = {row for row, detail in data.details.items() if detail.tissue is not None}
    assert shown == {row for row, detail in data.details.items() if detail.placement is not None}
    first = data.details["0"].tissue
    assert first is not None
    assert first.box == BOX
    stored = (pictured.folder / FOLDER / "0.jpg").read_bytes()
    assert base64.b64decode(first.jpeg) == stored


def test_without_room_the_most_interesting_slides_keep_theirs(pictured: StoredAudit) -> None:
    own = (pictured, pictured.summary, pictured.manifest.settings)
    full = payload(*own)
    size = len(full.details["0"].tissue.jpeg)  # type: ignore[union-attr]
    data = payload(*own, picture_limit=4 * size)
    assert len(to_json(data)) < len(to_json(full)) - 2 * size
    shown = [row for row, detail in data.details.items() if detail.tissue is not None]
    assert 0 < len(shown) <= 4
    assert data.details.keys() == full.details.keys(), "curves keep their room"
    assert str(pictured.measured().hardest_first[0]) in shown


def test_a_large_report_with_pictures_stays_below_six_megabytes(tmp_path: Path) -> None:
    large = make(tmp_path, Plan(n_slides=200, n_tiles=1024, random_orders=2))
    picture(large, 40)
    page = write_report(large)
    assert page.stat().st_size < 6_000_000
    details = data_of(page)["details"]
    pictures = [len(d["tissue"]["jpeg"]) for d in details.values() if d["tissue"]]
    assert sum(pictures) > PICTURE_BYTES * 0.9, "noise fills the room"
    assert len(details) == 200, "and takes none from the curves"
