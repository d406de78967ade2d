# SPDX-License-Identifier: BSD-3-Clause
"""The JSON log joins a put with what it caused: "trace" is the same in all these lines, and the id of the spans. The values say
which put caused which line."""
import pwd

import pytest
from tests.harness import db
from tests.harness.clients import Client
from tests.harness.putlog import PutLog
from tests.harness.wait import until

NEAR = {"EPICS_CA_ADDR_LIST": "127.0.0.1", "EPICS_CA_AUTO_ADDR_LIST": "NO"}


@pytest.fixture(scope="module")
def iocs(module_ioc):
    """What is written to A or B goes through COMMON to LAST, and by a CA link to the other IOC."""
    far = module_ioc(db.READY + db.record("ao", "IN", OUT="$(P)END PP") + db.record("ao", "END")).start()
    near = module_ioc(
        db.READY + db.record("ao", "A", OUT="$(P)COMMON.A PP") + db.record("ao", "B", OUT="$(P)COMMON.A PP") +
        db.record("calcout", "COMMON", CALC="A", OUT="$(P)LAST PP", FLNK="$(P)SEND") + db.record("ao", "LAST", FLNK="$(P)LATE") +
        db.record("calcout", "SEND", INPA="$(P)COMMON", CALC="A", OUT=f"{far.prefix}IN CA PP") +
        db.record("calcout", "LATE", INPA="$(P)LAST", CALC="A", ODLY="0.02", OUT="$(P)DONE PP") + db.record("ao", "DONE") +
        db.record("calcout", "CLOCK", CALC="VAL+1", SCAN=".1 second", OUT="$(P)TICK PP") + db.record("ao", "TICK"),
        kind="softIocPVA", environ={**NEAR, "EPICS_CA_ADDR_LIST": f"127.0.0.1:{far.port}"}).start()
    return near, far


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("log") / "puts.json")


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return PutLog(tmp_path_factory.mktemp("people") / "puts.json")


@pytest.fixture(scope="module")
def monitor(module_monitor, iocs, sink, log, people):
    m = module_monitor(before=[log.command(), people.command().replace(" all", ' "all people"'),
                               f'ebpfMonOtlp "{sink.url}" "logs,traces"']).start().at_level("trace", *iocs)
    near, far = iocs
    near.put("A", 1)  # waits until the link is connected
    until(lambda: far.get("END") == 1, 10, "the value came through the link")
    return m


def lines(log, iocs, value):
    """PV → its line with this value."""
    names = {i.prefix: i for i in iocs}
    return {o["pv"].rsplit(":", 1)[1]: o for o in log.all() if o.get("value") == str(value) and
            any(o["pv"].startswith(p) for p in names)}


ALL = {"COMMON.A", "LAST", "IN", "END", "DONE"}


@pytest.mark.parametrize("program, value", [("caput", 2001), ("pvput", 2002)])
def test_consequences(monitor, iocs, sink, log, program, value):
    near, _ = iocs
    assert near.run(program, near.prefix + "A", str(value)).returncode == 0
    found = until(lambda: (f := lines(log, iocs, value)).keys() >= ALL | {"A"} and f, 10, lambda: lines(log, iocs, value))
    assert {o.get("trace") for o in found.values()} == {found["A"]["trace"]}, found
    spans = until(lambda: sink.traces().get(found["A"]["trace"]), 15, "the trace with this id")
    assert {s["name"] for s in spans} >= {near.prefix + "A", near.prefix + "LAST"}, spans
    until(lambda: sum(r.get("traceId") == found["A"]["trace"] for _, r in sink.log_records()) == 6, 15, "the log records with this id")


def test_a_scan_is_no_consequence(monitor, iocs, log):
    near, _ = iocs
    near.put("A", 3000)
    found = until(lambda: "DONE" in (f := lines(log, iocs, 3000)) and f, 10, "the consequences")
    ticks = [o for o in log.all() if o["pv"] == near.prefix + "TICK"]
    assert ticks and found["A"]["trace"] not in {o["trace"] for o in ticks}
    assert len({o["trace"] for o in ticks}) == len(ticks)


def test_people_only(monitor, iocs, log, people):
    near, _ = iocs
    near.put("B", 4000)
    until(lambda: lines(log, iocs, 4000).keys() >= ALL | {"B"}, 10, "the consequences")
    until(lambda: "B" in lines(people, iocs, 4000), 5, "the put of the person")
    assert {o["pv"] for o in people.all()} <= {near.prefix + "A", near.prefix + "B"} | \
        {o["pv"] for o in people.all() if o["pv"].startswith(monitor.prefix)}


@pytest.mark.parametrize("kinds", [("ca", "cacb"), ("pva", "ca"), ("pva", "pva")])
def test_two_clients_at_once(monitor, iocs, log, kinds):
    """Both write to the same chain as fast as they can. A line has the trace of the put with its value, or one of its own."""
    near, far = iocs
    first = {"ca": 10000, "cacb": 20000, "pva": 30000}[kinds[0]] + {"ca": 0, "cacb": 100000, "pva": 200000}[kinds[1]]
    number = 300
    clients = [Client(kind, pwd.getpwnam(user).pw_uid, near, record).ready()
               for kind, user, record in zip(kinds, ("daemon", "bin"), "AB")]
    for i, c in enumerate(clients):
        c.begin(first + i * 1000, number)
    for c in clients:
        c.finish()
        c.discard()
    values = [first + i * 1000 + n for i in range(2) for n in range(number)]

    def found():
        return [o for o in log.all() if o["pv"].startswith((near.prefix, far.prefix)) and o.get("value") in set(map(str, values))]

    last = until(lambda: far.get("END") in values and far.get("END"), 10, "the last value came through the link")
    until(lambda: any(o["pv"] == far.prefix + "END" and o["value"] == str(int(last)) for o in found()) and
          sum(o["pv"] == near.prefix + "LAST" for o in found()) >= 2 * number, 20, lambda: len(found()))
    cause = {o["value"]: o.get("trace") for o in found() if o["pv"] in (near.prefix + "A", near.prefix + "B")}
    assert len(cause) == 2 * number
    by_trace = {t: v for v, t in cause.items() if t}
    wrong = [o for o in found() if by_trace.get(o.get("trace"), o["value"]) != o["value"]]
    assert not wrong, f"{len(wrong)} of {len(found())} lines have the trace of another put: {wrong[:3]}"
    joined = {pv: (sum(cause[o["value"]] == o.get("trace") for o in rows), len(rows)) for pv in sorted(ALL)
              if (rows := [o for o in found() if o["pv"].rsplit(":", 1)[1] == pv])}
    for pv in ("COMMON.A", "LAST"):  # on a busy host more of them wait for their cause than may (CAUSED_MAX in iocPuts.c)
        assert joined[pv][1] == 2 * number and joined[pv][0] > 0.9 * 2 * number, joined
