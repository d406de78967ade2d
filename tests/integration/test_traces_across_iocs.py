# SPDX-License-Identifier: BSD-3-Clause
"""Chains of several IOCs and programs join to one trace. Its spans are exported."""
import os
import subprocess

import pytest
from tests.harness import db, paths, zipkin
from tests.harness.wait import until


@pytest.fixture(scope="module")
def iocs(module_ioc):
    """The first IOC writes to the middle one by a CA link, the middle one to the last one."""
    last = module_ioc(db.READY + db.record("ao", "IN", FLNK="$(P)END") + db.counter("END") +
                      db.counter("BEAT", FLNK="$(P)BEAT2") + db.counter("BEAT2") + db.record("ao", "FAR") +
                      db.counter("LATER")).start()
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
        db.record("calcout", "ECHO2", CALC="1", OUT="$(P)PULSE PP") + db.record("bo", "PULSE", HIGH="0.1") +
        db.record("calc", "BEGIN", CALC="VAL+1", FLNK="$(P)STEPS") +
        db.record("seq", "STEPS", **{f"{field}{i}": value for i in (1, 2, 3) for field, value in (
            ("DLY", 0.1 * (i - 1)), ("DO", i), ("LNK", f"{last.prefix}FAR CA PP"))}),
        environ={**near, "EPICS_CA_ADDR_LIST": f"127.0.0.1:{middle.port} 127.0.0.1:{last.port}"}).start()
    return first, middle, last


@pytest.fixture(scope="module")
def monitor(module_monitor, iocs, rotel, real_zipkin):
    return module_monitor(before=[f'ebpfMonOtlp "{rotel.url}" "traces"'] +
                          ([f'ebpfMonZipkin "{real_zipkin.url}"'] if real_zipkin else [])).start().at_level("trace", *iocs)


def caput(ioc, record, value="1"):
    """A put by a new process of Base's caput."""
    environ = {**os.environ, "EPICS_CA_ADDR_LIST": f"127.0.0.1:{ioc.port}"}
    subprocess.run([paths.BASE_BIN / "caput", "-w", "10", "-c", ioc.prefix + record, value], env=environ, check=True,
                   capture_output=True, timeout=60)


def chains(rotel, record):
    """The spans of chains that begin with this record."""
    return [s for s in rotel.spans() if s["name"] == record and "epics.chain.cause" in s["attributes"]]


def trace_of(rotel, record, number, wanted=lambda spans: True):
    """All spans of the trace with the newest chain of this record. Waits until the trace has this number of spans, and
    all parents."""
    def whole():
        roots = chains(rotel, record)
        spans = [s for s in rotel.spans() if roots and s["trace"] == roots[-1]["trace"]]
        known = {s["id"] for s in spans} | {""}
        return spans if len(spans) >= number and wanted(spans) and all(s["parent"] in known for s in spans) else None

    return until(whole, 15, lambda: f"{number} spans with {record}:\n" + "\n".join(
        str(s) for s in rotel.spans() if chains(rotel, record) and s["trace"] == chains(rotel, record)[-1]["trace"]))


def within(spans):
    """Each span lies within its parent in time. Exceptions: messages, what a message causes in another IOC,
    asynchronous records, and hand-overs."""
    by_id = {s["id"]: s for s in spans}
    assert len(by_id) == len(spans), "two spans with one id"
    for s in spans:
        parent = by_id.get(s["parent"])
        # the message is sent later
        if parent and s["service"] == parent["service"] and s["kind"] != "SPAN_KIND_CLIENT":
            assert parent["start"] <= s["start"] <= s["end"], (s, parent)
            if not {"epics.record.asynchronous", "epics.chain.cause"} & set(s["attributes"]):
                assert s["end"] <= parent["end"], (s, parent)


def test_one_chain(rotel, iocs, monitor):
    """The parent of a record's span is the record that made it process. Asynchronous records belong to the chain."""
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


def test_asynchronous_for_too_long(rotel, iocs, monitor):
    """The trace is exported as incomplete after ten seconds. A later chain has the same trace id."""
    first, p = iocs[0], iocs[0].prefix
    first.put("MOVE.PROC", 1, wait=False)
    until(lambda: first.get("MOVED") == 1, 20, "MOVED")
    late = until(lambda: chains(rotel, p + "MOTOR"), 15, "its later chain")[-1]
    begun, = chains(rotel, p + "MOVE")
    assert begun["attributes"]["epics.chain.incomplete"] == "true"
    assert late["trace"] == begun["trace"] and late["parent"] == begun["id"]
    assert late["attributes"]["epics.chain.cause"].startswith("completing what thread")


def test_delayed_steps_of_a_seq(rotel, iocs, monitor):
    """Each step writes by a CA link. What it causes in the other IOC belongs to the trace of the put, and its writer is
    who made the put."""
    first, last = iocs[0], iocs[2]
    for _ in range(2):  # the first one waits until the links are connected
        before = len(chains(rotel, last.prefix + "FAR"))
        caput(first, "BEGIN.PROC")
        until(lambda: len(chains(rotel, last.prefix + "FAR")) >= before + 3, 15, lambda: chains(rotel, last.prefix + "FAR"))
    newest = chains(rotel, last.prefix + "FAR")[-3:]
    spans = trace_of(rotel, first.prefix + "BEGIN", 3)
    assert {s["trace"] for s in newest} == {spans[0]["trace"]}, "\n".join(map(str, newest))
    rows = [line for line in monitor.lines("PUT_LOG").split("\n") if f" {last.prefix}FAR " in line][:3]
    assert len(rows) == 3 and all("put by" in row for row in rows), rows


def test_three_iocs(rotel, iocs, monitor):
    """caput writes to the first IOC, its chain to the middle one, whose chain to the last one: one trace, four
    services."""
    first, middle, last = iocs
    until(lambda: middle.get("IN") is not None, 10, "the middle IOC answers")
    caput(first, "ROOT.PROC")  # wait until the links are connected
    until(lambda: last.get("END") > 0, 10, "the put to END")
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
    """A record reads one of another IOC by a CP link. The parent of its chain is that record, and its hand-overs
    follow."""
    first, _, last = iocs
    until(lambda: first.get("ECHO") > 0, 10, "the link is connected")
    before = len(chains(rotel, last.prefix + "BEAT"))
    caput(last, "BEAT.PROC")
    until(lambda: len(chains(rotel, last.prefix + "BEAT")) > before, 15, "the chain of BEAT")
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


def test_same_spans_in_zipkin(rotel, iocs, monitor, real_zipkin):
    """Zipkin shows the same spans with the same parents."""
    if not real_zipkin:
        pytest.skip(zipkin.missing())
    first, middle, last = iocs
    caput(first, "ROOT.PROC")
    spans = trace_of(rotel, last.prefix + "IN", 10, lambda s: len({x["service"] for x in s}) == 4)
    expected = {(s["id"], s["parent"], s["service"].lower(), s["name"].lower()) for s in spans}

    def parents():
        return {(s["id"], s.get("parentId", ""), s["localEndpoint"]["serviceName"], s["name"])
                for s in real_zipkin.trace(spans[0]["trace"]) or []}

    until(lambda: parents() == expected, 10, lambda: f"{expected}\n{parents()}")


def test_trace_begins_with_a_scan(rotel, iocs, monitor):
    first, _, last = iocs
    first.put("CLOCK.SCAN", ".2 second")
    try:
        spans = trace_of(rotel, first.prefix + "CLOCK", 5, lambda s: {x["service"] for x in s} == {first.name, last.name})
    finally:
        first.put("CLOCK.SCAN", "Passive")
    root, = [s for s in spans if s["parent"] == ""]
    assert root["name"] == first.prefix + "CLOCK" and root["attributes"]["epics.chain.cause"] == "scan 0.2 second"
    within(spans)


def test_ca_link_to_own_ioc(rotel, iocs, monitor):
    """A CA link to the same IOC sends no message, but its two chains are also one trace."""
    first, p = iocs[0], iocs[0].prefix
    until(lambda: first.put("OWN.PROC", 1) or first.get("OTHER") > 0, 10, "the put to OTHER")
    first.put("OWN.PROC", 1)
    spans = trace_of(rotel, p + "OTHER", 4, lambda s: any(x["name"] == p + "OWN" for x in s))
    below = next(s for s in spans if s["name"] == p + "OTHER" and "epics.chain.cause" in s["attributes"])
    above = next(s for s in spans if s["name"] == p + "OWN" and "epics.chain.cause" in s["attributes"])
    assert below["parent"] == above["id"] and below["start"] >= above["start"]


def test_cause_ends_long_after_its_effects(rotel, iocs, monitor, module_ioc):
    """A record writes by CA links, and a CP link watches it. The next record of its chain waits half a second for its device."""
    last = iocs[2]
    routine = {"SNAM": "sleepFor", "FTA": "DOUBLE", "INPA": "500000", "FTVA": "DOUBLE"}
    slow = module_ioc(
        db.READY + db.record("calcout", "WRITES", CALC="VAL+1", OUT=f"{last.prefix}LATER.PROC CA", FLNK="$(P)INSIDE") +
        db.record("calcout", "INSIDE", CALC="VAL+1", OUT="$(P)OTHER.PROC CA", FLNK="$(P)KEEPS") + db.counter("OTHER") +
        db.record("aSub", "KEEPS", **routine) + db.record("calc", "SEES", CALC="VAL+1", INPA="$(P)WRITES CP"),
        kind="latencyIoc", environ={"EPICS_CA_ADDR_LIST": f"127.0.0.1:{last.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"}).start()
    monitor.wait_ioc(slow, level="trace")
    effects = [last.prefix + "LATER", slow.prefix + "OTHER", slow.prefix + "SEES"]
    until(lambda: slow.put("WRITES.PROC", 1) or (last.get("LATER") > 0 and slow.get("OTHER") > 0), 20, "the links are connected")
    before = {name: len(chains(rotel, name)) for name in effects}
    slow.put("WRITES.PROC", 1)
    until(lambda: all(len(chains(rotel, name)) > before[name] for name in effects), 15, "the effects")
    spans = trace_of(rotel, slow.prefix + "WRITES", 10)
    found = {name: [s for s in spans if s["name"] == name and "epics.chain.cause" in s["attributes"]] for name in effects}
    assert all(len(f) == 1 for f in found.values()), found
    assert {f[0]["attributes"]["epics.chain.incomplete"] for f in found.values()} == {"false"}, found
    spans = rotel.spans()
    assert len({s["id"] for s in spans}) == len({(s["trace"], s["id"]) for s in spans}), "one id in two traces"


def test_puts_wait_for_the_lock(rotel, iocs, monitor, module_ioc):
    """The server holds the lock set of the PV for longer than some scans of the record that writes to it: each put has the
    chain that wrote its value."""
    routine = {"SNAM": "sleepFor", "FTA": "DOUBLE", "INPA": "350000", "FTVA": "DOUBLE", "INPB": "$(P)P NPP"}
    server = module_ioc(db.READY + db.record("ao", "P") + db.record("aSub", "HOLD", **routine), kind="latencyIoc").start()
    writer = module_ioc(
        db.READY + db.record("calcout", "W", CALC="VAL+1", SCAN=".1 second", OUT=f"{server.prefix}P CA"),
        environ={"EPICS_CA_ADDR_LIST": f"127.0.0.1:{server.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"}).start()
    monitor.wait_ioc(server, level="trace")
    monitor.wait_ioc(writer, level="trace")
    until(lambda: len(chains(rotel, server.prefix + "P")) > 3, 20, "puts by the link")
    first = server.get("P")
    for _ in range(3):
        server.put("HOLD.PROC", 1)
    count = len(chains(rotel, server.prefix + "P"))
    until(lambda: len(chains(rotel, server.prefix + "P")) > count + 5, 20, "later puts")
    writer.put("W.SCAN", "Passive")

    def values(record):
        """Of each trace, the values of this record."""
        found = {}
        for s in rotel.spans():
            if s["name"] == record and float(s["attributes"].get("epics.record.value", 0)) > first:
                found.setdefault(s["trace"], []).append(s["attributes"]["epics.record.value"])
        return found

    def joined():
        made, wrote = values(server.prefix + "P"), values(writer.prefix + "W")
        return made and all(wrote.get(trace) == value for trace, value in made.items())

    until(joined, 15, lambda: (values(server.prefix + "P"), values(writer.prefix + "W")))


def test_a_sequencer(rotel, iocs, monitor, module_ioc):
    """A thread with its own CA context, such as a sequencer program: the client is the IOC, by its name."""
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
