"""Lung: adenocarcinoma (LUAD) against squamous cell carcinoma (LUSC), both of TCGA."""

from __future__ import annotations

from foci.bags.tasks import gdc, published
from foci.bags.tasks.task import BuiltCohort, Source, Task

_PROJECTS = {"TCGA-LUAD": "LUAD", "TCGA-LUSC": "LUSC"}


def read(source: Source) -> BuiltCohort:
    """Folders of published features, GDC sample sheets, or manifests with their class."""
    if source.path.is_dir():
        return published.read(source, _PROJECTS)
    fix = "give the sample sheet, or write LUAD=PATH or LUSC=PATH"
    return gdc.read(source, _PROJECTS, fix)


TASK = Task(
    "TCGA lung, LUAD against LUSC",
    classes=("LUAD", "LUSC"),
    counts=(729, 105, 209),
    stratify_by=("label",),
    read=read,
)
