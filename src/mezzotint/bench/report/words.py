"""What a run found, in plain sentences made of its numbers: who won, who lost, and where."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from mezzotint.bench.measures import POINTS
from mezzotint.bench.results import Results

SAID = {"warm": "with the tools cached", "cold": "with the whole prompt to read"}
BARS = (("exact", 3.0), ("auto-schema", 5.0))
"""Arms, and how many times as fast as llama.cpp's best the project wants them on tool calls."""

FEW = 100  # tasks, below which a run is but a look
ALONE = 0.9  # CPU seconds a second, below which an arm had not the processor to itself

State = Mapping[str, Any]
Titles = Mapping[str, str]


def cautions(results: Results) -> list[str]:
    """What makes a run less than a result."""
    run, lines = results.run, []
    if run.tasks < FEW:
        lines.append(f"A look, not a result: {run.tasks} tasks.")
    if (got := processor(results)) < ALONE:
        lines.append(
            f"Other work had the processor: an arm got {got:.2f} s of it a second, where one that"
            " is alone gets 1 or more. No time here is a result, and llama.cpp's suffers most, for"
            " its threads wait for each other."
        )
    elif (load := run.machine["load"]) and load > run.machine["cores"] / 2:
        lines.append(f"Other work ran at the start (load {load}): read times with care.")
    return lines


def processor(results: Results) -> float:
    """CPU seconds that an arm got for each second it took, median; 1 or more where it was alone,
    since one of its threads at least is always at work. 1 where none is known."""
    got = [row.cpu / row.end for row in results.rows if row.cpu is not None and row.end]
    return median(got) if got else 1.0


def verdict(found: Mapping[str, State], titles: Titles) -> list[str]:
    """Sentences, state by state."""
    return [line for state in found for line in _state(SAID[state], found[state], titles)]


def _state(said: str, state: State, titles: Titles) -> list[str]:
    arms = {entry["arm"]: entry for entry in state["arms"]}
    if not state["baseline"]:
        return [f"{said.capitalize()}, no llama.cpp arm answered, so nothing is compared."]
    base, surest = arms[state["baseline"]], arms[state["surest"]]
    lines = [
        f"{said.capitalize()}, the fastest llama.cpp arm ({titles[base['arm']]}) came to a valid"
        f" action in {_ms(base)} (median of {base['success']['of']} tasks), right in"
        f" {base['success']['share']:.1%}; the surest ({titles[surest['arm']]}) was right in"
        f" {surest['success']['share']:.1%}."
    ]
    ours = [e for e in state["arms"] if e["ours"] and e["against_baseline"]]
    if not ours:
        return [*lines, "No arm of ours was run."]
    equal = [entry for entry in ours if entry["equal"]]
    fastest = max(ours, key=_speed)
    if equal:
        best = max(equal, key=_speed)
        lines.append(_sentence("At equal success the fastest of ours was", best, titles))
        lines += _own(best)
    else:
        lines.append(f"None of ours came within {POINTS:g} point of the surest: no win is claimed.")
    if not equal or fastest is not best:
        lines.append(_sentence("The fastest of ours, whatever its success, was", fastest, titles))
    return lines


def _sentence(begin: str, entry: State, titles: Titles) -> str:
    time, sure = entry["against_baseline"]["time"], entry["against_surest"]
    return (
        f"{begin} {titles[entry['arm']]}: {_ms(entry)}, {time['median']:.2f} times as fast"
        f" ({time['low']:.2f}–{time['high']:.2f}), right in {entry['success']['share']:.1%}"
        f" ({sure['points']:+.1f} points to the surest, p = {sure['p']:.2f})."
    )


def _own(entry: State) -> list[str]:
    if not entry["against_own_ar"]:
        return []
    time = entry["against_own_ar"]["time"]
    return [
        f"Against AR in our own engine it is {time['median']:.2f} times as fast"
        f" ({time['low']:.2f}–{time['high']:.2f}): the rest is the engine."
    ]


def losses(found: Mapping[str, State], titles: Titles) -> list[str]:
    """Every arm of ours, state and suite where it was slower than the baseline, or less right
    by more than POINTS; one sentence if there is none."""
    if not any(some["baseline"] for some in found.values()):
        return ["Nothing was compared."]
    lines = []
    for state, some in found.items():
        for entry in some["arms"]:
            if not entry["ours"]:
                continue
            parts = [_lost(n, part["against_baseline"]) for n, part in entry["by_suite"].items()]
            if told := "; ".join(part for part in parts if part):
                lines.append(f"{titles[entry['arm']]}, {state}: {told}.")
    return lines or ["Nowhere, by suite, in this run."]


def _lost(suite: str, against: State | None) -> str:
    if against is None:
        return ""
    time, success = against["time"], against["success"]
    told = []
    if time["median"] < 1:
        told.append(f"{time['median']:.2f} times as fast")
    if success["points"] < -POINTS:
        told.append(f"{success['points']:+.1f} points (p = {success['p']:.2f})")
    return f"{suite} {', '.join(told)}" if told else ""


def bars(found: Mapping[str, State]) -> list[tuple[str, str, bool]]:
    """What the project wants, warm: the claim, what came, and whether it is met.

    found: the summary of the held-out tool calls alone.
    """
    lines = []
    state = found["warm"]
    for name, wanted in BARS:
        entry = next((e for e in state["arms"] if e["arm"] == name), None)
        if entry is None or not entry["against_baseline"]:
            continue
        speed, sure = _speed(entry), entry["against_surest"]["points"]
        claim = f"{name} at least {wanted:g} times as fast, within {POINTS:g} point"
        lines.append((claim, f"{speed:.2f} times, {sure:+.1f} points",
                      speed >= wanted and entry["equal"]))  # fmt: skip
    return lines


def _speed(entry: State) -> float:
    return float(entry["against_baseline"]["time"]["median"])


def _ms(entry: State) -> str:
    return f"{1e3 * entry['wait']['p50']:.0f} ms"
