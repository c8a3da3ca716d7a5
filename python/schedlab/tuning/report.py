"""The report: one HTML page that needs nothing else, no network either."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from schedlab.tuning import kept, outcome
from schedlab.tuning.outcome import Document
from schedlab.tuning.space import Parameter, Space, Value
from schedlab.tuning.study import Study

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; color: #222; }
pre { background: #f6f6f6; padding: 1em; white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; } td, th { padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: right; }
td:first-child, th:first-child { text-align: left; }
"""
_MOST_SLICES, _MOST_CHOICES = 8, 12
_BLUE, _GREY, _ORANGE = "#3b6ea5", "#b0b0b0", "#d9822b"
_COLORS = (_BLUE, "#8fb8de", _ORANGE, "#f0c48f", "#6a9a58", "#b8d4a8")
# Settings that were given up have few repeats, and those that break a constraint are no settings to choose.
_STATES = {"pruned": _GREY, "infeasible": _ORANGE, "complete": _BLUE}
_TICKS = (0, 0.25, 0.5, 0.75, 1)


def report(study: Study, space: Space, result: Document, path: Path) -> str:
    """Return the page; `path` is where it will be."""
    parts = [("Result", f"<pre>{html.escape(outcome.text(study, result))}</pre>")]
    if result["looks"]:
        parts.append(("Before and after, in the traces", _looks(result, path)))
    for title, (about, figure) in pictures(study, space, result).items():
        drawn = figure.to_html(full_html=False, include_plotlyjs=False, config={"displayModeBar": False})
        parts.append((title, f"<p>{about}</p>{drawn}"))
    parts.append(("Settings", f"<pre>{html.escape(outcome.settings_file(study, result))}</pre>"))
    body = "".join(f"<section><h2>{title}</h2>{content}</section>" for title, content in parts)
    title = html.escape(study.title)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<script>{get_plotlyjs()}</script></head><body><h1>{title}</h1>{body}</body></html>\n"
    )


def pictures(study: Study, space: Space, result: Document) -> dict[str, tuple[str, go.Figure]]:
    """Return the pictures that there is something to draw in, by their titles, each with what it shows."""
    drawn = {
        "Before and after": ("Improvement on held-out runs, with intervals.", before_and_after(result)),
        "History": ("Each trial by its improvement during the search; the line is the best.", history(study, result)),
        "Parameters that matter": (
            "Part of the variance that each parameter explains by itself.",
            importance(result),
        ),
        "Pareto front": ("Trials by two objectives, and the front on held-out runs.", front(study, result)),
        "Slices": (
            "Improvement by the value of a parameter: with all repeats, given up early, or breaking a constraint.",
            slices(study, space, result),
        ),
        "Contours": ("The two parameters that matter most.", contours(study, space, result)),
        "Choices": (
            "Each value of a parameter: all others as the default, and the best found with it. Arms: all runs.",
            choices(study, space, result),
        ),
        "Measures": (
            "All that is measured in the same unit, for each value of a parameter, all others as the default.",
            measures(study, space, result),
        ),
        "Screening": ("Improvement on the simulator and on the real kernel.", screening(result)),
    }
    found = {title: (about, figure) for title, (about, figure) in drawn.items() if figure is not None}
    for _, figure in found.values():
        figure.update_layout(template="plotly_white", margin={"t": 30, "r": 20}, font={"size": 13})
    return found


def _looks(result: Document, path: Path) -> str:
    """Return where to look in the traces of the default and of the best settings."""
    items = []
    for name, own in result["looks"].items():
        page = f' <a href="{html.escape(kept.link(own["page"], path))}">See it.</a>' if own["page"] else ""
        said = f"<b>{html.escape(name)}</b>: {html.escape(own['sentence'])}{page}"
        items.append(f"<li>{said}<pre>{html.escape(own['command'])}</pre></li>")
    about = "The default above the best settings, in a held-out run whose gain is typical, where a task waits longest."
    return f"<p>{about}</p><ul>{''.join(items)}</ul>"


def _known(result: Document) -> list[Document]:
    return [own for own in result["history"] if own["improvement"] is not None]


def before_and_after(result: Document) -> go.Figure | None:
    """Draw the improvement of each objective with its interval."""
    claims = result["objectives"]
    if not claims:
        return None
    gains = [100 * own["improvement"] for own in claims]
    arms = [[100 * (side - own["improvement"]) for side in own["interval"]] for own in claims]
    names = [f"{own['name']}: {own['default']:.4g} to {own['best']:.4g} {own['unit']}" for own in claims]
    figure = go.Figure(
        go.Scatter(
            x=gains,
            y=names,
            mode="markers",
            marker={"size": 12, "color": [_BLUE if own["confirmed"] else _GREY for own in claims]},
            error_x={"type": "data", "array": [a[1] for a in arms], "arrayminus": [-a[0] for a in arms]},
        )
    )
    figure.add_vline(x=0, line_color="#888")
    figure.update_yaxes(automargin=True)
    return figure.update_layout(height=140 + 50 * len(claims), xaxis_title="improvement, %")


def history(study: Study, result: Document) -> go.Figure | None:
    """Draw the trials in their order, and the best so far."""
    known = _known(result)
    if not known:
        return None
    figure = go.Figure()
    for state, color in _STATES.items():
        own = [trial for trial in known if trial["state"] == state]
        gains = [100 * trial["improvement"][0] for trial in own]
        text = [_about(result, trial) for trial in own]
        x = [trial["number"] for trial in own]
        figure.add_scatter(x=x, y=gains, mode="markers", name=state, marker_color=color, text=text, hoverinfo="text+y")
    best, steps = -float("inf"), []
    for trial in known:
        if trial["state"] == "complete":
            best = max(best, 100 * trial["improvement"][0])
            steps.append((trial["number"], best))
    if len(study.objectives) == 1:
        x, y = ([step[k] for step in steps] for k in (0, 1))
        figure.add_scatter(x=x, y=y, mode="lines", name="best", line={"shape": "hv", "color": _BLUE})
    lowest = max(-100.0, min(100 * trial["improvement"][0] for trial in known))
    figure.update_yaxes(range=[lowest - 5, max(step[1] for step in steps) + 5] if steps else None)
    return figure.update_layout(xaxis_title="trial", yaxis_title=f"improvement of {study.objectives[0].name}, %")


def importance(result: Document) -> go.Figure | None:
    """Draw the importance of each parameter."""
    parts = sorted(result["importance"].items(), key=lambda entry: entry[1])
    if not any(part for _, part in parts):
        return None
    bars = go.Bar(
        x=[100 * part for _, part in parts], y=[name for name, _ in parts], orientation="h", marker_color=_BLUE
    )
    layout = {"height": 120 + 28 * len(parts), "xaxis_title": "part of the variance, %"}
    return go.Figure(bars).update_layout(**layout).update_xaxes(range=[0, 100]).update_yaxes(automargin=True)


def front(study: Study, result: Document) -> go.Figure | None:
    """Draw the first two objectives against each other."""
    if len(study.objectives) < 2:  # noqa: PLR2004
        return None
    known = _known(result)
    figure = go.Figure()
    x, y = ([100 * own["improvement"][k] for own in known] for k in (0, 1))
    text = [_about(result, own) for own in known]
    figure.add_scatter(x=x, y=y, mode="markers", name="trials", marker_color=_GREY, text=text, hoverinfo="text")
    members = [own["objectives"] for own in result["front"]]
    x, y = ([100 * own[k]["improvement"] for own in members] for k in (0, 1))
    arms = [[100 * (own[k]["interval"][1] - own[k]["improvement"]) for own in members] for k in (0, 1)]
    figure.add_scatter(
        x=x, y=y, mode="markers", name="front, held out", marker={"color": _BLUE, "size": 11},
        error_x={"type": "data", "array": arms[0]}, error_y={"type": "data", "array": arms[1]},
    )  # fmt: skip
    names = [own.name for own in study.objectives]
    return figure.update_layout(xaxis_title=f"improvement of {names[0]}, %", yaxis_title=f"of {names[1]}, %")


def _shown(space: Space, result: Document) -> list[Parameter]:
    order = result["importance"]
    return sorted(space.parameters, key=lambda own: -order.get(own.name, 0.0))


def _axis(own: Parameter) -> dict[str, Any]:
    """Return the axis of a parameter, on which a value stands at its part of the scale."""
    if own.choices:
        places = [own.part(value) for value in own.choices]
        return {"tickvals": places, "ticktext": [str(value) for value in own.choices], "range": [0, 1]}
    return {"tickvals": _TICKS, "ticktext": [_short(own.at(tick)) for tick in _TICKS], "range": [-0.03, 1.03]}


def _short(value: Any) -> str:  # noqa: ANN401 (a number or a text)
    """Return a number with the prefix of its thousands."""
    if not isinstance(value, (int, float)):
        return str(value)
    # Rounded first: 999,960 are a million.
    value = float(f"{value:.3g}")
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{prefix}"
    return f"{value:.3g}"


def slices(study: Study, space: Space, result: Document) -> go.Figure | None:
    """Draw the improvement by each parameter."""
    from plotly.subplots import make_subplots  # noqa: PLC0415

    known = _known(result)
    shown = _shown(space, result)[:_MOST_SLICES]
    if not known:
        return None
    columns = min(2, len(shown))
    figure = make_subplots(rows=-(-len(shown) // columns), cols=columns, subplot_titles=[own.name for own in shown])
    for index, own in enumerate(shown):
        row, column = index // columns + 1, index % columns + 1
        for state, color in _STATES.items():
            trials = [trial for trial in known if trial["state"] == state]
            places = [own.part(trial["settings"][own.name]) for trial in trials]
            gains = [max(-100.0, 100 * trial["improvement"][0]) for trial in trials]
            marks = {"color": color, "size": 7, "opacity": 0.7}
            figure.add_scatter(
                x=places, y=gains, mode="markers", marker=marks, name=state, showlegend=index == 0, row=row, col=column
            )
        figure.update_xaxes(row=row, col=column, **_axis(own))
    figure.update_yaxes(title=f"{study.objectives[0].measure.label}, %", col=1)
    return figure.update_layout(height=80 + 260 * -(-len(shown) // columns))


def contours(study: Study, space: Space, result: Document) -> go.Figure | None:
    """Draw the improvement over the two parameters that matter most."""
    known = [own for own in _known(result) if own["state"] != "infeasible"]
    shown = [own for own in _shown(space, result) if not own.choices][:2]
    if len(shown) < 2 or len(known) < 10:  # noqa: PLR2004
        return None
    places = [[own.part(trial["settings"][own.name]) for trial in known] for own in shown]
    gains = [max(-50.0, 100 * own["improvement"][0]) for own in known]
    steps = [(k + 0.5) / 25 for k in range(25)]
    grid = [[_near(places, gains, x, y) for x in steps] for y in steps]
    figure = go.Figure(
        go.Contour(
            x=steps,
            y=steps,
            z=grid,
            colorscale="Viridis",
            colorbar={"title": f"{study.objectives[0].measure.label}, %"},
        )
    )
    marks = {"color": "white", "size": 4, "line": {"width": 1, "color": "#333"}}
    figure.add_scatter(x=places[0], y=places[1], mode="markers", marker=marks, showlegend=False)
    for axis, own in zip((figure.update_xaxes, figure.update_yaxes), shown, strict=True):
        axis(**{"title": own.name, **_axis(own), "range": [0, 1]})
    return figure


def _near(places: list[list[float]], gains: list[float], x: float, y: float) -> float:
    """Return the mean gain of the trials, the nearer the heavier."""
    weights = [1 / ((px - x) ** 2 + (py - y) ** 2 + 1e-3) ** 2 for px, py in zip(*places, strict=True)]
    return float(np.average(gains, weights=weights))


def choices(study: Study, space: Space, result: Document) -> go.Figure | None:
    """Draw the first objective by the values of each parameter that has choices."""
    name, unit = study.objectives[0].measure.label, study.objectives[0].measure.unit
    ways = (("others as the default", _GREY, _alone), ("best found", _BLUE, _best_with))
    if not _chosen(space):
        return None
    figure = _rows(_chosen(space), f"{name}, {unit}" if unit else name)
    for row, own in enumerate(_chosen(space), 1):
        for title, color, pick in ways:
            found = [_measured(pick(result, own, value)).get(study.objectives[0].name) for value in own.choices]
            figure.add_trace(_bars(title, color, own.choices, found, first=row == 1), row=row, col=1)
    return figure


def measures(study: Study, space: Space, result: Document) -> go.Figure | None:
    """Draw the measures that have the unit of the first objective, by the values of each parameter with choices."""
    unit = study.objectives[0].measure.unit
    same = [own for own in study.measures if own.unit == unit]
    if len(same) < 2 or not unit or not _chosen(space):  # noqa: PLR2004
        return None
    figure = _rows(_chosen(space), unit)
    drawn = False
    for row, own in enumerate(_chosen(space), 1):
        trials = [_measured(_alone(result, own, value)) for value in own.choices]
        drawn = drawn or sum(map(bool, trials)) > 1
        for index, measure in enumerate(same):
            found = [trial.get(measure.name) for trial in trials]
            color = _COLORS[index % len(_COLORS)]
            figure.add_trace(_bars(measure.label, color, own.choices, found, first=row == 1), row=row, col=1)
    return figure if drawn else None


def _chosen(space: Space) -> list[Parameter]:
    """Return the parameters with choices, as many as a page has room for."""
    return [own for own in space.parameters if 2 <= len(own.choices) <= _MOST_CHOICES][:_MOST_SLICES]  # noqa: PLR2004


def _alone(result: Document, own: Parameter, value: Value) -> Document | None:
    """Return the trial of a value with all other parameters as the default."""
    wanted = {**result["default"], own.name: value}
    return next((trial for trial in result["history"] if trial["settings"] == wanted), None)


def _best_with(result: Document, own: Parameter, value: Value) -> Document | None:
    """Return the best trial with a value."""
    known = [t for t in _known(result) if t["state"] == "complete" and t["settings"][own.name] == value]
    return max(known, key=lambda trial: trial["improvement"][0], default=None)


def _measured(trial: Document | None) -> dict[str, list[float]]:
    return (trial["measured"] or {}) if trial else {}


def _rows(parameters: list[Parameter], title: str) -> go.Figure:
    from plotly.subplots import make_subplots  # noqa: PLC0415

    names = [own.name for own in parameters]
    figure = make_subplots(rows=len(names), cols=1, subplot_titles=names, vertical_spacing=0.35 / max(2, len(names)))
    figure.update_yaxes(title=title, rangemode="tozero")
    return figure.update_layout(height=100 + 240 * len(names), barmode="group")


def _bars(title: str, color: str, values: Sequence[Value], found: list[list[float] | None], *, first: bool) -> go.Bar:
    """Return bars, with arms from the least to the greatest run; there is none where nothing was measured."""
    return go.Bar(
        x=[str(value) for value in values],
        y=[own[0] if own else None for own in found],
        error_y={
            "type": "data",
            "array": [own[2] - own[0] if own else None for own in found],
            "arrayminus": [own[0] - own[1] if own else None for own in found],
            "thickness": 1,
        },
        name=title,
        marker_color=color,
        showlegend=first,
    )


def screening(result: Document) -> go.Figure | None:
    """Draw the simulator's improvement of settings against the real kernel's."""
    if not result["screening"]:
        return None
    rows = result["screening"]["rows"]
    x, y = ([100 * row[side] for row in rows] for side in ("simulated", "real"))
    text = [_written(row["settings"]) for row in rows]
    figure = go.Figure(go.Scatter(x=x, y=y, mode="markers", marker={"size": 10, "color": _BLUE}, text=text))
    return figure.update_layout(xaxis_title="improvement, simulated, %", yaxis_title="improvement, real, %")


def _about(result: Document, trial: Document) -> str:
    changes = {name: value for name, value in trial["settings"].items() if value != result["default"][name]}
    return f"trial {trial['number']}<br>{_written(changes) or 'the default'}"


def _written(settings: Document) -> str:
    return "<br>".join(f"{html.escape(name)}={html.escape(str(value))}" for name, value in settings.items())
