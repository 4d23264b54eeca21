"""Tiny GDC downloads, for tests."""

from collections.abc import Sequence
from pathlib import Path
from uuid import NAMESPACE_DNS, uuid5

OLD = ("Data Category", "Data Type", "Project ID", "Case ID", "Sample ID", "Sample Type")
NEW = (
    *OLD[:5],
    "Tissue Type",
    "Tumor Descriptor",
    "Specimen Type",
    "Preservation Method",
)


def file_name(barcode: str, upper: bool = True) -> str:
    """A slide file as the GDC names it, ``<barcode>.<UUID>.svs``."""
    uuid = str(uuid5(NAMESPACE_DNS, barcode))
    return f"{barcode}.{uuid.upper() if upper else uuid}.svs"


def barcode(case: int, slide: str = "01Z-00-DX1", site: str = "05") -> str:
    return f"TCGA-{site}-{case:04d}-{slide}"


def sample_sheet(
    path: Path,
    files: Sequence[tuple[str, str, str]],
    columns: Sequence[str] = OLD,
) -> Path:
    """``files`` are (file name, project, case)."""
    lines = ["\t".join(("File ID", "File Name", *columns))]
    for name, project, case in files:
        tail = ["Primary Tumor"] if "Sample Type" in columns else ["Tumor", "Primary", "Solid", "F"]
        cells = [str(uuid5(NAMESPACE_DNS, name)), name, "Biospecimen", "Slide Image", project, case]
        lines.append("\t".join([*cells, f"{case}-01Z", *tail]))
    path.write_text("\n".join(lines) + "\n")
    return path


def sheet_of(path: Path, project: str, cases: Sequence[int], site: str = "05") -> Path:
    """A sheet with one diagnostic slide per case."""
    codes = [barcode(case, site=site) for case in cases]
    return sample_sheet(path, [(file_name(code), project, code[:12]) for code in codes])


def manifest(path: Path, names: Sequence[str]) -> Path:
    rows = [f"{uuid5(NAMESPACE_DNS, name)}\t{name}\t{'0' * 32}\t17\treleased" for name in names]
    path.write_text("\n".join(["id\tfilename\tmd5\tsize\tstate", *rows]) + "\n")
    return path
