# SPDX-License-Identifier: BSD-3-Clause
"""A client sends TCP urgent data: a server never reads such a byte, but it is among the bytes of the packets. No value is shown that
nobody wrote. What is not known any more is counted."""
import os
import sys

import pytest
from tests.harness import ca, db, loopback, paths
from tests.harness.process import Process
from tests.harness.putlog import PutLog, same
from tests.harness.wait import stays_false, until

DB = db.READY + db.record("ao", "AO")
MODES = ("between", "value", "hide")
QUIET = 4  # s: a put that only packets show is published 2.5 s after its reply


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("logs") / "puts.json")


@pytest.fixture(scope="module")
def monitor(module_monitor, log):
    return module_monitor(before=[log.command()]).start()


def urgent(port, pv, mode, first):
    done = Process([sys.executable, "-m", "tests.programs.urgent_puts", "127.0.0.1", str(port), pv, mode, str(first)], dict(os.environ))
    done.wait(30)
    assert "done" in done.lines, done.output()


def losses(monitor):
    return dict(zip(monitor.list("LOST_REASONS"), monitor.list("LOST_CNTS"))).get("TCP urgent data", 0)


@pytest.mark.parametrize("mode", MODES)
def test_watched_ioc(new_ioc, monitor, log, mode):
    """Each put is seen inside, and is shown once, with its value."""
    ioc = new_ioc(DB).start()
    monitor.wait_ioc(ioc)
    pv, before = ioc.prefix + "AO", losses(monitor)
    urgent(ioc.port, pv, mode, 1001)
    lines = log.next(3, pv, 0)
    assert [int(o["value"]) for o in lines] == [1001, 1002, 1003] and {o["result"] for o in lines} == {"ok"}, lines
    assert lines[0]["seen"] == "both" and {o["seen"] for o in lines[1:]} == {"inside"}, lines
    until(lambda: losses(monitor) == before + 1, 10, lambda: losses(monitor))
    assert stays_false(lambda: len(log.of(pv)) > 3, QUIET), log.of(pv)
    monitor.wait_state("Running")


@pytest.mark.parametrize("mode", MODES)
def test_other_server(new_ioc, monitor, log, mode):
    """Puts to such a server are seen in packets only: the first one is shown. The others are lost, which is counted, and no other
    value is shown. Another client is not concerned."""
    ioc = new_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "peer_ioc.py", "caproto"]).start()
    pv, before = ioc.prefix + "DOUBLE", losses(monitor)
    urgent(ioc.port, pv, mode, 1001)
    until(lambda: losses(monitor) == before + 1, 10, lambda: losses(monitor))
    line, = log.next(1, pv, 0)
    assert same(line["value"], 1001.0) and line["result"] == "ok", line
    assert ca.get(pv) == 1003
    ca.put(pv, 7.5)
    until(lambda: len(log.of(pv)) > 1, 10, lambda: log.of(pv))
    assert stays_false(lambda: len(log.of(pv)) > 2, QUIET), log.of(pv)
    line = log.of(pv)[1]
    assert same(line["value"], 7.5), line
