"""Tables hold one row group per block, and what the parts held."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from foci.audits import Audit
from foci.audits.assembly import assemble
from foci.audits.parts import Parts
from foci.audits.slides import AuditedSlide
from foci.audits.units import Unit
from foci.errors import CohortError


def test_one_row_group_per_block(audited: Audit) -> None:
    for name in ("curves.parquet", "rankings.parquet"):
        with pq.ParquetFile(audited.folder / name) as file:
            assert file.num_row_groups == 3  # five slides, two per block
    units = 1 + 1 + 2
    with pq.ParquetFile(audited.folder / "curves.parquet") as file:
        rows = [file.metadata.row_group(i).num_rows for i in range(3)]
    assert rows == [2 * 2 * units, 2 * 2 * units, 1 * 2 * units]
    with pq.ParquetFile(audited.folder / "rankings.parquet") as file:
        assert [file.metadata.row_group(i).num_rows for i in range(3)] == [5 + 1, 9 + 7, 8]
        assert file.schema_arrow.names == [
            "slide_id", "tile", "x", "y", "score:native", "rank:native", "score:selector-0",
            "rank:selector-0",
        ]  # fmt: skip


def test_nothing_to_assemble(tmp_path: Path) -> None:
    parts, unit = Parts(tmp_path), Unit("native")
    parts.write_slides(0, [AuditedSlide("a", "p", skipped="a.h5: is cut; copy it again")], [])
    parts.write_unit(0, unit, [])
    with pytest.raises(CohortError, match=r"no slide that can be audited \(a.h5: is cut; copy it"):
        assemble(tmp_path, parts, 1, [unit], [])
