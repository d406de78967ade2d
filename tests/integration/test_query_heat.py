# SPDX-License-Identifier: BSD-3-Clause
"""The history of a query's histogram has what came into each bar in each column of time."""
import math

from tests.harness.queries import known_calls, start, stop
from tests.harness.wait import until

CALLS = 1000
ROWS, COLUMNS = 32, 60
CALL = {"source": {"function": "knownCall", "object": "latencyIoc"}, "value": {"arg": 1, "as": "int32"}, "interval": 0.5, "budget": 100}
LINEAR = CALL | {"name": "LINEAR", "histogram": {"from": 0, "to": 10, "steps": 10}, "history": 1}
LOG2 = CALL | {"name": "LOG2", "histogram": "log2", "history": 1}
PLAIN = CALL | {"name": "PLAIN"}


ioc, monitor = known_calls(CALLS, [LINEAR, LOG2, PLAIN])


def known(values):
    return [v for v in values if not math.isnan(v)]


def heat(monitor, name):
    """The rows of the heat map, those of the least values first, with their lower edges."""
    cells, edges = monitor.list(f"{name}_HEAT"), monitor.list(f"{name}_HEAT_EDGES")
    assert len(cells) == ROWS * COLUMNS and len(edges) == ROWS
    return [(edge, cells[r * COLUMNS:(r + 1) * COLUMNS]) for r, edge in enumerate(edges)][::-1]


def sums(monitor, name):
    return {edge: sum(known(row)) for edge, row in heat(monitor, name) if sum(known(row))}


def wait_sums(monitor, name, wanted):
    until(lambda: sums(monitor, name) == wanted, 20, lambda: f"{sums(monitor, name)}, not {wanted}")


def test_heat_map(ioc, monitor):
    """Two bursts of calls, some columns apart. Of ten calls each has another number, 0 to 9."""
    each = CALLS / 10
    for name in "LINEAR", "LOG2":
        start(monitor, name)
    ioc.put("KNOWN.PROC", 1)
    wait_sums(monitor, "LINEAR", {n: each for n in range(10)})
    wait_sums(monitor, "LOG2", {0: 4 * each, 4: 4 * each, 8: 2 * each})

    def columns_with_calls():
        return [c for c in range(COLUMNS) if heat(monitor, "LINEAR")[1][1][c] > 0]

    first = columns_with_calls()
    until(lambda: max(columns_with_calls(), default=COLUMNS) < COLUMNS - 3, 30, lambda: f"{first} {columns_with_calls()}")
    ioc.put("KNOWN.PROC", 1)
    wait_sums(monitor, "LINEAR", {n: 2 * each for n in range(10)})
    wait_sums(monitor, "LOG2", {0: 8 * each, 4: 8 * each, 8: 4 * each})
    below, *rows = heat(monitor, "LINEAR")
    assert below[0] == -1 and [edge for edge, _ in rows[:10]] == list(range(10))
    assert all(math.isnan(v) for _, row in rows[11:] for v in row)  # this histogram has no such rows
    columns = columns_with_calls()
    assert max(columns) - min(columns) >= 3 and sum(known(rows[0][1])[-1:]) >= 0
    assert all(v == 0 for v in known(rows[0][1][min(columns) + 2:max(columns) - 1]))  # between the bursts
    assert math.isnan(rows[0][1][0])  # a minute ago the query did not run
    assert monitor.get("LINEAR_HEAT_STEP") == 1 and monitor.get("PLAIN_HEAT_STEP") == 0
    assert sum(sums(monitor, "LINEAR").values()) == sum(monitor.list("LINEAR_HIST"))
    for name in "LINEAR", "LOG2":
        stop(monitor, name)


def test_query_without_histogram(ioc, monitor):
    start(monitor, "PLAIN")
    ioc.put("KNOWN.PROC", 1)
    monitor.wait("PLAIN_EVENT_CNT", lambda n: n >= CALLS)
    assert monitor.list("PLAIN_HEAT") == [] and monitor.list("PLAIN_HEAT_EDGES") == []
    stop(monitor, "PLAIN")
