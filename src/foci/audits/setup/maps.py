"""Check the score files of an audit: somebody else's maps, among the rankings or as the map."""

from __future__ import annotations

from pathlib import Path

from foci.audits.settings import NATIVE, AuditSettings
from foci.bags import Cohort
from foci.errors import FociError
from foci.rankings.score_file import read_scores
from foci.words.plural import counted, some


def check_maps(cohort: Cohort, settings: AuditSettings) -> tuple[str, ...]:
    """Read every score file before the run; notes on the map, and on slides without scores.

    Raises:
        FociError: If a file cannot be read, or has scores of none of the slides to audit.
    """
    notes: list[str] = []
    for name, path in settings.map_files.items():
        if name == NATIVE:
            notes.append(
                f"the ranking 'native' is the map of {path.name}, not the model's own scores"
            )
        notes += _without_scores(path, cohort, settings)
    return tuple(notes)


def _without_scores(path: Path, cohort: Cohort, settings: AuditSettings) -> list[str]:
    file = read_scores(path)
    present = {slide.split for slide in cohort} - {None}
    audited = [slide for slide in cohort if not present or slide.split == settings.split]
    without = [slide.slide_id for slide in audited if file.named(slide.slide_id) is None]
    if len(without) == len(audited):
        what = f"has scores of none of the {counted(len(audited), 'slide')} to audit"
        first = f"(first slide: {without[0]}; first in the file: {next(iter(file.slides))})"
        raise FociError(path, f"{what} {first}", "use the slide names of the cohort")
    return [f"{path.name} has no scores of {some(without)}: not audited"] if without else []
