# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that all integration tests share: a CA repeater, and a collector that keeps what it receives."""
import pytest

from tests.harness import otlp


@pytest.fixture(scope="session", autouse=True)
def _repeater(repeater):
    """Every integration test has the CA repeater."""


@pytest.fixture(scope="module")
def sink():
    """A collector that keeps what it receives."""
    s = otlp.Sink()
    yield s
    s.discard()
