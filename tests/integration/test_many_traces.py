# SPDX-License-Identifier: BSD-3-Clause
"""Each of many traces has exactly the structure of its database."""
import pytest
from tests.harness import db
from tests.harness.soak import size, soak
from tests.harness.wait import settled, until
from .test_tree import TREES, tree

CHAINS = size(600, 2000)
NUMBERS = range(TREES)
GIVEN_UP_NS = 9.9e9  # BUSY_NS of trace/traces.c; less, because the clocks differ a little


@pytest.fixture(scope="module")
def ioc(module_ioc):
    """Scanned trees of records (test_tree.py). Their asynchronous records take longer than a tenth of a second."""
    made = module_ioc("", realtime=True)
    text = db.READY
    for number in NUMBERS:
        kind, fields, _ = tree(number)
        for name, values in fields.items():
            if name.endswith(":0"):
                values = {**values, "SCAN": ".1 second" if number < TREES / 2 else ".5 second"}
            text += db.record(kind[name], name, **{f: v.replace("{P}", made.prefix) for f, v in values.items()})
    (made.tmp / f"{made.name}.db").write_text(text)
    return made.start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, sink):
    m = module_monitor(before=[f'ebpfMonOtlp "{sink.url}" "traces"']).start()
    m.wait_ioc(ioc)
    return m


def structure(spans, prefix):
    """For one trace: record → (record that made it process, link). The parent of a record that completes is this
    record."""
    by_id = {s["id"]: s for s in spans}
    found = {}
    for s in spans:
        link = s["attributes"].get("epics.link.field")
        if link:
            name = s["name"].removeprefix(prefix)
            assert name not in found, f"{name} twice:\n" + "\n".join(
                f"{x['name']} {x['attributes'].get('epics.link.field')} of {by_id.get(x['parent'], {}).get('name')}, "
                f"{x['start']} to {x['end']} {'begun' * ('epics.record.asynchronous' in x['attributes'])}" for x in spans)
            found[name] = (by_id[s["parent"]]["name"].removeprefix(prefix), link)
    return found


@soak
def test_traces_have_the_structure_of_the_database(ioc, monitor, sink):
    expected = {f"R{n}:0": tree(n)[2] for n in NUMBERS}
    monitor.set_filter(LEVEL="trace")
    count = monitor.get("CHAIN_LOG_CNT")
    until(lambda: monitor.get("CHAIN_LOG_CNT") >= count + CHAINS, 60, "enough chains")
    monitor.set_filter(LEVEL="chains")
    settled(lambda: len(sink.bodies), 30, quiet=2)
    assert monitor.losses() == {} and monitor.get("OTLP_LOST_CNT") == 0
    seen = dict.fromkeys(expected, 0)
    incomplete = 0
    for spans in sink.traces().values():
        chains = sorted((s for s in spans if "epics.chain.cause" in s["attributes"]), key=lambda s: s["start"])
        chain, *later = chains
        root = chain["name"].removeprefix(ioc.prefix)
        # The monitor waited 10 s for the later chains, then exported the trace without them, as incomplete. If the root
        # is not an expected one, the chain began before level trace.
        if later and root in expected:
            assert chain["attributes"]["epics.chain.incomplete"] is True, "\n".join(map(str, chains))
            assert chain["arrival"] - chain["end"] > GIVEN_UP_NS, chains
        if root not in expected or chain["attributes"]["epics.chain.incomplete"] is True:
            incomplete += root in expected
            continue
        assert structure(spans, ioc.prefix) == expected[root], root
        seen[root] += 1
    assert sum(seen.values()) >= CHAINS - 100 and min(seen.values()) >= CHAINS / 100 and incomplete <= TREES * 2, (seen, incomplete)
