"""The paper's tasks from sample sheets, manifests, folders of features and PANDA's table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import NAMESPACE_DNS, uuid5

import pytest

from foci.bags import Slide
from foci.bags.bag import SlideRows
from foci.bags.cohort import check_leakage
from foci.bags.tasks import NOTE, TASKS, Source, build, parse_source
from foci.errors import FociError
from tests.bags import refused

OLD = ("Data Category", "Data Type", "Project ID", "Case ID", "Sample ID", "Sample Type")
NEW = (*OLD[:5], "Tissue Type", "Tumor Descriptor", "Specimen Type", "Preservation Method")


def barcode(case: int, slide: str = "01Z-00-DX1", site: str = "05") -> str:
    return f"TCGA-{site}-{case:04d}-{slide}"


def file_name(barcode: str, upper: bool = True) -> str:
    """A slide file as the GDC names it, ``<barcode>.<UUID>.svs``."""
    uuid = str(uuid5(NAMESPACE_DNS, barcode))
    return f"{barcode}.{uuid.upper() if upper else uuid}.svs"


def sample_sheet(
    path: Path, files: Sequence[tuple[str, str, str]], columns: Sequence[str] = OLD
) -> Path:
    """``files`` are (file name, project, case)."""
    lines = ["\t".join(("File ID", "File Name", *columns))]
    for name, project, case in files:
        tail = ["Primary Tumor"] if "Sample Type" in columns else ["Tumor", "Primary", "Solid", "F"]
        cells = [str(uuid5(NAMESPACE_DNS, name)), name, "Biospecimen", "Slide Image", project, case]
        lines.append("\t".join([*cells, f"{case}-01Z", *tail]))
    path.write_text("\n".join(lines) + "\n")
    return path


def sheet_of(path: Path, project: str, cases: Sequence[int]) -> Path:
    """A sheet with one diagnostic slide per case."""
    codes = [barcode(case) for case in cases]
    return sample_sheet(path, [(file_name(code), project, code[:12]) for code in codes])


def manifest(path: Path, names: Sequence[str]) -> Path:
    rows = [f"{uuid5(NAMESPACE_DNS, name)}\t{name}\t{'0' * 32}\t17\treleased" for name in names]
    path.write_text("\n".join(["id\tfilename\tmd5\tsize\tstate", *rows]) + "\n")
    return path


def features(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.h5").touch()
    return folder


def read(task: str, path: Path, label: str | None = None) -> SlideRows:
    return TASKS[task].read(Source(path, label))


def test_sizes_of_the_paper() -> None:
    assert {name: (sum(TASKS[name].counts), TASKS[name].classes) for name in TASKS} == {
        "nsclc": (1043, ("LUAD", "LUSC")),
        "brca": (1126, ("IDC", "other")),
        "panda": (10_615, ("benign", "malignant")),
    }
    with pytest.raises(FociError, match="nslc: is not a known task; did you mean 'nsclc'"):
        build("nslc", [])


def test_sources_with_and_without_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / "k=all.tsv"
    odd.touch()
    monkeypatch.chdir(tmp_path)
    classes = ("LUAD", "LUSC")
    assert parse_source(str(odd), classes) == Source(odd)
    assert parse_source("k=all.tsv", classes) == Source(Path("k=all.tsv"))
    assert parse_source("luad=k=all.tsv", classes) == Source(Path("k=all.tsv"), "LUAD")
    for text, message in (
        (f"IDC={odd}", "'IDC' is not a class of this task; write one of LUAD=PA"),
        ("LUAD=none.tsv", r"^none\.tsv: does not exist; give a file or folder"),
        ("a=b", r"^a=b: does not exist"),
    ):
        with refused(message):
            parse_source(text, classes)


def test_a_slide_given_twice_is_refused(tmp_path: Path) -> None:
    sheet = str(sheet_of(tmp_path / "luad.tsv", "TCGA-LUAD", [1]))
    other = str(sheet_of(tmp_path / "lusc.tsv", "TCGA-LUSC", [2]))
    message = f"slide {barcode(1)!r} is given twice; keep one of them"
    with refused(message):
        build("nsclc", [sheet, other, sheet])
    folder = features(tmp_path / "TCGA-LUSC", barcode(1))
    with refused(f"luad.tsv and .*TCGA-LUSC: {message}"):
        build("nsclc", [sheet, str(folder)])


def test_two_files_of_one_barcode_are_two_slides(tmp_path: Path) -> None:
    uuid = "d4ff32cd-38cf-40ea-8213-45c2b100ac01"
    names = [f"{barcode(1)}.{first}{uuid[1:]}" for first in "de"]
    luad = features(tmp_path / "TCGA-LUAD", *names)
    lusc = features(tmp_path / "TCGA-LUSC", barcode(2))
    got = build("nsclc", [str(luad), str(lusc)])
    assert [s.slide_id for s in got.slides] == [*names, barcode(2)]


def test_a_missing_class_is_refused(tmp_path: Path) -> None:
    sheet = sheet_of(tmp_path / "luad.tsv", "TCGA-LUAD", [1])
    with refused("task nsclc: has no slides of LUSC; add the source of th"):
        build("nsclc", [str(sheet)])
    with refused("task nsclc: has no slides of LUAD and LUSC"):
        build("nsclc", [])


def test_the_seed_changes_the_split(tmp_path: Path) -> None:
    features(tmp_path / "TCGA-LUAD", *(barcode(k) for k in range(20)))
    features(tmp_path / "TCGA-LUSC", *(barcode(k) for k in range(20, 40)))
    runs = [build("nsclc", [str(tmp_path)], seed=seed).slides for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


# Folders of published features, here of the breast task.


def test_the_folder_names_the_class(tmp_path: Path) -> None:
    names = (barcode(1), barcode(2), barcode(2, "01A-01-TS1"))
    folder = features(tmp_path / "tcga-brca_idc", *names)
    got = read("brca", folder)
    assert got.slides == tuple(
        Slide(name, name[:12], "IDC", site="05", feature_path=folder / f"{name}.h5")
        for name in names[:2]
    )
    assert got.notes == ("tcga-brca_idc: 1 frozen sections are left out",)


def test_class_folders_inside_a_folder(tmp_path: Path) -> None:
    features(tmp_path / "TCGA-BRCA_OTHERS", *(barcode(k) for k in range(20, 26)))
    features(tmp_path / "TCGA-BRCA_IDC", *(barcode(k) for k in range(14)))
    features(tmp_path / "TCGA-LUAD", barcode(99))
    got = build("brca", [str(tmp_path)])
    assert [s.case_id for s in got.slides[::14]] == ["TCGA-05-0000", "TCGA-05-0020"]
    counts = {("IDC", "train"): 9, ("IDC", "val"): 2, ("IDC", "test"): 3}
    counts |= {("other", "train"): 4, ("other", "val"): 1, ("other", "test"): 1}
    assert Counter((s.label, s.split) for s in got.slides) == counts


def test_paths_do_not_depend_on_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = features(tmp_path / "TCGA-BRCA_IDC", barcode(1))
    monkeypatch.chdir(folder)
    (slide,) = read("brca", Path()).slides
    assert slide.feature_path == folder / f"{barcode(1)}.h5"
    assert slide.label == "IDC"


def test_the_user_may_name_the_class_of_a_folder(tmp_path: Path) -> None:
    folder = features(tmp_path / "mine", barcode(1))
    assert read("brca", folder, "other").slides[0].label == "other"
    with refused("mine: does not tell the class .*BRCA_OTHERS.*; write IDC=.*mine or other=.*mine"):
        read("brca", folder)
    idc = features(tmp_path / "TCGA-BRCA_IDC", "C3L-1")
    with refused("is the folder of IDC, but was given as other; leave out"):
        read("brca", idc, "other")
    with refused("holds no features of diagnostic TCGA slides"):
        read("brca", idc)


# Sample sheets, old and new, and manifests, here of the lung task.


@pytest.mark.parametrize("columns", [OLD, NEW])
@pytest.mark.parametrize("upper", [True, False])
def test_sample_sheet_of_both_generations(
    tmp_path: Path, columns: Sequence[str], upper: bool
) -> None:
    one, two = file_name(barcode(1), upper), file_name(barcode(2, site="2L"), upper)
    files = [
        (one, "TCGA-LUAD", "TCGA-05-0001"),
        (two, "TCGA-LUSC, TCGA-LUSC", "TCGA-2L-0002, TCGA-2L-0002"),
    ]
    got = read("nsclc", sample_sheet(tmp_path / "sheet.2025-08-01.tsv", files, columns))
    assert got.slides == (
        Slide(one.removesuffix(".svs"), "TCGA-05-0001", "LUAD", site="05"),
        Slide(two.removesuffix(".svs"), "TCGA-2L-0002", "LUSC", site="2L"),
    )
    assert got.notes == ()


def test_everything_that_is_left_out_is_counted(tmp_path: Path) -> None:
    names = [
        (file_name(barcode(1)), "TCGA-LUAD"),
        (file_name(barcode(1, "01A-01-TS1")), "TCGA-LUAD"),
        (file_name(barcode(2, "01A-01-BSA")), "TCGA-LUAD"),
        (file_name(barcode(3, "11A-01-DX1")), "TCGA-LUAD"),
        ("report.PDF", "TCGA-LUAD"),
        ("C3L-00001-21.svs", "TCGA-LUAD"),
        (file_name(barcode(4)), "TCGA-BRCA"),
    ]
    path = sample_sheet(tmp_path / "s.tsv", [(name, p, name[:12]) for name, p in names])
    got = read("nsclc", path)
    assert [slide.case_id for slide in got.slides] == ["TCGA-05-0001"]
    assert got.notes == (
        "s.tsv: 1 files of the project TCGA-BRCA are left out",
        "s.tsv: 1 files that are no slides (.svs) are left out",
        "s.tsv: 1 files without the barcode of a slide are left out",
        "s.tsv: 2 frozen sections are left out",
        "s.tsv: 1 slides of normal tissue are left out",
    )


def test_a_manifest_needs_its_class(tmp_path: Path) -> None:
    names = [file_name(barcode(1)), file_name(barcode(1, "01A-01-TS1"))]
    path = manifest(tmp_path / "gdc_manifest.txt", names)
    got = read("nsclc", path, "LUSC")
    assert [(s.case_id, s.label) for s in got.slides] == [("TCGA-05-0001", "LUSC")]
    assert got.notes == ("gdc_manifest.txt: 1 frozen sections are left out",)
    message = r"manifest.txt: is a manifest, which names no project; give the sample sheet, or wr"
    with refused(message + "ite LUAD=P"):
        read("nsclc", path)


def test_a_label_against_the_project_is_refused(tmp_path: Path) -> None:
    path = sheet_of(tmp_path / "s.tsv", "TCGA-LUAD", [1])
    assert read("nsclc", path, "LUAD").slides[0].label == "LUAD"
    with refused("line 2: is of the project TCGA-LUAD, but was given as L"):
        read("nsclc", path, "LUSC")


@pytest.mark.parametrize(
    ("project", "case", "message"),
    [
        ("TCGA-LUAD", "TCGA-05-0009", "line 2: Case ID TCGA-05-0009 does not fit TCGA-05-0001"),
        ("TCGA-LUAD, TCGA-LUSC", "TCGA-05-0001", "line 2: names 2 projects, not one; delete"),
        ("", "TCGA-05-0001", "line 2: names 0 projects, not one"),
        ("TCGA-GBM", "TCGA-05-0001", r"s.tsv: holds no diagnostic slides \(DX\) of TCGA-LUAD, TC"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, project: str, case: str, message: str) -> None:
    path = sample_sheet(tmp_path / "s.tsv", [(file_name(barcode(1)), project, case)])
    with refused(message):
        read("nsclc", path)


def test_other_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("slide_id,label\na,b\n")
    with refused(r"is no table of the GDC \(columns: slide_id, label\); give a sample sheet \(Fil"):
        read("nsclc", tmp_path / "a.csv")


def test_a_breast_sheet_has_no_histology_and_needs_its_class(tmp_path: Path) -> None:
    idc = sheet_of(tmp_path / "idc.tsv", "TCGA-BRCA", [1, 2])
    ilc = sheet_of(tmp_path / "ilc.tsv", "TCGA-BRCA", [3])
    got = build("brca", [f"IDC={idc}", f"other={ilc}"])
    assert [(s.label, s.case_id[-1]) for s in got.slides] == [
        ("IDC", "1"),
        ("IDC", "2"),
        ("other", "3"),
    ]
    assert read("brca", idc, "IDC").notes == ()
    message = (
        "idc.tsv: does not tell the class: the project TCGA-BRCA holds several; give one table per "
        "class, IDC=PATH and other=PATH, or the feature folders TCGA-BRCA_IDC and TCGA-BRCA_OTHERS"
    )
    with refused(message):
        build("brca", [str(idc)])


def test_sheet_manifest_and_folder_together(tmp_path: Path) -> None:
    luad = sheet_of(tmp_path / "luad.tsv", "TCGA-LUAD", range(5))
    lusc = manifest(tmp_path / "lusc.txt", [file_name(barcode(k)) for k in range(5, 8)])
    folder = features(tmp_path / "TCGA-LUSC", barcode(8), barcode(9))
    got = build("nsclc", [str(luad), f"lusc={lusc}", str(folder)])
    assert Counter(s.label for s in got.slides) == {"LUAD": 5, "LUSC": 5}
    assert Counter(s.split for s in got.slides) == {"train": 7, "val": 1, "test": 2}
    note = "10 slides, where the paper has 1043: its split sizes are scaled to 7/1/2"
    assert got.notes == (note,)


def test_the_papers_lung_sizes_are_met_exactly(tmp_path: Path) -> None:
    files = []
    for case in range(1000):
        project = "TCGA-LUAD" if case < 500 else "TCGA-LUSC"
        for slide in ("DX1", "DX2") if case % 500 < 22 - (case >= 500) else ("DX1",):
            code = barcode(case, f"01Z-00-{slide}")
            files.append((file_name(code), project, code[:12]))
    assert len(files) == 1043
    got = build("nsclc", [str(sample_sheet(tmp_path / "s.tsv", files))], seed=3)
    assert Counter(s.split for s in got.slides) == {"train": 729, "val": 105, "test": 209}
    assert got.notes == ()
    check_leakage(got.slides)
    luad = Counter(s.split for s in got.slides if s.label == "LUAD")
    assert luad == {"train": 364, "val": 53, "test": 105}


# PANDA's train.csv.


def train_csv(folder: Path, rows: Iterable[str]) -> Path:
    path = folder / "train.csv"
    path.write_text("\n".join(["image_id,data_provider,isup_grade,gleason_score", *rows]) + "\n")
    return path


def test_grades_become_two_classes(tmp_path: Path) -> None:
    rows = ["0005f7aa,karolinska,0,0+0", "000920ad,radboud,1,3+3", "0018ae58,radboud,5,5+4"]
    train_csv(tmp_path, rows)
    got = read("panda", tmp_path)
    assert got.slides == (
        Slide("0005f7aa", "0005f7aa", "benign", site="karolinska"),
        Slide("000920ad", "000920ad", "malignant", site="radboud"),
        Slide("0018ae58", "0018ae58", "malignant", site="radboud"),
    )
    assert got.notes == (NOTE,)
    assert "cannot be checked" in NOTE


def test_the_papers_prostate_sizes_stratified_by_provider_and_label(tmp_path: Path) -> None:
    # Close to the real table: 10,615 biopsies, two providers, about a quarter benign.
    groups = {("karolinska", 0): 1925, ("karolinska", 2): 3530, ("radboud", 0): 967}
    groups["radboud", 4] = 10_615 - sum(groups.values())
    rows = [
        f"{provider}{grade}-{k},{provider},{grade},x"
        for (provider, grade), n in groups.items()
        for k in range(n)
    ]
    got = build("panda", [str(train_csv(tmp_path, rows))])
    sizes = {"train": 6793, "val": 1699, "test": 2123}
    assert Counter(s.split for s in got.slides) == sizes
    assert got.notes == (NOTE,)
    found = Counter((s.site, s.label, s.split) for s in got.slides)
    for (provider, grade), n in groups.items():
        label = "malignant" if grade else "benign"
        for split, size in sizes.items():
            assert abs(found[provider, label, split] - n * size / 10_615) < 2


def test_refusals_of_panda(tmp_path: Path) -> None:
    with refused(r"holds no train.csv; give PANDA's train.csv"):
        build("panda", [str(tmp_path)])
    path = train_csv(tmp_path, ["a,radboud,6,x"])
    with refused(r"train.csv, line 2: isup_grade is '6', not 0 to 5"):
        build("panda", [str(path)])
    with refused(r"cannot all be benign: PANDA's grades are in train.csv"):
        build("panda", [f"benign={path}"])
    train_csv(tmp_path, ["a,radboud,0,x", "a,radboud,1,x"])
    with refused("line 3: slide 'a' is already in line 2"):
        build("panda", [str(path)])
    path.write_text("image_id,isup_grade\na,1\n")
    with refused(r"no column 'data_provider' .*, or give PANDA's train.csv"):
        build("panda", [str(path)])
