"""Checks of the feature files: readable, finite, same width, on a grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from foci.bags.checks.census import FileFacts
from foci.bags.checks.check import Check, Status
from foci.bags.prefilter import N_CAP
from foci.words.plural import some, tally


def check_features(facts: Sequence[FileFacts], n_files: int) -> list[Check]:
    """Checks that need only the feature files."""
    good = [f for f in facts if f.problem is None]
    checks = [
        _files(facts, n_files),
        _problem(facts, "empty", "empty bags", "WARN", "they are skipped and listed"),
        _problem(facts, "not finite", "NaN or Inf", "FAIL", "extract these slides again"),
    ]
    if good:
        checks += [_layouts(good), _widths(good), _sizes(good), *_coordinates(good)]
    return checks


def _files(facts: Sequence[FileFacts], total: int) -> Check:
    bad = [f for f in facts if f.problem == "unreadable"]
    read = f"{len(facts)} of {total} files read" if len(facts) < total else f"{total} files read"
    if bad:
        detail = f"{read}, {len(bad)} unreadable; first: {bad[0].message}"
        return Check("files", "FAIL", detail, "repair or remove them; audits skip and list them")
    return Check("files", "PASS", read)


def _problem(
    facts: Sequence[FileFacts], problem: str, name: str, status: Status, fix: str
) -> Check:
    bad = [f.slide_id for f in facts if f.problem == problem]
    return Check(name, status, some(bad), fix) if bad else Check(name, "PASS", "none")


def _layouts(good: Sequence[FileFacts]) -> Check:
    layouts = Counter(f.layout for f in good)
    encoders = Counter(f.encoder for f in good if f.encoder)
    detail = tally(layouts) + (f"; encoder {tally(encoders)}" if encoders else "")
    if len(layouts) > 1 or len(encoders) > 1:
        return Check("layout", "WARN", detail, "use one tool and one encoder for the whole cohort")
    return Check("layout", "PASS", detail)


def _widths(good: Sequence[FileFacts]) -> Check:
    widths = Counter(f.width for f in good)
    if len(widths) > 1:
        usual = widths.most_common(1)[0][0]
        odd = some([f.slide_id for f in good if f.width != usual])
        detail = f"features are {usual} wide, but not in {odd}"
        return Check("width", "FAIL", detail, "use one encoder for the whole cohort")
    return Check("width", "PASS", f"all features are {good[0].width} wide")


def _sizes(good: Sequence[FileFacts]) -> Check:
    sizes = sorted(f.n_tiles for f in good)
    above = sum(n > N_CAP for n in sizes)
    detail = f"{sizes[0]} to {sizes[-1]} tiles, median {sizes[len(sizes) // 2]}"
    return Check("tiles", "PASS", f"{detail}; {above} bags above the cap of {N_CAP}")


def _coordinates(good: Sequence[FileFacts]) -> list[Check]:
    without = [f.slide_id for f in good if not f.has_coords]
    if without:
        fix = "use files that store them, or do without tile maps and contiguity"
        return [Check("coordinates", "WARN", f"missing in {some(without)}", fix)]
    off = [f.slide_id for f in good if f.on_grid < 0.9]
    taken = [f.slide_id for f in good if f.duplicates]
    inferred = sum(f.patch_size_inferred for f in good)
    detail = "on a grid, one tile per position"
    if inferred:
        detail += f"; tile size inferred from the spacing in {inferred} files"
    checks = [Check("coordinates", "PASS", detail)]
    if off or taken:
        checks = []
    if off:
        checks.append(
            Check(
                "coordinates",
                "WARN",
                f"not on a grid in {some(off)}",
                "check the unit and the tile size",
            )
        )
    if taken:
        checks.append(
            Check(
                "coordinates",
                "WARN",
                f"two tiles at one place in {some(taken)}",
                "extract these slides again",
            )
        )
    return checks
