# SPDX-License-Identifier: BSD-3-Clause
import os

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name == "site" and os.environ.get("SITE") != "1":
            item.add_marker(pytest.mark.skip(reason="dear, and needs servers: make site"))


@pytest.fixture(scope="session", autouse=True)
def _repeater(repeater):
    """Every test of this folder has the CA repeater."""
