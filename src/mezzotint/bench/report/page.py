"""The HTML page of a run: one file, nothing fetched, no script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from mezzotint.atomic import replacing
from mezzotint.bench.measures import STATES, summary
from mezzotint.bench.report.figures import figures
from mezzotint.bench.report.words import ALONE, SAID, bars, cautions, losses, processor, verdict
from mezzotint.bench.results import REPORT, Results

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#1d2733;background:#fff}
body{max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}
table{border-collapse:collapse;font-size:.82rem;display:block;overflow-x:auto}
th,td{padding:.25rem .5rem;text-align:right;border-bottom:1px solid #e4e9ee;white-space:nowrap}
th:first-child,td:first-child{text-align:left}tr.base{background:#fbf3ec}
figure{margin:1.2rem 0}figcaption{font-size:.85rem;color:#4a5866}
svg{width:100%;height:auto;font:11px system-ui,sans-serif}svg text{fill-opacity:.95}
"""
Table = Sequence[Sequence[str]]


def write(results: Results, folder: Path) -> Path:
    """DIR/report.html, whole or not at all."""
    file = folder / REPORT
    with replacing(file) as partial:
        partial.write_text(page(results), "utf-8")
    return file


def page(results: Results) -> str:
    """The whole page."""
    body = "\n".join(_sections(results))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>AR against diffusion, same device</title><style>{_STYLE}</style></head>"
        f"<body>\n{body}\n</body></html>\n"
    )


def _sections(results: Results) -> Iterator[str]:
    found, run, titles = summary(results), results.run, results.titles()
    found = {state: some for state, some in found.items() if some["arms"]}
    yield "<h1>AR against diffusion: same device, same tasks</h1>"
    yield f"<p>{escape(' '.join([*cautions(results), *verdict(found, titles)]))}</p>"
    yield "<h2>Where ours lost</h2>"
    yield f"<p>{'<br>'.join(map(escape, losses(found, titles)))}</p>"
    if claims := bars(summary(_held_out(results))):
        yield "<h2>What the project wants of held-out tool calls, warm</h2>"
        busy = processor(results) < ALONE
        judged = {True: "met", False: "not met"}
        rows = [
            (one, came, "busy: not judged" if busy else judged[met]) for one, came, met in claims
        ]
        yield _table(("", "came", ""), rows)
    for state in STATES:
        if state in found:
            yield f"<h2>{state.capitalize()}: {SAID[state]}</h2>"
            yield _arms(found[state])
    yield "<h2>By suite</h2>"
    yield from _suites(found)
    for title, text, drawn in figures(found, results.parts, run.arms):
        caption = f"<figcaption>{escape(text)}</figcaption>"
        yield f"<h2>{escape(title)}</h2><figure>{drawn}{caption}</figure>"
    yield from _parts(results)
    yield from _method(results)


def _held_out(results: Results) -> Results:
    rows = [row for row in results.rows if row.suite.startswith("held-out")]
    return results.model_copy(update={"rows": rows})


_HEAD = (
    "arm", "right", "95%", "points", "p", "ms to action", "p95", "times as fast", "95%",
    "of our AR", "ms to end", "p95", "prefill", "passes", "tokens/pass", "forced", "useful/s",
    "CPU ms", "J", "cut", "failed",
)  # fmt: skip


def _arms(state: Mapping[str, Any]) -> str:
    note = (
        f"Baseline: {state['baseline'] or 'none'}. Points and p: against the surest,"
        f" {state['surest'] or 'none'} (McNemar, exact). Useful: tokens of right answers over the"
        " time of all. Cut: answers that ran into the limit of tokens."
    )
    rows = [_arm(entry) for entry in state["arms"]]
    return _table(_HEAD, rows, state["baseline"]) + f"<p>{escape(note)}</p>"


def _arm(e: Mapping[str, Any]) -> Sequence[str]:
    """The cells of an arm, as _HEAD names them."""
    sure, base, own, right = (
        e["against_surest"], e["against_baseline"], e["against_own_ar"], e["success"],
    )  # fmt: skip
    return (
        e["arm"], f"{right['share']:.1%}", f"{right['low']:.0%}–{right['high']:.0%}",
        f"{sure['points']:+.1f}" if sure else "–", f"{sure['p']:.2f}" if sure else "–",
        _ms(e["wait"]["p50"]), _ms(e["wait"]["p95"]),
        f"{base['time']['median']:.2f}" if base else "–",
        f"{base['time']['low']:.2f}–{base['time']['high']:.2f}" if base else "–",
        f"{own['time']['median']:.2f}" if own else "–",
        _ms(e["end"]["p50"]), _ms(e["end"]["p95"]), _ms(e["prefill"]), f"{e['passes']:.1f}",
        f"{e['tokens_per_pass']:.2f}", f"{e['forced']:.0%}", f"{e['useful_per_second']:.0f}",
        _ms(e["cpu"]), "–" if e["joules"] is None else f"{e['joules']:.2f}",
        str(e["cut_off"]), str(e["errors"]),
    )  # fmt: skip


def _suites(found: Mapping[str, Any]) -> Iterator[str]:
    for state, some in found.items():
        names = list(dict.fromkeys(n for e in some["arms"] for n in e["by_suite"]))
        groups = list(dict.fromkeys(n for e in some["arms"] for n in e["by_group"]))
        sizes = sorted({n for e in some["arms"] for n in e["by_size"]})
        for key, parts in (("by_suite", names), ("by_group", groups), ("by_size", sizes)):
            label = {"by_suite": "suite", "by_group": "group", "by_size": "answer's length"}[key]
            rows = [(part, *(_part(e[key].get(part)) for e in some["arms"])) for part in parts]
            yield _table((f"{label}, {state}", *(e["arm"] for e in some["arms"])), rows)
    yield "<p>Right; and how many times as fast as the baseline.</p>"


def _part(part: Mapping[str, Any] | None) -> str:
    if part is None:
        return "–"
    base = part["against_baseline"]
    faster = f" · {base['time']['median']:.1f}×" if base else ""
    return f"{part['success']['share']:.0%}{faster}"


def _parts(results: Results) -> Iterator[str]:
    if memory := results.parts.get("memory"):
        yield "<h2>Memory and loading</h2>"
        rows = [
            (name, f"{m['peak'] / 1e6:.0f}", f"{m['loaded'] / 1e6:.0f}", f"{m['seconds']:.2f}")
            for name, m in memory["arms"].items()
        ]
        yield _table(("arm", "peak MB", "loaded MB", "seconds to load"), rows)
        yield (
            f"<p>Each in a process of its own that answered one prompt of {memory['prompt_tokens']}"
            " tokens. Peak is VmHWM, mapped files included. Loading: files are in the system's"
            " cache.</p>"
        )
    if agent := results.parts.get("agent"):
        yield "<h2>The agent's scenarios, graded by final state</h2>"
        played = [
            (which, a["arm"], f"{a['success']['share']:.1%}",
             f"{a['success']['low']:.0%}–{a['success']['high']:.0%}", str(a["success"]["of"]),
             f"{a['ms']:.0f}", f"{a['ms_95']:.0f}", str(a["wrongly_sent"]), str(a["escapes"]))
            for which, found in agent.items() for a in found["arms"]
        ]  # fmt: skip
        head = ("set", "arm", "success", "95%", "of", "ms a request", "p95", "wrongly sent",
                "escapes")  # fmt: skip
        yield _table(head, played)


def _method(results: Results) -> Iterator[str]:
    run, machine = results.run, results.run.machine
    yield "<h2>How it was measured</h2>"
    yield (
        f"<p>{run.tasks} tasks of {escape(', '.join(run.suites))}, each answered by every arm, cold"
        " and warm, before the next, in an order drawn for each task; before each turn a rest, then"
        f" an unmeasured reading of the tools by the arm itself. Warm-up: {escape(run.warmup)}."
        f" Greedy decoding, to the end of the turn. {escape(_given(results))} Arms that show their"
        f" prompts read identical token ids (sha256 over all: <code>{run.prompts[:16]}</code>)."
        f" Energy: {escape(machine['energy'])}.</p>"
    )
    yield "<h2>Machine and weights</h2>"
    engine = machine["engine"]
    mhz = ", ".join(map(str, machine["frequency_mhz"])) or "unknown"
    facts = {
        "processor": f"{machine['processor']}, {machine['cores']} cores, MHz {mhz}",
        "threads": f"{engine['threads']}, kernels {engine['kernels']}",
        "memory": f"{machine['memory_bytes'] / 2**30:.1f} GiB",
        "system": f"{machine['system']}, Python {machine['python']}",
        "load at the start": str(machine["load"]),
        "packages": ", ".join(f"{n} {v}" for n, v in machine["packages"].items() if v),
        "llama.cpp": machine["llama_cpp"] or "none",
        "started": f"{run.started}, seed {run.seed}",
    }
    told = (f"<b>{escape(name)}</b> {escape(fact)}" for name, fact in facts.items())
    yield f"<p>{'<br>'.join(told)}</p>"
    packed = [
        (name, w["model"], _format(w), str(w.get("bytes", "–")), str(w["sha256"])[:16])
        for name, w in run.weights.items()
    ]
    yield _table(("arm", "model", "format and decoding", "bytes", "sha256 of its weights"), packed)
    for trial in results.trials:
        tried = ", ".join(
            f"{kind}{f' {n} drafts' if n else ''} {s:.2f} s" for kind, n, s in trial["tried"]
        )
        yield f"<p>Trial of {escape(trial['arm'])} ({trial['tasks']} tasks): {escape(tried)}.</p>"


def _given(results: Results) -> str:
    names = [spec["name"] for spec in results.run.arms if spec.get("infill")]
    if not names:
        return "Every task is a request."
    return f"Holes and edits are given as such to {', '.join(names)}; to others as a request."


def _format(weights: Mapping[str, Any]) -> str:
    decoding = weights.get("decoding")
    told = f", {decoding['policy']}, window {decoding['block']}" if decoding else ""
    return f"{weights.get('format', '–')}{told}"


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1e3 * seconds:.0f}"


def _table(head: Sequence[str], rows: Table, marked: str = "") -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr{' class=base' if marked and row[0] == marked else ''}>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"
