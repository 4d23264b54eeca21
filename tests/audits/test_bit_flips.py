"""Single bits flipped in everything that FOCI has written: noticed, or without any effect."""

from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.audits.folder import CURVES, MEASURED, RANKINGS, part_name
from foci.audits.jobs import RankingJob
from foci.rankings import EmbeddedBag
from tests.bit_flips import SUBJECTS, Flips, flipped, killed_after
from tests.makers.audits import audit, content

NUMBER = 6


@pytest.mark.parametrize("name", SUBJECTS)
def test_no_bit_changes_a_number_silently(name: str, tmp_path: Path) -> None:
    flips = Flips(name, tmp_path, 0)
    found = [flips() for _ in range(NUMBER)]
    assert [one for one in found if one[0] not in ("noticed", "harmless")] == []


@pytest.mark.parametrize("table", [None, RANKINGS, CURVES, MEASURED])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_damaged_part_is_computed_again_in_its_turn(
    audited: StoredAudit,
    files: Path,
    table: str | None,
    workers: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with killed_after("parts/00001.part"):
        audit(files)
    name = "parts/00000.part" if table is None else part_name(table, 0)  # the receipt, or a part
    path = files / "out" / name
    path.write_bytes(flipped(path.read_bytes(), 8 * (path.stat().st_size // 2) + 3))
    ranked: list[str] = []
    rank = RankingJob.rank

    def watched(self: RankingJob, bag: EmbeddedBag) -> object:
        ranked.append(bag.slide_id)
        return rank(self, bag)

    monkeypatch.setattr(RankingJob, "rank", watched)
    audit(files, workers=workers)
    if workers == 1:
        assert list(dict.fromkeys(ranked)) == ["s09", "s10", "s13"]  # blocks 0 and 2, in order
    found, whole = content(files / "out"), content(audited.folder)
    assert {k: v for k, v in found.items() if k != "manifest.json"} == {
        k: v for k, v in whole.items() if k != "manifest.json"
    }
