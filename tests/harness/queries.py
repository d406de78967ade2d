# SPDX-License-Identifier: BSD-3-Clause
"""Queries of the monitor under test: their files, PVs and states."""
import json

import pytest

from . import paths
from .wait import until


def write(tmp, name, queries):
    path = tmp / name
    path.write_text(json.dumps({"queries": queries}, indent=1))
    return path


def load(tmp, queries):
    """The commands that load these queries with their PVs."""
    def records(query):
        yield "ebpfMonQuery.template"
        if query.get("events"):
            yield "ebpfMonQueryEvents.template"

    return [*(f'dbLoadRecords("{paths.DB / file}", "P=$(EBPFMON_P),Q={q["name"]}")' for q in queries for file in records(q)),
            f'ebpfMonQueryLoad "{write(tmp, "queries.json", queries)}"']


def latency_ioc(module_ioc, calls):
    """The IOC of most query tests. Each processing of its record KNOWN makes "calls" calls of known functions."""
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros=f"US=2000,CALLS={calls}").start()


def watch(module_monitor, ioc, tmp_path_factory, queries):
    """A monitor with these queries, once it watches the IOC."""
    monitor = module_monitor(before=load(tmp_path_factory.mktemp("queries"), queries)).start()
    monitor.wait_ioc(ioc)
    return monitor


def known_calls(calls, queries):
    """The fixtures "ioc" and "monitor" of a module: the IOC of most query tests, and a monitor with these queries."""
    @pytest.fixture(scope="module")
    def ioc(module_ioc):
        return latency_ioc(module_ioc, calls)

    @pytest.fixture(scope="module")
    def monitor(module_monitor, ioc, tmp_path_factory):
        return watch(module_monitor, ioc, tmp_path_factory, queries)

    return ioc, monitor


def rows(monitor, query, *columns):
    """The rows of a query as a list of tuples. Reads them again if new results came while it read the columns."""
    def read():
        table = [monitor.list(f"{query}_{c}") for c in columns]
        return table if len({len(c) for c in table}) == 1 and table == [monitor.list(f"{query}_{c}") for c in columns] \
            else None

    return list(zip(*until(read, 10, f"columns of {query} of one look")))


def wait_state(monitor, query, state):
    until(lambda: monitor.get(f"{query}_STATE", as_string=True) == state, 20,
          lambda: f"{query} {state}: {monitor.get(query + '_STATE', as_string=True)} {monitor.text(query + '_MSG')}")


def start(monitor, query, iocs=1):
    monitor.put(f"{query}_RUN", 1)
    wait_state(monitor, query, "Running")
    until(lambda: f"looks at {iocs} IOC" in monitor.text(f"{query}_MSG"), 20,
          lambda: f"{query}: {monitor.text(query + '_MSG')}")


def stop(monitor, query):
    monitor.put(f"{query}_RUN", 0)
    wait_state(monitor, query, "Off")
