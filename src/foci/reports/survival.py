"""The two risk groups of a survival model: Kaplan-Meier curves, drawn into the report."""

from __future__ import annotations

from markupsafe import Markup, escape

from foci.audits.records import RiskGroup, Summary
from foci.words import counted

_WIDTH, _HEIGHT, _LEFT, _BELOW, _RIGHT = 420, 220, 40, 34, 110


def survival_section(summary: Summary) -> Markup:
    """Both groups' share alive over time; empty for models of anything but survival."""
    groups = [group for group in summary.full_bag.risk_groups if group.n_slides]
    if not groups:
        return Markup()
    texts = [
        f"{group.name}: {counted(group.n_slides, 'slide')}, {counted(group.n_events, 'event')}"
        for group in summary.full_bag.risk_groups
    ]
    return Markup(  # noqa: S704 - what comes from data is escaped
        '<section id="survival" aria-labelledby="survival-title">\n'
        '<h2 id="survival-title">Survival of the two risk groups</h2>\n'
        f"{_figure(groups)}\n"
        f'<p class="soft">{escape("; ".join(texts))}. Groups by the side of the cut that the '
        "model's risk is on, which was fixed before these slides were looked at. Kaplan-Meier "
        "estimates, not corrected for anything else that shortens or prolongs a life.</p>\n"
        "</section>"
    )


def _figure(groups: list[RiskGroup]) -> str:
    end = max(group.last for group in groups)
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _BELOW - 10

    def x(time: float) -> float:
        return round(_LEFT + wide * time / end, 2)

    def y(share: float) -> float:
        return round(10 + high * (1 - share), 2)

    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        'aria-label="Share alive over time, by risk group" fill="none" stroke="currentColor">',
        f'<path d="M{_LEFT} 10V{y(0)}H{x(end)}" stroke-opacity="0.5"/>',
    ]
    text = 'fill="currentColor" stroke="none" font-size="12"'
    for part in (0, 0.5, 1):
        left = f'x="{_LEFT - 6}" y="{y(part) + 4}" text-anchor="end"'
        below = f'x="{x(part * end)}" y="{y(0) + 16}" text-anchor="middle"'
        parts += [f"<text {left} {text}>{part * 100:g} %</text>"]
        parts += [f"<text {below} {text}>{part * end:.3g}</text>"]
    parts.append(
        f'<text x="{x(end / 2)}" y="{_HEIGHT - 2}" text-anchor="middle" {text}>time</text>'
    )
    before = None
    for group, dashes in zip(groups, ("6 4", "none"), strict=False):
        path = f"M{x(0)} {y(1)}"
        for time, alive in zip(group.times, group.alive, strict=True):
            path += f"H{x(time)}V{y(alive)}"
        last = y(group.alive[-1] if group.alive else 1)
        place = last if before is None or abs(last - before) > 13 else before + 13
        before = place
        parts.append(
            f'<path d="{path}H{x(group.last)}" stroke-width="2" stroke-dasharray="{dashes}"/>'
            f'<text x="{x(group.last) + 6}" y="{place + 4}" {text}>{escape(group.name)}</text>'
        )
    return "".join([*parts, "</svg>"])
