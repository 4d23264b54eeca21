"""JSON Schema of the data that pages embed, for the page's generated TypeScript types."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from foci.reports.data.models import AuditPayload, ComparisonPayload, StudyPayload

Payload = Annotated[AuditPayload | ComparisonPayload | StudyPayload, Field(discriminator="kind")]


def page_schema() -> str:
    """JSON Schema of a page's data."""
    adapter: TypeAdapter[Payload] = TypeAdapter(Payload)
    return schema_text("Payload", adapter)


def schema_text(title: str, adapter: TypeAdapter[Any]) -> str:
    """JSON Schema as text; equal models give equal bytes."""
    schema = {"title": title, **adapter.json_schema(mode="serialization")}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write_schema(path: str | Path, text: str | None = None) -> bool:
    """Write a schema, that of a page by default, if the file differs; return whether it did."""
    path, text = Path(path), page_schema() if text is None else text
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8")
    return True


if __name__ == "__main__":
    write_schema(sys.argv[1])
