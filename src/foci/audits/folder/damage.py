"""Files of an audit folder that may be missing or damaged."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from foci.errors import FociError

AGAIN = "run foci audit again with --force"


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what a missing or damaged file causes into one line that names it."""
    try:
        yield
    except FociError:
        raise
    except FileNotFoundError:
        raise FociError(path, "is missing", AGAIN) from None
    except (OSError, pa.ArrowException, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise FociError(path, f"cannot be read ({why})", AGAIN) from None


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object."""
    with readable(path):
        found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise FociError(path, "is damaged (no JSON object)", AGAIN)
    return found


def lost_file(folder: Path, manifest: Mapping[str, Any]) -> str | None:
    """The first file that a manifest names and the folder does not have."""
    names = manifest.get("files") or ()
    return next((name for name in names if not (folder / name).is_file()), None)
