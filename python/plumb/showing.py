"""Results as HTML that needs nothing else: in notebooks, and together on a page. Colors are those of Plumb's report."""

import html
import json
import math
import pathlib
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _plumb
from ._plumb import Error

if TYPE_CHECKING:
    from .checking import CheckResult
    from .results import Density

_STYLE = f"""<style>
.plumb {{ font: 14px/1.45 system-ui, sans-serif; color: {_plumb.TEXT_COLOR}; background: #fff; padding: 8px; overflow-x: auto; }}
.plumb p {{ margin: 4px 0; }}
.plumb svg {{ max-width: 100%; }}
.plumb .muted {{ color: {_plumb.MUTED_COLOR}; }}
.plumb table {{ border-collapse: collapse; margin: 8px 0; font-variant-numeric: tabular-nums; }}
.plumb th, .plumb td {{ text-align: left; padding: 2px 14px 2px 0; border-bottom: 1px solid {_plumb.GRID_COLOR}; background: #fff;
  color: {_plumb.TEXT_COLOR}; white-space: nowrap; }}
.plumb th {{ font-weight: 600; color: {_plumb.MUTED_COLOR}; }}
</style>"""


def section(title: str, rows: Iterable[Iterable[str]] = (), figure: str = "", notes: Iterable[str] = ()) -> str:
    """A title, sentences, a figure (SVG) and a table (rows of texts; the first has the headings)."""
    parts = [f"<p><strong>{html.escape(title)}</strong></p>", *(f"<p>{html.escape(note)}</p>" for note in notes), figure]
    if rows:
        lines = []
        for place, row in enumerate(rows):
            tag = "td" if place else 'th scope="col"'
            lines.append("<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag[:2]}>" for cell in row) + "</tr>")
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
            raise Error(f"a result of type {type(result).__name__} has no form for a page\n"
                        "pass texts, and results of plumb that notebooks show; of others str(result)")
    path = pathlib.Path(path)
    path.write_text(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title>{_STYLE}</head><body style=\"margin: 16px auto; max-width: 1100px\">"
        f'<h1 class="plumb" style="font-size: 22px">{html.escape(title)}</h1>{"".join(parts)}</body></html>\n',
        encoding="utf-8")
    return path


def figure(title: str, kind: str, x: dict[str, Any], y: dict[str, Any], series: list[dict[str, Any]]) -> str:
    """SVG of axes and series as in results.json (docs/formats/results.md); "" without series."""
    if not series:
        return ""
    return _plumb.figure_svg(json.dumps({"title": title, "kind": kind, "x": x, "y": y, "series": series}))


def line(name: str, x: Iterable[Any], y: Iterable[float], style: str = "solid", group: str = "",
         band: tuple[Iterable[float], Iterable[float]] | None = None) -> dict[str, Any]:
    """A series of a figure, in the color of its group; `band`: lower and upper ends."""
    def numbers(values: Iterable[float]) -> list[float | None]:
        return [float(value) if math.isfinite(value) else None for value in values]

    drawn: dict[str, Any] = {"name": name, "group": group or name, "style": style, "x": list(x), "y": numbers(y)}
    return drawn if band is None else drawn | {"low": numbers(band[0]), "high": numbers(band[1])}


def density_figure(densities: Mapping[str, "Density"]) -> str:
    """Densities of eigenvalues by the name of their matrix, with 95% bands."""
    lines = [line(name, density.x.tolist(), density.y, band=None if density.low is None or density.high is None
                  else (density.low, density.high))
             for name, density in densities.items()
             if density.x[0] < density.x[-1] and np.isfinite(density.y).all() and density.y.any()]
    # One eigenvalue in millions is visible.
    return figure("Density of eigenvalues", "density", {"label": "eigenvalue"}, {"label": "density", "log": True, "floor": 1e-9},
                  lines)


def rates_figure(checked: "CheckResult") -> str:
    """The losses of a check's trials against their rates, at the last step that all but those that diverged have measured, with
    the interval of the largest stable rate, the planned and the recommended rate."""
    if not checked.trials or not math.isfinite(checked.first_loss):
        return ""
    whole = [trial for trial in checked.trials if math.isfinite(trial.losses[-1])]
    at = min((len(trial.losses) for trial in whole), default=1) - 1
    last = {id(trial): trial.losses[min(at, len(trial.losses) - 1)] for trial in checked.trials}
    losses = [loss for loss in last.values() if math.isfinite(loss)] + [checked.first_loss]
    # What has risen far above the first loss stands at the upper edge.
    low = min(losses)
    high = min(max(losses), checked.first_loss + max(checked.first_loss - low, 1e-300))
    series = []
    for outcome in dict.fromkeys(trial.outcome for trial in checked.trials):
        trials = [trial for trial in checked.trials if trial.outcome == outcome]
        ends = [min(last[id(trial)], high) if math.isfinite(trial.losses[-1]) else high for trial in trials]
        series.append(line(outcome, [trial.learning_rate for trial in trials], ends, "points"))
    marks = [("planned", "planned", checked.planned_rate)]
    if checked.recommended:
        name = "recommended" if checked.recommended.tried else "estimate to try"
        marks.append((name, "recommended", checked.recommended.learning_rate))
    if stable := checked.largest_stable_rate:
        marks += [("80% interval from", "stable", stable.low), ("80% interval to", "stable", stable.high)]
    series += [line(name, [rate, rate], [low, high], "dashed", group) for name, group, rate in marks]
    return figure(f"Loss after {whole[0].steps[at] if whole else 0} steps against the rate", "scatter", {"label": "learning rate", "log": True},
                  {"label": "loss"}, series)
