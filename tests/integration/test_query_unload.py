# SPDX-License-Identifier: BSD-3-Clause
"""The IOC unloads the library with the function at which a query looks, and loads it again, or another one."""
import os
import subprocess
import time

import pytest
from tests.harness.queries import known_calls, rows, start, stop
from tests.harness.wait import until

PLUGIN = {"function": "pluginCall", "object": "libPlugin*"}
QUICK = {"keys": ["ioc", "function"], "interval": 0.5, "budget": 100}
CALLS = {"name": "CALLS", "source": PLUGIN} | QUICK
TIMES = {"name": "TIMES", "source": PLUGIN | {"when": "duration"}} | QUICK
ioc, monitor = known_calls(1, [CALLS, TIMES])


def build(path, constant):
    """A library with this function. Another constant makes another file."""
    new = path.with_suffix(".new")
    code = f"volatile long pluginSum;\nvoid pluginCall(long n)\n{{\n    pluginSum += n + {constant};\n}}\n"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-x", "c", "-o", new, "-"], input=code, text=True, check=True)
    os.replace(new, path)


@pytest.fixture(scope="module")
def library(ioc, tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "libPlugin.so"
    build(path, 1)
    ioc.command(f'epicsEnvSet PLUGIN "{path}"')
    return path


def call(ioc, calls, unload):
    ioc.put("PLUGIN.B", int(unload), wait=True)
    ioc.put("PLUGIN.A", calls, wait=True)
    ioc.put("PLUGIN.PROC", 1, wait=True)


def counted(monitor, query):
    return sum(n for n, in rows(monitor, query, "CNTS"))


def settled(monitor, query):
    """The number of calls, once all that were made are published: it is the same at three looks of the query, one after the other."""
    seen = counted(monitor, query), time.monotonic()

    def same():
        nonlocal seen
        count = counted(monitor, query)
        if count != seen[0]:
            seen = count, time.monotonic()
        return time.monotonic() - seen[1] > 3 * QUICK["interval"]

    until(same, 20, "no more calls")
    return seen[0]


def wait_calls(monitor, query, ioc, calls):
    """All calls are counted, under the name of the function. If the library comes to another address, that is another row."""
    until(lambda: counted(monitor, query) == calls, 20,
          lambda: f"{calls}, not {rows(monitor, query, 'KEY1S', 'KEY2S', 'CNTS')}: {monitor.text(query + '_MSG')}")
    assert set(rows(monitor, query, "KEY1S", "KEY2S")) == {(ioc.name, "pluginCall")}


@pytest.mark.parametrize("query", ["CALLS", "TIMES"])
def test_library_is_unloaded_and_loaded_again(ioc, monitor, library, query):
    """The state says that the function is not there. All calls count when it is there again, from the first one on."""
    call(ioc, 0, unload=False)
    start(monitor, query)
    call(ioc, 10, unload=True)
    wait_calls(monitor, query, ioc, 10)
    until(lambda: monitor.text(f"{query}_MSG") == f'{ioc.name}: no file like "libPlugin*" is mapped', 20,
          lambda: monitor.text(f"{query}_MSG"))
    call(ioc, 100, unload=False)
    wait_calls(monitor, query, ioc, 110)
    until(lambda: monitor.text(f"{query}_MSG").startswith("looks at 1 IOC"), 20, lambda: monitor.text(f"{query}_MSG"))
    for _ in range(30):
        call(ioc, 10, unload=True)
    wait_calls(monitor, query, ioc, 410)
    assert monitor.get(f"{query}_DROPPED_CNT") == 0 and monitor.get(f"{query}_STATE", as_string=True) == "Running"
    stop(monitor, query)
    assert ioc.running


@pytest.mark.parametrize("query", ["CALLS", "TIMES"])
def test_another_library_is_loaded(ioc, monitor, library, query):
    """Another file under the same name, as after a new build: its calls count as soon as it was noticed, and each once."""
    call(ioc, 0, unload=False)
    start(monitor, query)
    for n in range(2):
        call(ioc, 0, unload=True)
        build(library, 10 + n)
        before = counted(monitor, query)

        def is_seen(before=before):
            call(ioc, 1, unload=False)
            return counted(monitor, query) > before

        until(is_seen, 20, lambda: monitor.text(f"{query}_MSG"))
        seen = settled(monitor, query)
        call(ioc, 500, unload=False)
        until(lambda: counted(monitor, query) == seen + 500, 20, lambda: f"{seen + 500}, not {counted(monitor, query)}")
    assert {name for name, in rows(monitor, query, "KEY2S")} == {"pluginCall"}
    stop(monitor, query)
    assert ioc.running
