"""Put small pictures of the slides into an audit folder, for its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from foci.audits import StoredAudit
    from foci.bags import Cohort


def picture_slides(
    audit: StoredAudit, cohort: Cohort, slides: Path, slide_mpp: float | None
) -> None:
    """Write thumbnails of the audited slides that have an image; print those that have none.

    An image is named by ``slide_path`` in the cohort's table, or found in ``slides`` by name.
    """
    from foci.progress import track
    from foci.slides.find import find_images, match_images
    from foci.slides.thumbnails import write_thumbnails

    paths = {slide.slide_id: slide.slide_path for slide in cohort}
    wanted = [(slide.slide_id, paths.get(slide.slide_id)) for slide in audit.slides]
    search = match_images(wanted, find_images(slides))
    write_thumbnails(search, audit.folder, slide_mpp=slide_mpp, progress=track, say=typer.echo)
