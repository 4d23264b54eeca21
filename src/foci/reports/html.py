"""Render self-contained HTML files: template, data, and the script and style built from ``web/``.

A page needs no server and no network, and its security policy allows neither.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from latex2mathml.converter import convert
from markupsafe import Markup, escape
from pydantic import BaseModel

from foci._version import __version__
from foci.errors import FociError
from foci.reports.payload import to_json
from foci.reports.text import (
    LINE,
    fixed,
    percent,
    percent_ends,
    quartiles,
    spread,
    tone_of,
)

FOLDER = Path(__file__).parent / "page" / "bundle"
CODE, STYLE = "report.js", "report.css"

COMPRESSED_FROM = 6_000_000
"""Bytes of data above which a page carries them compressed: its first paint waits for them then."""


def load_bundle(folder: Path = FOLDER) -> tuple[str, str]:
    """Script and style sheet that ``npm run build`` has made, to be embedded unescaped."""
    missing = [name for name in (CODE, STYLE) if not (folder / name).is_file()]
    if missing:
        fix = "run python3 dev.py run ... , or npm ci and npm run build in web/"
        raise FociError(folder / missing[0], "is not built", fix)
    code, style = ((folder / name).read_text(encoding="utf-8") for name in (CODE, STYLE))
    for name, text in ((CODE, code), (STYLE, style)):
        if "</script" in text.lower() or "</style" in text.lower() or "<!--" in text:
            raise FociError(folder / name, "would end its own element", "build it again")
    return code, style


def render(template: str, data: BaseModel, *, pictures: bool = False, **context: Any) -> str:
    """Render a template, with the script, the style sheet and the data embedded.

    The page's Content-Security-Policy allows this script and style, and no request at all.

    Args:
        template: File in ``templates/``.
        data: Data for the page's script, embedded as JSON.
        pictures: Whether the page shows pictures that it carries itself.
        **context: Variables of the template; all of them are escaped.
    """
    code, style = load_bundle()
    policy = (
        f"default-src 'none'; script-src {_source(code)}; style-src {_source(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    content, form = embedded(data), "json"
    if len(content) > COMPRESSED_FROM:
        content, form = base64.b64encode(gzip.compress(content.encode(), mtime=0)).decode(), "gzip"
    text = (
        _environment()
        .get_template(template)
        .render(
            **context,
            policy=policy + ("; img-src data:" if pictures else ""),
            style=Markup(style),  # noqa: S704 - our own, and checked not to end its element
            code=Markup(code),  # noqa: S704
            data=Markup(content),  # noqa: S704
            form=form,
            line=LINE,
            version=__version__,
        )
    )
    return text if text.endswith("\n") else text + "\n"


def _source(text: str) -> str:
    """A script or style as the policy names it."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"


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
        loader=PackageLoader("foci.reports", "page/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"fixed": fixed, "percent": percent, "percent_ends": percent_ends}
    environment.filters |= {"ends": spread, "tone": tone_of, "quartiles": quartiles}
    environment.filters["with_bold_counts"] = _with_bold_counts
    # equations are our own, and tested to be well-formed
    environment.filters["mathml"] = lambda latex: Markup(mathml(latex))  # noqa: S704
    return environment


_COUNTS = re.compile(r"(?:[\d,]*\d|none) of [\d,]*\d|[\d.,]+ tiles?(?= on a typical)")


def _with_bold_counts(sentence: str) -> Markup:
    """A sentence of the first screen; what it counts stands out."""
    return Markup(_COUNTS.sub(r"<b>\g<0></b>", str(escape(sentence))))  # noqa: S704


def mathml(latex: str, display: Literal["inline", "block"] = "inline") -> str:
    r"""An equation in LaTeX as MathML; a command that is not known is an error.

    >>> mathml(r"p \ge \kappa").removeprefix('<math xmlns="http://www.w3.org/1998/Math/MathML" ')
    'display="inline"><mrow><mi>p</mi><mo>&#x02265;</mo><mi>&#x003BA;</mi></mrow></math>'
    """
    known = latex.strip().replace(r"\arg", r"\operatorname{arg}")
    written = str(convert(known, display=display))
    if "\\" in written:
        raise FociError(latex.strip(), "has a command that latex2mathml does not know", "fix it")
    return written
