"""Cohorts of the paper's three tasks, from the files that TCGA and PANDA publish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foci.bags.importers.importer import filled, unique
from foci.bags.matching import Barcode, find_features, parse_barcode, without_uuid
from foci.bags.slide import Slide
from foci.bags.splits import largest_remainder, split_by_patient
from foci.bags.tables import Table, read_table
from foci.errors import CohortError
from foci.registry import Registry

# The definition of a task: classes, sources, and the paper's split sizes.


@dataclass(frozen=True)
class BuiltCohort:
    """Slides of a task, and notes on what was left out or assumed."""

    slides: tuple[Slide, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A file or folder of slides, and their class where the user names it."""

    path: Path
    label: str | None = None


@dataclass(frozen=True)
class Task:
    """One classification task.

    Attributes:
        description: One line for people.
        classes: Class names, in model order.
        counts: Slides in train, val and test of the paper.
        stratify_by: What the split keeps in proportion.
        read: Slides of one source.
    """

    description: str
    classes: tuple[str, ...]
    counts: tuple[int, int, int]
    stratify_by: tuple[str, ...]
    read: Callable[[Source], BuiltCohort]


def parse_source(text: str, classes: Sequence[str]) -> Source:
    """Read ``PATH`` or ``LABEL=PATH``; a path that holds an ``=`` itself is still a path.

    Raises:
        CohortError: If the path does not exist, or the label is no class of the task.
    """
    label, mark, rest = text.partition("=")
    named = {name.lower(): name for name in classes}
    if mark and label.lower() in named:
        source = Source(_path(rest), named[label.lower()])
    else:
        source = Source(_path(text))
    if source.path.exists():
        return source
    if mark and source.label is None and _path(rest).exists():
        what = f"{label!r} is not a class of this task"
        raise CohortError(text, what, f"write one of {', '.join(f'{c}=PATH' for c in classes)}")
    raise CohortError(source.path, "does not exist", "give a file or folder")


def _path(text: str) -> Path:
    """A path with ``~`` filled in; left as it is where nobody knows the home folder."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


# Select the diagnostic slides (DX) among TCGA files.


def tcga_slide(slide_id: str, barcode: Barcode, label: str, features: Path | None = None) -> Slide:
    """A slide with the patient and hospital of its barcode."""
    return Slide(slide_id, barcode.case, label, site=barcode.site, feature_path=features)


def diagnostic_barcode(slide_id: str) -> Barcode | str:
    """The barcode of a diagnostic tumour slide, or for any other file the plural of what it is.

    >>> diagnostic_barcode("TCGA-05-4244-01A-01-TS1")
    'frozen sections'
    >>> diagnostic_barcode("TCGA-05-4244-01Z-00-DX1")
    Barcode(case='TCGA-05-4244', site='05', sample_type='01', slide='DX1')
    """
    barcode = parse_barcode(slide_id)
    if barcode is None or barcode.slide is None:
        return "files without the barcode of a slide"
    if not barcode.is_diagnostic:
        return "frozen sections"
    return "slides of normal tissue" if barcode.is_normal else barcode


def left_out_notes(path: Path, reasons: Iterable[str]) -> tuple[str, ...]:
    """One line per reason, with the number of files left out for it."""
    reasons = list(reasons)
    return tuple(
        f"{path.name}: {reasons.count(reason)} {reason} are left out"
        for reason in sorted(set(reasons))
    )


# Folders of published UNI2-h features, named after the class.


def read_published(source: Source, folders: Mapping[str, str]) -> BuiltCohort:
    """The diagnostic slides of one class folder, or of all class folders inside a folder.

    Args:
        source: The folder, with the class if the user named it.
        folders: Folder names of the publication, and the class of each.
    """
    slides: list[Slide] = []
    notes: tuple[str, ...] = ()
    for folder, label in _class_folders(source, folders):
        reasons = []
        for slide_id, path in find_features(folder).items():
            barcode = diagnostic_barcode(slide_id)
            if isinstance(barcode, str):
                reasons.append(barcode)
            else:
                slides.append(tcga_slide(slide_id, barcode, label, path))
        notes += left_out_notes(folder, reasons)
    if not slides:
        what = "holds no features of diagnostic TCGA slides (TCGA-..-....-..-..-DX1)"
        raise CohortError(source.path, what, "check the folder and its file names")
    return BuiltCohort(tuple(slides), notes)


def _class_folders(source: Source, folders: Mapping[str, str]) -> list[tuple[Path, str]]:
    path = source.path.absolute()
    known = {name.lower(): label for name, label in folders.items()}
    own = known.get(path.resolve().name.lower())
    if source.label is not None:
        if own is not None and own != source.label:
            what = f"is the folder of {own}, but was given as {source.label}"
            raise CohortError(path, what, "leave out the label, or give the right folder")
        return [(path, source.label)]
    if own is not None:
        return [(path, own)]
    inside = [p for p in sorted(path.iterdir()) if p.is_dir() and p.name.lower() in known]
    if inside:
        return [(p, known[p.name.lower()]) for p in inside]
    labels = " or ".join(f"{label}={source.path}" for label in dict.fromkeys(folders.values()))
    what = f"does not tell the class (its name is none of {', '.join(folders)})"
    raise CohortError(source.path, what, f"write {labels}")


# Downloads of the Genomic Data Commons: sample sheets and manifests.
#
# A sample sheet names the project of every file; its columns changed in 2025 (``Sample Type`` gave
# way to ``Tissue Type`` and others), but those needed here did not. A manifest names files only.


_SHEET = ("File Name", "Project ID", "Case ID")
_ENDING = ".svs"


@dataclass(frozen=True)
class _File:
    where: str
    name: str
    project: str | None = None
    cases: frozenset[str] = frozenset()


def read_gdc(source: Source, projects: Mapping[str, str | None], unlabelled: str) -> BuiltCohort:
    """The diagnostic slides of a sample sheet or manifest; everything else is counted in a note.

    Args:
        source: The table, with the class if the user named it.
        projects: Projects of the task, and the class each stands for; None if for several.
        unlabelled: What to do where the project does not tell the class.
    """
    table = read_table(source.path)
    slides: list[Slide] = []
    reasons: list[str] = []
    for file in _files(table):
        slide_id = file.name.removesuffix(_ENDING)
        barcode = diagnostic_barcode(slide_id)
        if file.project is not None and file.project not in projects:
            reasons.append(f"files of the project {file.project}")
        elif slide_id == file.name:
            reasons.append(f"files that are no slides ({_ENDING})")
        elif isinstance(barcode, str):
            reasons.append(barcode)
        elif file.cases and barcode.case not in file.cases:
            what = f"Case ID {', '.join(sorted(file.cases))} does not fit {file.name}"
            raise CohortError(file.where, what, "download the sample sheet again")
        else:
            slides.append(
                tcga_slide(slide_id, barcode, _gdc_label(file, source, projects, unlabelled))
            )
    if not slides:
        what = f"holds no diagnostic slides (DX) of {', '.join(projects)}"
        raise CohortError(table.path, what, "download diagnostic slides of these projects")
    return BuiltCohort(tuple(slides), left_out_notes(table.path, reasons))


def _files(table: Table) -> list[_File]:
    if set(_SHEET) <= set(table.columns):
        names = filled(table, "File Name")
        return [
            _File(table.line(index), name, _project(table, index), _values(table, index, "Case ID"))
            for index, name in enumerate(names)
        ]
    if {"filename", "md5"} <= set(table.columns):
        names = filled(table, "filename")
        return [_File(table.line(index), name) for index, name in enumerate(names)]
    what = f"is no table of the GDC (columns: {', '.join(table.columns)})"
    fix = f"give a sample sheet ({', '.join(_SHEET)}) or a manifest (id, filename, md5, ...)"
    raise CohortError(table.path, what, fix)


def _values(table: Table, index: int, column: str) -> frozenset[str]:
    """The values of a cell that may hold several, ``A, B``."""
    cell = table.rows[index][column]
    return frozenset(value.strip() for value in cell.split(",") if value.strip())


def _project(table: Table, index: int) -> str:
    values = _values(table, index, "Project ID")
    if len(values) != 1:
        what = f"names {len(values)} projects, not one"
        raise CohortError(table.line(index), what, "delete the row or correct its Project ID")
    return min(values)


def _gdc_label(
    file: _File, source: Source, projects: Mapping[str, str | None], unlabelled: str
) -> str:
    known = projects.get(file.project) if file.project is not None else None
    label = source.label or known
    if label is None:
        what = f"does not tell the class: the project {file.project} holds several"
        if file.project is None:
            what = "is a manifest, which names no project"
        raise CohortError(source.path, what, unlabelled)
    if known is not None and known != label:
        what = f"is of the project {file.project}, but was given as {label}"
        raise CohortError(file.where, what, "leave out the label, or give the right sheet")
    return label


# Breast: invasive ductal carcinoma (IDC) against the other subtypes of TCGA-BRCA.


_FOLDERS = {"TCGA-BRCA_IDC": "IDC", "TCGA-BRCA_OTHERS": "other"}


def _read_brca(source: Source) -> BuiltCohort:
    """Folders of published features, or one GDC sample sheet or manifest per class.

    The project is the same for all subtypes and the sample sheet has no histology, so the class
    must be named.
    """
    if source.path.is_dir():
        return read_published(source, _FOLDERS)
    fix = (
        "give one table per class, IDC=PATH and other=PATH, "
        f"or the feature folders {' and '.join(_FOLDERS)}"
    )
    return read_gdc(source, {"TCGA-BRCA": None}, fix)


BRCA = Task(
    "TCGA breast, invasive ductal carcinoma against other subtypes",
    classes=("IDC", "other"),
    counts=(724, 179, 223),
    stratify_by=("label",),
    read=_read_brca,
)


# Lung: adenocarcinoma (LUAD) against squamous cell carcinoma (LUSC), both of TCGA.


_PROJECTS = {"TCGA-LUAD": "LUAD", "TCGA-LUSC": "LUSC"}


def _read_nsclc(source: Source) -> BuiltCohort:
    """Folders of published features, GDC sample sheets, or manifests with their class."""
    if source.path.is_dir():
        return read_published(source, _PROJECTS)
    fix = "give the sample sheet, or write LUAD=PATH or LUSC=PATH"
    return read_gdc(source, _PROJECTS, fix)


NSCLC = Task(
    "TCGA lung, LUAD against LUSC",
    classes=("LUAD", "LUSC"),
    counts=(729, 105, 209),
    stratify_by=("label",),
    read=_read_nsclc,
)


# Prostate biopsies of PANDA: benign (ISUP grade 0) against malignant (1 to 5).


_GRADES = ("0", "1", "2", "3", "4", "5")
NOTE = (
    "PANDA names no patients: every slide counts as its own patient, and whether a patient is in "
    "two splits cannot be checked"
)


def _read_panda(source: Source) -> BuiltCohort:
    """``train.csv``, or the folder that holds it."""
    if source.label is not None:
        what = f"cannot all be {source.label}: PANDA's grades are in train.csv"
        raise CohortError(source.path, what, "give train.csv without a label")
    path = source.path / "train.csv" if source.path.is_dir() else source.path
    if not path.is_file():
        raise CohortError(source.path, "holds no train.csv", "give PANDA's train.csv")
    table = read_table(path)
    table.require("image_id", "data_provider", "isup_grade", fix="give PANDA's train.csv")
    names = unique(table, filled(table, "image_id"))
    sites = filled(table, "data_provider")
    return BuiltCohort(
        tuple(
            Slide(name, name, _panda_label(table, index), site=sites[index])
            for index, name in enumerate(names)
        ),
        (NOTE,),
    )


def _panda_label(table: Table, index: int) -> str:
    grade = table.rows[index]["isup_grade"]
    if grade not in _GRADES:
        what = f"isup_grade is {grade!r}, not 0 to 5"
        raise CohortError(table.line(index), what, "correct it or delete the row")
    return "benign" if grade == "0" else "malignant"


PANDA = Task(
    "PANDA prostate, benign against malignant",
    classes=("benign", "malignant"),
    counts=(6793, 1699, 2123),
    stratify_by=("label", "site"),
    read=_read_panda,
)


__all__ = ["TASKS", "BuiltCohort", "Source", "Task", "build"]

TASKS: Registry[Task] = Registry("task")
TASKS.add("nsclc", NSCLC)
TASKS.add("brca", BRCA)
TASKS.add("panda", PANDA)


def build(task: str, sources: Sequence[str], *, seed: int = 0, split: bool = True) -> BuiltCohort:
    """Slides, labels and splits of one of the paper's tasks.

    Args:
        task: ``"nsclc"``, ``"brca"`` or ``"panda"``.
        sources: Files or folders: GDC sample sheets and manifests, folders of published UNI2-h
            features, PANDA's ``train.csv``; ``LABEL=PATH`` where a source does not tell the class.
        seed: Seed of the split.
        split: Whether to divide into train, val and test, by patient, in the paper's sizes;
            another number of slides is divided in the same proportion.

    Raises:
        CohortError: If a source is not understood, a slide is given twice, or a class is missing.
    """
    chosen = TASKS[task]
    slides: list[Slide] = []
    origins: list[str] = []
    notes: list[str] = []
    for text in sources:
        part = chosen.read(parse_source(text, chosen.classes))
        slides += part.slides
        origins += [text] * len(part.slides)
        notes += part.notes
    _refuse_repeats(slides, origins)
    missing = [name for name in chosen.classes if name not in {slide.label for slide in slides}]
    if missing:
        what = f"has no slides of {' and '.join(missing)}"
        raise CohortError(f"task {task}", what, "add the source of that class")
    if split:
        counts = list(chosen.counts)
        if len(slides) != sum(counts):
            counts = largest_remainder(len(slides), counts)
            sizes = "/".join(map(str, counts))
            notes.append(
                f"{len(slides)} slides, where the paper has {sum(chosen.counts)}: its split sizes "
                f"are scaled to {sizes}"
            )
        parts = split_by_patient(slides, counts=counts, seed=seed, stratify_by=chosen.stratify_by)
        slides, notes = parts.slides, [*notes, *parts.notes]
    return BuiltCohort(tuple(slides), tuple(notes))


def _refuse_repeats(slides: Sequence[Slide], origins: Sequence[str]) -> None:
    """The same name twice, or once with and once without its UUID, is the same slide.

    Two UUIDs of one barcode are two files, and TCGA has such pairs.
    """
    alike: dict[str, list[int]] = defaultdict(list)
    for index, slide in enumerate(slides):
        alike[without_uuid(slide.slide_id)].append(index)
    for short, indices in alike.items():
        names = [slides[index].slide_id for index in indices]
        if len(names) > 1 and (short in names or len(set(names)) < len(names)):
            where = " and ".join(dict.fromkeys(origins[index] for index in indices))
            raise CohortError(where, f"slide {short!r} is given twice", "keep one of them")
