"""The types of the viewer follow the models of what its server sends."""

import json
from pathlib import Path

from foci.viewer.models import viewer_schema

WEB = Path(__file__).parents[3] / "web"


def test_the_built_types_are_those_of_the_models() -> None:
    built = (WEB / "viewer-schema.json").read_text(encoding="utf-8")
    assert built == viewer_schema(), "run python3 dev.py check, which builds the page anew"
    types = (WEB / "src" / "viewer" / "types.generated.ts").read_text(encoding="utf-8")
    for name in json.loads(built)["$defs"]:
        assert f"export interface {name} {{" in types
