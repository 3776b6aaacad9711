"""A crowd at a real server: nothing is lost, mixed up or left running, and memory stays."""

from __future__ import annotations

import pytest

from mezzotint.bench.serve import stand, table


def held(clients: int, requests: int) -> None:
    stood = stand("toy-window", clients, requests, tokens=8)
    assert not stood.wrong
    assert stood.good > requests / 2
    assert stood.good + stood.malformed + stood.left == requests
    before, after = stood.memory
    assert after < before + (32 << 20)
    assert f"{stood.good} good" in table(stood, [])


def test_a_small_crowd_is_served_as_each_would_be_alone() -> None:
    held(8, 60)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_sixty_four_clients_and_two_thousand_requests() -> None:
    held(64, 2000)
