"""Write requirements.lock: every package that FOCI runs with, at its pinned version, with its hash.

    python -m tools.lock

The hashes are those of the files that pip chooses on this platform. Torch is left out: its CPU
build comes from an index of its own, under the version of the build on PyPI and with other hashes.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
EXTRAS = "viewer,slides,plots,zarr"
FROM_ELSEWHERE = "torch"
HEAD = """\
# Packages that FOCI runs with, with SHA-256, for Python {python} on {system} {machine}.
# Install torch {torch} first: from the index of its CPU or CUDA builds, whose files differ. Then
#   pip install --require-hashes --no-deps -r requirements.lock
#   pip install --no-deps foci_mil-*.whl
# On another platform write the file again: python -m tools.lock
"""


def chosen() -> list[dict[str, str]]:
    """Name, version and SHA-256 of every package that pip would install here."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--report", str(report)]
        command += ["-c", str(ROOT / "constraints.txt"), f"{ROOT}[{EXTRAS}]"]
        subprocess.run(command, check=True)  # noqa: S603
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return [
        {
            "name": one["metadata"]["name"],
            "version": one["metadata"]["version"],
            "sha256": one["download_info"]["archive_info"]["hashes"]["sha256"],
        }
        for one in found
        if "archive_info" in one["download_info"]
    ]


def main() -> None:
    """Write the file; what torch alone needs is locked, too, and torch itself is named only."""
    packages = sorted(chosen(), key=lambda one: one["name"].lower())
    torch = next(one["version"] for one in packages if one["name"] == FROM_ELSEWHERE)
    lines = [
        f"{one['name']}=={one['version']} --hash=sha256:{one['sha256']}\n"
        for one in packages
        if one["name"] != FROM_ELSEWHERE
        and not one["name"].startswith(("nvidia", "cuda", "triton"))
    ]
    python = ".".join(platform.python_version_tuple()[:2])
    system, machine = platform.system(), platform.machine()
    head = HEAD.format(python=python, system=system, machine=machine, torch=torch.partition("+")[0])
    LOCK.write_text(head + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
