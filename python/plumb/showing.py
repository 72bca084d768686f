"""Results as HTML that needs nothing else: in notebooks, and together on a page. Colors are those of Plumb's report."""

import html
import math
import pathlib
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ._plumb import Error

if TYPE_CHECKING:
    from .checking import CheckResult
    from .results import Density

_TEXT, _MUTED, _AXIS, _GRID, _LINE = "#1d2430", "#586273", "#aab2bf", "#e9ecf1", "#1566c0"
REACH = 1.25
_STYLE = f"""<style>
.plumb {{ font: 14px/1.45 system-ui, sans-serif; color: {_TEXT}; background: #fff; padding: 8px; overflow-x: auto; }}
.plumb p {{ margin: 4px 0; }}
.plumb .muted {{ color: {_MUTED}; }}
.plumb table {{ border-collapse: collapse; margin: 8px 0; font-variant-numeric: tabular-nums; }}
.plumb th, .plumb td {{ text-align: left; padding: 2px 14px 2px 0; border-bottom: 1px solid {_GRID}; background: #fff;
  color: {_TEXT}; white-space: nowrap; }}
.plumb th {{ font-weight: 600; color: {_MUTED}; }}
</style>"""


class Cell(str):
    """A cell that is HTML already."""


def section(title: str, rows: Iterable[Iterable[str]] = (), figure: str = "", notes: Iterable[str] = ()) -> str:
    """A title, sentences, a figure (SVG) and a table (rows of texts; the first has the headings)."""
    parts = [f"<p><strong>{html.escape(title)}</strong></p>", *(f"<p>{html.escape(note)}</p>" for note in notes), figure]
    if rows:
        lines = []
        for place, row in enumerate(rows):
            tag = "td" if place else 'th scope="col"'
            cells = (cell if isinstance(cell, Cell) else html.escape(cell) for cell in row)
            lines.append("<tr>" + "".join(f"<{tag}>{cell}</{tag[:2]}>" for cell in cells) + "</tr>")
        parts.append("<table>" + "".join(lines) + "</table>")
    return f'{_STYLE}<div class="plumb">{"".join(parts)}</div>'


def report(results: Any, path: str | PathLike[str], title: str = "Plumb") -> pathlib.Path:
    """Writes one page with all results, in order, which needs no other file or network, and returns its path. Between results
    there may be texts: paragraphs of the page."""
    parts = []
    for result in [results] if hasattr(results, "_repr_html_") else results:
        if isinstance(result, str):
            parts.append(f'<div class="plumb"><p>{html.escape(result)}</p></div>')
        elif hasattr(result, "_repr_html_"):
            parts.append(result._repr_html_().replace(_STYLE, ""))
        else:
            raise Error(f"a {type(result).__name__} does not show itself\npass results of plumb, or texts")
    path = pathlib.Path(path)
    path.write_text(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title>{_STYLE}</head><body style=\"margin: 16px auto; max-width: 1100px\">"
        f'<h1 class="plumb" style="font-size: 22px">{html.escape(title)}</h1>{"".join(parts)}</body></html>\n',
        encoding="utf-8")
    return path


def density_figure(density: "Density", width: int = 640, height: int = 240) -> str:
    """The density of eigenvalues, on a logarithmic axis, with its 95% band."""
    left, right, top, bottom = 58, 10, 12, 40
    start, end = float(density.x[0]), float(density.x[-1])
    if not (start < end and np.isfinite(density.y).all() and density.y.any()):
        return ""
    peak = math.ceil(math.log10(density.y.max()))
    low = peak - 8  # one eigenvalue in millions is visible

    def horizontal(x: Any) -> Any:
        return left + (width - left - right) * (x - start) / (end - start)

    def vertical(y: Any) -> Any:
        height_of = (np.log10(np.maximum(y, 10.0**low)) - low) / (peak - low)
        return height - bottom - (height - top - bottom) * np.minimum(height_of, 1.02)

    def points(x: Any, y: Any) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(horizontal(x), vertical(y)))

    step = 10.0 ** math.floor(math.log10((end - start) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (end - start) / (step * factor) <= 6)
    marks = []
    for exponent in range(low, peak + 1, 2):
        y = float(vertical(10.0**exponent))
        marks.append(f'<line x1="{left}" x2="{width - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_GRID}"/>'
                     f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">1e{exponent}</text>')
    for place in range(math.ceil(start / step), math.floor(end / step) + 1):
        x = horizontal(place * step)
        marks.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{height - bottom}" y2="{height - bottom + 4}" stroke="{_AXIS}"/>'
                     f'<text x="{x:.1f}" y="{height - bottom + 17}" text-anchor="middle">{place * step:.4g}</text>')
    band = ""
    if density.low is not None and density.high is not None:
        outline = points(density.x, density.low) + " " + points(density.x[::-1], density.high[::-1])
        band = f'<polygon points="{outline}" fill="{_LINE}" fill-opacity="0.18"/>'
    name = "Density of eigenvalues" + (" with its 95% band over the probes" if band else "")
    # In a cell of a table, it would shrink to nothing.
    caption, shrinks = (name.lower(), "; max-width: 100%") if width > 400 else ("eigenvalue", "")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{name}" viewBox="0 0 {width} {height}" '
            f'width="{width}" style="background: #fff{shrinks}" font-family="system-ui, sans-serif" font-size="12" '
            f'fill="{_MUTED}">{"".join(marks)}<line x1="{left}" x2="{width - right}" y1="{height - bottom}" '
            f'y2="{height - bottom}" stroke="{_AXIS}"/>{band}<polyline points="{points(density.x, density.y)}" fill="none" '
            f'stroke="{_LINE}" stroke-width="1.6"/><text x="{(left + width - right) / 2}" y="{height - 6}" '
            f'text-anchor="middle">{caption}</text></svg>')


def interval_figure(value: float, error: float | None, margin: float) -> Cell:
    """A number's interval beside the region ±margin, from −REACH to REACH, as a cell of a table."""
    if not math.isfinite(value):
        return Cell("")
    width, height = 150, 16

    def at(x: float) -> float:
        return width / 2 * (1 + max(-1.0, min(1.0, x / REACH)))

    error = error or 0.0
    color = "#0b8a65" if abs(value) + error <= margin else "#cf4a0a" if abs(value) - error > margin else _MUTED
    return Cell(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{value:.2g} ± {error:.2g}" width="{width}" '
        f'height="{height}"><rect x="{at(-margin):.1f}" width="{at(margin) - at(-margin):.1f}" height="{height}" fill="{_GRID}"/>'
        f'<line x1="{at(value - error):.1f}" x2="{at(value + error):.1f}" y1="8" y2="8" stroke="{color}" stroke-width="2"/>'
        f'<circle cx="{at(value):.1f}" cy="8" r="3.5" fill="{color}"/></svg>')


def rates_figure(checked: "CheckResult") -> str:
    """The last loss of each trial of a check against its rate, with the interval of the largest stable rate and the planned
    rate."""
    outcomes = {"fails": "#cf4a0a", "unknown": _MUTED}  # the others count as stable
    points = [(trial.learning_rate, trial.losses[-1], trial.outcome) for trial in checked.trials]
    losses = [loss for _, loss, _ in points if math.isfinite(loss)] + [checked.first_loss]
    if not points or not math.isfinite(checked.first_loss):
        return ""
    stable = checked.largest_stable_rate
    rates = [rate for rate, _, _ in points] + [checked.planned_rate] + ([stable.low, stable.high] if stable else [])
    left, right, top, bottom, width, height = 58, 10, 12, 40, 640, 240
    # What has risen far above the first loss stands at the upper edge.
    low, high = min(losses), min(max(losses), checked.first_loss + max(checked.first_loss - min(losses), 1e-300))
    start, end = math.log10(min(rates)) - 0.1, math.log10(max(rates)) + 0.1

    def across(rate: float) -> float:
        return left + (width - left - right) * (math.log10(rate) - start) / (end - start)

    def up(loss: float) -> float:
        share = (loss - low) / (high - low) if math.isfinite(loss) and high > low else 1.0
        return height - bottom - (height - top - bottom) * min(share, 1.0)

    marks = []
    for loss in (low, checked.first_loss):
        marks.append(f'<line x1="{left}" x2="{width - right}" y1="{up(loss):.1f}" y2="{up(loss):.1f}" stroke="{_GRID}"/>'
                     f'<text x="{left - 6}" y="{up(loss) + 4:.1f}" text-anchor="end">{loss:.3g}</text>')
    for rate in sorted(set(rates[:len(points)])):
        marks.append(f'<line x1="{across(rate):.1f}" x2="{across(rate):.1f}" y1="{height - bottom}" y2="{height - bottom + 4}" '
                     f'stroke="{_AXIS}"/>')
    for rate in (min(rates), max(rates)):
        marks.append(f'<text x="{across(rate):.1f}" y="{height - bottom + 17}" text-anchor="middle">{rate:.2g}</text>')
    if stable:
        marks.append(f'<rect x="{across(stable.low):.1f}" width="{across(stable.high) - across(stable.low):.1f}" y="{top}" '
                     f'height="{height - top - bottom}" fill="{_LINE}" fill-opacity="0.12"/>')
    marks.append(f'<line x1="{across(checked.planned_rate):.1f}" x2="{across(checked.planned_rate):.1f}" y1="{top}" '
                 f'y2="{height - bottom}" stroke="{_TEXT}" stroke-dasharray="4 3"/>')
    marks += [f'<circle cx="{across(rate):.1f}" cy="{up(loss):.1f}" r="4" fill="{outcomes.get(outcome, "#0b8a65")}">'
              f"<title>{rate:.2g}: {html.escape(outcome)}</title></circle>" for rate, loss, outcome in points]
    caption = "learning rate (dashed: planned; band: largest stable rate, 80%; orange: failed)"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Last loss of each trial against its rate" '
            f'viewBox="0 0 {width} {height}" width="{width}" style="background: #fff; max-width: 100%" '
            f'font-family="system-ui, sans-serif" font-size="12" fill="{_MUTED}">{"".join(marks)}<line x1="{left}" '
            f'x2="{width - right}" y1="{height - bottom}" y2="{height - bottom}" stroke="{_AXIS}"/>'
            f'<text x="{(left + width - right) / 2}" y="{height - 6}" text-anchor="middle">{caption}</text></svg>')
