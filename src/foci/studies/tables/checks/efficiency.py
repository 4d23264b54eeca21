"""tab:efficiency: parameters, time of an inference and of a reveal, peak memory, their ratio."""

from __future__ import annotations

from foci.studies.cells.cost import Cost
from foci.studies.published import FOCI, PublishedNumber, PublishedNumbers
from foci.studies.readings.numbers import StudyNumbers
from foci.studies.readings.values import Value
from foci.studies.tables.naming import WITH, shown
from foci.studies.tables.table import Cell, Column, Row, Table
from foci.words.plural import counted

LABEL = "efficiency"
PARAMETERS = Column("parameters_m", "parameters (M)", 2)
RATIO = Column("srp_ratio", "reveal / inference", 1, "lower")
COLUMNS = (
    PARAMETERS,
    Column("inference_ms", "inference (ms)", 2, "lower"),
    Column("srp_ms", "reveal (ms)", 1, "lower"),
    RATIO,
    Column("memory_mb", "peak memory (MB)", 0, "lower"),
    Column("srp_memory_mb", "peak memory, reveal (MB)", 0, "lower"),
)


def efficiency_table(numbers: StudyNumbers, paper: PublishedNumbers | None) -> Table:
    """One row per backbone, and one with its selector; only ratios stand beside the paper's."""
    rows, devices = [], set()
    for backbone in numbers.backbones:
        cost = numbers.costs.get(backbone, "not measured in this study")
        if isinstance(cost, str):
            gap = {column.key: Cell(Value.absent(cost)) for column in COLUMNS}
            rows.append(Row((shown(backbone),), gap))
            continue
        devices.add(f"{cost.device} ({cost.machine}, {counted(cost.threads, 'thread')})")
        for own, end, name in ((cost.native, "", ""), (cost.selector, FOCI, f" {WITH}")):
            cells = {key: Cell(value) for key, value in _values(own).items()}
            if paper is not None:
                row = backbone + end
                cells[RATIO.key] = Cell(cells[RATIO.key].value, published_ratio(paper, row))
                printed = paper.get(LABEL, "nsclc", row, PARAMETERS.key)
                cells[PARAMETERS.key] = Cell(cells[PARAMETERS.key].value, printed)
            rows.append(Row((shown(backbone) + name,), cells))
    where = f" on {', '.join(sorted(devices))}" if devices else ""
    return Table(
        label=LABEL,
        title=f"Cost of an inference and of the reveal protocol{where}",
        heads=("Method",),
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(
            "Milliseconds of another device are not comparable, so only the ratio stands beside "
            "the paper's (RTX 6000 Ada); and parameters, which depend on the widths and on the "
            "width of the features.",
        ),
    )


def published_ratio(paper: PublishedNumbers, row: str) -> PublishedNumber | None:
    """Reveal over inference time of the paper's table; its milliseconds have one decimal.

    >>> from foci.studies.published import published
    >>> published_ratio(published(), "transmil").mean
    91.0
    """
    inference = paper.get(LABEL, "nsclc", row, "inference_ms")
    reveal = paper.get(LABEL, "nsclc", row, "srp_ms")
    if inference is None or reveal is None:
        return None
    ratio = reveal.mean / inference.mean
    digits = 0 if ratio >= 10 else 1
    return PublishedNumber(
        LABEL, "nsclc", row, RATIO.key, round(ratio, digits), None, inference.seeds, digits
    )


def _values(cost: Cost | None) -> dict[str, Value]:
    if cost is None:
        return {column.key: Value.absent("not part of this study") for column in COLUMNS}
    numbers = {
        PARAMETERS.key: cost.parameters / 1e6,
        "inference_ms": cost.inference_ms,
        "srp_ms": cost.srp_ms,
        RATIO.key: cost.ratio,
        "memory_mb": cost.inference_mb,
        "srp_memory_mb": cost.srp_mb,
    }
    return {
        key: Value.absent("cannot be read here") if number is None else Value(number, n=1)
        for key, number in numbers.items()
    }
