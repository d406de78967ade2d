# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: which tests go to which process of pytest-xdist, and in which order.

The tests of a module stay together, because they share IOCs and a monitor. In modules that are named here nothing is
shared, so each test can go to another process.
"""
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

APART = {"test_unit", "test_fuzz", "test_lifecycle", "test_health", "test_badlink"}

# Longest first, so that at the end all processes have work.
LONG = ["test_fuzz", "test_counts", "test_half_hosts", "test_wire", "test_roads", "test_joined", "test_many_trees",
        "test_hosts", "test_health", "test_lifecycle", "test_unit"]


def _module(nodeid):
    return Path(nodeid.split("::")[0]).stem


class Scheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid):
        return nodeid if _module(nodeid) in APART else nodeid.split("::")[0]


def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False
    return Scheduling(config, log)


def pytest_collection_modifyitems(items):
    rank = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(_module(item.nodeid), len(LONG)))
