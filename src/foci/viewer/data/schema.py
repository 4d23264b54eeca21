"""JSON Schema of what the viewer's server sends, for the generated TypeScript types."""

from __future__ import annotations

import sys
from typing import Annotated

from pydantic import Field, TypeAdapter

from foci.reports.data.schema import schema_text, write_schema
from foci.viewer.data.models import ViewerCohort, ViewerSlide

ViewerData = Annotated[ViewerCohort | ViewerSlide, Field(discriminator="kind")]


def viewer_schema() -> str:
    """JSON Schema as text."""
    adapter: TypeAdapter[ViewerData] = TypeAdapter(ViewerData)
    return schema_text("ViewerData", adapter)


if __name__ == "__main__":
    write_schema(sys.argv[1], viewer_schema())
