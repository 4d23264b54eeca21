"""Flip single bits in everything that FOCI has written, and see whether a number changes silently.

``python -m tests.bit_flips 400 SEED`` flips 400 bits, ``tests/audits/test_bit_flips.py`` a few. A
flip is *noticed* if what reads the folder refuses it in one line, names it, or warns; it is
*harmless* if every result is the same: a damaged part of an unfinished run is computed again.
Logs and pages are for people and nothing is read from them, so that they are left out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from foci import backbones, selectors
from foci.audits import StoredAudit
from foci.backbones.training import TrainingRecipe
from foci.backbones.training.run import train_into
from foci.engines.base import InProcess
from foci.errors import FociError
from foci.files.hashes import digest
from foci.files.run_log import LOG
from foci.studies.plan import StudyFolder
from foci.studies.read import read_numbers
from foci.studies.run import CellWork, run_plan
from tests.makers.audits import audit, content, model
from tests.makers.cohorts import make_files, read
from tests.makers.fits import short
from tests.makers.studies import NARROW, make

SMALL_STUDY = {
    "seeds": [1], "backbones": {"abmil": NARROW["abmil"]}, "efficiency": {"repeats": 1},
    "sweeps": {
        "adaptive": {"recipes": ["paper-adaptive"]},
        "joint": {"epochs": 1},
    },
}  # fmt: skip


class Killed(BaseException):
    """Stands for a killed process; no code catches it."""


@contextlib.contextmanager
def killed_after(part: str) -> Iterator[None]:
    """End the block when a file of this name, with its folder, has been written."""
    replace = Path.replace

    def checked(self: Path, target: Path) -> Path:
        done = replace(self, target)
        if f"{Path(target).parent.name}/{Path(target).name}" == part:
            raise Killed
        return done

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr(Path, "replace", checked)
        yield


def _unfinished_audit(files: Path) -> None:
    with killed_after("parts/00001.part"):
        audit(files)


def _resumed_audit(files: Path) -> Any:
    audit(files)
    return content(files / "out")


def _opened_audit(files: Path) -> Any:
    found = StoredAudit.load(files / "out")
    curves = [list(own) for name in found.curves.rankings for own in found.curves.every_seed(name)]
    return digest([content(found.folder), found.summary.to_json(), curves, found.slides])


def _train(files: Path) -> Any:
    recipe, widths = TrainingRecipe(epochs=3), {"d": 16, "hidden": 8}
    train_into(files / "out", "abmil", read(files), recipe, widths=widths)
    return _model(files)


def _unfinished_training(files: Path) -> None:
    with killed_after("out/training.safetensors"):
        _train(files)


def _model(files: Path) -> Any:
    record = backbones.saved.read_record(files / "out").model_dump(exclude={"own_sha256"})
    for name in ("seconds", "history"):
        record.pop(name, None)
    return digest([record, _weights(backbones.load(files / "out"))])


def _fit(files: Path) -> Any:
    selectors.fit(model(), read(files), short("default", 3), out=files / "out")
    return _selector(files)


def _unfinished_fit(files: Path) -> None:
    with killed_after("out/fitting.safetensors"):
        _fit(files)


def _selector(files: Path) -> Any:
    found = selectors.load(files / "out", model())
    history = [dataclasses.asdict(epoch) for epoch in found.history]
    return digest([_weights(found.best.head), found.recipe.model_dump(), history, found.metadata])


def _weights(module: torch.nn.Module) -> str:
    return digest({name: value.tolist() for name, value in module.state_dict().items()})


def _study(files: Path) -> None:
    study = make(files / "out", "one", **SMALL_STUDY)
    plan = study.plan()
    tally = run_plan(study, plan, InProcess(CellWork.of(study, plan)))
    assert not tally.failed, tally.failed


def _numbers(files: Path) -> Any:
    """Every number of a study by its place; a cell that cannot be read is noticed."""
    found = str(read_numbers(StudyFolder(files / "out")))
    if "cannot be read: " in found:
        raise FociError("study", "a cell cannot be read", "run it again")
    return found


@dataclass(frozen=True)
class Subject:
    """Something that FOCI has written: how it is made, and what is read from it, or goes on."""

    make: Callable[[Path], Any]
    use: Callable[[Path], Any]


SUBJECTS = {
    "unfinished audit": Subject(_unfinished_audit, _resumed_audit),
    "finished audit": Subject(audit, _opened_audit),
    "unfinished training": Subject(_unfinished_training, _train),
    "model": Subject(_train, _model),
    "unfinished fit": Subject(_unfinished_fit, _fit),
    "selector": Subject(_fit, _selector),
    "study": Subject(_study, _numbers),
}


def flipped(content: bytes, bit: int) -> bytes:
    """The content with one bit changed."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


class Flips:
    """Flips bits in one subject, always beginning with the folder as it was made."""

    def __init__(self, name: str, folder: Path, seed: int) -> None:
        self.subject, self.draw = SUBJECTS[name], random.Random(f"{name}{seed}")
        self.files, self.kept = make_files(folder / "case"), folder / "kept"
        self.subject.make(self.files)
        shutil.copytree(self.files / "out", self.kept)
        self.whole = self.subject.use(self.files)
        known = {path.relative_to(self.kept) for path in self.kept.rglob("*") if path.is_file()}
        self.targets = sorted(
            path for path in known
            if path.name not in (LOG, "report.html") and path.parts[0] != "one"
        )  # fmt: skip

    def __call__(self) -> tuple[str, Path]:
        """Flip a bit of some file: ``"noticed"``, ``"harmless"`` or what changed, and the file."""
        target = self.draw.choice([path for path in self.targets if self._size(path)])
        self._restore()
        path = self.files / "out" / target
        path.write_bytes(flipped(path.read_bytes(), self.draw.randrange(8 * self._size(target))))
        with self._warnings() as warned:
            try:
                found = self.subject.use(self.files)
            except (FociError, OSError) as error:
                return ("noticed" if "\n" not in str(error) else f"several lines: {error}"), target
            except Exception as error:
                return f"escaped: {type(error).__name__}: {error}", target
        if found == self.whole:
            return "harmless", target
        return ("noticed" if warned else "SILENT"), target

    def _size(self, target: Path) -> int:
        return (self.kept / target).stat().st_size

    def _restore(self) -> None:
        """As it was made, with its times: of a study's feature files they belong to the plan."""
        shutil.rmtree(self.files / "out")
        shutil.copytree(self.kept, self.files / "out")

    @contextlib.contextmanager
    def _warnings(self) -> Iterator[list[str]]:
        found: list[str] = []
        handler = logging.Handler(logging.WARNING)
        handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
        logger = logging.getLogger("foci")
        logger.addHandler(handler)
        try:
            yield found
        finally:
            logger.removeHandler(handler)


def main(number: int, seed: int = 0) -> None:
    """Flip so many bits in all subjects, and print how they were met."""
    torch.set_num_threads(1)
    for place, name in enumerate(SUBJECTS):
        with tempfile.TemporaryDirectory() as folder:
            flips = Flips(name, Path(folder), seed)
            found = [flips() for _ in range(place, number, len(SUBJECTS))]
        counts = Counter(how if how in ("noticed", "harmless") else "WRONG" for how, _ in found)
        sys.stdout.write(f"{name:22s} {len(found):4d} flips in {len(flips.targets)} files: "
                         f"{dict(counts)}\n")  # fmt: skip
        for how, target in found:
            if how not in ("noticed", "harmless"):
                sys.stdout.write(f"    {target}: {how}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
