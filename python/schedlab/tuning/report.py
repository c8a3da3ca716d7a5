"""The report: one HTML page that needs nothing else, no network either."""

import html
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from schedlab.tuning import kept, outcome
from schedlab.tuning.outcome import Document
from schedlab.tuning.space import Parameter, Space
from schedlab.tuning.study import Study

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; color: #222; }
pre { background: #f6f6f6; padding: 1em; overflow-x: auto; }
table { border-collapse: collapse; } td, th { padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: right; }
td:first-child, th:first-child { text-align: left; }
"""
_MOST_SLICES = 8
_BLUE, _GREY, _ORANGE = "#3b6ea5", "#b0b0b0", "#d9822b"
# Settings that were given up have few repeats, and those that break a constraint are no settings to choose.
_STATES = {"pruned": _GREY, "infeasible": _ORANGE, "complete": _BLUE}
_TICKS = (0, 0.25, 0.5, 0.75, 1)


def report(study: Study, space: Space, result: Document, path: Path) -> str:
    """Return the page; `path` is where it will be."""
    parts = [("Result", f"<pre>{html.escape(outcome.text(study, result))}</pre>")]
    if result["looks"]:
        parts.append(("Before and after, in the traces", _looks(result, path)))
    pictures = [
        (
            "Before and after",
            before_and_after(result),
            "Improvement on held-out runs, with intervals.",
        ),
        (
            "History",
            history(study, result),
            "Each trial by its improvement during the search; the line is the best.",
        ),
        ("Parameters that matter", importance(result), "Part of the variance that each parameter explains by itself."),
        ("Pareto front", front(study, result), "Trials by two objectives, and the front on held-out runs."),
        (
            "Slices",
            slices(space, result),
            "Each trial by the value of one parameter: with all its repeats, given up early, or breaking a constraint.",
        ),
        ("Contours", contours(space, result), "The two parameters that matter most."),
        ("Screening", screening(result), "Improvement on the simulator and on the real kernel."),
    ]
    for title, figure, about in pictures:
        if figure is not None:
            figure.update_layout(template="plotly_white", margin={"t": 30, "r": 20}, font={"size": 13})
            drawn = figure.to_html(full_html=False, include_plotlyjs=False, config={"displayModeBar": False})
            parts.append((title, f"<p>{about}</p>{drawn}"))
    parts.append(("Settings", f"<pre>{html.escape(outcome.settings_file(study, result))}</pre>"))
    body = "".join(f"<section><h2>{title}</h2>{content}</section>" for title, content in parts)
    title = html.escape(study.title)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<script>{get_plotlyjs()}</script></head><body><h1>{title}</h1>{body}</body></html>\n"
    )


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
    if not parts:
        return None
    bars = go.Bar(
        x=[100 * part for _, part in parts], y=[name for name, _ in parts], orientation="h", marker_color=_BLUE
    )
    return go.Figure(bars).update_layout(height=120 + 28 * len(parts), xaxis_title="part of the variance, %")


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
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{prefix}"
    return f"{value:.3g}"


def slices(space: Space, result: Document) -> go.Figure | None:
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
            marks = {"color": color, "size": 5, "opacity": 0.7}
            figure.add_scatter(
                x=places, y=gains, mode="markers", marker=marks, name=state, showlegend=index == 0, row=row, col=column
            )
        figure.update_xaxes(row=row, col=column, **_axis(own))
    return figure.update_layout(height=80 + 260 * -(-len(shown) // columns))


def contours(space: Space, result: Document) -> go.Figure | None:
    """Draw the improvement over the two parameters that matter most."""
    known = [own for own in _known(result) if own["state"] != "infeasible"]
    shown = [own for own in _shown(space, result) if not own.choices][:2]
    if len(shown) < 2 or len(known) < 10:  # noqa: PLR2004
        return None
    places = [[own.part(trial["settings"][own.name]) for trial in known] for own in shown]
    gains = [max(-50.0, 100 * own["improvement"][0]) for own in known]
    steps = [(k + 0.5) / 25 for k in range(25)]
    grid = [[_near(places, gains, x, y) for x in steps] for y in steps]
    figure = go.Figure(go.Contour(x=steps, y=steps, z=grid, colorscale="Viridis", colorbar={"title": "%"}))
    marks = {"color": "white", "size": 4, "line": {"width": 1, "color": "#333"}}
    figure.add_scatter(x=places[0], y=places[1], mode="markers", marker=marks, showlegend=False)
    for axis, own in zip((figure.update_xaxes, figure.update_yaxes), shown, strict=True):
        axis(**{"title": own.name, **_axis(own), "range": [0, 1]})
    return figure


def _near(places: list[list[float]], gains: list[float], x: float, y: float) -> float:
    """Return the mean gain of the trials, the nearer the heavier."""
    weights = [1 / ((px - x) ** 2 + (py - y) ** 2 + 1e-3) ** 2 for px, py in zip(*places, strict=True)]
    return float(np.average(gains, weights=weights))


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
