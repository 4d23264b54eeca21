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
from foci.reports.first_screen import QUESTION, first_screen
from foci.reports.text import LINE, MAP, ORDER, TILES, evidence
from tests.makers.synthetic import Plan, make


def data_of(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    block = re.search(r'id="foci-data">(.*?)</script>', text, re.S)
    assert block is not None
    found: dict[str, Any] = json.loads(block[1])
    return found


def text_of(page: Path) -> str:
    text = re.sub(
        r"<(script|style)\b.*?</\1>|</?b>", "", page.read_text(encoding="utf-8"), flags=re.S
    )
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def assert_answers_in(audit: StoredAudit, summary: Summary, page: Path) -> None:
    """The word and its sentences, then behind the fold every sentence and the comparisons."""
    told, text, source = summary.answers, text_of(page), page.read_text(encoding="utf-8")
    first = first_screen(summary, audit.manifest)
    at = text.index(QUESTION)
    for part in (f"{first.word}.", *first.sentences, f"Carry: {first.definition}"):
        at = text.index(part, at)
    for bold, rest in first.notices:
        assert text.index(f"{bold} {rest}".strip()) < text.index(QUESTION)
    at = text.index("Details for reviewers", at)
    for question, one in ((MAP, told.map), (TILES, told.tiles), (ORDER, told.order)):
        at = text.index(f"{question} {' '.join(one.sentences)}", at)
    assert f'<p class="word {first.tone}">' in source
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
    assert_answers_in(audit, audit.summary, page)
    assert text.count(LINE) == 1, "once, at the end"
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
    assert expected.carried is not None
    assert data["carried"]["n_slides"] == expected.carried.n_slides
    assert max(data["carried"]["ks"]) == 16
    assert_answers_in(audit, expected, page)
    assert expected.answers != audit.answers
    assert "at κ = 0.7 (the audit ran at 0.9) and K_max = 16 (the audit ran at 256)" in text


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
    assert_answers_in(found, found.summary, page)
    assert ("No audited slide has a label" in text_of(page)) == (name == "unlabelled")


def test_a_page_that_cannot_hold_all_slides_says_so(
    audit: StoredAudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foci.reports.payload.by_interest", lambda slides: [4, 2])
    page = write_report(audit, tmp_path / "r.html")
    kept = {4, 2, *data_of(page)["gallery"]["first"]}
    assert set(map(int, data_of(page)["details"])) == kept, "the first four can always be opened"
    assert f"{len(kept)} of 20 slides can be opened" in text_of(page)


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


def test_without_scripts_the_numbers_are_there(carried: StoredAudit, tmp_path: Path) -> None:
    page = write_report(carried, tmp_path / "r.html")
    blocks = re.findall(r"<noscript>(.*?)</noscript>", page.read_text(encoding="utf-8"), re.S)
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", " ".join(blocks))).split())
    assert "K the model's map one-tile test random tiles" in text
    assert "32 60% 100% 0%" in text
    assert all(slide.slide_id in text for slide in carried.slides)
    assert "s0 P0 tumour 2 tiles of 300 carry the decision" in text


def test_nothing_empty_is_printed(carried: StoredAudit, page: Path, tmp_path: Path) -> None:
    assert "Left out" in text_of(page)
    plain = text_of(write_report(carried, tmp_path / "r.html"))
    for title in ("Left out", "No slide was left out", "Against marked tiles", "Which order"):
        assert title not in plain
