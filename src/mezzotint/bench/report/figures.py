"""The figures of a run, each a chart with a sentence that says how to read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mezzotint.bench.report.svg import Chart, axis, stacked

THEIRS, OURS, SCHEMA, FLOOR = "#b4541f", "#1f6fb4", "#1d8a5f", "#7a8794"
PARTS = (("prefill", "#9bb7d4"), ("passes", OURS), ("the rest", "#e0a458"))
Figure = tuple[str, str, str]
"""Title, sentence, SVG."""


def figures(found: Mapping[str, Any], parts: Mapping[str, Any], specs: Any) -> Iterator[Figure]:
    """found: the summary. parts: what the stages measured. specs: the arms', in order."""
    colours = {spec["name"]: _colour(spec) for spec in specs}
    for state in found:
        if found[state]["baseline"]:
            yield _speedups(state, found[state], colours)
    if parts.get("sweep"):
        yield _sweep(parts["sweep"])
    if parts.get("passes"):
        yield _passes(parts["passes"])
    for state in found:
        if found[state]["arms"]:
            yield _where(state, found[state])
    if parts.get("lengths"):
        yield _lengths(parts["lengths"], colours)


def _colour(spec: Mapping[str, Any]) -> str:
    if spec["kind"] != "ours":
        return THEIRS
    return SCHEMA if spec["structure"] else OURS


def _speedups(state: str, found: Mapping[str, Any], colours: Mapping[str, str]) -> Figure:
    arms = [entry for entry in found["arms"] if entry["against_baseline"]]
    times = [entry["against_baseline"]["time"] for entry in arms]
    bounds = [time[end] for time in times for end in ("low", "high")]
    chart = Chart(
        axis("success, %", [100 * entry["success"]["share"] for entry in arms]),
        axis(f"times as fast as {found['baseline']}", [1.0, *bounds]),
        f"Speed-up and success, {state}",
    )  # fmt: skip
    chart.rule(1.0, "as fast")
    for entry, time in zip(arms, times, strict=True):
        chart.dot(
            100 * entry["success"]["share"], time["median"], colours[entry["arm"]], entry["arm"],
            not entry["equal"], (time["low"], time["high"]),
        )  # fmt: skip
    text = (
        "Time to a valid action, the median over tasks of the baseline's to the arm's, with its"
        " 95% interval. Filled: success is within a point of the surest llama.cpp arm. Hollow: it"
        " is not, and its speed is no win."
    )
    return chart.title, text, chart.svg()


def _sweep(points: list[Mapping[str, Any]]) -> Figure:
    share = [100 * point["success"]["share"] for point in points]
    chart = Chart(
        axis("tokens a pass", [point["tokens_per_pass"] for point in points]),
        axis("success, %", share),
        "Tokens a pass against success",
    )
    lines: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    for point in points:
        kind = point["policy"].partition(":")[0]
        place = (point["tokens_per_pass"], 100 * point["success"]["share"])
        lines.setdefault((kind, point["structure"]), []).append(place)
        label = point["policy"].partition(":")[2] or f"{kind} {point['block'] or ''}".strip()
        kept = kind in ("ar", "exact")
        chart.dot(*place, SCHEMA if point["structure"] else OURS, label, kept)
    for (_, structure), places in lines.items():
        chart.line(places, SCHEMA if structure else OURS)
    text = (
        f"The same {points[0]['success']['of']} tasks at each point. Filled: drafts taken without"
        " verification or kept though AR doubts them, at the threshold beside the point. Hollow:"
        " AR, and verified drafts by their window. Blue is free, green is held to schemas."
    )
    return chart.title, text, chart.svg()


def _passes(found: Mapping[str, Any]) -> Figure:
    rows = found["rows"]
    floor = [max(found["reading"], multiplying) for multiplying in found["multiplying"]]
    chart = Chart(
        axis("rows of a pass, M", rows, log=True),
        axis("ms", [*found["ours"], *found["llama"], *floor], log=True),
        "What a pass costs",
    )
    chart.line(list(zip(rows, found["ours"], strict=True)), OURS, f"ours {found['ours_format']}")
    chart.line(
        list(zip(rows, found["llama"], strict=True)), THEIRS, f"llama.cpp {found['llama_format']}"
    )
    chart.line(list(zip(rows, floor, strict=True)), FLOOR, "roofline", "4 4")
    text = (
        f"After {found['cached']} cached tokens, logits of every row. The roofline is what our pass"
        f" costs at the least: reading its weights once ({found['reading']:.1f} ms at"
        f" {found['peaks']['bandwidth'] / 1e9:.0f} GB/s), or multiplying them M times at"
        f" {found['peaks']['int8_ops'] / 1e12:.2f} T int8 operations/s."
    )
    return chart.title, text, chart.svg()


def _where(state: str, found: Mapping[str, Any]) -> Figure:
    rows = [
        (entry["arm"], [1e3 * entry[part] for part in ("prefill", "model", "other")])
        for entry in found["arms"]
    ]
    text = (
        "Medians to the end of the turn. The rest is everything between passes: choosing tokens,"
        " grammars and their compiling, drafts, Python."
    )
    return f"Where the time goes, {state}", text, stacked(rows, PARTS, "ms")


def _lengths(found: list[Mapping[str, Any]], colours: Mapping[str, str]) -> Figure:
    cold = [one for one in found if not one["warm"]]
    chart = Chart(
        axis("tokens of the prompt", [one["tokens"] for one in cold], log=True),
        axis("ms to a valid action", [1e3 * one["wait"] for one in cold], log=True),
        "Time against the prompt's length, cold",
    )
    for arm in dict.fromkeys(one["arm"] for one in cold):
        some = [(one["tokens"], 1e3 * one["wait"]) for one in cold if one["arm"] == arm]
        chart.line(sorted(some), colours.get(arm, FLOOR), arm)
    text = (
        f"Medians of {cold[0]['of']} tasks, made longer by showing tools of other tasks beside"
        " their own."
    )
    return chart.title, text, chart.svg()
