# SPDX-License-Identifier: BSD-3-Clause
import pytest


@pytest.fixture(scope="session", autouse=True)
def _repeater(repeater):
    """Every integration test has the CA repeater."""
