"""The result of a study: as JSON, as text, and as a file of settings."""

import json
import math
from statistics import fmean
from typing import Any

from schedlab.counting import counted
from schedlab.tuning import kept
from schedlab.tuning.confirm import Claim, Confirmation
from schedlab.tuning.real import value_toml
from schedlab.tuning.score import good, safe, score
from schedlab.tuning.study import Study
from schedlab.tuning.trials import Trial
from schedlab.tuning.tune import Found

Document = dict[str, Any]


def document(study: Study, found: Found) -> Document:
    """Return the result as plain data."""
    winner, known = found.best or (found.winner, _about(found))
    claims = known.claims if known else []
    first = claims[0] if claims else None
    rows = constraints(study, known) if known else []
    confirmed = found.best is not None
    return {
        "study": study.title,
        "file": str(study.path),
        "backend": study.backend,
        "kernel": study.kernel,
        "method": study.search.method,
        "best": winner.config if confirmed else found.space.default,
        "default": found.space.default,
        "changes": found.space.changes(winner.config) if confirmed else {},
        "improvement": first.improvement if first else 0.0,
        "interval": list(first.interval) if first else [0.0, 0.0],
        "confirmed": confirmed,
        "trials": len(found.trials) - 1,
        "objectives": [_claim(study, own) for own in claims],
        "constraints": rows,
        "constraints_by_chance": known is not None and _by_chance(study, known, rows),
        "candidate": None if confirmed or not known else winner.config,
        "essential": _essential(found),
        "importance": found.importance,
        "front": [_member(study, own, known) for own, known in found.confirmations]
        if len(study.objectives) > 1
        else [],
        "screening": _screening(found),
        "looks": found.looks,
        "interrupted": found.interrupted,
        "remarks": found.remarks,
        "runs": found.runs,
        "held_out_runs": study.confirm.runs,
        "level": study.confirm.level,
        "seconds": round(found.seconds, 3),
        "run_seconds": round(found.run_seconds, 3),
        "history": [_trial(study, own) for own in found.trials],
    }


def _about(found: Found) -> Confirmation | None:
    """Return what was found of the candidate, if it was not confirmed."""
    return next((known for own, known in found.confirmations if own is found.winner), None) or next(
        (known for _, known in found.confirmations), None
    )


def _claim(study: Study, own: Claim) -> Document:
    measure = next(o.measure for o in study.objectives if o.name == own.objective)
    return {
        "name": own.objective,
        "unit": measure.unit,
        "default": own.default,
        "best": own.best,
        "improvement": own.improvement,
        "interval": list(own.interval),
        "p": own.p,
        "confirmed": own.confirmed,
    }


def constraints(study: Study, known: Confirmation) -> list[Document]:
    """Return of each constraint what the held-out runs say: their mean, and how many would break it by themselves."""
    found = []
    for index, own in enumerate(study.constraints, len(study.objectives)):
        defaults = [pair.default[index] or 0.0 for pair in known.pairs]
        values = [pair.own[index] or 0.0 for pair in known.pairs]
        least, most = (bound.of(fmean(defaults)) if bound else None for bound in (own.least, own.most))
        found.append(
            {
                "name": own.measure.name,
                "unit": own.measure.unit,
                "default": fmean(defaults),
                "best": fmean(values),
                "least": least,
                "most": most,
                "held": _beyond(fmean(values), least, most) <= 0,
                "runs_beyond": sum(_beyond(value, least, most) > 0 for value in values),
                "default_runs_beyond": sum(_beyond(value, least, most) > 0 for value in defaults),
                "worst": max(values, key=lambda value: _beyond(value, least, most)),
            }
        )
    return found


def _by_chance(study: Study, known: Confirmation, rows: list[Document]) -> bool:
    """Return whether constraints that hold could be broken in another such set of runs, as far as these tell."""
    return any(row["runs_beyond"] for row in rows) and not safe(study, known.pairs)


def _beyond(value: float, least: float | None, most: float | None) -> float:
    """Return how far a value is beyond its bounds; less than 0 within them."""
    below = least - value if least is not None else -math.inf
    above = value - most if most is not None else -math.inf
    return max(below, above)


def _essential(found: Found) -> Document | None:
    if found.essential is None:
        return None
    return {"settings": found.essential, "changes": found.space.changes(found.essential), "keeps": found.kept}


def _member(study: Study, own: Trial, known: Confirmation) -> Document:
    claims = [_claim(study, claim) for claim in known.claims]
    return {"settings": own.config, "objectives": claims, "confirmed": known.confirmed}


def _screening(found: Found) -> Document | None:
    own = found.screening
    return None if own is None else {**vars(own), "conclusion": own.sentence()}


def _trial(study: Study, own: Trial) -> Document:
    known = score(study, own.pairs) if good(study, own.pairs) else None
    return {
        "number": own.number,
        "name": own.name,
        "settings": own.config,
        "state": own.state if known is None or known.feasible else "infeasible",
        "repeats": len(own.pairs),
        "improvement": [0.0 - loss for loss in known.losses] if known else None,
        "measured": _measured(study, own) if known else None,
        "why": own.why,
    }


def _measured(study: Study, own: Trial) -> dict[str, list[float]]:
    """Return the mean, the least and the greatest value of each measure over a trial's runs."""
    found = {}
    for index, measure in enumerate(study.measures):
        values = [pair.own[index] or 0.0 for pair in own.pairs]
        found[measure.name] = [fmean(values), min(values), max(values)]
    return found


def text(study: Study, result: Document) -> str:
    """Return the result for people."""
    lines = [
        f"{study.title}",
        f"{counted(result['trials'], 'trial')}, {counted(result['runs'], 'run')} in {result['seconds']:.1f} s",
        "",
    ]
    if result["interrupted"]:
        lines += ["Interrupted: nothing was confirmed. The same command goes on with the search.", *_so_far(result)]
    elif not result["confirmed"]:
        lines += _no_better(result)
    else:
        lines += _better(result)
    if result["screening"]:
        lines += _screened(result)
    if result["importance"]:
        parts = sorted(result["importance"].items(), key=lambda entry: -entry[1])
        lines += ["", "How much of the variance each parameter explains by itself (fANOVA):"]
        lines += [f"  {name:<32} {part:5.1%}" for name, part in parts]
    lines += kept.lines(result["looks"])
    lines += ["", *result["remarks"]] if result["remarks"] else []
    return "\n".join(lines).rstrip()


def _screened(result: Document) -> list[str]:
    own = result["screening"]
    lines = [
        "",
        f"Screening: {counted(own['simulated_trials'], 'trial')} on the simulated {own['kernel']}, and these here:",
    ]
    lines += ["", f"  {'simulated':>9} {'real':>8}  settings"]
    for row in own["rows"]:
        changes = {k: v for k, v in row["settings"].items() if v != result["default"][k]}
        lines.append(f"  {row['simulated']:>+9.1%} {row['real']:>+8.1%}  {_written(changes)}")
    return [*lines, "", own["conclusion"]]


def _so_far(result: Document) -> list[str]:
    known = [own for own in result["history"] if own["improvement"] and own["state"] == "complete" and own["number"]]
    if not known:
        return []
    best = max(known, key=lambda own: sum(own["improvement"]))
    gain = best["improvement"][0]
    changes = {k: v for k, v in best["settings"].items() if v != result["default"][k]}
    return [f"Best so far, on the runs of the search: {gain:+.1%} with {_written(changes)}"]


def _no_better(result: Document) -> list[str]:
    lines = ["No better than the default: keep the default settings."]
    if not result["objectives"] and not result["remarks"]:
        lines.append("Nothing that was tried was better than it in the runs of the search.")
    broken = [own for own in result["constraints"] if not own["held"]]
    for own in result["objectives"]:
        low, high = own["interval"]
        lines.append(
            f"On {result['held_out_runs']} held-out runs, the best candidate improved {own['name']} by "
            f"{own['improvement']:+.2%} ({100 * result['level']:g}% interval {low:+.2%} to {high:+.2%}; "
            "below zero is worse)."
        )
        if low > 0 and not broken:
            most = (1 - result["level"]) / len(result["objectives"])
            lines.append(
                "A few runs may make that mean, so it is not claimed: by mean and signed ranks p is "
                f"{own['p']:.2g}, and would have to be {most:.2g} or less."
            )
    return lines + [f"The constraint {own['name']} did not hold on the held-out runs." for own in broken]


def _better(result: Document) -> list[str]:
    lines = [f"Better than the default, confirmed on {result['held_out_runs']} held-out runs:", ""]
    lines.append(f"  {'':<20} {'default':>12} {'best':>12}   improvement")
    for own in result["objectives"]:
        low, high = own["interval"]
        mark = "" if own["confirmed"] else "  (not shown to differ)"
        lines.append(
            f"  {_titled(own):<20} {own['default']:>12.5g} {own['best']:>12.5g}   "
            f"{own['improvement']:+.1%} ({low:+.1%} to {high:+.1%}){mark}"
        )
    for own in result["constraints"]:
        bound = " and ".join(f"{w} {own[w]:.5g}" for w in ("least", "most") if own[w] is not None)
        lines.append(f"  {_titled(own):<20} {own['default']:>12.5g} {own['best']:>12.5g}   constraint: at {bound}")
        lines.append(f"  {'':<46}   {_runs_beyond(own, result)}")
    lines += ["", f"  {'setting':<36} {'default':>14} {'best':>14}"]
    kept: Document = (result["essential"] or result)["changes"]
    for name, value in result["changes"].items():
        mark = "" if name in kept else "  (matters little)"
        lines.append(f"  {name:<36} {result['default'][name]!s:>14} {value!s:>14}{mark}")
    if result["essential"] and len(kept) < len(result["changes"]):
        part = result["essential"]["keeps"]
        lines += ["", f"{_written(kept)} alone {'keeps' if len(kept) == 1 else 'keep'} {part:.0%} of the gain."]
    if result["constraints_by_chance"]:
        lines += ["", "That the constraints hold in these runs may be chance: another such set of runs may break one."]
    return lines


def _runs_beyond(own: Document, result: Document) -> str:
    """Return in how many runs a constraint would be broken if each of them were judged by itself."""
    held_out = counted(result["held_out_runs"], "run")
    runs = f"{own['runs_beyond']} of {held_out} beyond it (default: {own['default_runs_beyond']})"
    return f"{runs}, the worst at {own['worst']:.5g}"


def _titled(own: Document) -> str:
    """Return the name of a measure with its unit."""
    return f"{own['name']}, {own['unit']}" if own["unit"] else str(own["name"])


def _written(changes: Document) -> str:
    return ", ".join(f"{name}={value}" for name, value in changes.items())


def settings_file(study: Study, result: Document) -> str:
    """Return the best settings as a file for `schedlab tunables --apply` and `--profile`."""
    lines = [f"# {study.title}"]
    if not result["confirmed"]:
        return "\n".join([*lines, "# No better than the default was found: there is nothing to set.", ""])
    for own in result["objectives"]:
        low, high = own["interval"]
        lines.append(f"# {own['name']}: {own['improvement']:+.1%} ({low:+.1%} to {high:+.1%}) against the default")
    effect = _effect(result)
    kept: Document = (result["essential"] or result)["changes"]
    for name, value in result["changes"].items():
        note = effect if name in kept else "matters little: the others keep 95% of the gain without it"
        lines += [f"# effect: {note}", f"{json.dumps(name)} = {value_toml(str(value))}"]
    return "\n".join([*lines, ""])


def _effect(result: Document) -> str:
    own = result["objectives"][0]
    return f"{own['name']} {own['improvement']:+.1%} with all of these settings together, on {result['backend']}"
