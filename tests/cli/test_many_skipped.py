"""More than 10 % of the slides skipped: said first, and the exit code is 3."""

from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.audits.jobs import deletion_counts, reveal_counts
from foci.audits.settings import AuditSettings
from foci.bags.bag import many_skipped
from foci.errors import FociError
from tests.cli.invoke import RUNS, Foci, short_run


def test_the_share_that_is_too_many() -> None:
    assert many_skipped(0, 0) is None
    assert many_skipped(10, 100) is None
    said = many_skipped(11, 100)
    assert said == "11 of 100 slides are skipped (11 %): the result may not stand for the cohort"


@pytest.mark.parametrize("command", RUNS)
@pytest.mark.parametrize("spoiled", [0, 1, 4])
def test_commands(foci: Foci, project: Path, command: str, spoiled: int) -> None:
    files = sorted((project / "features").iterdir())
    for file in files[:: max(1, len(files) // max(spoiled, 1))][:spoiled]:
        file.write_bytes(b"")
    table = project / "labels.csv"
    if command == "audit":  # of all slides, so that the share is that of the cohort
        table.write_text(table.read_text().replace(",train", ",test").replace(",val", ",test"))
    done = foci(*short_run(command, "out"))
    many = spoiled / len(files) > 0.1
    assert (done.code, done.err) == (3 if many else 0, "")
    assert done.out.count("skipped ") >= spoiled
    assert ("may not stand for the cohort" in done.out) == many
    if not many:
        return
    if command == "audit":
        assert done.out.index("warning: ") < done.out.index("Prediction view")
        note = StoredAudit.load(project / "out").manifest.notes[1]
        assert note.startswith(f"{spoiled} of {len(files)} slides to audit are skipped")
        assert foci(*short_run(command, "out")).code == 3
    else:
        assert done.out.startswith("warning: ")


def test_doctor(foci: Foci, project: Path) -> None:
    for file in sorted((project / "features").iterdir())[:3]:
        file.write_bytes(b"")
    done = foci("doctor", "features", "--labels", "labels.csv")
    first = next(line for line in done.out.splitlines() if "FAIL" in line)
    assert done.code == 1
    assert "skipped" in first


def test_a_k_max_far_beyond_every_bag_costs_nothing() -> None:
    settings = AuditSettings(k_max=10**9, rankings=("native", "random"))
    assert reveal_counts(settings, 3).tolist() == [1, 2, 3]
    assert deletion_counts(settings, 3, dense=True).tolist() == [1, 2]


@pytest.mark.parametrize("name", ["random_orders", "n_boot"])
def test_other_numbers_have_a_limit(name: str) -> None:
    from foci.configuration import configure

    with pytest.raises(FociError, match=rf"{name}: cannot be 10*; .*less than or equal to 10+"):
        configure(AuditSettings, {name: 10**9})
