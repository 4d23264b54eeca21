"""A run that is killed at any point resumes and ends with the same bytes."""

import contextlib
import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.audits.folder import CURVES, parts_of
from foci.audits.jobs import RankingJob
from foci.audits.manifest import read_manifest
from foci.errors import FociError
from foci.progress import Sized, showing
from foci.rankings import EmbeddedBag
from tests.makers.audits import audit, content


class Killed(BaseException):
    """Stands for a killed process; no code catches it."""


@contextlib.contextmanager
def dies_if(killed: Callable[[Path, Path], bool]) -> Iterator[None]:
    """Kill the process when a file is about to be renamed and the function says so."""
    replace = Path.replace

    def checked(self: Path, target: Path) -> Path:
        if killed(self, Path(target)):
            raise Killed(target)
        return replace(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", checked)
        yield


def dies_at(write: int) -> contextlib.AbstractContextManager[None]:
    """Kill the process before the nth file, counted from 0."""
    numbers = itertools.count()
    return dies_if(lambda _, target: next(numbers) == write)


def dies_before(part: str) -> contextlib.AbstractContextManager[None]:
    """Kill the process before this file, named with its folder."""
    return dies_if(lambda _, target: f"{target.parent.name}/{target.name}" == part)


def without_places(found: dict[str, object]) -> dict[str, object]:
    """Drop the key, which differs between two folders because of the times of their files."""
    manifest = dict(found["manifest.json"])  # type: ignore[call-overload]
    decided = {k: v for k, v in manifest.pop("run_inputs").items() if k != "feature files"}
    manifest.pop("key")
    return {**found, "manifest.json": {**manifest, "run_inputs": decided}}


def test_killed_before_every_single_write(files: Path, audited: StoredAudit) -> None:
    met: set[tuple[str, bool, bool]] = set()

    def first_time(written: Path, target: Path) -> bool:
        """Whether this file, or a manifest that says so much, is written for the first time."""
        text, before = written.read_bytes(), len(met)
        met.add((str(target), b'"status": "complete"' in text, b'"threads"' in text))
        return len(met) > before

    with dies_if(first_time):
        for _ in range(100):
            try:
                audit(files)
            except Killed:
                with pytest.raises(FociError):
                    StoredAudit.load(files / "out")
            else:
                break
    # manifest; one epoch, weights, facts; manifest with the threads; 3 shards of 5 files; slides;
    # summary; 7 CSV; manifest
    assert len(met) == 1 + 3 + 1 + 15 + 1 + 1 + 7 + 1
    assert without_places(content(files / "out")) == without_places(content(audited.folder))
    assert not (files / "out" / "parts").exists()


def test_two_workers_write_the_audit_of_one(files: Path) -> None:
    found = []
    for number in (1, 2):
        done = audit(files, f"by-{number}", workers=number)
        bytes_of = without_places(content(done.folder))
        bytes_of["manifest.json"].pop("threads")  # type: ignore[attr-defined]
        found.append(bytes_of)
    assert found[0] == found[1]
    assert read_manifest(files / "by-2").threads == 1


def dying(items: Sized[int], what: str) -> Iterator[int]:
    """A progress bar that kills its process after the third slide."""
    for number, item in enumerate(items):
        yield item
        if what == "revealing slides" and number == 2:
            os.kill(os.getpid(), signal.SIGKILL)


def dies_with_two_workers(files: Path) -> None:
    with showing(dying):
        audit(files, workers=2)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed by a signal")
def test_killed_with_two_workers(files: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(
        target=dies_with_two_workers, args=(files,)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert read_manifest(files / "out").status != "complete"
    audit(files, workers=2)
    audit(files, "whole", workers=2)
    found, whole = (without_places(content(files / name)) for name in ("out", "whole"))
    assert found == whole


def test_only_what_is_missing_is_computed(
    files: Path,
    audited: StoredAudit,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with dies_before("parts/00001.part"), pytest.raises(Killed):
        audit(files)
    assert sorted(path.name for path in (files / "out" / "parts").iterdir()) == [
        "00000.means", "00000.part", "00001.means",
    ]  # fmt: skip
    assert [path.name for path in parts_of(files / "out", CURVES)] == [
        "part-00000.parquet", "part-00001.parquet",
    ]  # fmt: skip
    ranked: list[tuple[str, str]] = []
    rank = RankingJob.rank

    def watched(self: RankingJob, bag: EmbeddedBag) -> object:
        ranked.append((bag.slide_id, self.column))
        return rank(self, bag)

    monkeypatch.setattr(RankingJob, "rank", watched)
    monkeypatch.setattr("foci.selectors.fit", lambda *a, **k: pytest.fail("fitted again"))
    caplog.clear()
    audit(files)
    columns = ("native", "selector-0", "random")
    assert ranked == [(slide, column) for slide in ("s11", "s12", "s13") for column in columns]
    assert caplog.messages[1:3] == [
        f"{files / 'out'}: resuming with what is there",
        "note: no training slide had class b as target: scores for it are untrained",
    ]
    assert without_places(content(files / "out")) == without_places(content(audited.folder))


def test_a_skipped_slide_stays_skipped(files: Path) -> None:
    for name in ("s09", "s10", "s12"):
        (files / "features" / f"{name}.h5").write_bytes(b"cut")
    quick = {"rankings": ("native", "random")}
    whole = content(audit(files, "whole", quick).folder)
    for write in (2, 4, 7):
        with dies_at(write), pytest.raises(Killed):
            audit(files, f"out{write}", quick)
        found = audit(files, f"out{write}", quick)
        assert content(found.folder) == whole
        assert [s.slide_id for s in found.skipped] == ["s09", "s10", "s12"]


def test_other_software_does_not_go_on(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {"rankings": ("native",)}
    with dies_at(2), pytest.raises(Killed):
        audit(files, changes=quick)
    monkeypatch.setattr("torch.__version__", "1.0")
    with pytest.raises(
        FociError, match=r"started with torch 2\..*, this is 1\.0; resume it with 2\."
    ):
        audit(files, changes=quick)


def test_features_that_changed_meanwhile_are_noticed(files: Path) -> None:
    quick = {"rankings": ("native", "random")}
    with dies_before("parts/00001.part"), pytest.raises(Killed):
        audit(files, changes=quick)
    parts_of(files / "out", CURVES)[0].write_bytes(b"damaged")
    path = files / "features" / "s09.h5"
    stamp = path.stat()
    other = bytearray(path.read_bytes())
    place = bytes(other).index(b"\x3f")  # the high byte of some float32 near 1
    other[place] ^= 0x80  # its sign
    path.write_bytes(bytes(other))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(FociError, match="s09: has other features than when the audit started"):
        audit(files, changes=quick)
