# SPDX-License-Identifier: BSD-3-Clause
"""Dear tests: make check runs the short form of each, make soak (tools/soak.sh) the long one.

    @soak
    def test_many():
        for i in range(size(5, 100)): ...     # 5 in make check, 100 in make soak
"""
import os

import pytest

IS_LONG = os.environ.get("SOAK") == "1"

soak = pytest.mark.soak  # by this mark make soak finds the tests that have a long form


def size(short, long):
    return long if IS_LONG else short
