"""Several audits side by side, one row each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foci.audits.analysis.csv_tables import as_csv
from foci.audits.audit import Audit
from foci.audits.compare.differences import differences
from foci.errors import FociError

VIEW = "prediction"
"""The view every audit has, with or without labels."""

COUNTS = ("restricted", "msk_cond", "reach")
SAVINGS = ("shi_native", "shi_random")


@dataclass(frozen=True)
class Comparison:
    """One row per audit, in the order given, in the prediction view.

    Attributes:
        rankings: Every ranking that some audit ran.
        rows: Plain values by column; None where an audit does not have a number.
        notes: What keeps the rows from being compared number by number.
    """

    rankings: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]

    def to_csv(self) -> str:
        """All columns, floats with all their digits."""
        return as_csv(self.rows)

    def to_markdown(self) -> str:
        """A table for people: tiles over all slides, headroom, faithfulness, verdict."""
        header, *lines = self.cells()
        table = [header, ["---"] * len(header), *lines]
        text = "\n".join("| " + " | ".join(map(_escaped, line)) + " |" for line in table)
        return text + "\n" + "".join(f"\n- {note}" for note in self.notes)

    def cells(self) -> list[list[str]]:
        """Header and rows of the table for people."""
        tested = [ranking for ranking in self.rankings if ranking not in ("native", "random")]
        header = ["model", "architecture", "AUC"]
        header += [f"tiles, {ranking}" for ranking in self.rankings]
        for ranking in tested:
            header += [f"SHI of {ranking} vs native", f"SHI of {ranking} vs random"]
        header += [f"faithfulness, {ranking}" for ranking in self.rankings if ranking != "random"]
        return [[*header, "verdict"], *(self._line(row, tested) for row in self.rows)]

    def _line(self, row: Mapping[str, Any], tested: Sequence[str]) -> list[str]:
        cells = [row["name"], row["architecture"], number(row["auc"], 3)]
        for ranking in self.rankings:
            reach = row[f"reach:{ranking}"]
            reached = "" if reach is None else f" ({reach:.0%} reach)"
            cells.append(number(row[f"restricted:{ranking}"], 1) + reached)
        for ranking in tested:
            cells += [spread(row, f"{name}:{ranking}") for name in SAVINGS]
        for ranking in self.rankings:
            if ranking != "random":
                cells.append(number(row[f"faithfulness:{ranking}"], 3))
        return [*cells, row["verdict"] or "-"]


def compare(audits: Sequence[Audit]) -> Comparison:
    """Put audits side by side; says where they are not comparable.

    Raises:
        FociError: If there are fewer than two, or they share no slide and no class.
    """
    if len(audits) < 2:
        raise FociError("compare", "needs two or more audits", "give another audit folder")
    for place, times in Counter(audit.folder.resolve() for audit in audits).items():
        if times > 1:
            raise FociError(place, "is given twice", "name every audit once")
    names = distinct_names(audits)
    rankings = tuple(dict.fromkeys(r for audit in audits for r in audit.summary["rankings"]))
    notes = differences(audits, names)
    rows = [_row(audit, name, rankings) for audit, name in zip(audits, names, strict=True)]
    return Comparison(rankings, tuple(rows), tuple(notes))


def distinct_names(audits: Sequence[Audit]) -> list[str]:
    """The models' names; with the folder where two audits are of the same one."""
    names = [str(audit.manifest["name"]) for audit in audits]
    paths = [audit.folder.resolve() for audit in audits]
    for places in ([path.name for path in paths], paths):
        times = Counter(names)
        names = [
            name if times[name] == 1 else f"{audit.manifest['name']} ({place})"
            for name, audit, place in zip(names, audits, places, strict=True)
        ]
    return names


def number(value: float | None, digits: int) -> str:
    """A number for people; a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def spread(row: Mapping[str, Any], name: str) -> str:
    """An estimate with its interval."""
    if row[name] is None:
        return "-"
    low, high = number(row[f"{name}_low"], 2), number(row[f"{name}_high"], 2)
    return f"{row[name]:.2f} ({low} to {high})"


def _row(audit: Audit, name: str, rankings: Sequence[str]) -> dict[str, Any]:
    summary = audit.summary
    row: dict[str, Any] = {
        "name": name,
        "architecture": audit.manifest["backbone"]["architecture"],
        **{key: summary[key] for key in ("n_slides", "n_cases", "n_skipped", "kappa", "k_max")},
        **summary["full_bag"],
    }
    for ranking in rankings:
        found = summary["views"][VIEW].get(ranking, {})
        for key in (*COUNTS, *SAVINGS, "faithfulness"):
            interval = found.get(key) or {}
            row[f"{key}:{ranking}"] = interval.get("estimate")
            row[f"{key}:{ranking}_low"] = interval.get("low")
            row[f"{key}:{ranking}_high"] = interval.get("high")
    verdict = summary["verdict"] or {}
    return {**row, "verdict": verdict.get("verdict"), "sentence": verdict.get("sentence")}


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|").replace("\n", " ")
