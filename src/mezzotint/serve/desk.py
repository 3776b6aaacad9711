"""What every endpoint works with: the worker, the model, the settings, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from mezzotint.generate import Model
from mezzotint.serve.answer import Answer, Ended
from mezzotint.serve.asked import Asked
from mezzotint.serve.metrics import Metrics
from mezzotint.serve.settings import Settings
from mezzotint.serve.wire import Sampling
from mezzotint.serve.worker import Worker


@dataclass(frozen=True, slots=True)
class Desk:
    model: Model
    worker: Worker
    settings: Settings
    metrics: Metrics

    def answers(self, asked: Asked) -> list[Answer]:
        """The candidates' answers, submitted. Raises Busy, UsageError."""
        jobs = self.worker.submit(asked.tasks)
        pairs = zip(asked.tasks, jobs, strict=True)
        return [Answer(self.model, asked, task, job) for task, job in pairs]

    def client(self, body: Sampling, request: Request) -> str:
        """Whom the queue is to be fair to: a user, where a request names one, or a connection."""
        address = f"{request.client.host}:{request.client.port}" if request.client else ""
        return body.safety_identifier or body.user or address

    def totals(self, asked: Asked, ends: Sequence[Ended]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The usage and our own block of all candidates, which are counted."""
        self.metrics.count(asked.prompt_tokens, ends)
        return usage_of(asked, ends), block_of(asked, ends)


def usage_of(asked: Asked, ends: Sequence[Ended]) -> dict[str, Any]:
    written = sum(end.tokens for end in ends)
    return {
        "prompt_tokens": asked.prompt_tokens,
        "completion_tokens": written,
        "total_tokens": asked.prompt_tokens + written,
        "prompt_tokens_details": {"cached_tokens": min(end.cached for end in ends)},
    }


def block_of(asked: Asked, ends: Sequence[Ended]) -> dict[str, Any]:
    passes = sum(end.passes for end in ends)
    written = sum(end.written for end in ends)
    return {
        "mode": asked.mode,
        "passes": passes,
        "tokens_per_pass": round(written / passes, 3) if passes else 0.0,
        "forced": _whole([end.forced for end in ends], sum),
        "prefill_ms": _whole([end.prefill for end in ends], _slowest),
        "decode_ms": _slowest([end.seconds for end in ends]),
    }


def _whole(values: Sequence[Any], of: Any) -> Any:
    return None if None in values else of(values)


def _slowest(seconds: Sequence[float]) -> float:
    return round(1e3 * max(seconds), 3)


def answer(body: dict[str, Any]) -> Response:
    """JSON as it is: it was made here, and is not checked again."""
    return JSONResponse(body)
