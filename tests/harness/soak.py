# SPDX-License-Identifier: BSD-3-Clause
"""Tests that take much time: make check runs the short form, make soak (tools/soak.sh) the long form.

    @soak
    def test_many():
        for i in range(size(5, 100)): ...     # 5 in make check, 100 in make soak
"""
import os

import pytest

IS_LONG = os.environ.get("SOAK") == "1"

soak = pytest.mark.soak  # the mark of the tests that have a long form


def size(short, long):
    return long if IS_LONG else short
