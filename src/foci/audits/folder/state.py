"""Check whether an audit folder is new, begun or finished, and lock it for one run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from foci.audits.folder.damage import lost_file, read_model
from foci.audits.folder.manifest import ManifestHead
from foci.audits.folder.names import FORMAT, MANIFEST
from foci.audits.folder.removal import check_no_links, clear, remove_locks
from foci.audits.folder.run_key import first_difference
from foci.errors import FociError
from foci.files.atomic import TEMPORARY, sweep
from foci.files.digest import digest
from foci.files.hashes import check_format
from foci.files.lock import LOCK, alone_in

State = Literal["new", "begun", "finished"]
_REDO = "give --force to redo it, or another --out"


def state_of(
    folder: Path, inputs: Mapping[str, Any], versions: Mapping[str, str], *, force: bool
) -> State:
    """Whether a folder is new, begun or finished for this audit; refuse to mix two audits.

    Args:
        folder: The audit folder, existing or not.
        inputs: What decides the numbers, see :func:`foci.audits.folder.run_key.run_inputs`.
        versions: Software versions, and the device.
        force: Treat the folder as new, even if it holds an audit.

    Raises:
        FociError: If the folder holds another audit or other files, or cannot be resumed.
    """
    head = _manifest(folder)
    if head is None or force:
        return "new"
    check_format(folder / MANIFEST, {"format": head.format}, FORMAT, _REDO)
    if head.key != digest(inputs):
        difference = first_difference(head.run_inputs, inputs)
        raise FociError(folder, f"holds an audit with {difference}", _REDO)
    if head.status == "complete":
        gone = lost_file(folder, head.files)
        if gone is not None:
            raise FociError(folder, f"holds an audit without its {gone}", "give --force")
        return "finished"
    for name, version in versions.items():
        begun = head.versions.get(name)
        if begun != version:
            what = f"holds an audit that was begun with {name} {begun}, this is {version}"
            raise FociError(folder, what, f"go on with {begun}, or {_REDO}")
    return "begun"


@contextlib.contextmanager
def entered(
    folder: Path, inputs: Mapping[str, Any], versions: Mapping[str, str], *, force: bool
) -> Iterator[State]:
    """Create, lock and clean up a folder for one run; yields its state, see :func:`state_of`."""
    state_of(folder, inputs, versions, force=force)  # raises before anything is changed
    folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder):
        state = state_of(folder, inputs, versions, force=force)
        check_no_links(folder)
        if state == "new":
            clear(folder)
        tidy(folder)
        yield state


def tidy(folder: Path) -> None:
    """Remove what killed runs and reports left in a folder that is locked."""
    sweep(folder, deep=True)
    remove_locks(folder)


def _manifest(folder: Path) -> ManifestHead | None:
    """Read the head of the folder's manifest; None if a new audit may begin there."""
    if not folder.exists():
        return None
    if not folder.is_dir():
        raise FociError(folder, "is a file", "choose another --out")
    path = folder / MANIFEST
    if not path.is_file():
        names = (entry.name for entry in folder.iterdir())
        if all(name == LOCK or name.startswith(TEMPORARY) for name in names):
            return None
        raise FociError(folder, "is not empty and holds no audit", "choose another --out")
    with contextlib.suppress(FociError):
        head = read_model(path, ManifestHead)
        if head.key:
            return head
    raise FociError(path, "is not the manifest of an audit", "choose another --out")
