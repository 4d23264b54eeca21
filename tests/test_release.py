"""What a release says of itself: one version, one list of Pythons, no password."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from foci import __version__

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def workflow(name: str) -> dict[Any, Any]:
    (path,) = [path for path in WORKFLOWS if path.stem == name]
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def newest_heading() -> tuple[str, str]:
    """Version and date of the first heading of the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", text, flags=re.MULTILINE)
    assert found is not None
    return found[1], found[2]


def test_package_citation_and_changelog_name_one_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    assert (CITATION["version"], newest_heading()[0]) == (__version__, __version__)


def test_the_citation_has_a_date_once_the_changelog_has_one() -> None:
    date = newest_heading()[1]
    assert str(CITATION.get("date-released", "unreleased")) == date


def test_the_citation_names_the_paper_and_its_authors() -> None:
    paper = CITATION["preferred-citation"]
    assert paper["title"] in (ROOT / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    assert [one["family-names"] for one in paper["authors"]] == [
        "Jung",
        "Choi",
        "Choi",
        "Oh",
        "Kim",
    ]
    assert CITATION["license"] in PROJECT
    assert all(word in PROJECT for word in CITATION["keywords"])


def test_every_python_that_is_promised_is_tested() -> None:
    promised = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
    assert workflow("ci")["jobs"]["test"]["strategy"]["matrix"]["python"] == promised
    assert f'requires-python = ">={promised[0]}"' in PROJECT
    assert f'target-version = "py{promised[0].replace(".", "")}"' in PROJECT


def test_a_release_is_tested_and_tried_before_it_is_sent() -> None:
    jobs = workflow("release")["jobs"]
    assert (jobs["publish"]["needs"], jobs["ci"]["needs"]) == ("ci", "version")
    assert jobs["ci"]["uses"] == "./.github/workflows/ci.yml"
    tried = [step.get("run") for step in workflow("ci")["jobs"]["wheel"]["steps"]]
    assert tried[-3:-1] == ["python dev.py build", "python tools/try_wheel.py dist/*.whl"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_hold_no_secret_and_only_publishing_may_sign(path: Path) -> None:
    assert "secrets." not in path.read_text(encoding="utf-8")
    found = workflow(path.stem)
    assert found["permissions"] == {"contents": "read"}
    signing = [name for name, job in found["jobs"].items() if "id-token" in str(job)]
    assert signing == (["publish", "site"] if path.stem == "release" else [])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_commands_that_exist(path: Path) -> None:
    known = re.findall(r"^python3 dev.py (\w+)", (ROOT / "dev.py").read_text(), flags=re.MULTILINE)
    asked = re.findall(r"python dev\.py (\w+)", path.read_text(encoding="utf-8"))
    assert set(asked) <= set(known)
    scripts = re.findall(r"python (tools/\S+\.py)", path.read_text(encoding="utf-8"))
    assert all((ROOT / script).is_file() for script in scripts)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    used = re.findall(r"uses: (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    foreign = [action for action in used if not action.startswith("./")]
    assert foreign
    for action in foreign:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action), action


def test_every_package_is_pinned_once_for_all_pythons() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w-]+==[\w.]+", pin)] == []
    names = [pin.split("==")[0].lower() for pin in pins]
    assert len(names) == len(set(names))


def test_the_wheel_holds_source_templates_and_built_pages_only() -> None:
    from hatchling.builders.wheel import WheelBuilder

    held = {one.distribution_path for one in WheelBuilder(str(ROOT)).recurse_included_files()}
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    pages = {"reports": ("report.js", "report.css"), "viewer": ("viewer.js", "viewer.css")}
    built = {f"foci/{p}/page/bundle/{name}" for p, names in pages.items() for name in names}
    templates = ("base", "comparison", "parts", "report", "study")
    built.add("foci/viewer/page/bundle/LICENCES.txt")
    other = {
        "foci/py.typed", "foci/studies/published.csv", "foci/viewer/page/index.html",
        *(f"foci/reports/page/templates/{name}.html.j2" for name in templates),
    }  # fmt: skip
    assert held - built == source | other  # pages are built, or not yet


def test_the_lock_holds_hashes_of_the_pinned_versions() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    locked = [line for line in lines if not line.startswith("#")]
    form = re.compile(r"([\w-]+)==([\w.]+) --hash=sha256:[0-9a-f]{64}")
    pins = {name_of(m[1]): m[2] for line in locked if (m := form.fullmatch(line))}
    assert len(pins) == len(locked)
    tested = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    known = dict(line.split("==") for line in tested if not line.startswith("#"))
    versions = {name_of(name): version for name, version in known.items()}
    other = {name: version for name, version in pins.items() if versions.get(name) != version}
    assert other.keys() <= {"setuptools"}  # which only torch asks for
    needed = re.findall(r'^    "([\w-]+)>=', PROJECT.partition("[project.opt")[0], re.MULTILINE)
    assert {name_of(name) for name in needed} - {"torch"} <= pins.keys()


def name_of(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*-*.yml")),
    ids=lambda path: path.stem,
)
def test_issue_forms_have_what_the_host_asks_for(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"]
    assert form["description"]
    kinds = {field["type"] for field in form["body"]}
    assert kinds <= {"textarea", "input"}
    labels = [field["attributes"]["label"] for field in form["body"]]
    assert len(labels) == len(set(labels)) >= 3
