"""Show an audit in the output of a notebook cell: answers, numbers, and the whole page."""

from __future__ import annotations

import json
from collections.abc import Callable

from markupsafe import Markup, escape

from foci.audits import StoredAudit
from foci.audits.records import RankingNumbers
from foci.reports.report import report_page
from foci.reports.text import LINE, answers, fixed, percent, with_spread
from foci.words import counted

MOST_BYTES = 2_500_000
"""Of one output. Jupyter drops what is over 3 MB, and says so only in passing."""

_SHOWN: tuple[tuple[str, Callable[[RankingNumbers], str]], ...] = (
    ("restricted mean K", lambda own: with_spread(own.restricted)),
    ("conditional MSK", lambda own: with_spread(own.msk_cond)),
    ("reach", lambda own: percent(own.reach.estimate)),
    ("AUKC", lambda own: fixed(own.aukc.estimate)),
    ("faithfulness AUC", lambda own: fixed(own.faithfulness.estimate)),
)


def notebook_html(audit: StoredAudit) -> str:
    """Alarms, answers and numbers as plain HTML, and the report below them in a frame.

    Where a viewer of notebooks removes frames, the plain part remains.
    """
    page = report_page(audit, audit.summary, audit.manifest.settings)
    return in_words(audit) + framed(page, f"Report on {audit.manifest.name}")


def in_words(audit: StoredAudit) -> str:
    """Alarms, answers and a small table, as HTML that needs no script."""
    head = "".join(f"<th>{name}</th>" for name in ("ranking", *(title for title, _ in _SHOWN)))
    rows = Markup("").join(
        Markup("<tr><th>{}</th>{}</tr>").format(
            name,
            Markup("").join(Markup("<td>{}</td>").format(show(own)) for _, show in _SHOWN),
        )
        for name, own in audit.summary.views["prediction"].items()
    )
    alarms = Markup("").join(
        Markup("<p><b>Alarm, {}:</b> {}</p>").format(one.kind, one.sentence) for one in audit.alarms
    )
    found = Markup("").join(
        Markup("<p><b>{} {}.</b> {}</p>").format(one.question, one.short, " ".join(one.sentences))
        for one in answers(audit.summary, audit.manifest)
    )
    skipped = audit.summary.n_skipped
    left_out = ""
    if skipped:
        left_out = f"; {counted(skipped, 'slide')} of the cohort skipped, see <code>.skipped</code>"
    marked = "" if audit.changed_note is None else f"<p><b>{escape(audit.changed_note)}</b></p>"
    return (
        f"<p><b>{escape(audit.manifest.name)}</b></p>{marked}{alarms}{found}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>{counted(audit.summary.n_slides, 'slide')} audited{left_out}.</p><p>{LINE}</p>"
    )


def framed(page: str, title: str) -> str:
    """A self-contained page as a sandboxed iframe.

    Its script runs, but in an origin of its own: it reaches neither the notebook nor its cookies.
    A page that is too large for a notebook gives a sentence instead.

    >>> framed("<p>it's&nbsp;1</p>", "report").rpartition(" ")[2]
    "srcdoc='&lt;p>it&#39;s&amp;nbsp;1&lt;/p>'></iframe>"
    """
    content = page.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#39;")
    frame = (
        f"<iframe title='{escape(title)}' sandbox='allow-scripts' loading='lazy' "
        "style='width: 100%; height: 80vh; min-height: 480px; border: 1px solid #8886' "
        f"srcdoc='{content}'></iframe>"
    )
    size = len(json.dumps(frame, ensure_ascii=False).encode())
    if size <= MOST_BYTES:
        return frame
    return (
        f"<p>The page is {size / 1e6:.1f} MB, too large for a notebook; write it with "
        '<code>.to_html("report.html")</code>.</p>'
    )
