"""Install a wheel or an sdist into an empty environment and run the demo to its end.

    python tools/try_wheel.py dist/foci_mil-*.whl

The environment's own programs are the only ones on the PATH, so neither npm nor a compiler can be
found, and the working folder is empty, so no file of a clone can help. Needs nothing but Python.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HIDDEN = ("npm", "node", "cc", "gcc", "c++", "g++", "clang", "make")
"""Programs that must not be needed; finding one would make the trial worthless."""

EXPECTED = (
    "audits/transmil/report.html",
    "audits/abmil/report.html",
    "audits/acmil/report.html",
    "comparison.html",
)
"""Pages of a finished demo, each with the bundled script in it."""

FINDS = "import shutil, sys; print(*(name for name in sys.argv[1:] if shutil.which(name)))"


def main() -> int:
    """Install, run, and say what went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", type=Path, help="a wheel or an sdist")
    parser.add_argument("--number", type=int, default=240, help="slides of the demo")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foci-try-") as folder:
        trouble = attempt(given.package.resolve(), Path(folder), given.number)
    print(trouble or f"{given.package.name}: installed, and the demo ran to its end")
    return 1 if trouble else 0


def attempt(package: Path, folder: Path, number: int) -> str:
    """Make the environment in a folder and run the demo there; what went wrong, or nothing."""
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    work = folder / "work"
    work.mkdir()
    settings = {**os.environ, "PATH": str(programs)}
    settings.pop("PYTHONPATH", None)
    python = str(programs / "python")
    found = subprocess.check_output([python, "-c", FINDS, *HIDDEN], env=settings, text=True)
    if found.strip():
        return f"the empty environment finds {found.strip()}"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    steps = (
        (*pip, "-c", str(ROOT / "constraints.txt"), str(package)),
        (str(programs / "foci"), "demo", "out", "--number", str(number)),
    )
    for step in steps:
        if code := subprocess.call(step, cwd=work, env=settings):
            return f"{' '.join(step[:4])} ... ended with code {code}"
    lame = [name for name in EXPECTED if not _has_script(work / "out" / name)]
    return f"the demo's {', '.join(lame)} is missing or has no script" if lame else ""


def _has_script(page: Path) -> bool:
    return page.is_file() and "uPlot" in page.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
