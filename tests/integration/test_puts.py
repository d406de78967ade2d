# SPDX-License-Identifier: BSD-3-Clause
"""Each put is seen once, with its writer, its old and its new value."""
import pwd
import re
import sys
import time

import pytest
from tests.harness import ca, db, kernel, paths
from tests.harness.clients import Client
from tests.harness.soak import size, soak
from tests.harness.wait import until

KINDS = ["ca", "ca", "ca", "ca", "cacb", "cacb", "cacb", "pva", "pva", "pva"]
BATCH, BATCHES = 10, size(15, 100)  # 10 clients × 10 puts: half of the list of recent puts

TYPES = (
    db.record("ai", "AI") + db.record("ao", "AO", DRVH="0") + db.record("longout", "LO") +
    db.record("int64out", "I64") + db.record("stringout", "STR") + db.record("lso", "LSO", SIZV="200") +
    db.record("bo", "BO", ZNAM="Closed", ONAM="Open") +
    db.record("mbbo", "MBBO", ZRST="Idle", ONST="Moving", TWST="Stopped", ZRVL="0", ONVL="1", TWVL="2") +
    db.record("waveform", "WF", FTVL="DOUBLE", NELM="100") + db.record("waveform", "WFC", FTVL="CHAR", NELM="200") +
    db.record("waveform", "WFS", FTVL="STRING", NELM="5") + db.record("waveform", "WFL", FTVL="LONG", NELM="1000") +
    db.record("waveform", "WFF", FTVL="FLOAT", NELM="10") + db.record("waveform", "WFH", FTVL="SHORT", NELM="10") +
    db.record("ao", "DISABLED", DISP="1") + db.record("ao", "SECRET", ASG="NOBODY") + db.record("calc", "CALC")
)

ACF = """UAG(nobody) { nosuchuser }
ASG(DEFAULT) { RULE(1, WRITE) }
ASG(NOBODY) { RULE(1, READ) RULE(1, WRITE, TRAPWRITE) { UAG(nobody) } }
"""


@pytest.fixture(scope="module")
def users():
    """Ten users of a Debian system, none of them root."""
    return [p.pw_uid for p in pwd.getpwall() if 0 < p.pw_uid < 50][:len(KINDS)]


@pytest.fixture(scope="module")
def ioc(module_ioc, tmp_path_factory):
    acf = tmp_path_factory.mktemp("acf") / "test.acf"
    acf.write_text(ACF)
    text = db.READY + "".join(db.record("ao", f"N{i}") for i in range(len(KINDS))) + TYPES
    return module_ioc(text, kind="softIocPVA", acf=acf).start()


@pytest.fixture(scope="module")
def clients(ioc, users):
    made = [Client(kind, uid, ioc, f"N{i}") for i, (kind, uid) in enumerate(zip(KINDS, users, strict=True))]
    for c in made:
        c.ready()
    yield made
    for c in made:
        c.discard()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, clients):
    """Started after all clients are connected."""
    m = module_monitor(watch=[ioc.prefix + "N0"]).start()
    m.wait_ioc(ioc)
    return m


def recent(monitor, number):
    """The recent puts, newest first: (PV, new value, old value, writer)."""
    columns = [monitor.list(c) for c in ("PUT_PVS", "PUT_VALUES", "PUT_OLD_VALUES", "PUT_WRITERS")]
    return list(zip(*(c[:number] for c in columns)))


def log(monitor):
    return monitor.lines("PUT_LOG")


@soak
def test_many_puts(ioc, monitor, clients):
    """No put is missing or published twice. Each has its writer, old and new value."""
    before = monitor.get("PUT_CNT")
    watched = monitor.get(f"{ioc.prefix}N0:PUT_CNT")
    writer = {ioc.prefix + c.record: c.names for c in clients}
    for batch in range(BATCHES):
        first = 1 + batch * BATCH
        for c in clients:
            c.begin(first, BATCH)
        for c in clients:
            c.finish()
        total = len(clients) * BATCH
        want = {(ioc.prefix + c.record, v): v - 1 for c in clients for v in range(first, first + BATCH)}
        got = []

        def all_there():
            got[:] = recent(monitor, total)
            return {(pv, float(new)) for pv, new, _, _ in got} == set(want)

        until(all_there, 10, lambda: f"batch {batch}: missing "
              f"{sorted(set(want) - {(pv, float(new)) for pv, new, _, _ in got})[:10]} in {got[:10]}")
        assert len(got) == total  # together with the line above: each put is published once
        for pv, new, old, who in got:
            assert float(old) == want[pv, float(new)], (pv, new, old)
            assert who.startswith(writer[pv]), (pv, who)
        # the puts of each client are in its order
        for c in clients:
            mine = [float(new) for pv, new, _, _ in got if pv == ioc.prefix + c.record]
            assert mine == sorted(mine, reverse=True)
    number = len(clients) * BATCH * BATCHES
    assert monitor.get("PUT_CNT") == before + number
    assert monitor.get(f"{ioc.prefix}N0:PUT_CNT") == watched + BATCH * BATCHES
    assert monitor.losses() == {}
    for c in clients:
        assert ioc.get(c.record) == BATCH * BATCHES


def test_all_puts_of_a_flood_are_counted(ioc, monitor, clients):
    """All clients put as fast as they can."""
    before = monitor.get("PUT_CNT")
    for c in clients:
        c.begin(20001, 1000 if c.kind == "ca" else 300)
    for c in clients:
        c.finish(60)
    number = sum(1000 if c.kind == "ca" else 300 for c in clients)
    monitor.wait("PUT_CNT", lambda n: n + monitor.get("LOST_CNT") >= before + number, 15)
    assert monitor.get("PUT_CNT") == before + number
    assert monitor.losses() == {}


def test_writer_of_a_local_client_is_verified(ioc, monitor, clients):
    """The writer has the names that the client sends, and its real connection, process and user."""
    for c in clients:
        c.begin(30001, 1)
        c.finish()
        pv = ioc.prefix + c.record
        line = until(lambda: next((l for l in log(monitor).splitlines() if pv in l and "30001" in l), None), 5,
                     lambda: f"the put of {c.kind} {c.user}:\n{log(monitor)[:600]}")
        assert any(name in line for name in c.names), line
        if c.kind != "pva":
            assert re.search(rf"\b{c.process.pid}\b", line), f"not its pid {c.process.pid}: {line}"
            assert "127.0.0.1:" in line, line


def last(monitor, pv):
    """(value, old value) of the newest put to this PV."""
    for name, new, old, _ in recent(monitor, 200):
        if name == pv:
            return new, old
    return None


def same(text, value):
    try:
        return float(text) == float(value)
    except ValueError:
        return text == value


@pytest.mark.parametrize("record, first, second, seen_first, seen_second", [
    ("AI", 1.5, -2.25, "1.5", "-2.25"),
    ("AO", 3.25, 1e-12, "3.25", "1e-12"),
    ("LO", 7, -8, "7", "-8"),
    ("STR", "hello", "good bye, all", "hello", "good bye, all"),
    ("BO", 1, 0, "Open", "Closed"),
    ("MBBO", "Moving", "Stopped", "Moving", "Stopped"),
    ("CALC.PREC", 3, 5, "3", "5"),
    ("CALC.CALC", "A+B", "A-B", "A+B", "A-B"),
    ("AO.SCAN", "1 second", "Passive", "1 second", "Passive"),
    ("LO.PHAS", 1, 2, "1", "2"),
])
def test_scalars(ioc, monitor, record, first, second, seen_first, seen_second):
    """Numbers are shown as numbers, enums and menus by their text."""
    pv = ioc.prefix + record
    ioc.put(record, first)
    ioc.put(record, second)
    until(lambda: last(monitor, pv) and same(last(monitor, pv)[0], seen_second), 5,
          lambda: f"{record} {seen_second}: {last(monitor, pv)}")
    new, old = last(monitor, pv)
    assert same(new, seen_second) and same(old, seen_first)


def test_64_bits(ioc, monitor):
    """All digits of 64-bit integers, by pvAccess (Channel Access has no such type)."""
    pv = ioc.prefix + "I64"
    for value in (9007199254740993, -9007199254740995):
        done = pva_put(ioc, pv, value)
        assert done.returncode == 0, done.stdout
    until(lambda: last(monitor, pv) == ("-9007199254740995", "9007199254740993"), 5, lambda: str(last(monitor, pv)))


def pva_put(ioc, pv, value):
    return ioc.run("pvput", "-w", "5", pv, value)


def test_long_string(ioc, monitor):
    pv = ioc.prefix + "LSO"
    text = "".join(chr(ord("a") + i % 26) for i in range(120))
    ca.put(pv + ".VAL$", text)
    line = until(lambda: next((l for l in log(monitor).splitlines() if pv in l and text in l), None), 5,
                 lambda: log(monitor)[:800])
    assert paths.HOST in line
    assert text in monitor.wait_text("PUT_LAST", lambda t: pv in t, 5)


def test_cut_values_are_marked(ioc, monitor):
    """A STRING holds 39 characters. A value that is cut ends in '...'."""
    pv = ioc.prefix + "LSO"
    text = "x" * 100
    ca.put(pv + ".VAL$", text)
    until(lambda: (last(monitor, pv) or last(monitor, pv + ".VAL$") or ("",))[0].startswith("xxx"), 5, "the put")
    value = next(new for name, new, _, _ in recent(monitor, 200) if name.startswith(pv) and new.startswith("xxx"))
    assert value.endswith("...") and len(value) <= 39


@pytest.mark.parametrize("record, values, shown", [
    ("WF", [1.5, 2.5, 3.5], ["1.5", "2.5", "3.5"]),
    ("WFF", [0.5, 0.25], ["0.5", "0.25"]),
    ("WFH", [-3, 4], ["-3", "4"]),
    ("WFL", list(range(1000)), ["0", "1", "2", "1000"]),
    ("WFS", ["ab", "cd", "ef"], ["ab", "cd", "ef"]),
])
def test_arrays(ioc, monitor, record, values, shown):
    """Arrays are shown by their length and first elements."""
    pv = ioc.prefix + record
    ioc.put(record, values)
    line = until(lambda: next((l for l in log(monitor).splitlines() if f" {pv} " in l), None), 5,
                 lambda: log(monitor)[:800])
    new = line.split(" -> ", 1)[1]
    for text in shown:
        assert re.search(rf"(?<![\d.]){re.escape(text)}(?![\d.])" if text[0] in "-0123456789" else text, new), line


def test_array_old_value(ioc, monitor):
    pv = ioc.prefix + "WF"
    ioc.put("WF", [11.5, 12.5])
    ioc.put("WF", [13.5])
    line = until(lambda: next((l for l in log(monitor).splitlines() if f" {pv} " in l and "13.5" in l.split(" -> ")[1]),
                              None), 5, lambda: log(monitor)[:800])
    old = line.split(" -> ")[0]
    assert "11.5" in old and "12.5" in old, line


def test_array_that_the_kernel_part_does_not_know(new_ioc, monitor):
    """Its table of arrays was full: the old value is not known. The record has a pointer there, which is not shown."""
    ioc = new_ioc(db.READY + db.record("waveform", "WF", FTVL="LONG", NELM="10") + db.record("ao", "AO", DESC="before")).start()
    monitor.wait_ioc(ioc)
    assert kernel.remove_elements(monitor.process.pid, "arrays", lambda key: int.from_bytes(key[8:], sys.byteorder) == ioc.pid)
    ca.put(ioc.prefix + "AO.DESC$", "after")
    ioc.put("WF", [7, 8])
    line = newest(monitor, ioc.prefix + "WF", " -> ")
    assert line.split(" -> ")[0].endswith("WF ?"), line
    assert "before" in newest(monitor, ioc.prefix + "AO.DESC", "after").split(" -> ")[0]


def test_attribute(ioc, monitor):
    """A put to an attribute of a record type has its name, so that rules find it."""
    pv = ioc.prefix + "AO.VERS"
    ca.raw_put(ioc, pv, 1, True)
    newest(monitor, pv, " -> ")


def test_text_in_a_char_array(ioc, monitor):
    pv = ioc.prefix + "WFC"
    ca.put(pv, "a long text in a waveform of characters")
    until(lambda: any(pv in l for l in log(monitor).splitlines()), 5, lambda: log(monitor)[:400])


def newest(monitor, pv, text, seconds=5):
    return until(lambda: next((l for l in log(monitor).splitlines() if pv in l and text in l), None), seconds,
                 lambda: f"{pv} {text}:\n{log(monitor)[:800]}")


@pytest.mark.parametrize("callback", [False, True])
def test_denied_by_access_security(ioc, monitor, callback):
    before, all_before = monitor.get("PUT_DENIED_CNT"), monitor.get("PUT_CNT")
    pv = ioc.prefix + "SECRET"
    # caput obeys the access rights that the server sends, so another client puts
    ca.raw_put(ioc, pv, 43.5, callback)
    monitor.wait("PUT_DENIED_CNT", lambda n: n >= before + 1, 5)
    line = newest(monitor, pv, "43.5")
    assert "denied" in line.lower(), line
    assert ioc.get("SECRET") == 0
    assert monitor.get("PUT_CNT") >= all_before + 1


def test_failed_by_a_bad_value(ioc, monitor):
    """The conversion refuses a text that is not a number."""
    pv = ioc.prefix + "AO"
    out = ioc.run("caput", "-c", "-s", pv, "no number")
    line = newest(monitor, pv, "no number")
    assert "fail" in line.lower(), (line, out.stdout)


def test_failed_by_disp(ioc, monitor):
    pv = ioc.prefix + "DISABLED"
    ioc.run("caput", "-c", pv, "17.5")
    line = newest(monitor, pv, "17.5")
    assert re.search("fail|denied|disabled|refused", line.lower()), line
    assert ioc.get("DISABLED") == 0


def test_dbpf_at_the_shell(ioc, monitor):
    """A put in the shell of the IOC."""
    before = monitor.get("PUT_CNT")
    ioc.command(f'dbpf "{ioc.prefix}AO" 12.75')
    monitor.wait("PUT_CNT", lambda n: n == before + 1, 5)
    line = newest(monitor, ioc.prefix + "AO", "12.75")
    assert "127.0.0.1" not in line, f"there was no client: {line}"


def test_puts_of_links(new_ioc, monitor, ioc):
    """A CA link to another record of the same IOC makes a put, too."""
    other = new_ioc(db.READY + db.record("calcout", "FROM", CALC="VAL+1", OUT="$(P)TO CA") +
                    db.record("ao", "TO")).start()
    monitor.wait_ioc(other)
    other.put("FROM.PROC", 1)
    made = other.prefix + "TO"
    until(lambda: made in monitor.list("AUTO_PUT_PVS"), 5, lambda: log(monitor)[:600])
    assert same(monitor.list("AUTO_PUT_VALUES")[monitor.list("AUTO_PUT_PVS").index(made)], "1")
    assert last(monitor, made) is None, "it is no put of a client"


def test_time_of_a_put(ioc, monitor):
    """The time stamp is the time of the put. The put is published at once."""
    before = time.time()
    ioc.put("AI", 99)
    after = time.time()
    monitor.wait_text("PUT_LAST", lambda t: "99" in t and "AI" in t, 5)
    # the records of a group process one after the other, and PUT_CNT is not the first
    stamp = until(lambda: max(0, monitor.time_stamp("PUT_CNT") - before + 0.05), 5, "PUT_CNT has the time of an older put")
    assert stamp <= after - before + 0.1
