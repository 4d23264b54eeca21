"""The report of an audit, as it was and at other settings."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from foci.audits import StoredAudit, Summary
from foci.audits.audit import recompute
from foci.errors import FociError
from foci.metrics import CARDS
from foci.reports import write_report
from foci.reports.text import LINE, MAP, ORDER, TILES, evidence, tone_of
from tests.makers.synthetic import Plan, make


def data_of(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    block = re.search(r'id="foci-data">(.*?)</script>', text, re.S)
    assert block is not None
    found: dict[str, Any] = json.loads(block[1])
    return found


def text_of(page: Path) -> str:
    text = re.sub(r"<(script|style).*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def assert_answers_in(summary: Summary, page: Path) -> None:
    """Cards in order (sentence, number, badge), the disclaimer, every sentence, then the table."""
    told, text, source = summary.answers, text_of(page), page.read_text(encoding="utf-8")
    assert told is not None
    cards = ((MAP, told.map), (TILES, told.tiles), (ORDER, told.order))
    at = 0
    for question, one in cards:
        at = text.index(f"{question} {one.sentences[0]}", at)
    at = text.index(LINE, at)
    for question, one in cards:
        at = text.index(f"{question} {' '.join(one.sentences)}", at)
    decided = f"{told.n_decided} of {told.n_slides} slide{'s' * (told.n_slides != 1)} decided"
    badges = re.findall(r'<span class="badge (\w+)">.*?</svg>([^<]+)</span>', source, re.S)
    assert badges == [
        (tone_of(told.map.answer), told.map.answer),
        ("none", decided),
        (tone_of(told.order.answer), told.order.answer),
    ]
    body = re.findall(r'<table class="evidence">.*?<tbody>(.*?)</tbody>', source, re.S)
    plots = re.findall(r'data-estimate="(.*?)" data-low="(.*?)" data-high="(.*?)"', "".join(body))
    lines = evidence(told)
    assert [tuple(map(float, plot)) for plot in plots] == [
        (line.interval.d, line.interval.low, line.interval.high) for line in lines
    ]
    for line in lines:
        cells = (
            line.rankings, line.axis, line.text, line.pvalue, line.interval.result,
            "" if line.interval.informative else "already minimal", line.medians,
            line.ratio, f"{line.slides} slides", f"{line.patients} patients",
        )  # fmt: skip
        assert " ".join(filter(None, cells)) in text
    rests = f"{told.n_decided} of {told.n_slides} slides that the model has decided"
    assert (rests if told.n_decided else f"On none of the {told.n_slides} slides do all") in text
    for row in told.sensitivity:
        assert f"{row.kappa} {row.n_decided} {row.n_cases} {row.map} {row.order}" in text


def test_the_page_says_what_the_audit_says(audit: StoredAudit, page: Path) -> None:
    text = text_of(page)
    assert "Synthetic slides: no patient, no diagnosis." in text
    assert_answers_in(audit.summary, page)
    assert text.count(LINE) == 1, "once, after the answers"
    assert "unreadable.h5: is truncated; copy it again" in text
    assert "Tiles planted by the maker" in text
    assert "f" * 64 in text
    assert "Does not show that these tiles suffice for a diagnosis" in text
    assert "2026-11-16T08:03:20+00:00" in text


def test_the_same_audit_gives_the_same_bytes(
    audit: StoredAudit, page: Path, tmp_path: Path
) -> None:
    assert (
        write_report(str(audit.folder), tmp_path / "new" / "r.html").read_bytes()
        == page.read_bytes()
    )


def test_another_threshold_is_read_off_the_curves(audit: StoredAudit, tmp_path: Path) -> None:
    page = write_report(audit, tmp_path / "r.html", kappa=0.7, k_max=16)
    data, text = data_of(page), text_of(page)
    expected = recompute(audit, kappa=0.7, k_max=16)
    assert (data["kappa"], data["k_max"]) == (0.7, 16)
    found = data["numbers"]["prediction"]["native"]["restricted"]["estimate"]
    wanted = expected.views["prediction"]["native"].restricted.estimate
    assert found == pytest.approx(wanted, abs=1e-4)
    assert wanted != pytest.approx(audit.summary.views["prediction"]["native"].restricted.estimate)
    assert_answers_in(expected, page)
    assert expected.answers != audit.answers
    assert "at κ = 0.7 (the audit ran at 0.9) and K_max = 16 (the audit ran at 256)" in text
    assert max(data["slides"]["measures"]["prediction"]["native"]["k"]) <= 16


def test_other_settings_get_a_name_of_their_own(tmp_path: Path) -> None:
    own = make(tmp_path / "audit", Plan(n_slides=4))
    assert write_report(own).name == "report.html"
    assert write_report(own, kappa=0.9).name == "report.html"
    assert write_report(own, kappa=0.8).name == "report-kappa-0.8.html"
    assert write_report(own, k_max=32, view="label").name == "report-k-32-label.html"
    assert data_of(own.folder / "report-k-32-label.html")["first_view"] == "label"


def test_what_curves_cannot_answer_is_refused(audit: StoredAudit, unlabelled: StoredAudit) -> None:
    with pytest.raises(FociError, match="is 999, but curves were stored up to 256"):
        write_report(audit, k_max=999)
    with pytest.raises(FociError, match="no audited slide has a label"):
        write_report(unlabelled, view="label")
    with pytest.raises(FociError, match=r"has no manifest\.json"):
        write_report(audit.folder.parent)


@pytest.mark.parametrize("name", ["multiclass", "unlabelled"])
def test_other_audits_have_a_page_too(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    found: StoredAudit = request.getfixturevalue(name)
    page = write_report(found, tmp_path / "r.html")
    assert_answers_in(found.summary, page)
    assert ("No audited slide has a label" in text_of(page)) == (name == "unlabelled")


def test_a_page_that_cannot_hold_all_slides_says_so(
    audit: StoredAudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foci.reports.payload.by_interest", lambda slides: [4, 2])
    text = text_of(write_report(audit, tmp_path / "r.html"))
    assert "it holds the curves of 2 of 20 slides" in text


def test_cards_are_those_of_the_numbers_shown(
    page: Path, unlabelled: StoredAudit, tmp_path: Path
) -> None:
    def titles(page: Path) -> set[str]:
        text = html.unescape(page.read_text(encoding="utf-8"))
        return set(re.findall(r'<div class="card">\n<h3>(.*?)</h3>', text))

    def of(*names: str) -> set[str]:
        return {CARDS[name].title for name in names}

    full = titles(page)
    assert full <= {CARDS[name].title for name in CARDS}
    always = of("msk", "decisive_k", "reach", "aukc", "net_win_share", "seed_spread", "spearman")
    with_labels = of("auc", "selected_only_auc", "reach_split")
    assert always | with_labels <= full
    assert not full & of("paper_faithfulness", "captured_headroom")
    bare = titles(write_report(unlabelled, tmp_path / "bare.html"))
    assert not bare & with_labels
    assert bare < full


def test_without_scripts_the_numbers_are_there(audit: StoredAudit, page: Path) -> None:
    blocks = re.findall(r"<noscript>(.*?)</noscript>", page.read_text(encoding="utf-8"), re.S)
    text = html.unescape(re.sub(r"<[^>]+>", " ", " ".join(blocks)))
    curve = audit.summary.views["prediction"]["selector"].mean_curve
    assert f"{curve.mean[curve.ks.index(64)]:.3f}" in text
    assert all(slide.slide_id in text for slide in audit.slides)
