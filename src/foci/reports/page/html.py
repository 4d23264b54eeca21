"""Render a self-contained HTML file: no server, no network."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import BaseModel

from foci._version import __version__
from foci.reports.data.payload import to_json
from foci.reports.page.bundle import load_bundle
from foci.reports.text import wording
from foci.reports.text.answers import tone_of
from foci.reports.text.equations import mathml


def render(template: str, data: BaseModel, *, pictures: bool = False, **context: Any) -> str:
    """Render a template, with the script, the style sheet and the data embedded.

    Args:
        template: File in ``templates/``.
        data: Data for the page's script, embedded as JSON.
        pictures: Whether the page shows pictures that it carries itself.
        **context: Variables of the template; all of them are escaped.
    """
    bundle = load_bundle()
    text = (
        _environment()
        .get_template(template)
        .render(
            **context,
            policy=bundle.policy + ("; img-src data:" if pictures else ""),
            style=Markup(bundle.style),  # noqa: S704 - our own, and checked not to end its element
            code=Markup(bundle.code),  # noqa: S704
            data=Markup(embedded(data)),  # noqa: S704
            line=wording.LINE,
            version=__version__,
        )
    )
    return text if text.endswith("\n") else text + "\n"


def embedded(data: BaseModel) -> str:
    r"""JSON that is safe inside a script element, whatever names it contains.

    >>> class Page(BaseModel):
    ...     slide: str
    >>> embedded(Page(slide="</script><!-- & more"))
    '{"slide":"\\u003c/script\\u003e\\u003c!-- \\u0026 more"}'
    """
    text = to_json(data)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("foci.reports.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for filter_ in (wording.fixed, wording.tiles, wording.percent, wording.with_spread):
        environment.filters[filter_.__name__] = filter_
    environment.filters |= {"ends": wording.spread, "tone": tone_of, "quartiles": wording.quartiles}
    environment.filters |= {"mathml": _equation, "percent_ends": wording.percent_ends}
    return environment


def _equation(latex: str) -> Markup:
    return Markup(mathml(latex))  # noqa: S704 - the cards are our own, and tested to be well-formed
