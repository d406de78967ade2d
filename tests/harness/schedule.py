# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: which tests go to which process of pytest-xdist, and in which order.

The tests of a module stay together, because they share IOCs and a monitor. In modules that are named here nothing is
shared, so each test can go to another process.
"""
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

APART = {"test_unit", "test_lifecycle", "test_health", "test_badlink"}

# These run in one process, one after the other.
TOGETHER = [
    # One measures the memory of a monitor, which follows all IOCs of the host; the other starts one with 64,000 records.
    ("test_bounded_memory_over_restarts", "test_unit[testCatalogue]"),
    ("test_joined.py", "test_spans.py"),  # they share a Zipkin
]

# Longest first, so that at the end all processes have work.
LONG = ["test_fuzz", "testOtlp", "test_counts", "test_half_hosts", "test_wire.py", "test_roads", "test_joined",
        "test_many_trees", "test_hosts", "test_bounded_memory", "test_demo", "test_latency", "test_spans", "test_overload",
        "test_trace", "test_handed", "testExport", "test_pvs", "test_otlp", "test_wire_net", "test_lifecycle", "test_health"]


def _module(nodeid):
    return Path(nodeid.split("::")[0]).stem


def _group(nodeid):
    for names in TOGETHER:
        if any(name in nodeid for name in names):
            return names[0]
    return nodeid if _module(nodeid) in APART else nodeid.split("::")[0]


class Scheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid):
        return _group(nodeid)


def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False
    return Scheduling(config, log)


def _rank(item):
    return next((i for i, part in enumerate(LONG) if part in item.nodeid), len(LONG))


def pytest_collection_modifyitems(items):
    items.sort(key=_rank)
