"""Joint cell: what training the classifier together with the selector costs the classifier."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from foci.audits.analysis.selected_only import split_scores
from foci.audits.setup.preflight import for_backbone
from foci.audits.setup.splits import ready_to_fit
from foci.files.atomic import write_whole
from foci.progress import silent
from foci.selectors.fitting.joint import train_jointly
from foci.studies.cells.inputs import open_model
from foci.studies.plan.cells import Cell
from foci.studies.plan.expand import audit_settings
from foci.studies.plan.study import Study

RESULT = "result.json"

Scores = dict[str, float | None]
"""``auc`` (None where a class is absent), ``accuracy`` and ``loss``, on the validation slides."""


class JointResult(BaseModel):
    """Scores on the validation slides while classifier and selector are trained together.

    Attributes:
        before: Of the classifier as it was trained.
        epochs: After every epoch of joint training.
    """

    model_config = ConfigDict(frozen=True)

    before: Scores
    epochs: tuple[Scores, ...]

    @classmethod
    def read(cls, folder: Path) -> JointResult:
        """The result of a finished joint cell."""
        return cls.model_validate_json((folder / RESULT).read_bytes())


def joint(study: Study, cell: Cell, model: Path, out: Path, device: str) -> None:
    """Train a copy of a classifier with its selector, and write :class:`JointResult`."""
    sources = open_model(study, cell, model, device)
    slides = for_backbone(sources.cohort, sources.backbone)
    done = train_jointly(
        sources.backbone,
        ready_to_fit(slides, study.cohorts[cell.cohort].split_seed, silent),
        audit_settings(study, cell).plan,
        seed=cell.seed,
        score=split_scores,
        epochs=cell.epochs,
    )
    sources.model_files.check("the joint training")
    result = JointResult(before=done.before, epochs=tuple(done.epochs))
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / RESULT, result.model_dump_json(indent=1) + "\n")
