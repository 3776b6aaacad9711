"""Requests that the OpenAPI document allows, and ones it does not, against a running server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from serving import serving

schemathesis = pytest.importorskip("schemathesis")
import requests  # noqa: E402
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.core.errors import InvalidSchema  # noqa: E402
from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

MODEL = "toy-window"
EXAMPLES = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_answer_is_as_documented(tmp_path: Path) -> None:
    with serving(MODEL, tmp_path, env={"MEZZOTINT_HOME": str(tmp_path)}) as server:
        api = schemathesis.openapi.from_url(server.url + "openapi.json")
        operations = [
            found.ok() for found in api.exclude(path_regex="/v1/agent").get_all_operations()
        ]
        assert len(operations) >= 8
        for operation in operations:
            fuzz(operation.as_strategy())
            if operation.method == "post":
                fuzz(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
        assert "Traceback" not in server.log.read_text()


def fuzz(strategy: st.SearchStrategy[Any]) -> None:
    @st.composite
    def cases(draw: st.DrawFn) -> Any:
        try:
            return draw(strategy)
        except InvalidSchema:  # a mutation that the generator itself cannot carry out
            reject()

    @EXAMPLES
    @given(cases())
    def answered(case: Any) -> None:
        if isinstance(case.body, dict) and isinstance(case.body.get("model"), str):
            case.body["model"] = MODEL
        reply = requests.request(**case.as_transport_kwargs(), timeout=60)
        # What the document cannot say: which valid parts do not go together (a 400 that says so).
        case.validate_response(reply, excluded_checks=[positive_data_acceptance])

    answered()
