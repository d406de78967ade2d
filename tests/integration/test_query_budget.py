# SPDX-License-Identifier: BSD-3-Clause
"""Queries and watching share the budget of an IOC: FILTER_BUDGET."""
import pytest
from tests.harness.queries import known_calls, start, stop, wait_state
from tests.harness.wait import until

CALLS = 1000
DEAR = {"name": "DEAR", "source": {"function": "knownCall", "object": "latencyIoc"}, "keys": ["ioc"], "interval": 0.5, "budget": 100}
CHEAP = {"name": "CHEAP", "source": {"function": "dbPut"}, "keys": ["ioc"], "interval": 0.5, "budget": 100}
HOST = {"name": "HOST", "source": {"syscalls": "entry"}, "keys": ["pid"], "of": {"host": True}, "interval": 0.5, "budget": 100}
BUDGET = 0.5


ioc, monitor = known_calls(CALLS, [DEAR, CHEAP, HOST])


@pytest.fixture(autouse=True)
def calm(ioc, monitor):
    yield
    ioc.put("KNOWN.SCAN", "Passive")
    monitor.set_filter(BUDGET=0)
    for name in "DEAR", "CHEAP", "HOST":
        monitor.put(f"{name}_RUN", 0)


def test_cost_of_a_query_is_in_the_cost_of_its_ioc(ioc, monitor):
    """COST and the row of the IOC have what the query takes. Without calls both are as before."""
    ioc.put("KNOWN.SCAN", ".1 second")
    until(lambda: monitor.get("COST") > 0, 20, "watching costs something")
    start(monitor, "DEAR")
    until(lambda: monitor.get("DEAR_COST") > 0.5, 20, lambda: f"{monitor.get('DEAR_COST')} %")
    until(lambda: all(0.8 * monitor.get("DEAR_COST") < cost < 3 * monitor.get("DEAR_COST") + 1
                      for cost in (monitor.get("COST"), monitor.list("IOC_COSTS")[0])), 10,
          lambda: f"COST {monitor.get('COST')}, IOC_COSTS {monitor.list('IOC_COSTS')}, DEAR_COST {monitor.get('DEAR_COST')}")
    dear = monitor.get("DEAR_COST")
    stop(monitor, "DEAR")
    until(lambda: monitor.get("COST") < 0.5 * dear, 10, lambda: f"COST {monitor.get('COST')}, the query took {dear}")


def test_query_beyond_the_budget_of_the_ioc_is_stopped(ioc, monitor):
    """The IOC pays more than FILTER_BUDGET. The dearest query is stopped, and the reason names IOC and budget. The other one
    goes on, and the IOC is watched as before."""
    level = monitor.list("IOC_LEVELS")[0]  # watched IOCs come first
    monitor.set_filter(BUDGET=BUDGET)
    start(monitor, "CHEAP")
    start(monitor, "DEAR")
    ioc.put("KNOWN.SCAN", ".1 second")
    wait_state(monitor, "DEAR", "Failed")
    message = monitor.text("DEAR_MSG")
    assert message.startswith(f"stopped: IOC {ioc.name} paid") and f"FILTER_BUDGET is {BUDGET}" in message, message
    assert monitor.get("CHEAP_STATE", as_string=True) == "Running"
    assert monitor.list("IOC_LEVELS")[0] == level
    until(lambda: monitor.get("COST") < BUDGET, 10, lambda: f"COST {monitor.get('COST')}")


def test_query_is_refused_if_the_budget_is_used_up(ioc, monitor):
    """Other queries have taken all: one more is not started, and the reason says so."""
    ioc.put("KNOWN.SCAN", ".1 second")
    start(monitor, "DEAR")
    until(lambda: monitor.get("COST") > BUDGET, 20, lambda: f"COST {monitor.get('COST')}")
    monitor.set_filter(BUDGET=BUDGET)
    monitor.put("CHEAP_RUN", 1)
    wait_state(monitor, "CHEAP", "Failed")
    message = monitor.text("CHEAP_MSG")
    assert message.startswith(f"not started: IOC {ioc.name} pays") and f"FILTER_BUDGET is {BUDGET}" in message, message


def test_other_processes_do_not_pay_from_the_budget_of_an_ioc(monitor):
    """A query about the whole host: its cost is that of all processes, and the IOC pays its own part only."""
    monitor.put("HOST_RUN", 1)
    wait_state(monitor, "HOST", "Running")
    until(lambda: monitor.get("HOST_COST") > 0, 20, "the query costs something")
    until(lambda: 0 < monitor.list("IOC_COSTS")[0] < monitor.get("HOST_COST"), 20,
          lambda: f"IOC_COSTS {monitor.list('IOC_COSTS')}, HOST_COST {monitor.get('HOST_COST')}")
