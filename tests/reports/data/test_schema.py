"""The types of the page follow the models of its data."""

import json
from pathlib import Path

from foci.reports.models import AuditPayload, ComparisonPayload, page_schema, write_schema

WEB = Path(__file__).parents[3] / "web"


def test_the_built_types_are_those_of_the_models() -> None:
    built = (WEB / "schema.json").read_text(encoding="utf-8")
    assert built == page_schema(), "run python3 dev.py check, which builds the page anew"
    types = (WEB / "src" / "page" / "types.generated.ts").read_text(encoding="utf-8")
    for name in json.loads(built)["$defs"]:
        assert f"export interface {name} {{" in types


def test_every_field_of_a_payload_is_required() -> None:
    defined = json.loads(page_schema())["$defs"]
    for model in (AuditPayload, ComparisonPayload):
        assert set(defined[model.__name__]["required"]) == set(model.model_fields)


def test_a_schema_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    assert write_schema(path)
    assert not write_schema(path)
    path.write_text("{}")
    assert write_schema(path)
    assert path.read_text() == page_schema()
