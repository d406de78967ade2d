# SPDX-License-Identifier: BSD-3-Clause
"""Chains as spans, and those of several IOCs and programs in one trace."""
import os
import subprocess

import pytest
from tests.harness import db, paths, zipkin
from tests.harness.wait import until


@pytest.fixture(scope="module")
def iocs(module_ioc):
    """A writes to B by a CA link, B to C."""
    last = module_ioc(db.READY + db.record("ao", "IN", FLNK="$(P)END") + db.counter("END") +
                      db.counter("BEAT", FLNK="$(P)BEAT2") + db.counter("BEAT2")).start()
    near = {"EPICS_CA_ADDR_LIST": "127.0.0.1", "EPICS_CA_AUTO_ADDR_LIST": "NO"}
    middle = module_ioc(
        db.READY + db.record("calcout", "IN", CALC="VAL+1", OUT=f"{last.prefix}IN CA PP"),
        environ={**near, "EPICS_CA_ADDR_LIST": f"127.0.0.1:{last.port}"}).start()
    first = module_ioc(
        db.READY + db.record("calc", "ROOT", CALC="VAL+1", FLNK="$(P)SEND") +
        db.record("calcout", "SEND", CALC="VAL+1", OUT=f"{middle.prefix}IN.PROC CA") +
        db.record("calc", "CLOCK", CALC="VAL+1", FLNK="$(P)SEND2") +
        db.record("calcout", "SEND2", CALC="VAL+1", OUT=f"{last.prefix}IN CA PP") +
        db.record("calcout", "OWN", CALC="VAL+1", OUT="$(P)OTHER.PROC CA") + db.counter("OTHER") +
        db.record("calc", "LATE", CALC="VAL+1", FLNK="$(P)DELAYED") +
        db.record("calcout", "DELAYED", CALC="VAL+1", ODLY="0.05", FLNK="$(P)DONE") + db.counter("DONE") +
        db.record("calc", "MOVE", CALC="VAL+1", FLNK="$(P)MOTOR") +
        db.record("calcout", "MOTOR", CALC="VAL+1", ODLY="11", FLNK="$(P)MOVED") + db.counter("MOVED") +
        db.record("calc", "ECHO", CALC="VAL+1", INPA=f"{last.prefix}BEAT2 CP", FLNK="$(P)ECHO2") +
        db.record("calcout", "ECHO2", CALC="1", OUT="$(P)PULSE PP") + db.record("bo", "PULSE", HIGH="0.1"),
        environ={**near, "EPICS_CA_ADDR_LIST": f"127.0.0.1:{middle.port} 127.0.0.1:{last.port}"}).start()
    return first, middle, last


@pytest.fixture(scope="module")
def monitor(module_monitor, iocs, rotel, real_zipkin):
    return module_monitor(before=[f'ebpfMonOtlp "{rotel.url}" "traces"'] +
                          [f'ebpfMonZipkin "{real_zipkin.url}"'] * bool(real_zipkin)).start().at_level("trace", *iocs)


def caput(ioc, record, value="1"):
    """By Base's own client, whose pid nobody else has."""
    environ = {**os.environ, "EPICS_CA_ADDR_LIST": f"127.0.0.1:{ioc.port}"}
    subprocess.run([paths.BASE_BIN / "caput", "-w", "10", "-c", ioc.prefix + record, value], env=environ, check=True,
                   capture_output=True, timeout=20)


def chains(rotel, record):
    """The spans of chains that begin with this record."""
    return [s for s in rotel.spans() if s["name"] == record and "epics.chain.cause" in s["attributes"]]


def trace_of(rotel, record, number, wanted=lambda spans: True):
    """All spans of the trace that has the newest chain of this record, once there are so many and all parents."""
    def whole():
        roots = chains(rotel, record)
        spans = [s for s in rotel.spans() if roots and s["trace"] == roots[-1]["trace"]]
        known = {s["id"] for s in spans} | {""}
        return spans if len(spans) >= number and wanted(spans) and all(s["parent"] in known for s in spans) else None

    return until(whole, 15, lambda: f"{number} spans with {record}:\n" + "\n".join(
        str(s) for s in rotel.spans() if chains(rotel, record) and s["trace"] == chains(rotel, record)[-1]["trace"]))


def within(spans):
    """Each begins and ends within the one that made it, but for messages, what they set going elsewhere, what goes on
    asynchronously and what was handed over."""
    by_id = {s["id"]: s for s in spans}
    assert len(by_id) == len(spans), "two spans of one id"
    for s in spans:
        parent = by_id.get(s["parent"])
        if parent and s["service"] == parent["service"] and s["kind"] != "SPAN_KIND_CLIENT":  # that goes out later
            assert parent["start"] <= s["start"] <= s["end"], (s, parent)
            if not {"epics.record.asynchronous", "epics.chain.cause"} & set(s["attributes"]):
                assert s["end"] <= parent["end"], (s, parent)


def test_one_chain(rotel, iocs, monitor):
    """Its records, each below the one that made it process; what it waits for belongs to it."""
    first, p = iocs[0], iocs[0].prefix
    first.put("LATE.PROC", 1)
    spans = trace_of(rotel, p + "LATE", 6)
    chain, = chains(rotel, p + "LATE")
    assert chain["service"] == first.name and chain["attributes"]["epics.chain.records"] == "3"
    assert "put by" in chain["attributes"]["epics.chain.cause"] and chain["kind"] == "SPAN_KIND_SERVER"
    within(spans)
    by_id = {s["id"]: s for s in spans}

    def named(record, *, asynchronous=False):
        found = [s for s in spans if s["name"] == p + record and s["id"] != chain["id"] and
                 ("epics.record.asynchronous" in s["attributes"]) == asynchronous]
        assert len(found) == 1, (record, found)
        return found[0]

    begun = named("DELAYED", asynchronous=True)
    assert named("LATE")["parent"] == chain["id"]
    assert by_id[begun["parent"]] is named("LATE") and begun["attributes"]["epics.link.field"] == "FLNK"
    assert by_id[named("DELAYED")["parent"]] is begun and by_id[named("DONE")["parent"]] is named("DELAYED")
    assert begun["end"] - begun["start"] > 30e6
    client = by_id[chain["parent"]]
    assert client["kind"] == "SPAN_KIND_CLIENT" and client["attributes"]["epics.pv"] == p + "LATE.PROC"


def test_longer_than_is_waited_for(rotel, iocs, monitor):
    """Told as incomplete after ten seconds; what comes later has the same trace."""
    first, p = iocs[0], iocs[0].prefix
    first.put("MOVE.PROC", 1, wait=False)
    until(lambda: first.get("MOVED") == 1, 20, "it moved")
    late = until(lambda: chains(rotel, p + "MOTOR"), 15, "its second half")[-1]
    begun, = chains(rotel, p + "MOVE")
    assert begun["attributes"]["epics.chain.incomplete"] == "true"
    assert late["trace"] == begun["trace"] and late["parent"] == begun["id"]
    assert late["attributes"]["epics.chain.cause"].startswith("completing what thread")


def test_three_iocs(rotel, iocs, monitor):
    """caput to A, whose chain writes to B, whose chain writes to C: one trace, four services."""
    first, middle, last = iocs
    until(lambda: middle.get("IN") is not None, 10, "it answers")
    caput(first, "ROOT.PROC")  # the links may not be connected yet
    until(lambda: last.get("END") > 0, 10, "the put came through")
    caput(first, "ROOT.PROC")
    spans = trace_of(rotel, last.prefix + "IN", 10, lambda s: len({x["service"] for x in s}) == 4)
    assert {s["service"] for s in spans} == {"caput", first.name, middle.name, last.name}
    within(spans)
    by_id = {s["id"]: s for s in spans}

    def above(span):
        return by_id[span["parent"]]

    chain = {i.name: next(s for s in spans if s["service"] == i.name and "epics.chain.cause" in s["attributes"])
             for i in iocs}
    for here, there, link in ((first, middle, "SEND.OUT"), (middle, last, "IN.OUT")):
        message = above(chain[there.name])
        assert message["kind"] == "SPAN_KIND_CLIENT" and message["service"] == here.name, message
        assert message["attributes"]["epics.put.link"] == here.prefix + link
        assert above(message) is chain[here.name]
    client = above(chain[first.name])
    assert client["service"] == "caput" and client["parent"] == "" and client["name"] == f"put {first.prefix}ROOT.PROC"
    assert len([s for s in spans if s["parent"] == ""]) == 1


def test_cp_link(rotel, iocs, monitor):
    """A record of another IOC that watches: below the one that it watches. And what it hands over, below itself."""
    first, _, last = iocs
    until(lambda: first.get("ECHO") > 0, 10, "the link is connected")
    before = len(chains(rotel, last.prefix + "BEAT"))
    caput(last, "BEAT.PROC")
    until(lambda: len(chains(rotel, last.prefix + "BEAT")) > before, 15, "its chain")
    spans = trace_of(rotel, last.prefix + "BEAT", 10)
    within(spans)
    by_id = {s["id"]: s for s in spans}
    assert {s["service"] for s in spans} == {"caput", last.name, first.name}
    echo = next(s for s in spans if s["name"] == first.prefix + "ECHO" and "epics.chain.cause" in s["attributes"])
    assert echo["attributes"]["epics.chain.cause"] == \
        f"CP link from {last.prefix}BEAT2 of {last.name}, chain of {last.prefix}BEAT"
    assert by_id[echo["parent"]]["name"] == last.prefix + "BEAT2", by_id[echo["parent"]]
    pulse = next(s for s in spans if s["name"] == first.prefix + "PULSE" and "epics.chain.cause" in s["attributes"])
    assert pulse["attributes"]["epics.chain.cause"] == "callback" and pulse["attributes"]["thread.name"] == "cbLow"
    assert float(pulse["attributes"]["epics.chain.delay"]) == pytest.approx(1e5, rel=0.1)
    above = by_id[pulse["parent"]]
    assert above["name"] == first.prefix + "PULSE" and by_id[above["parent"]]["name"] == first.prefix + "ECHO2"


def test_the_same_in_zipkin(rotel, iocs, monitor, real_zipkin):
    """As its users see it: the same spans, the same parents."""
    if not real_zipkin:
        pytest.skip(zipkin.missing())
    first, middle, last = iocs
    caput(first, "ROOT.PROC")
    spans = trace_of(rotel, last.prefix + "IN", 10, lambda s: len({x["service"] for x in s}) == 4)
    expected = {(s["id"], s["parent"], s["service"].lower(), s["name"].lower()) for s in spans}

    def told():
        return {(s["id"], s.get("parentId", ""), s["localEndpoint"]["serviceName"], s["name"])
                for s in real_zipkin.trace(spans[0]["trace"]) or []}

    until(lambda: told() == expected, 10, lambda: f"{expected}\n{told()}")


def test_begun_by_a_scan(rotel, iocs, monitor):
    first, _, last = iocs
    first.put("CLOCK.SCAN", ".2 second")
    try:
        spans = trace_of(rotel, first.prefix + "CLOCK", 5, lambda s: {x["service"] for x in s} == {first.name, last.name})
    finally:
        first.put("CLOCK.SCAN", "Passive")
    root, = [s for s in spans if s["parent"] == ""]
    assert root["name"] == first.prefix + "CLOCK" and root["attributes"]["epics.chain.cause"] == "scan 0.2 second"
    within(spans)


def test_channel_of_its_own(rotel, iocs, monitor):
    """A CA link to the same IOC is no message: the two chains are one trace all the same."""
    first, p = iocs[0], iocs[0].prefix
    until(lambda: first.put("OWN.PROC", 1) or first.get("OTHER") > 0, 10, "it came through")
    first.put("OWN.PROC", 1)
    spans = trace_of(rotel, p + "OTHER", 4, lambda s: any(x["name"] == p + "OWN" for x in s))
    below = next(s for s in spans if s["name"] == p + "OTHER" and "epics.chain.cause" in s["attributes"])
    above = next(s for s in spans if s["name"] == p + "OWN" and "epics.chain.cause" in s["attributes"])
    assert below["parent"] == above["id"] and below["start"] >= above["start"]


def test_a_sequencer(rotel, iocs, monitor, module_ioc):
    """A thread of an IOC with a CA context of its own, as a sequencer program has: the IOC is the client, by its name."""
    last = iocs[2]
    program = module_ioc(files=[paths.TESTS / "ioc" / "roads.db"], kind="roadsIoc", environ={
        "EPICS_CA_ADDR_LIST": f"127.0.0.1:{last.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"}).start()
    monitor.wait_ioc(program, level="trace")
    program.command(f"roadsSeq {last.prefix}IN 42")

    def mine(spans):
        return any(s["service"] == program.name for s in spans)

    spans = trace_of(rotel, last.prefix + "IN", 3, mine)
    client, = [s for s in spans if s["service"] == program.name]
    chain = next(s for s in spans if "epics.chain.cause" in s["attributes"])
    assert client["kind"] == "SPAN_KIND_CLIENT" and client["name"] == f"put {last.prefix}IN" and client["parent"] == ""
    assert chain["parent"] == client["id"] and chain["service"] == last.name
