"""A project in CLAM's form goes from its folder to a comparison, with the documented commands."""

import json
import re
import shlex
from pathlib import Path

import pytest
from tools.site.tutorial import Step, steps

from tests.cli.invoke import Foci, Outcome
from tests.makers.clam_project import EXTRA, OVERLAPPING, make_clam_project
from tests.test_documents import blocks

PAGE = "docs/bring-your-model.md"
QUICK = {
    "doctor": (),
    "train": ("--epochs", "2", "--lr", "0.01", "--set", "d=16", "--set", "hidden=8"),
    "audit": ("--seeds", "0", "--random-orders", "2", "--set", "n_boot=50", "--k-max", "8",
              "--set", "recipe_settings.schedule.epochs=1",
              "--set", "recipe_settings.schedule.warmup=0"),
    "compare": (),
}  # fmt: skip
"""What keeps the test short; the commands themselves are those of the page."""
EACH = ", ".join(f"{case} (train and test)" for case in OVERLAPPING)


def commands() -> list[Step]:
    """All commands of the page's tab, in order, and the lines that it shows below them."""
    return steps("".join(f"```console\n{code}```\n" for code in blocks(PAGE, "console", "CLAM")))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_clam_project(tmp_path)
    (settings,) = blocks(PAGE, "yaml", "CLAM")
    (tmp_path / "cohort.yaml").write_text(settings)
    return tmp_path


def test_the_documented_commands_alone(foci: Foci, project: Path) -> None:
    done: dict[str, Outcome] = {}
    for step in commands():
        command = shlex.split(step.command.replace("\\\n", " "))[1:]
        outcome = foci(*command, *QUICK[command[0]])
        assert outcome.code == 0, (command, outcome.out, outcome.err)
        assert step.shown in outcome.out
        done[" ".join(command)] = outcome
    assert sum(bool(step.shown) for step in commands()) == 2
    doctor, clam, abmil, audit, _, compared, mapped = done.values()

    assert re.search(r"WARN\s+leakage\s+2 patients are in two splits:", doctor.out)
    outside = f"left out: {EXTRA} slides of splits_0.csv not in the label table"
    assert outside in " ".join(doctor.out.split())

    warning = (
        f"WARNING: patient overlap: 2 patients are in two splits ({EACH}), as --allow-patient-over"
    )
    for said in (clam.out, abmil.out, audit.out):
        assert warning in said
        assert f"note: {outside} (TCGA-09-0000-01Z-00-DX1, " in said
        assert "note: left out: 18 slides of normal, by --only-classes\n" in said
    assert (
        "splits: as in splits_0.csv\n"
        "  train: 16 slides of 16 patients (LUAD 8, LUSC 8)\n"
        "  val: 6 slides of 6 patients (LUAD 3, LUSC 3)\n"
        "  test: 16 slides of 16 patients (LUAD 8, LUSC 8)\n"
    ) in clam.out
    assert re.search(r"one epoch took .* s: about .* s for 1 more epoch; Ctrl-C keeps", clam.out)

    manifest = json.loads((project / "audits" / "clam-0" / "manifest.json").read_text())
    assert manifest["overlapping_patients"] == {case: ["train", "test"] for case in OVERLAPPING}
    assert manifest["classes"] == ["LUAD", "LUSC"]
    assert manifest["slides"]["audited"] == 16
    (alarm,) = [one for one in manifest["alarms"] if one["kind"] == "patient overlap"]
    touched = "2 of the 16 audited slides are of patients in another split as well"
    assert alarm["sentence"].startswith(touched)
    assert f"ALARM, patient overlap: {touched}" in audit.out
    report = (project / "audits" / "clam-0" / "report.html").read_text(encoding="utf-8")
    assert touched in report
    assert "patient overlap: 2 patients are in two splits" in report
    notes = json.loads((project / "models" / "clam-0" / "backbone.json").read_text())["notes"]
    assert any(note.startswith("patient overlap: 2 patients") for note in notes)

    assert "clam-0" in compared.out
    assert "abmil-0" in compared.out
    heat = (project / "maps" / "gradcam.csv").resolve()
    told = json.loads((project / "audits" / "gradcam-0" / "manifest.json").read_text())
    assert list(told["maps"]) == [str(heat)]
    assert told["settings"]["map"] == f"gradcam=from-file:{heat}"
    assert "the map 'gradcam' comes from gradcam.csv, not from the model" in mapped.out
    assert re.search(r"\ngradcam\s", mapped.out), "in the table, in native's place"
    assert not re.search(r"\bnative\b", mapped.out)
    for folder in ("models/clam-0", "audits/clam-0", "audits/gradcam-0"):
        assert (project / folder / "foci.log").read_text().splitlines()[-1].endswith(" finished")


COHORT = ("--labels", "dataset_csv/lung.csv", "--label-column", "oncotree_code",
          "--splits", "splits/task_2", "--fold", "1")  # fmt: skip


def test_without_the_option_overlapping_patients_are_listed_and_refused(
    foci: Foci, project: Path
) -> None:
    checked = foci("doctor", "features", *COHORT, "--exclude-class", "normal", "--json")
    assert checked.code == 1
    (leakage,) = [check for check in json.loads(checked.out) if check["name"] == "leakage"]
    assert leakage["status"] == "FAIL"
    assert leakage["items"] == [f"{case} (train and test)" for case in OVERLAPPING]
    assert leakage["fix"].endswith("or keep these patients: --allow-patient-overlap")
    refused = foci.refused("train", "abmil", "--features", "features", *COHORT, "--out", "m")
    assert refused == (
        f"foci: patient {OVERLAPPING[0]}: is in train and test (and 1 more patients); put "
        "all slides of a patient into one split, or split again by patient, or keep these "
        "patients: --allow-patient-overlap (foci doctor lists them)\n"
    )


def test_what_is_missing_is_named_as_it_is_typed(foci: Foci, project: Path) -> None:
    refused = foci("doctor", "features", "--labels", "dataset_csv/lung.csv", "--json")
    (labels,) = [check for check in json.loads(refused.out) if check["name"] == "labels"]
    assert labels["detail"].endswith(
        "has no column 'label' (its columns: case_id, slide_id, oncotree_code, age)"
    )
    assert labels["fix"].endswith("or name the label column with --label-column")
    third = foci("train", "abmil", "--features", "features", *COHORT, "--exclude-class", "norm",
                 "--out", "m")  # fmt: skip
    assert third.err == (
        "foci: --exclude-class norm: is no class of the label table (LUAD, LUSC, normal); write it "
        "as in the table\n"
    )


def test_a_model_of_two_classes_says_how_to_leave_out_the_third(foci: Foci, project: Path) -> None:
    both = (*COHORT, "--allow-patient-overlap")
    places = ("--features", "features", *both)
    model = ("--out", "m", *QUICK["train"])
    foci.done("train", "abmil", *places, "--exclude-class", "normal", *model)
    refused = foci.refused("audit", "--model", "m", *places, "--out", "a", *QUICK["audit"])
    assert "'normal', not one of LUAD, LUSC; " in refused
    assert refused.endswith("or leave it out: --exclude-class normal\n")
    assert not (project / "a").exists()
