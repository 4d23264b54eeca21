"""Breast: invasive ductal carcinoma (IDC) against the other subtypes of TCGA-BRCA."""

from __future__ import annotations

from foci.bags.tasks import gdc, published
from foci.bags.tasks.task import BuiltCohort, Source, Task

_FOLDERS = {"TCGA-BRCA_IDC": "IDC", "TCGA-BRCA_OTHERS": "other"}


def read(source: Source) -> BuiltCohort:
    """Folders of published features, or one GDC sample sheet or manifest per class.

    The project is the same for all subtypes and the sample sheet has no histology, so the class
    must be named.
    """
    if source.path.is_dir():
        return published.read(source, _FOLDERS)
    fix = (
        "give one table per class, IDC=PATH and other=PATH, "
        f"or the feature folders {' and '.join(_FOLDERS)}"
    )
    return gdc.read(source, {"TCGA-BRCA": None}, fix)


TASK = Task(
    "TCGA breast, invasive ductal carcinoma against other subtypes",
    classes=("IDC", "other"),
    counts=(724, 179, 223),
    stratify_by=("label",),
    read=read,
)
