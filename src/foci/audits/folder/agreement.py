"""Record of the comparison with answers of the user's own code."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from foci.audits.records import Record

if TYPE_CHECKING:
    from foci.backbones.checkpoints import Agreement


class TriedRecord(Record):
    """One variant of a checkpoint: its options, and its largest difference from known answers."""

    options: dict[str, Any]
    difference: float


class AgreementRecord(Record):
    """Which options of a checkpoint were tried, and which agreed with known answers."""

    file: str
    kind: str
    slides: int
    tolerance: float
    taken: TriedRecord
    tried: list[TriedRecord]

    @classmethod
    def of(cls, agreement: Agreement) -> AgreementRecord:
        """The record of an agreement."""
        return cls.model_validate(asdict(agreement))
