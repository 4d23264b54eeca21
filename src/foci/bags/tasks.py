"""Cohorts of the paper's three tasks, from the files that TCGA and PANDA publish.

A task reads sources: the GDC's sample sheets and manifests, folders of published UNI2-h features,
or PANDA's ``train.csv``. Of TCGA only diagnostic tumour slides (DX) are kept; what is left out is
counted in notes. The slides are then split by patient in the paper's sizes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foci.bags.bag import Slide, SlideRows
from foci.bags.matching import Barcode, find_features, parse_barcode, without_uuid
from foci.bags.splits import largest_remainder, split_by_patient
from foci.bags.tables import Table, read_table
from foci.errors import CohortError
from foci.registry import Registry


@dataclass(frozen=True)
class Source:
    """A file or folder of slides, and their class where the user names it."""

    path: Path
    label: str | None = None


@dataclass(frozen=True)
class Task:
    """One classification task.

    Attributes:
        classes: Class names, in model order.
        counts: Slides in train, val and test of the paper.
        stratify_by: What the split keeps in proportion.
        read: Slides of one source.
    """

    classes: tuple[str, ...]
    counts: tuple[int, int, int]
    stratify_by: tuple[str, ...]
    read: Callable[[Source], SlideRows]


TASKS: Registry[Task] = Registry("task")


def build(task: str, sources: Sequence[str], *, seed: int = 0) -> SlideRows:
    """Slides of one of the paper's tasks, split by patient in the paper's sizes.

    Another number of slides is divided in the same proportion.

    Args:
        task: ``"nsclc"``, ``"brca"`` or ``"panda"``.
        sources: Files or folders: GDC sample sheets and manifests, folders of published UNI2-h
            features, PANDA's ``train.csv``; ``LABEL=PATH`` where a source does not tell the class.
        seed: Seed of the split.

    Raises:
        CohortError: If a source is not understood, a slide is given twice, or a class is missing.
    """
    chosen = TASKS[task]
    slides: tuple[Slide, ...] = ()
    origins: list[str] = []
    notes: tuple[str, ...] = ()
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
    counts = list(chosen.counts)
    if len(slides) != sum(counts):
        counts = largest_remainder(len(slides), counts)
        notes += (
            f"{len(slides)} slides, where the paper has {sum(chosen.counts)}: its split sizes "
            f"are scaled to {'/'.join(map(str, counts))}",
        )
    parts = split_by_patient(slides, counts=counts, seed=seed, stratify_by=chosen.stratify_by)
    return SlideRows(parts.slides, notes + parts.notes)


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


# TCGA: folders of published features, and downloads of the Genomic Data Commons.


def read_tcga(
    source: Source, folders: Mapping[str, str], projects: Mapping[str, str | None], unlabelled: str
) -> SlideRows:
    """The diagnostic slides of folders of published features, a sample sheet or a manifest.

    ``folders`` of the publication and ``projects`` come with their classes, a project of several
    with None; ``unlabelled`` says what to do where the project does not tell the class.
    """
    slides: list[Slide] = []
    notes: tuple[str, ...] = ()
    if source.path.is_dir():
        for folder, label in _class_folders(source, folders):
            reasons = []
            for slide_id, path in find_features(folder).items():
                barcode = diagnostic_barcode(slide_id)
                if isinstance(barcode, str):
                    reasons.append(barcode)
                else:
                    slides.append(_tcga_slide(slide_id, barcode, label, path))
            notes += _left_out(folder, reasons)
        what = "holds no features of diagnostic TCGA slides (TCGA-..-....-..-..-DX1)"
        fix = "check the folder and its file names"
    else:
        reasons = []
        for file in _gdc_files(read_table(source.path)):
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
                label = _gdc_label(file, source, projects, unlabelled)
                slides.append(_tcga_slide(slide_id, barcode, label))
        notes = _left_out(source.path, reasons)
        what = f"holds no diagnostic slides (DX) of {', '.join(projects)}"
        fix = "download diagnostic slides of these projects"
    if not slides:
        raise CohortError(source.path, what, fix)
    return SlideRows(tuple(slides), notes)


def diagnostic_barcode(slide_id: str) -> Barcode | str:
    """The barcode of a diagnostic tumour slide, or for any other file the plural of what it is.

    Diagnostic slides are paraffin sections, DX; sample types 10 to 19 are normal tissue.

    >>> diagnostic_barcode("TCGA-05-4244-01A-01-TS1")
    'frozen sections'
    >>> diagnostic_barcode("TCGA-05-4244-01Z-00-DX1")
    Barcode(case='TCGA-05-4244', site='05', sample_type='01', slide='DX1')
    """
    barcode = parse_barcode(slide_id)
    if barcode is None or barcode.slide is None:
        return "files without the barcode of a slide"
    if not barcode.slide.startswith("DX"):
        return "frozen sections"
    normal = barcode.sample_type is not None and barcode.sample_type.startswith("1")
    return "slides of normal tissue" if normal else barcode


def _tcga_slide(slide_id: str, barcode: Barcode, label: str, features: Path | None = None) -> Slide:
    return Slide(slide_id, barcode.case, label, site=barcode.site, feature_path=features)


def _left_out(path: Path, reasons: Iterable[str]) -> tuple[str, ...]:
    """One line per reason, with the number of files left out for it."""
    counts = sorted(Counter(reasons).items())
    return tuple(f"{path.name}: {n} {reason} are left out" for reason, n in counts)


def _class_folders(source: Source, folders: Mapping[str, str]) -> list[tuple[Path, str]]:
    """One class folder, or all class folders inside a folder, with their classes."""
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


_SHEET = ("File Name", "Project ID", "Case ID")
_ENDING = ".svs"


@dataclass(frozen=True)
class _File:
    where: str
    name: str
    project: str | None = None
    cases: frozenset[str] = frozenset()


def _gdc_files(table: Table) -> Iterator[_File]:
    """The files of a sample sheet, with project and cases, or of a manifest, which has names only.

    The columns of sample sheets changed in 2025 (``Sample Type`` gave way to ``Tissue Type`` and
    others), but those needed here did not. A cell may hold several values, ``A, B``.
    """

    def values(index: int, column: str) -> frozenset[str]:
        cell = table.rows[index][column]
        return frozenset(value.strip() for value in cell.split(",") if value.strip())

    if set(_SHEET) <= set(table.columns):
        for index, name in enumerate(table.filled("File Name")):
            projects = values(index, "Project ID")
            if len(projects) != 1:
                what = f"names {len(projects)} projects, not one"
                fix = "delete the row or correct its Project ID"
                raise CohortError(table.line(index), what, fix)
            yield _File(table.line(index), name, min(projects), values(index, "Case ID"))
    elif {"filename", "md5"} <= set(table.columns):
        for index, name in enumerate(table.filled("filename")):
            yield _File(table.line(index), name)
    else:
        what = f"is no table of the GDC (columns: {', '.join(table.columns)})"
        fix = f"give a sample sheet ({', '.join(_SHEET)}) or a manifest (id, filename, md5, ...)"
        raise CohortError(table.path, what, fix)


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


_LUNG = {"TCGA-LUAD": "LUAD", "TCGA-LUSC": "LUSC"}
_BREAST = {"TCGA-BRCA_IDC": "IDC", "TCGA-BRCA_OTHERS": "other"}


def _read_nsclc(source: Source) -> SlideRows:
    """Lung: adenocarcinoma (LUAD) against squamous cell carcinoma (LUSC)."""
    fix = "give the sample sheet, or write LUAD=PATH or LUSC=PATH"
    return read_tcga(source, _LUNG, _LUNG, fix)


def _read_brca(source: Source) -> SlideRows:
    """Breast: invasive ductal carcinoma (IDC) against other subtypes.

    The project is the same for all subtypes and the sample sheet has no histology, so the class
    of a table must be named.
    """
    fix = "give one table per class, IDC=PATH and other=PATH, or the feature folders"
    return read_tcga(source, _BREAST, {"TCGA-BRCA": None}, f"{fix} {' and '.join(_BREAST)}")


NOTE = (
    "PANDA names no patients: every slide counts as its own patient, and whether a patient is in "
    "two splits cannot be checked"
)


def _read_panda(source: Source) -> SlideRows:
    """Prostate biopsies, benign (ISUP grade 0) or malignant (1 to 5), from ``train.csv``."""
    if source.label is not None:
        what = f"cannot all be {source.label}: PANDA's grades are in train.csv"
        raise CohortError(source.path, what, "give train.csv without a label")
    path = source.path / "train.csv" if source.path.is_dir() else source.path
    if not path.is_file():
        raise CohortError(source.path, "holds no train.csv", "give PANDA's train.csv")
    table = read_table(path)
    table.require("image_id", "data_provider", "isup_grade", fix="give PANDA's train.csv")
    names = table.unique(table.filled("image_id"))
    slides = []
    for index, site in enumerate(table.filled("data_provider")):
        grade = table.rows[index]["isup_grade"]
        if grade not in ("0", "1", "2", "3", "4", "5"):
            what = f"isup_grade is {grade!r}, not 0 to 5"
            raise CohortError(table.line(index), what, "correct it or delete the row")
        label = "benign" if grade == "0" else "malignant"
        slides.append(Slide(names[index], names[index], label, site=site))
    return SlideRows(tuple(slides), (NOTE,))


_BY_LABEL = ("label",)
TASKS.add("nsclc", Task(("LUAD", "LUSC"), (729, 105, 209), _BY_LABEL, _read_nsclc))
TASKS.add("brca", Task(("IDC", "other"), (724, 179, 223), _BY_LABEL, _read_brca))
TASKS.add(
    "panda", Task(("benign", "malignant"), (6793, 1699, 2123), ("label", "site"), _read_panda)
)
