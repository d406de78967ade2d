# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures, and how tests run side by side.

Each process of pytest-xdist has its own network namespace. Each test module has its own IOCs and its own monitor, which
watches these IOCs only. So tests do not disturb each other, although all monitors see all processes of the host. All
processes that a test started end here at the latest, by their pids.
"""
import os

import pytest

from tests.harness import loopback, netns, paths

if os.geteuid():
    pytest.exit("the tests watch other processes and make network namespaces: run them as root", 4)
netns.enter_new()
loopback.use()  # before any client library is imported
os.environ["EPICS_HOST_ARCH"] = paths.ARCH
os.environ["PYTHONPATH"] = str(paths.TOP)  # for tests/programs
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy would start a thread for each CPU, which no test needs

from tests.harness import ca, process, zipkin  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import CoreMonitor, Monitor  # noqa: E402
from tests.harness.process import Process  # noqa: E402
from tests.harness.rotel import Rotel  # noqa: E402
from tests.harness.wait import until  # noqa: E402

if os.environ.get("EBPFMON_MODULES") == "none":
    Monitor = CoreMonitor
pytest_plugins = ["tests.harness.schedule"]
collect_ignore_glob = ["fuzz/corpus", "fuzz/O.fuzz", "*/O.*"]  # thousands of files; each process of pytest would look at each


@pytest.fixture(scope="session")
def repeater():
    """A CA repeater. Without one, clients would start a CA repeater that does not end with the tests."""
    p = Process([paths.BASE_BIN / "caRepeater"], os.environ.copy())
    port = f":{loopback.REPEATER_PORT:04X} "
    until(lambda: port in open("/proc/net/udp").read(), 10, "the CA repeater")
    yield p
    p.kill()
    for left in list(process.alive):
        left.kill()


@pytest.fixture(scope="module", autouse=True)
def _channels():
    """When all servers of a module have ended, nobody searches for their PVs."""
    yield
    ca.forget()


def _factory(make):
    made = []

    def new(*args, **kw):
        made.append(make(*args, **kw))
        return made[-1]

    yield new
    for thing in reversed(made):
        thing.discard()


@pytest.fixture
def new_ioc(tmp_path):
    yield from _factory(lambda *a, **kw: Ioc(tmp_path, *a, **kw))


@pytest.fixture
def new_monitor(tmp_path):
    yield from _factory(lambda *a, **kw: Monitor(tmp_path, *a, **kw))


@pytest.fixture(scope="module")
def module_ioc(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("ioc")
    yield from _factory(lambda *a, **kw: Ioc(tmp, *a, **kw))


@pytest.fixture(scope="module")
def module_monitor(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("monitor")
    yield from _factory(lambda *a, **kw: Monitor(tmp, *a, **kw))


@pytest.fixture(scope="module")
def idle_monitor(module_monitor):
    """A monitor that watches nothing until a test says what."""
    return module_monitor(iocs="none").start()


@pytest.fixture
def watch_only(idle_monitor):
    """watch_only(ioc): the monitor of the module watches this IOC and no other. Returns that monitor. To start one for each test
    would cost more than most tests do."""
    def watch(ioc, level="chains", records=1):
        idle_monitor.set_filter(LEVEL=level, IOC=ioc.name)
        idle_monitor.wait_ioc(ioc, level=level, records=records)
        return idle_monitor

    return watch


@pytest.fixture(scope="module")
def rotel():
    """A receiver of OTLP, for all tests of a module."""
    receiver = Rotel().start()
    yield receiver
    receiver.discard()


@pytest.fixture(scope="session")
def real_zipkin():
    """Zipkin, for all tests of a process; None where it cannot run."""
    z = None if zipkin.missing() else zipkin.Zipkin()
    yield z
    if z:
        z.discard()
