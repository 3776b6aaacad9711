"""GET /metrics: what a server counts, in Prometheus' text form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from mezzotint.serve.answer import Ended
from mezzotint.serve.worker import Stats

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    """stats: what the worker does now."""

    def __init__(self, stats: Callable[[], Stats]) -> None:
        base = self._registry = CollectorRegistry()
        base.register(_Now(stats))
        self._requests = Counter(
            "mezzotint_requests", "Requests by path and status", ["path", "status"], registry=base
        )
        self._seconds = Histogram(
            "mezzotint_request_seconds", "From a request to the end of its answer", ["path"],
            buckets=_SECONDS, registry=base,
        )  # fmt: skip
        self._prompt = Counter("mezzotint_prompt_tokens", "Tokens of prompts", registry=base)
        self._written = Counter("mezzotint_completion_tokens", "Tokens of answers", registry=base)
        self._passes = Counter("mezzotint_answer_passes", "Passes of answers", registry=base)

    def count(self, prompt_tokens: int, ends: Sequence[Ended]) -> None:
        """Count a finished answer and its candidates."""
        self._prompt.inc(prompt_tokens)
        self._written.inc(sum(end.tokens for end in ends))
        self._passes.inc(sum(end.passes for end in ends))

    def answered(self, path: str, status: int, seconds: float) -> None:
        """path: that of a route, so that their number is bounded."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Now(Collector):
    """The worker's numbers, read when they are asked for."""

    def __init__(self, stats: Callable[[], Stats]) -> None:
        self._stats = stats

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, value in asdict(self._stats()).items():
            about = f"The worker's {name.replace('_', ' ')}"
            if isinstance(value, Mapping):
                family = GaugeMetricFamily(f"mezzotint_worker_{name}", about, labels=["size"])
                for size, count in value.items():
                    family.add_metric([str(size)], count)
                yield family
            else:
                yield GaugeMetricFamily(f"mezzotint_worker_{name}", about, value)
