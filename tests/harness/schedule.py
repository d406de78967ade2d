# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: which process of pytest-xdist runs which tests, in which order, and which tests run alone.

The tests of a module stay in one process, because they share IOCs and a monitor. In the modules of APART the tests
share nothing, so each test can go to another process.

The others run last. Tests of a lane of LANES run beside those of the other lanes. CALM tests run beside them, to fill the
time in which they wait: they need no monitor. Tests of ALONE run one after the other, while no other test runs: they measure
what others would disturb.

The locks that they wait for are bytes of a file (lockf): one for each lane, one for CALM tests, one for each process. A test of
a lane holds the byte of its lane; a test of ALONE those of all lanes and that of CALM tests; a CALM test shares that, and the
bytes of all processes. Each other test shares all lanes, and holds the byte of its process. A process keeps its lock from one
test to the next if that one needs the same. So no CALM test and none of a lane begins before all processes are done with the
others.
"""
import fcntl
import json
import os
import sys
import time
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from . import soak

APART = {"test_unit", "test_faults", "test_lifecycle", "test_health", "test_badlink", "test_lost_packets", "test_turns",
         "test_recsync", "test_reserves", "test_overload", "test_probes", "test_put_after_link", "test_clock", "test_history",
         "test_settings", "test_waits"}

ALONE = (
    "test_bounded_memory_over_restarts",  # memory of a monitor, which follows all IOCs of the host
    "test_end_is_published_at_once",      # delays, which those of the lanes would lengthen
    "test_put_updates_at_once",
    "test_mass_events",
    "test_loads_slowly",                  # the CPU time of a monitor, which reads each new IOC of the host
    "test_silence.py",                    # how often threads wake, and delays
    "test_query_times.py",                # it uses all CPUs
)

STEADY = 5 * len(os.sched_getaffinity(0))  # processes that run tests all the time. Tests wait most of the time, but each monitor
                                           # looks at all processes of the host, so more processes make each test dearer
PERIOD, ROOM, FULL = 3, 0.85, 0.99         # s, and parts of the CPUs' time

LANES = [
    # Their processes harm each monitor of the host that reads them. The tests of the other lanes load the host only a
    # little.
    ("test_memory_that_never_arrives", "test_fuse_that_never_answers", "test_fakes_hide_nothing", "test_many_builds",
     # the memory and the CPU time of a monitor, which reads each new IOC
     "test_little_memory", "test_short_iocs", "test_shares.py::test_uses",
     "testIocFinder"),                    # it reads all processes of the host, too
    (
        "test_latency.py",                # latencies
        "test_thread_that_makes_no_progress",  # a delay
        "test_log_traces.py::test_two_clients",  # how many consequences have the trace of their put: fewer on a busy host
    ),
    (
        # Traces of chains that many threads make at once. If all CPUs are busy, the traces are complete, but a new IOC is
        # sometimes not watched before the deadline.
        "test_many_traces",
        "test_parallel_threads",
        # 32 IOCs in as many network namespaces: each monitor of the host would read them, and their packets
        "test_many_network_namespaces",
        "test_file_with_endless_tables", "test_endless_tables",  # each monitor of the host would read them
    ),
]

CALM = ("testOtlpCollector", "testForeign", "testCatalogue", "testTraces", "test_clangs", "test_house",
        "test_documents", "test_unit.py")  # in this order
CALM_NICE = 5  # the tests of the lanes take longer

# The tests of each entry run in one process, one after the other.
TOGETHER = [
    ALONE,
    *LANES,
    ("test_traces_across_iocs.py", "test_spans.py"),  # they share a Zipkin
    # The second one makes a gap in the packets of a namespace with an IOC. Each monitor of the host reads these packets
    # and counts the gap.
    ("test_packets.py", "test_packets_bad_link.py"),
    # Parts of long modules, each in a process of its own, with IOCs and a monitor of its own.
    ("test_passes.py::test_put_to_scan", "test_passes.py::test_records_go", "test_passes.py::test_links_change",
     "test_passes.py::test_back_to_chains", "test_passes.py::test_levels_change"),
    ("test_passes.py::test_put_to_passive", "test_passes.py::test_level_changes_while", "test_passes.py::test_put_begins_before"),
    ("test_usage.py::test_it_tries_again",),
    # Tests of APART that share a monitor.
    ("test_clock.py::test_clock_goes_back", "test_clock.py::test_clock_runs_ahead", "test_clock.py::test_clock_of_the_host_went"),
    ("test_clock.py::test_clock_of_the_host_goes",),
    ("test_recsync.py::test_variable", "test_recsync.py::test_ioc_that_speaks", "test_recsync.py::test_server_restarts",
     "test_recsync.py::test_unreadable", "test_recsync.py::test_silent", "test_recsync.py::test_refused"),
    ("test_health.py::test_clients_and", "test_health.py::test_late_scan", "test_health.py::test_scan_", "test_health.py::test_ca_server",
     "test_health.py::test_tables"),
    ("test_health.py::test_hang_in_a_loop", "test_health.py::test_hang_in_a_callback", "test_health.py::test_hang_in_one",
     "test_health.py::test_own_ring"),
]

# The order of tests: the longest modules first. A module of many slow tests that begins late keeps the tests of all lanes waiting,
# so each module of more than some ten seconds has its place here; those of APART stand a little later than their length says,
# because their tests go to several processes. The interleaving checker has a low priority, so it begins first. A process of pytest-xdist
# takes its next module when it begins its last test but one, so a long test delays this module, too: modules of a few long tests
# (test_tutorial) stand at the begin.
LONG = [
    "test_fuzz", "test_explore", "test_subscriptions_pva", "test_lights", "test_forged_packets", "test_shared_thread",
    "test_tutorial", "test_shares", "test_unconnected", "test_subscriptions.py", "test_passes.py", "test_history", "test_operators",
    "test_counts_exact", "test_translated", "test_displays", "test_counts_late", "test_gateways", "test_put_corpus",
    "test_counts.py", "test_waits", "test_settings", "test_hostile.py", "test_usage", "test_other_iocs", "test_otlp",
    "test_lifecycle", "test_traces_across_iocs", "test_packets.py", "test_packets_bad_link", "test_releases",
    "test_turns", "test_urgent_data", "test_query_attacks", "test_other_servers", "test_put_origins", "test_health",
    "test_hosts_partly_watched", "test_recsync", "test_pvs", "test_query_uses", "test_stripped", "test_queries",
    "test_containers", "test_lost_packets", "test_queues", "test_ipv6", "test_put_attach", "test_locks",
    "test_passes", "test_install", "test_inventory", "test_incomplete_traces", "test_demo", "test_hosts",
    "test_query_unload", "test_wrong_symbols", "test_async", "test_trace.py", "test_query_trouble",
    "test_query_budget", "test_top", "test_overload", "test_query_files", "test_device", "test_hand_overs",
    "test_reserves", "test_faults", "test_query_perf", "test_clock", "test_clients", "test_probes", "test_logs",
    "test_hostile_texts", "test_query_heat", "test_put_after_link", "test_site", "test_query_", "test_puts",
    "test_web", "test_large", "test_rules", "test_foreign", "test_unused_gaps",
]


def pytest_configure(config):
    config.addinivalue_line("markers", "soak: has a long form (tests/harness/soak.py)")
    config.addinivalue_line("markers", "long: for make checkLong (tests/harness/soak.py)")


def _module(nodeid):
    return Path(nodeid.split("::")[0]).stem


def _group(nodeid):
    for names in TOGETHER:
        if any(name in nodeid for name in names):
            return names[0]
    return nodeid if _module(nodeid) in APART else nodeid.split("::")[0]


class _Cpus:
    """How busy the CPUs of this host were in the last PERIOD. Each period decides once: its answer is a change that the next one
    shows."""

    def __init__(self):
        self.share = None  # the busy part of their time; None: this period has decided
        self._begin()

    def _begin(self):
        self.at, (self.busy, self.all) = time.monotonic(), self._read()

    @staticmethod
    def _read():
        """The time that they were busy, and their whole time (proc(5), /proc/stat)."""
        with open("/proc/stat", encoding="ascii") as file:
            times = [int(n) for n in file.readline().split()[1:9]]
        return sum(times) - times[3] - times[4], sum(times)

    def look(self):
        if time.monotonic() - self.at < PERIOD:
            return
        busy, whole = self.busy, self.all
        self._begin()
        self.share = (self.busy - busy) / max(1, self.all - whole)

    def _decide(self, yes):
        if yes:
            self.share = None
        return yes

    def have_room(self):
        return self._decide(self.share is not None and self.share < ROOM)

    def are_full(self):
        return self._decide(self.share is not None and self.share > FULL)


class Scheduling(LoadScopeScheduling):
    """The first STEADY processes run tests all the time. The others begin one by one while the CPUs have room, and end while they
    have none. A process that waited for work would keep its last test, and its locks. If a steady process crashes, the next one
    becomes steady: at the end of a run it may be the only one that is left."""

    def __init__(self, config, log=None):
        super().__init__(config, log)
        self.cpus = _Cpus()

    def _split_scope(self, nodeid):
        return _group(nodeid)

    def _is_steady(self, node):
        return node in [n for n in self.nodes if not n.shutting_down][:STEADY]

    def _may_go_on(self, node):
        """Nonsteady processes only: with no work so far, it may begin; else it may take more."""
        if not self.assigned_work[node]:
            return self.cpus.have_room()
        if self.cpus.are_full():
            node.shutdown()
            return False
        return True

    def _assign_work_unit(self, node):
        """The work of a process that crashed comes back together with finished tests. A process that gets only finished
        tests has nothing to run, reports nothing, and would never get more work (xdist 3.8). A process begins its last test
        when it has another one, or is told that there is none. With few tests, the first processes get all of them."""
        if not self.workqueue:
            return
        if not self._is_steady(node) and not self._may_go_on(node):
            return
        super()._assign_work_unit(node)
        while self.workqueue and self._pending_of(self.assigned_work[node]) < 2:
            super()._assign_work_unit(node)

    def mark_test_complete(self, node, item_index, duration=0):
        self.cpus.look()
        super().mark_test_complete(node, item_index, duration)
        for other in self.nodes:
            if not self._is_steady(other) and not self.assigned_work[other]:
                self._reschedule(other)


def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False
    return Scheduling(config, log)


# No test opens this file: a process that closes a file loses all its locks on it (fcntl_locking(2)).
_LOCKED = Path(__file__).parents[1] / "requirements.txt"
_CALM_BYTE, _PROCESS_BYTES = len(LANES), len(LANES) + 1
_PROCESSES = 1 << 22  # PID_MAX_LIMIT of the kernel: each process has the byte of its pid


def _find_lane(nodeid):
    """The lane of a test; None if it has none."""
    return next((lane for lane, names in enumerate(LANES) if any(name in nodeid for name in names)), None)


def _is_alone(nodeid):
    return any(name in nodeid for name in ALONE)


def _find_calm(nodeid):
    """Which of CALM it is; None: of another kind."""
    return next((i for i, name in enumerate(CALM) if name in nodeid), None)


def _find_locks(nodeid):
    """The locks of a test, each with its kind, number of bytes, first byte."""
    if _is_alone(nodeid):
        return [(fcntl.LOCK_EX, len(LANES) + 1, 0)]
    if (lane := _find_lane(nodeid)) is not None:
        return [(fcntl.LOCK_EX, 1, lane)]
    if _find_calm(nodeid) is not None:
        return [(fcntl.LOCK_SH, 2 + _PROCESSES, _CALM_BYTE)]
    return [(fcntl.LOCK_EX, 1, _PROCESS_BYTES + os.getpid()), (fcntl.LOCK_SH, len(LANES), 0)]


def _rank(item):
    """The order: LONG, all others, LANES, CALM, ALONE."""
    nodeid = item.nodeid
    if _is_alone(nodeid):
        return len(LONG) + 2 + len(CALM)
    if _find_lane(nodeid) is not None:
        return len(LONG) + 1
    if (calm := _find_calm(nodeid)) is not None:
        return len(LONG) + 2 + calm
    # A module stays in one process: a test must not go to another process because of its name.
    where = nodeid if _module(nodeid) in APART else nodeid.split("::")[0]
    return next((i for i, part in enumerate(LONG) if part in where), len(LONG))


def _check_names(items):
    """Checks that all tests of these lists exist: else a renamed test would silently lose its place."""
    names = [*APART, *LONG, *CALM, *(name for names in TOGETHER for name in names), *soak.CHECK_LONG]
    tests = [item.nodeid for item in items]
    if lost := [name for name in names if not any(name in test for test in tests)]:
        raise pytest.UsageError(f"tests/harness: no test has this in its name: {', '.join(lost)}")
    kept = [test for test in tests if not soak.is_long(test)]
    if lost := [name for name in soak.CHECK_LONG.values() if not any(name in test for test in kept)]:
        raise pytest.UsageError(f"tests/harness/soak.py: make check runs no such cheaper test: {', '.join(lost)}")


@pytest.hookimpl(tryfirst=True)  # before -k and -m leave tests out
def pytest_collection_modifyitems(config, items):
    if config.args == ["tests"]:
        _check_names(items)
    for item in items:
        if soak.is_long(item.nodeid):
            item.add_marker("long")
    items.sort(key=_rank)


class _Locks:
    """The locks of this process."""

    def __init__(self):
        self.file = None
        self.held = []

    def take(self, locks):
        """Waits for these locks. Gives up those that it had, if they are others."""
        if locks == self.held:
            return
        if not self.file:
            self.file = open(_LOCKED, "r+", encoding="utf-8")
        fcntl.lockf(self.file, fcntl.LOCK_UN)
        self.held = []
        for lock in locks:
            fcntl.lockf(self.file, *lock)
        self.held = locks


_locks = _Locks()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    _locks.take(_find_locks(item.nodeid))
    os.setpriority(os.PRIO_PROCESS, 0, CALM_NICE if _find_calm(item.nodeid) is not None else 0)
    try:
        return (yield)
    finally:
        if nextitem is None or _find_locks(nextitem.nodeid) != _locks.held:
            _locks.take([])


def _list_again(failed):
    """What runs after these tests have failed once more: the test itself, or its whole module if the tests of the module share
    IOCs or a monitor, because a test may need what those before it did."""
    return sorted({test if _module(test) in APART else test.split("::")[0] for test in failed})


if __name__ == "__main__":  # the file in which pytest notes which tests failed
    print("\n".join(_list_again(json.loads(Path(sys.argv[1]).read_text()))))
