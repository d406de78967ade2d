# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures. Every process that a test starts is ended here at the latest, by its own pid."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import env  # noqa: E402  (the environment comes before any client library)

env.setup()

from harness import process  # noqa: E402
from harness.ioc import Ioc  # noqa: E402
from harness.monitor import Monitor  # noqa: E402
from harness.process import Process  # noqa: E402
from harness.wait import until  # noqa: E402


def pytest_collection_modifyitems(items):
    """Without the privileges nothing here can be true or false."""
    assert os.geteuid() == 0, "the integration tests watch other processes: run them as root"


@pytest.fixture(scope="session", autouse=True)
def repeater():
    """A CA repeater of our own: clients that find none would start one that stays behind."""
    p = Process([env.BASE_BIN / "caRepeater"], os.environ.copy())
    port = f":{env.REPEATER_PORT:04X} "
    until(lambda: port in open("/proc/net/udp").read(), 10, "the CA repeater")
    yield p
    p.kill()
    for left in list(process.alive):
        left.kill()


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
