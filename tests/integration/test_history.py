# SPDX-License-Identifier: BSD-3-Clause
"""The history: puts of people and of links, events and gaps are found again, by the program ebpfMonHistory and with sqlite3."""
import contextlib
import csv
import datetime
import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import sqlite3
import struct
import subprocess
import time
import urllib.request
from xml.etree import ElementTree

import pytest

from tests.harness import badlink, ca, db, paths, rawca
from tests.harness.far import FarIoc
from tests.harness.incidents import FAR, WRITTEN, Incidents, query
from tests.harness.preload import preload
from tests.harness.soak import size
from tests.harness.wait import until

ASK = paths.BUILT / "bin" / paths.ARCH / "ebpfMonHistory"
REPLAY = paths.BUILT / "bin" / paths.ARCH / "ebpfMonReplay"
DATABASE = db.READY + "".join(db.record("ao", f"SET{i}", FLNK="$(P)ECHO" if i == 0 else "") for i in range(4)) + \
    db.record("calcout", "LINK", CALC="A", INPA="$(P)SET0 CP", OUT="$(P)TO PP") + db.record("ao", "TO") + db.record("ao", "ECHO") + \
    db.record("calcout", "TICK", SCAN=".1 second", CALC="VAL+1", OUT="$(P)TOCK PP") + db.record("ao", "TOCK")


def ask(file, *options, status=0):
    got = subprocess.run([ASK, "-d", file, *options], capture_output=True, text=True, timeout=60)
    assert got.returncode == status, got.stderr
    return got.stdout


def rows(file, *options):
    return [json.loads(line) for line in ask(file, "--json", "-n", "0", *options).splitlines()]


def count(file, where):
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as base:
        return base.execute(f"SELECT count(*) FROM rows WHERE {where}").fetchone()[0]


def is_whole(file):
    with contextlib.closing(sqlite3.connect(file, timeout=10)) as base:
        return base.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


@pytest.fixture
def keep(new_monitor, tmp_path):
    file = tmp_path / "history.sqlite"

    def start(megabytes=64, more="", rules="", **kw):
        monitor = new_monitor(before=[f'ebpfMonHistoryKeep "{file}" {megabytes} 30{more}', f'ebpfMonRules "{rules}"'], **kw).start()
        until(lambda: monitor.get("HISTORY_STATE") == 1, 20, lambda: monitor.text("HISTORY_MSG"))
        return monitor
    start.file = file
    return start


def test_who_wrote_what(keep, new_ioc, tmp_path):
    """Each put of a client is one row with value, old value, person, way and result. Puts of a link are kept as runs, and none is
    missing. The end of an IOC is an event."""
    monitor, ioc = keep(), new_ioc(DATABASE).start()
    monitor.wait_ioc(ioc)
    first = ioc.get("TOCK")
    until(lambda: ioc.get("TOCK") > first + 21, 30, "ticks that are watched")
    sent = []
    choice = random.Random(5)
    for _ in range(40):
        name, value = f"SET{choice.randrange(4)}", choice.randrange(1000)
        ioc.put(name, value)
        sent.append((ioc.prefix + name, str(value)))
    ioc.put("SET1.DISP", 1)
    ioc.put("SET1", 77, wait=False)
    until(lambda: count(keep.file, "pv LIKE '%:SET_' OR pv LIKE '%:SET1.DISP'") >= 42, 20, "the puts")
    got = [r for r in rows(keep.file, ioc.prefix + "SET?") if r["kind"] == "put"]
    assert [(r["pv"], r["value"]) for r in got][:40] == sent
    assert got[-1]["result"] in ("denied", "failed") and all(r["result"] == "ok" for r in got[:40])
    assert all(r["user"] and r["who"] and r["origin"] and not r["automatic"] for r in got)
    assert [r["value"] for r in rows(keep.file, "-u", got[0]["user"], "-v", sent[0][1], ioc.prefix + "SET?")][0] == sent[0][1]
    text = ask(keep.file, ioc.prefix + "SET2")
    assert all(f" {ioc.prefix}SET2 " in line and " by " in line for line in text.splitlines())
    table = list(csv.DictReader(io.StringIO(ask(keep.file, "--csv", "-n", "0", ioc.prefix + "SET?"))))
    assert [(r["pv"], r["value"]) for r in table][:40] == sent
    assert not rows_or_none(keep.file, ioc.prefix + "TOCK")  # no person has written it
    page = ask(keep.file, "-r", "-f", "-10m")
    assert [line for line in page.splitlines() if f"| {ioc.prefix}SET1 |" in line and ("denied" in line or "failed" in line)]
    assert "## Who wrote" in page and "| 42 |" in page and "did not run" not in page
    ioc.stop()
    until(lambda: count(keep.file, f"kind = 'event' AND value LIKE '%{ioc.name}%ended%'"), 30, "the end of the IOC")
    monitor.process.send("exit")
    monitor.process.wait(20)
    links = rows(keep.file, "-a", ioc.prefix + "TOCK")
    assert len(links) < 10 and links[0]["automatic"]
    values = [r for r in links if r.get("max")]
    assert sum(r["n"] for r in links) >= 20 and values[-1]["max"] >= first + 20
    assert is_whole(keep.file)
    folder = tmp_path / "copy"
    folder.mkdir()
    copy = shutil.copy(keep.file, folder)
    read_only = f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && exec {ASK} -d {copy} '{ioc.prefix}SET2'"
    got = subprocess.run(["unshare", "-m", "sh", "-c", read_only], capture_output=True, text=True, timeout=60)
    assert got.stdout.splitlines()[:len(text.splitlines())] == text.splitlines(), got.stderr


NEAR = db.READY + db.record("ao", "SET", FLNK="$(P)SEND") + db.record("calcout", "SEND", CALC="A*2", INPA="$(P)SET", OUT="$(FAR)IN CA PP", FLNK="$(P)SLOW") + \
    db.record("calcout", "SLOW", CALC="VAL+1", ODLY=".2", OUT="$(P)LATE PP") + db.record("ao", "LATE") + \
    db.record("calcout", "CLOCK", SCAN=".2 second", CALC="VAL+1", OUT="$(P)SECONDS PP") + db.record("ao", "SECONDS")


def why(file, *words, status=0):
    return json.loads(ask(file, "why", *words, "--json", status=status))


def local(utc):
    """A time of JSON as people write it, cut after the milliseconds."""
    at = datetime.datetime.fromisoformat(utc[:26] + "+00:00").astimezone()
    return at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def flat(effects):
    """The puts of a tree of effects, each with what it follows from."""
    for e in effects:
        if e["kind"] == "put":
            yield e
        yield from flat(e.get("effects", []))


@pytest.mark.parametrize("level", ["chains", "trace"])
def test_why(keep, new_ioc, rotel, tmp_path, level):
    """A put at one IOC writes through a CA link into another one, and after a delay through a callback. From each effect the tree
    leads up to the person, and from the put down to both; a scan's put is no part of it. At level trace it has the records, too."""
    monitor, far = keep(), new_ioc(FAR).start()
    near = new_ioc(NEAR, macros=f"FAR={far.prefix}").start()
    monitor.set_filter(LEVEL=level)
    for ioc in (near, far):
        monitor.wait_ioc(ioc, level=level)
    for value in (3, 5):
        near.put("SET", value)
        until(lambda: far.get("END") == 2 * value + 1, 20, "the effect")
        until(lambda: near.get("LATE") == value // 2, 20, "the late effect")
    end = f"pv = '{far.prefix}END' AND n = 1"
    until(lambda: count(keep.file, end) == 2, 20, lambda: ask(keep.file, "-a", "-n", "0"))
    if level == "trace":
        until(lambda: count(keep.file, f"kind = 'chain' AND tree LIKE '%{far.prefix}NEXT%'") >= 2, 20, "the records")
    up = why(keep.file, far.prefix + "END")
    puts = [(c["pv"], c["value"]) for c in up["causes"] if c["kind"] == "put"]
    assert (up["put"]["pv"], up["put"]["value"]) == (far.prefix + "END", "11")
    assert puts == [(far.prefix + "IN", "10"), (near.prefix + "SET", "5")], up
    person = up["causes"][-1]
    assert person["user"] and not person["automatic"] and up["begunBy"].startswith("the put of " + person["who"])
    until(lambda: count(keep.file, f"pv = '{near.prefix}LATE' AND n = 1") == 2, 20, lambda: ask(keep.file, "-a", "-n", "0"))
    late = [c for c in why(keep.file, near.prefix + "LATE")["causes"] if c["kind"] == "put"]
    assert [(c["pv"], c["value"]) for c in late] == [(near.prefix + "SET", "5")]
    down = why(keep.file, near.prefix + "SET.VAL")
    assert [(e["pv"], e["value"]) for e in flat(down["effects"])] == \
        [(far.prefix + "IN", "10"), (far.prefix + "END", "11"), (near.prefix + "LATE", "2")], down
    assert ("records" in down) == (level == "chains")
    if level == "trace":
        chains = [c for c in down["effects"] if c["kind"] == "chain"]
        assert chains and near.prefix + "SEND (calcout) = 10" in chains[0]["tree"]
    otlp = ask(keep.file, "why", far.prefix + "END", "--otlp")
    urllib.request.urlopen(urllib.request.Request(rotel.url + "/v1/traces", otlp.encode(), {"Content-Type": "application/json"})).close()
    until(lambda: f"put {near.prefix}LATE" in rotel.process.output(), 20, rotel.process.output)
    trace = [span for r in json.loads(otlp)["resourceSpans"] for scope in r["scopeSpans"] for span in scope["spans"]]
    below = {span["name"]: next((s["name"] for s in trace if s["spanId"] == span.get("parentSpanId")), None)
             for span in trace if span["name"].startswith("put ")}
    assert below == {f"put {near.prefix}SET": None, f"put {far.prefix}IN": f"put {near.prefix}SET",
                     f"put {far.prefix}END": f"put {far.prefix}IN", f"put {near.prefix}LATE": f"put {near.prefix}SET"}
    assert len({span["traceId"] for span in trace}) == 1 and len(trace) > 4 - (level == "chains")
    if level == "chains":
        check_hosts(keep.file, tmp_path, near, far)
    text = ask(keep.file, "why", far.prefix + "END")
    assert f"{near.name}: " in text and text.count(near.prefix + "SET 3 -> 5 by") == 1 and "It began with the put of" in text
    changed = [r["value"] for r in rows(keep.file, monitor.prefix + "FILTER_LEVEL")]
    assert changed[-1] == {"chains": "3", "trace": "4"}[level], changed
    none = ask(keep.file, "why", near.prefix + "NOTHING", status=1)
    assert "has no put" in none
    first, = [p for p in rows(keep.file, near.prefix + "SET") if p["value"] == "3"]
    assert why(keep.file, near.prefix + "SET", local(first["time"]))["put"]["value"] == "3"


def split_hosts(file, tmp_path, near, far, *more):
    """Two files, as the monitors of two hosts would have kept what this one kept of both IOCs: at the sender the put went to an
    address, at the receiver it came from a client. "more": SQL for the receiver's."""
    made = [tmp_path / f"{name}.sqlite" for name in ("sender", "receiver")]
    sent = f"pv = '{far.prefix}IN' AND ioc = '{far.name}' AND n = 1"
    changes = ((f"UPDATE rows SET ioc = '192.0.2.7:5064', chain = NULL WHERE {sent}", f"DELETE FROM rows WHERE ioc = '{far.name}'"),
               (f"UPDATE rows SET source = NULL, automatic = 0, origin = 'CA ' || peer WHERE {sent}",
                f"DELETE FROM rows WHERE ioc = '{near.name}'", *more))
    for other, sql in zip(made, changes, strict=True):
        with contextlib.closing(sqlite3.connect(file)) as base, contextlib.closing(sqlite3.connect(other)) as copy:
            base.backup(copy)
            for line in sql:
                copy.execute(line)
            copy.commit()
    return made


def check_hosts(file, tmp_path, near, far):
    """With the files of both hosts the answers are those of one, also if their clocks differ by two minutes. Without the message of the
    put they are perhaps joined by its value, if the clocks differ by 20 s."""
    sender, receiver = split_hosts(file, tmp_path, near, far)
    alone, both = why(receiver, far.prefix + "END"), why(receiver, far.prefix + "END", "--also", sender)
    assert [c["pv"] for c in alone["causes"] if c["kind"] == "put"] == [far.prefix + "IN"]
    assert [c["pv"] for c in both["causes"] if c["kind"] == "put"] == [far.prefix + "IN", far.prefix + "IN", near.prefix + "SET"], both
    assert both["begunBy"] == why(file, far.prefix + "END")["begunBy"] and "hosts" not in both
    assert [c["file"] for c in both["causes"]][-1] == str(sender)
    down = why(sender, near.prefix + "SET", "--also", receiver)
    assert [(e["pv"], e["value"]) for e in flat(down["effects"])] == \
        [(far.prefix + "IN", "10"), (far.prefix + "IN", "10"), (far.prefix + "END", "11"), (near.prefix + "LATE", "2")], down
    assert f'"put {near.prefix}SET"' in ask(receiver, "why", far.prefix + "END", "--otlp", "--also", sender)
    assert f"{sender}, {near.name}: " in ask(receiver, "why", far.prefix + "END", "--also", sender)
    for seconds, kept, isFound in ((120, "trace", True), (20, "NULL", True), (-20, "NULL", True), (120, "NULL", False)):
        sender, receiver = split_hosts(file, tmp_path, near, far, f"UPDATE rows SET time = time + {seconds} * 1000000000, "
                                       f"first = first + {seconds} * 1000000000, trace = {kept}")
        later = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() + 300))
        answer = why(receiver, far.prefix + "END", later, "--also", sender)
        assert (near.prefix + "SET" in [c["pv"] for c in answer["causes"]]) == isFound, (seconds, answer)
        assert answer.get("hosts", "").startswith("Perhaps") == (isFound and kept == "NULL"), answer
    none = subprocess.run([ASK, "-d", receiver, "why", "X", "--also", tmp_path / "none"], capture_output=True, text=True)
    assert none.returncode == 2 and f"{tmp_path}/none: " in none.stderr, none.stderr
    for words in (["why", "X", "--also", receiver], ["--also", sender, "X"], ["report", "-1h", "now", "--also", sender]):
        assert subprocess.run([ASK, "-d", receiver, *words], capture_output=True).returncode == 2, words


def sent_puts(file, pv, value):
    """Time (ns) and trace of each put of this value over the network to this PV; of a run that of its last one."""
    return query(file, f"SELECT time, trace FROM rows WHERE pv = '{pv}' AND value = '{value}' AND trace IS NOT NULL ORDER BY time")


def hidden(pid, empty):
    """A command without this process in /proc, as the process of another host."""
    return ["unshare", "-m", "sh", "-c", f'mount --bind {empty} /proc/{pid} && exec "$@"', "sh"]


def spans_of(file, *words):
    return [s for r in json.loads(ask(file, "why", *words, "--otlp"))["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]


def test_why_two_hosts(new_monitor, rotel, tmp_path):
    """Two network namespaces with a monitor and a history each, which do not see each other's IOC. Each of three equal writes of
    a link is the same put in both files, and has the id of the trace that both export. "why" leads from one host to the other, also if
    the clocks differ by days. A put of a link that wrote often is perhaps one of its run."""
    with contextlib.ExitStack() as stack:
        link, empty = stack.enter_context(badlink.BadLink()), tmp_path / "empty"
        empty.mkdir()
        far = FarIoc(tmp_path, link, db=FAR + db.record("ao", "RATE"))
        stack.callback(far.discard)
        far.start()
        near = FarIoc(tmp_path, link, end=link.a, name=f"{far.name}:near", macros=f"FAR={far.prefix}", db=NEAR + db.record(
            "calcout", "FAST", SCAN=".1 second", CALC="VAL+1", OUT="$(FAR)RATE CA PP"),
                      environ={"EPICS_CA_ADDR_LIST": f"{link.addrB}:{far.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"})
        stack.callback(near.discard)
        monitors, files = [], [tmp_path / f"{name}.sqlite" for name in ("near", "far")]

        def watch(iocs, other):
            monitor = new_monitor(iocs=iocs, before=[f'ebpfMonHistoryKeep "{files[len(monitors)]}" 16 30', f'ebpfMonOtlp "{rotel.url}" "traces"'])
            monitors.append(monitor.launch(hidden(other.pid, empty)))
            monitor.wait_state("Running")
            monitor.set_filter(LEVEL="trace")
            monitor.wait("PACKET_STATE", lambda state: state == 1, 20)

        watch("*:*", far)  # a server elsewhere is ADDRESS:PORT
        near.start()  # later: the names of channels that are older than the monitor are not known
        for record in "CLOCK", "FAST":
            near.command(f'dbpf "{near.prefix}{record}.SCAN" "Passive"')
        watch(far.name, near)
        for ioc, monitor in zip((near, far), monitors):
            monitor.wait_ioc(ioc, level="trace")

        def put(value):
            subprocess.run(badlink.in_namespace(link.a, [paths.BASE_BIN / "caput", near.prefix + "SET", value]), check=True, timeout=60, env={
                **os.environ, "EPICS_CA_ADDR_LIST": f"{link.addrA}:{near.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"})

        until(lambda: (put(4), sent_puts(files[1], far.prefix + "IN", 8))[1], 30, "the link is connected")
        for n in 1, 2, 3:  # the same value
            put(5)
            until(lambda: all(len(sent_puts(file, far.prefix + "IN", 10)) == n for file in files), 60, "the put is in both files")
        here, there = (sent_puts(file, far.prefix + "IN", 10) for file in files)
        ids = [trace for _, trace in there]
        assert ids == [trace for _, trace in here] and len(set(ids)) == 3

        def exported(ioc):
            return {s["trace"] for s in rotel.spans() if s["service"] == ioc.name}

        until(lambda: set(ids) <= exported(near) & exported(far), 20, lambda: f"{ids}: {exported(near)}, {exported(far)}")
        near.command(f'dbpf "{near.prefix}FAST.SCAN" ".1 second"')
        until(lambda: count(files[1], f"pv = '{far.prefix}RATE'") > 20, 30, "the link that writes often")
        for monitor in monitors:
            monitor.process.send("exit")
            monitor.process.wait(20)
    late = tmp_path / "late.sqlite"
    shutil.copy(files[0], late)
    with sqlite3.connect(late) as base:
        base.execute("UPDATE rows SET time = time - 3 * 86400000000000, first = first - 3 * 86400000000000")
    for at, trace in there:
        ms = at // 10**6 + 5
        answer = why(files[1], far.prefix + "IN", time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03}Z", "--also", late)
        puts = [(c["pv"], c["value"]) for c in answer["causes"] if c["kind"] == "put"]
        assert answer["put"]["trace"] == trace and puts == [(far.prefix + "IN", "10"), (near.prefix + "SET", "5")], answer
        assert answer["begunBy"].startswith("the put of ") and "hosts" not in answer
        assert [c["trace"] for c in answer["causes"] if c["pv"] == far.prefix + "IN" and c["kind"] == "put"] == [trace]
    down = [(e["pv"], e["value"]) for e in flat(why(files[0], near.prefix + "SET", "--also", files[1])["effects"])]
    assert down[:3] == [(far.prefix + "IN", "10"), (far.prefix + "IN", "10"), (far.prefix + "END", "11")]
    parts = [spans_of(*words) for words in ((files[1], far.prefix + "END"), (files[0], near.prefix + "SET"), (files[1], far.prefix + "END", "--also", files[0]))]
    assert all({s["traceId"] for s in part} == {ids[-1]} for part in parts)
    found = [{s["spanId"] for s in part} for part in parts]
    assert found[0] | found[1] == found[2] and not found[0] & found[1]
    last = {trace for trace, in query(files[0], f"SELECT trace FROM rows WHERE pv = '{far.prefix}RATE'")}  # of a run that of its last put
    among = next(row for row in rows(files[1], far.prefix + "RATE")[10:] if row["trace"] not in last)
    answer = why(files[1], far.prefix + "RATE", local(among["time"]), "--also", files[0])
    run = next(c for c in answer["causes"] if c["kind"] == "put")
    assert run["n"] > 1 and run["origin"].startswith(f"CA link {near.prefix}FAST.OUT") or "FAST" in run["origin"], answer
    assert answer["hosts"].startswith("Perhaps") and "scan .1 second" in answer["begunBy"].replace("0.1", ".1"), answer


def told():
    """The commands of the how-to: question → words, without the name of the program."""
    text = (paths.TOP / "documentation" / "use" / "history.md").read_text().split("### The morning after\n")[1].split("###")[0]
    return {q: shlex.split(c)[1:] for q, c in re.findall(r"(?m)^\| (\w.*\?) \| `(.*)` \|$", text)}


def test_prepared_day(keep, new_ioc, tmp_path):
    """Seven incidents, of which only this script knows time, value and culprit. Afterwards, without a monitor, each is found by the
    command that the how-to names for it."""
    rules = tmp_path / "rules.json"
    far = new_ioc(FAR).start()
    near = new_ioc(NEAR + WRITTEN, macros=f"FAR={far.prefix}").start()
    lost = new_ioc(DATABASE).start()
    rules.write_text(json.dumps({"rules": [{"name": "noted", "pv": near.prefix + "ODD", "users": ["mila"]}]}))
    made = Incidents(far, near, lost)
    monitor = keep(rules=rules)
    made.make(monitor, keep.file)
    at = datetime.datetime.now()
    monitor.process.send("exit")
    monitor.process.wait(20)
    made.write("mila", "WRONG", made.unseen)
    monitor = keep(rules=rules)
    monitor.process.send("exit")
    monitor.process.wait(20)
    made.putter.discard()

    names = {"RING:*": near.prefix + "*", "VAC:VALVE3": far.prefix + "END", "VAC:PUMP1": near.prefix + "SECONDS", "400": str(made.wrong),
             "2026-11-28 03:10:05": at.strftime("%Y-%m-%d %H:%M:%S")}
    answers = {q: ask(keep.file, *[names.get(w, w) for w in words]) for q, words in told().items()}
    assert len(answers) == 7
    value, reason, end, rule, refusal, link, gap = answers.values()
    assert "jonas@" in value and "mila@" not in value and f" {near.prefix}WRONG 1 -> {made.wrong} " in value
    assert f"{far.prefix}END " in reason.splitlines()[0] and re.search(f"{near.prefix}SET .*-> {made.cause} by ida@", reason)
    assert "It began with the put of ida@" in reason
    assert f"IOC {lost.name} " in end and "signal 11" in end and len([line for line in end.splitlines() if "ended" in line]) == 1
    assert f"{near.prefix}ODD 3 -> {made.odd} by jonas@" in rule and '"noted"' in rule and rule.count("UNEXPECTED") == 1
    assert f"{near.prefix}OFF " in refusal and f"{made.refused} by otto@" in refusal and refusal.count("OFF") == 1
    assert f"link {near.prefix}CLOCK.OUT" in link and "scan 0.2 second" in link
    assert gap.count("NOT WATCHED") == 1 and str(made.unseen) not in ask(keep.file, "-n", "0")


V1 = """CREATE TABLE rows (id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT NULL, automatic INTEGER NOT NULL, ioc TEXT, pv TEXT,
value TEXT, old TEXT, user TEXT, host TEXT, peer TEXT, who TEXT, origin TEXT, result TEXT, reason TEXT, n INTEGER NOT NULL, first INTEGER NOT NULL,
least REAL, most REAL); CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
INSERT INTO rows (time, kind, automatic, pv, value, n, first) VALUES (strftime('%s') * 1000000000, 'put', 0, 'OLD:PV', '1', 1, 1);
PRAGMA application_id = 0x65426d48; PRAGMA user_version = 1;"""


V2 = "ALTER TABLE rows ADD COLUMN chain TEXT; ALTER TABLE rows ADD COLUMN source TEXT; ALTER TABLE rows ADD COLUMN steps TEXT; " \
    "ALTER TABLE rows ADD COLUMN tree TEXT; PRAGMA user_version = 2"
V3 = "ALTER TABLE rows ADD COLUMN trace TEXT; PRAGMA user_version = 3"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_earlier_files(keep, new_ioc, version):
    """A file of an earlier version is read as it is. It gets the new columns when it is written, and no row is lost."""
    with sqlite3.connect(keep.file) as base:
        base.executescript("; ".join((V1, V2, V3)[:version]))
    for words in (["-n", "0"], ["-n", "0", "OLD:*"], ["report", "-1h", "now"], ["why", "OLD:PV"]):
        assert "OLD:PV" in ask(keep.file, *words)
    monitor, ioc = keep(), new_ioc(DATABASE).start()
    monitor.wait_ioc(ioc)
    ioc.put("SET2", 7)
    until(lambda: count(keep.file, "trace IS NOT NULL AND pv LIKE '%:SET2'") == 1, 20, "a row with all columns")
    for words in (["-n", "0", "OLD:*"], ["why", "OLD:PV"]):
        assert "OLD:PV" in ask(keep.file, *words)
    assert is_whole(keep.file)


def test_unusual(keep):
    """The page names the figures that were beyond all of the hours before, and no
    others."""
    monitor = keep()
    monitor.process.send("exit")
    monitor.process.wait(20)
    now, minute, choice = time.time_ns(), 60 * 10**9, random.Random(3)
    with sqlite3.connect(keep.file) as base:
        for i in range(180):
            cpu = 40 if i < 10 else choice.uniform(2, 6)
            for ioc, pv, value in [("ring", None, {"cpu": cpu, "memory": choice.uniform(30, 31)}),
                                   ("ring", "RING:SLOW", {"mean_us": 900 if i < 10 else choice.uniform(80, 120)})]:
                base.execute("INSERT INTO rows (time, kind, automatic, ioc, pv, value, n, first) VALUES (?, 'minute', 1, ?, ?, ?, 1, ?)",
                             (now - i * minute, ioc, pv, json.dumps(value), now - i * minute))
        base.execute("INSERT INTO rows (time, kind, automatic, value, n, first) VALUES (?, 'event', 0, '<b>[x](http://y)|', 1, ?)", (now, now))
    for begin in ("-10m", "-2h"):  # two hours with ten minutes that stand out
        page = ask(keep.file, "report", begin, "now")
        part = page.split("## Unusual against the six hours before\n")[1].split("##")[0]
        found = [line.split(" | ")[:3] for line in part.splitlines() if line.startswith("| ring")]
        assert sorted(found) == [["| ring", "", "cpu"], ["| ring", "RING:SLOW", "mean_us"]], part
    assert "| &lt;b>\\[x](http://y)\\| |" in page
    page = ask(keep.file, "report", "-10m", "now", "--html")
    assert "&lt;b>[x]" in page and "<b>" not in page
    root = ElementTree.fromstring(page.replace("<!DOCTYPE html>", "").replace('<meta charset="utf-8">', ""))
    lines = [line.get("points").split() for line in root.iter("polyline")]
    assert [len(points) for points in lines] == [180, 180]
    assert all(float(points[-1].split(",")[1]) < 8 < float(points[0].split(",")[1]) for points in lines)  # high at the end only
    lines = ask(keep.file, "-k", "minute", "-i", "ring", "-n", "0").splitlines()
    assert len(lines) == 360 and ' ring RING:SLOW: {"mean_us"' in lines[0] + lines[1] and ' ring: {"cpu"' in lines[0] + lines[1]


def test_page_with_a_busy_program(keep):
    """What a person wrote stands on the page, though a program has written often since then."""
    monitor = keep()
    monitor.process.send("exit")
    monitor.process.wait(20)
    now = time.time_ns()
    with sqlite3.connect(keep.file) as base:
        base.executemany("INSERT INTO rows (time, first, kind, automatic, pv, value, user, who, n) VALUES (?1, ?1, 'put', 0, ?2, ?3, ?4, ?4, 1)",
                         [(now - 60 * 10**9, "RING:SET", "7", "mila"), *((now - 50 * 10**9 + i, "RING:BEAT", str(i), "robot") for i in range(1000))])
    part = ask(keep.file, "report", "-1h", "now").split("## What people wrote, ")[1].split("##")[0]
    assert part.count("| RING:BEAT |") == 5 and "| 999 | robot |" in part and "| RING:SET |  | 7 | mila |" in part, part


def test_questions(keep):
    """Brackets are themselves, times are those of any zone, each row is whole, and the answer says what the file does not have."""
    monitor = keep()
    monitor.process.send("exit")
    monitor.process.wait(20)
    hour, now = 3600 * 10**9, time.time_ns()
    big = json.dumps({"fields": ['"\\' * 20] * 1000})
    made = [("put", 0, "X[1]", "[1, 2]", now - 5 * hour, "mila@c2 [caput 4711]"), ("put", 0, "X1", "1", now - 5 * hour + 10**9, "ida@c2"),
            ("put", 1, "X1", "2", now - 4 * hour, "link Y.OUT"), ("gap", 0, None, "nobody was there", now - 3 * hour, None),
            ("put", 0, "X1", "3", now - 2 * hour, "ida@c2"), ("record", 1, "BIG", big, now - 2 * hour, None)]
    with sqlite3.connect(keep.file) as base:
        base.execute("DELETE FROM rows")
        for kind, automatic, pv, value, at, who in made:
            base.execute("INSERT INTO rows (kind, automatic, pv, value, time, first, n, result, who) VALUES (?, ?, ?, ?, ?, ?, 1, 'ok', ?)",
                         (kind, automatic, pv, value, at, at, who))
        base.execute("UPDATE meta SET value = ? WHERE key = 'alive'", (now - hour,))

    def values(*options):
        return [r["value"] for r in rows(keep.file, *options) if r["kind"] == "put"]
    assert values("X[1]") == ["[1, 2]"] == values("X[1*") == values("-v", "[1, *") == values("-p", "caput")
    assert values("X1") == ["1", "3"]
    row, = [json.loads(line) for line in ask(keep.file, "-k", "record", "--json").splitlines() if "BIG" in line]
    assert row["value"] == big
    first, second = (datetime.datetime.fromtimestamp((now - h * hour) // 10**9, datetime.timezone.utc) for h in (6, 3))
    utc = [at.strftime("%Y-%m-%dT%H:%M:%SZ") for at in (first, second)]
    assert values("-f", "..".join(utc), "X1") == ["1"] == values("-f", utc[0], "-t", utc[1], "X1")
    behind = time.gmtime().tm_hour - 12  # of a zone where it is noon
    today = [(at - datetime.timedelta(hours=behind)).strftime("%H:%M:%S") for at in (first, second)]
    for words, found in (["-f", "..".join(today)], ["1"]), (["-f", today[0], "-t", today[1]], ["1"]), (["-f", today[1][:5]], ["3"]), \
            (["-f", "20:00", "-t", today[1]], ["1"]), (["-f", "20:00", "-t", "21:00"], []), (["-f", today[1] + "..20:00"], ["3"]), \
            (["-f", "20:00..21:00"], []), (["X1.VAL", "-n", "1"], ["3"]):  # -f 20:00 is of the day before
        text = subprocess.run([ASK, "-d", keep.file, *words, *["X1"][words[0] == "X1.VAL":]], capture_output=True, text=True, env=os.environ | {"TZ": f"NOON{behind}"}, timeout=60)
        assert text.returncode < 2 and re.findall(r" X1 (\d)", text.stdout) == found, (words, text)
    lines = ask(keep.file, "-f", "-1d", "-a", "X1").splitlines()  # gaps also before the first row that was found
    assert [re.sub(r"^.{24}| since .*:", "", line) for line in lines] == [
        "NOT KNOWN before: nothing older is kept", "X1 1 by ida@c2", "NOT KNOWN before: nothing older is kept of what IOCs did by themselves",
        "X1 2 by link Y.OUT", "NOT WATCHED nobody was there", "X1 3 by ida@c2", "NOT WATCHED this file has nothing later"], lines
    assert "NOT KNOWN" not in ask(keep.file, "-n", "0") and "NOT" not in ask(keep.file, "--caputlog")
    assert "this file has nothing later" in ask(keep.file, "why", "X1")
    with sqlite3.connect(keep.file) as base:  # what feeds back has no first cause
        base.executemany("INSERT INTO rows (time, kind, automatic, ioc, pv, n, first, chain, source) VALUES (?, 'put', 1, 'ioc', 'BACK', 1, ?, ?, ?)",
                         [(now - i * 10**6, now - i * 10**6, f"c{i}", f"c{i + 1}") for i in range(30)])
    text = ask(keep.file, "why", "BACK")
    assert text.count(" BACK") == 21 and "There are earlier causes" in text and "not known: the history" not in text
    page = ask(keep.file, "report", "-1d", "-30m")
    assert "| before | " in page and page.count("nothing older is kept") == 2 and "this file has nothing later" in page
    assert "Not all is known (see above). Of the rest:\nNo IOC ended" in page and "Not known." not in page
    for begin, end, why in ("2000-01-01", "2000-01-02", "nothing older is kept"), ("2100-01-01", "2100-01-02", "has not come yet"):
        for form in [], ["--html"]:
            page = ask(keep.file, "report", begin, end, *form)
            assert why in page and "No IOC ended" not in page and page.count("Not known.") == 7, page
    night = datetime.datetime(2026, 10, 25, 0, 30, tzinfo=datetime.timezone.utc).timestamp()  # 02:30 for the first time, and an hour before 01:00 UTC
    with sqlite3.connect(keep.file) as base:
        for i, hours in enumerate((-1, 0, 1, 2, 24 * -210 + 0.6)):  # and 03:06 of 2026-03-29, when 02:30 did not come
            at = int((night + 3600 * hours) * 1e9)
            base.execute("INSERT INTO rows (kind, automatic, pv, value, time, first, n) VALUES ('put', 0, 'N', ?, ?, ?, 1)", (str(i), at, at))
    for begin, end, found in ("2026-10-25 02:30", "2026-10-25 02:30", "12"), ("2026-10-25 02:00", "2026-10-25 03:00", "12"), \
            ("2026-10-25", "2026-10-25 03:30", "0123"), ("2026-03-29 02:30", "2026-03-29 03:10", "4"):
        text = subprocess.run([ASK, "-d", keep.file, "-f", begin, "-t", end, "N"], capture_output=True, text=True,
                              env=os.environ | {"TZ": "Europe/Zurich"}, timeout=60).stdout
        assert re.findall(r" N (\d)", text) == list(found), (begin, text)


def test_all_rows(keep):
    """An answer with all rows, which may be millions, is in the order of time, and takes no memory for them."""
    monitor = keep()
    monitor.process.send("exit")
    monitor.process.wait(20)
    with sqlite3.connect(keep.file) as base:
        base.execute("INSERT INTO rows (time, kind, automatic, pv, value, n, first) WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i "
                     "WHERE x < 200000) SELECT x, 'put', x % 3 = 0, 'X' || (x % 7), printf('%0300d', x), 1, x FROM i")
    for form, pv, found in ("--json", [], 200001), ("--csv", ["X3"], 28573), ("--csv", ["X*"], 200001):
        words = ["sh", "-c", 'ulimit -v 100000; exec "$@"', "sh", ASK, "-d", keep.file, "-n", "0", "-a", form, *pv]  # KB
        got = subprocess.run(words, capture_output=True, text=True, timeout=60)
        times = [line.split('"')[3] if form == "--json" else line.split(",")[0] for line in got.stdout.splitlines()]
        assert got.returncode == 0 and len(times) == found, (form, pv, got.stderr)
        assert times[form == "--csv":] == sorted(times[form == "--csv":])


def test_asked_by_pvs(keep, new_ioc):
    """Who writes from when and which PV gets a table and lines, the newest first; a wrong time gets a sentence."""
    monitor, ioc = keep(), new_ioc(DATABASE).start()
    monitor.wait_ioc(ioc)
    assert monitor.lines("HISTORY_TEXT") == monitor.text("HISTORY_FOUND_MSG") == "write HISTORY_FROM, HISTORY_TO, HISTORY_PV or HISTORY_USER"
    for value in (11, 12):
        ioc.put("SET2", value)
    until(lambda: count(keep.file, "pv LIKE '%:SET2'") == 2, 20, "the puts")
    monitor.put("HISTORY_PV.VAL$", ioc.prefix + "SET2")
    until(lambda: monitor.list("HISTORY_VALUES")[:2] == ["12", "11"], 20, lambda: monitor.text("HISTORY_FOUND_MSG"))
    assert monitor.text("HISTORY_FOUND_MSG") == "2 rows" and monitor.list("HISTORY_PVS")[0] == ioc.prefix + "SET2"
    until(lambda: f" {ioc.prefix}SET2 11 -> 12 by " in monitor.lines("HISTORY_TEXT").splitlines()[0], 20, lambda: monitor.lines("HISTORY_TEXT"))
    monitor.put("HISTORY_FROM.VAL$", "2020-02-30")
    monitor.wait_text("HISTORY_FOUND_MSG", lambda text: text.startswith("no time"))
    until(lambda: not any(monitor.list("HISTORY_VALUES")), 20, lambda: monitor.list("HISTORY_VALUES"))
    monitor.put("HISTORY_FROM.VAL$", "-1h")
    monitor.put("HISTORY_USER.VAL$", "nobody*")
    monitor.wait_text("HISTORY_FOUND_MSG", lambda text: text == "0 rows")


def test_hash(keep, new_ioc):
    """Two arrays of which the history has the same begin are told apart by the hash of what was sent. Who leaves out values has none."""
    monitor, ioc = keep(), new_ioc(DATABASE + db.record("waveform", "WAVE", FTVL="DOUBLE", NELM="2000")).start()
    monitor.wait_ioc(ioc)
    arrays = [[*map(float, range(1999)), last] for last in (1.0, 2.0, 1.0)]
    for array in [*arrays, [5.0]]:
        ioc.put("WAVE", array)
    until(lambda: count(keep.file, "pv LIKE '%:WAVE'") == 4, 20, "the puts")
    got = rows(keep.file, ioc.prefix + "WAVE")
    assert len({r["value"] for r in got}) == 2 and got[0]["value"].endswith("...")
    assert [r.get("hash") for r in got] == [rawca.fnv(rawca.elements(rawca.DOUBLE, a)) for a in arrays] + [None]
    assert [r["hash"] for r in csv.DictReader(io.StringIO(ask(keep.file, "--csv", ioc.prefix + "WAVE")))][:2] == [r["hash"] for r in got[:2]]
    monitor.process.send("exit")
    monitor.process.wait(20)
    monitor = keep(more=' "values"')
    monitor.wait_ioc(ioc)
    ioc.put("WAVE", arrays[0])
    until(lambda: count(keep.file, "pv LIKE '%:WAVE' AND value IS NULL AND hash IS NULL") == 1, 20, lambda: ask(keep.file))


def pcapng(file):
    """Our own reader, without a capture tool: (time in ns, interface, bytes that were kept, bytes that were sent, comment)."""
    data, at, names, packets = file.read_bytes(), 0, [], []

    def options(block):
        while len(block) >= 4:
            code, length = struct.unpack_from("<HH", block)
            yield code, block[4:4 + length]
            block = block[4 + (length + 3) // 4 * 4:]
    assert struct.unpack_from("<II", data, 4)[1] == 0x1a2b3c4d
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        assert size % 4 == 0 and struct.unpack_from("<I", data, at + size - 4) == (size,)
        body = data[at + 8:at + size - 4]
        if kind == 1:
            assert struct.unpack_from("<H", body) == (101,) and dict(options(body[8:]))[9] == b"\x09"
            names.append(dict(options(body[8:]))[2].decode())
        elif kind == 6:
            interface, high, low, kept, sent = struct.unpack_from("<5I", body)
            comment = dict(options(body[20 + (kept + 3) // 4 * 4:])).get(1, b"").decode()
            packets.append((high << 32 | low, names[interface], body[20:20 + kept], sent, comment))
        at += size
    return packets


def test_frozen(new_monitor, new_ioc, tmp_path):
    """An unexpected put, a command, and a signal write the last minutes to files: each put of a link by itself, the IOCs, pages, and the
    packets, whose comments say of which IOC, client and PV they are."""
    rules, ioc = tmp_path / "rules.json", new_ioc(DATABASE).start()
    rules.write_text(json.dumps({"rules": [{"name": "closed", "pv": ioc.prefix + "SET3", "allow": False}]}))
    monitor = new_monitor(before=[f'ebpfMonHistoryKeep "{tmp_path / "history.sqlite"}" 64 30', f'ebpfMonHistoryRing "{tmp_path}" 4',
                                  f'ebpfMonRules "{rules}"']).start()
    monitor.wait_ioc(ioc)
    first = ioc.get("TOCK")
    until(lambda: ioc.get("TOCK") > first + 12, 20, "ticks")
    ioc.put("SET3", 13)
    ioc.put("SET1", 14)
    last = ioc.get("TOCK")
    file = until(lambda: next(iter(tmp_path.glob("frozen-*.tar")), None), 30, "the file")
    subprocess.run(["tar", "-xf", file, "-C", tmp_path], check=True)
    folder = tmp_path / file.stem
    assert {f.name for f in folder.iterdir()} == {"history.sqlite", "report.html", "report.md", "packets.pcapng"}
    until(lambda: not list(tmp_path.glob("frozen-*.part")), 20, "what it was made of is gone")
    assert is_whole(folder / "history.sqlite") and f"| {ioc.prefix}SET3 |" in (folder / "report.md").read_text()
    assert not [f for f in os.listdir("/tmp") if f.startswith("ebpfMonHistory-") and os.stat(f"/tmp/{f}").st_mtime > time.time() - 5]
    ticks = [int(r["value"]) for r in rows(file, "-a", ioc.prefix + "TOCK") if r["value"].isdigit()]
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks))) and ticks[0] <= first + 2 and last in ticks
    assert [r["ioc"] for r in rows(file, "-k", "ioc") if r["ioc"] == ioc.name]
    records = {r["pv"]: json.loads(r["value"]) for r in rows(file, "-k", "record", "-i", ioc.name)}
    assert set(records) == set(re.findall(r'record\(\w+, *"(.*?)"', DATABASE.replace("$(P)", ioc.prefix)))
    assert records[ioc.prefix + "TICK"]["type"] == "calcout" and records[ioc.prefix + "TICK"]["fields"]["SCAN"] == ".1 second"
    assert json.loads(rows(file, "-k", "variables", "-i", ioc.name)[0]["value"])["EPICS_VERSION"].startswith("EPICS ")
    assert not [r for r in rows(file, "-a") if r["kind"] in ("record", "variables")]  # unless they are asked for
    until(lambda: count(tmp_path / "history.sqlite", f"value LIKE '%frozen in {file}: unexpected put to {ioc.prefix}SET3%'"), 20, "the row")
    page = (folder / "report.html").read_text()
    assert ElementTree.fromstring(page.replace("<!DOCTYPE html>", "").replace('<meta charset="utf-8">', ""))
    packets = pcapng(folder / "packets.pcapng")
    assert all(kept[0] >> 4 == 4 and len(kept) <= 60 + 60 + 16 <= 200 and sent >= len(kept) for _, _, kept, sent, _ in packets)
    put, = [p for p in packets if f"put {ioc.prefix}SET3" in p[4].splitlines()]
    if shutil.which("tshark"):
        told = subprocess.run(["tshark", "-r", folder / "packets.pcapng", "-T", "fields", "-e", "frame.comment"], capture_output=True, text=True, timeout=60)
        assert told.returncode == 0 and told.stdout.count(f"put {ioc.prefix}SET3") == 1, (told.stderr, told.stdout[:2000])
    me = f"[{os.getpid()}]"
    assert put[1] == f"net:[{os.stat('/proc/self/ns/net').st_ino}]" and put[4].startswith(f"IOC {ioc.name}, client ") and me in put[4]
    row, = rows(file, ioc.prefix + "SET3")
    assert row["time"][:19] == datetime.datetime.fromtimestamp(put[0] / 1e9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    after = [p for p in packets if p[0] > put[0] and me in p[4]]
    assert after and all(p[4].startswith(f"IOC {ioc.name}, client ") for p in after)
    monitor.command('ebpfMonHistoryFreeze "beam lost"')
    until(lambda: len(list(tmp_path.glob("frozen-*.tar"))) == 2, 20, "another one")
    os.kill(monitor.process.pid, signal.SIGUSR1)
    until(lambda: len(list(tmp_path.glob("frozen-*.tar"))) == 3, 20, "a third one")
    for note in ("beam lost", "SIGUSR1"):
        assert any(note in ask(f, "-k", "event") for f in tmp_path.glob("frozen-*.tar"))
    check_replay(new_monitor(), file, ioc, row["time"], tmp_path / "replay")


def test_links_of_a_quiet_ioc(keep, new_ioc):
    """What a link wrote because of a person is in the file seconds later, also if nothing else happens: an answer would else name an
    older put. Times of a day may stand without the day."""
    monitor, ioc = keep(), new_ioc(db.READY + db.record("ao", "SET", OUT="$(P)TO PP") + db.record("ao", "TO") + db.record("ao", "CPTO") +
                                   db.record("calcout", "CP", CALC="A", INPA="$(P)SET CP", OUT="$(P)CPTO PP")).start()
    monitor.wait_ioc(ioc)
    ioc.put("SET", 1)
    until(lambda: count(keep.file, "kind = 'client'"), 30, "the client")  # nothing more is to come after the second put
    ioc.put("SET", 2)
    until(lambda: count(keep.file, f"pv = '{ioc.prefix}TO' AND value = '2'"), 14, "what the link wrote")
    told = ask(keep.file, "why", ioc.prefix + "TO", f"{datetime.datetime.now():%H:%M:%S}")
    assert f"{ioc.prefix}TO 1 -> 2 by" in told and f"{ioc.prefix}SET 1 -> 2 by" in told, told
    until(lambda: count(keep.file, f"pv = '{ioc.prefix}CPTO' AND value = '2'"), 14, "what the CP link wrote")
    assert f"It began with a change of {ioc.prefix}SET, which a CP link watches" in ask(keep.file, "why", ioc.prefix + "CPTO")
    hour = datetime.timedelta(hours=1)
    clock = f"{datetime.datetime.now() - hour:%H:%M}", f"{datetime.datetime.now() + hour:%H:%M}"
    for options in (["-f", "..".join(clock)], ["-t", clock[1], "-f", clock[0]]):
        assert [r["value"] for r in rows(keep.file, *options, ioc.prefix + "SET") if r["kind"] == "put"] == ["1", "2"]


def start_replay(replay, file, script):
    script.write_text(f'#!/bin/sh\nexec {REPLAY} "$1" {replay.prefix}\n')
    script.chmod(0o755)
    replay.program, replay.script = script, lambda: file
    return replay.start()


def check_replay(replay, file, ioc, at, script):
    """The PVs show a frozen file as it was at any time, ahead and back."""
    wrong = subprocess.run([REPLAY, script.parent / file.stem / "report.md"], capture_output=True, text=True, timeout=20)
    assert wrong.returncode == 2 and "not a database" in wrong.stderr
    steps = [(r["time"], r["value"], r.get("pv")) for r in rows(file, "-a") if r["kind"] in ("put", "event") and r["time"] < at]
    begin = next(i for i in range(len(steps) - 7, 0, -1) if steps[i][2] == ioc.prefix + "TOCK")
    start_replay(replay, file, script)

    def shows(name, text):
        until(lambda: text in replay.text(name), 20, lambda: f"{name}: {replay.text(name)}, {replay.get('REPLAY_TIME')}")

    until(lambda: ioc.name in replay.list("IOC_NAMES"), 20, lambda: replay.list("IOC_NAMES"))
    shows("STATE_MSG", f"replays {file}")
    shows("PUT_LAST", f" {ioc.prefix}SET1 ")
    replay.wait("PUT_BAD_OPEN_CNT", lambda n: n == 1)
    assert [pv for pv in replay.list("PUT_PVS") if pv] == [ioc.prefix + "SET1", ioc.prefix + "SET3"]
    after = datetime.datetime.fromisoformat(steps[begin][0][:26] + "+00:00").astimezone() + datetime.timedelta(microseconds=1)
    for name, value, behind in ("TIME", after.strftime("%Y-%m-%d %H:%M:%S.%f"), 0), ("STEP", 1, 1), ("STEP", 2, 3), ("STEP", -4, -1), \
            ("TIME", after.strftime("%H:%M:%S.%f"), 0):  # of the file's last day, not of today
        replay.put("REPLAY_" + name, value)
        tick = [s[1] for s in steps[:begin + behind + 1] if s[2] == ioc.prefix + "TOCK"][-1]
        until(lambda: re.search(rf"TOCK (\S+ -> )?{tick} by ", replay.text("AUTO_PUT_LAST")), 20, lambda: replay.text("AUTO_PUT_LAST"))
        replay.wait("PUT_BAD_OPEN_CNT", lambda n: n == 0)
        shows("PUT_LAST", "no put")
    paused = replay.get("REPLAY_TIME", as_string=True)
    replay.put("REPLAY_SPEED", 20)
    shows("PUT_LAST", f" {ioc.prefix}SET1 ")
    assert replay.get("REPLAY_TIME", as_string=True) > paused


def test_replay_of_an_earlier_day(keep, new_monitor, tmp_path):
    """A time without a date is that of the file, not of today."""
    monitor = keep()
    monitor.process.send("exit")
    monitor.process.wait(20)
    at = datetime.datetime.now().replace(hour=12, minute=0, second=0, microsecond=0) - datetime.timedelta(days=5)
    with sqlite3.connect(keep.file) as base:
        base.execute("DELETE FROM rows")
        for value, minutes in enumerate((0, 10, 20)):
            ns = int((at + datetime.timedelta(minutes=minutes)).timestamp()) * 10**9
            base.execute("INSERT INTO rows (time, first, kind, automatic, pv, value, who, result, n) VALUES (?1, ?1, 'put', 0, 'SP', ?2, 'ida', 'ok', 1)",
                         (ns, str(value)))
    replay = start_replay(new_monitor(), keep.file, tmp_path / "replay")
    for time_, value in ("12:15", 1), ("12:05", 0), ("12:21", None), ("-5m", 1), ("now", 2):  # 12:21 of the day before
        replay.put("REPLAY_TIME", time_)
        until(lambda: replay.text("PUT_LAST").startswith("no put") if value is None else f" -> {value} by ida" in replay.text("PUT_LAST"), 20,
              lambda: f"{time_}: {replay.text('PUT_LAST')}, {replay.get('REPLAY_TIME', as_string=True)}")


@pytest.mark.parametrize("level", ["chains", "trace"])
def test_chains_of_packets(new_monitor, new_ioc, tmp_path, level):
    """The comment of a put's packet has the trace of its row, by which way it came, and what its chain wrote; at level trace also
    the records of the chain."""
    far = new_ioc(FAR).start()
    near = new_ioc(NEAR, macros=f"FAR={far.prefix}").start()
    file = tmp_path / "history.sqlite"
    monitor = new_monitor(before=[f'ebpfMonHistoryKeep "{file}" 64 30', f'ebpfMonHistoryRing "{tmp_path}" 4']).start()
    monitor.set_filter(LEVEL=level)
    for ioc in (near, far):
        monitor.wait_ioc(ioc, level=level)
    for value in (3, 5):
        near.put("SET", value)
        until(lambda: far.get("END") == 2 * value + 1, 20, "the effect")
    until(lambda: count(file, f"pv = '{far.prefix}IN' AND source IS NOT NULL AND n = 1"), 20, "the put of the link")
    until(lambda: level == "chains" or count(file, f"kind = 'chain' AND tree LIKE '%{far.prefix}NEXT%'") >= 2, 20, "the records")
    raw, pv = rawca.RawCa(near.port), near.prefix + "SECONDS"
    sid = raw.sid(pv)
    raw.send(b"".join(rawca.message(4, rawca.elements(rawca.DOUBLE, [float(i)]), rawca.DOUBLE, 1, sid, i) for i in range(60)))
    until(lambda: count(file, f"pv = '{pv}' AND automatic = 0") == 60, 20, "many puts in one packet")
    monitor.command('ebpfMonHistoryFreeze "now"')
    frozen = until(lambda: next(iter(tmp_path.glob("frozen-*.tar")), None), 30, "the file")
    subprocess.run(["tar", "-xf", frozen, "-C", tmp_path], check=True)
    packets = pcapng(tmp_path / frozen.stem / "packets.pcapng")
    many = [p[4].splitlines() for p in packets if f"put {pv}" in p[4].splitlines()]
    assert sum(said.count(f"put {pv}") + sum(int(line.split()[0]) for line in said if re.fullmatch(r"\d+ more", line)) for said in many) == 60, many
    for pv, wrote, records in ((near.prefix + "SET", f"{far.prefix}IN (CA link {near.prefix}SEND.OUT of {near.name})", near.prefix + "SEND (calcout) = 10"),
                               (far.prefix + "IN", f"{far.prefix}END (link {far.prefix}NEXT.OUT)", far.prefix + "NEXT (calcout) = 11")):
        row = rows(frozen, "-k", "put", "-a", pv)[-1]
        said, = [p[4].splitlines() for p in packets if f"trace {row['trace']}" in p[4].splitlines()]
        at = said.index("trace " + row["trace"])
        assert said[at - 1] in (f"put {pv}", "put sid 0") and said[at + 1] == f"{pv} by {row['who']} ({row['origin']}) [ok]", said
        assert f"its chain wrote {wrote}" in said and any(records in line for line in said) == (level == "trace"), (said, wrote)


def test_frozen_by_a_late_scan(new_monitor, new_ioc, tmp_path):
    """A scan that takes three periods freezes the last minutes. What is too much for the disk goes, the oldest first."""
    ioc = new_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros="US=250000").start()
    for year, size_ in (2020, 65 << 20), (2021, 1 << 20):
        (tmp_path / f"frozen-{year}0101T000000Z.tar").write_bytes(b"x" * size_)
    left = tmp_path / "frozen-20220101T000000Z.part"  # by a monitor that was killed meanwhile
    left.mkdir()
    for name in ("history.sqlite", "history.sqlite-wal", "history.sqlite-journal", "report.md", "all.tar"):
        (left / name).write_bytes(b"x")
    monitor = new_monitor(before=[f'ebpfMonHistoryKeep "{tmp_path / "history.sqlite"}" 64 30', f'ebpfMonHistoryRing "{tmp_path}" 4 none']).start()
    monitor.wait_ioc(ioc)
    ioc.put("SLEEP.SCAN", ".1 second")
    note = f"scan takes more than twice its period: IOC {ioc.name}: scan \".1 second\""
    until(lambda: count(tmp_path / "history.sqlite", f"value LIKE '%frozen in {tmp_path}/frozen-%.tar: {note}%'"), 40,
          lambda: ask(tmp_path / "history.sqlite", "-n", "0"))
    old, new = sorted(tmp_path.glob("frozen-*"))
    assert old.name == "frozen-20210101T000000Z.tar" and new.suffix == ".tar"
    assert "packets" not in subprocess.run(["tar", "-tf", new], capture_output=True, text=True, check=True).stdout  # none was asked for


def test_frozen_by_trouble(new_monitor, new_ioc, tmp_path):
    """An IOC that is killed, one that is stopped and a thread that hangs freeze the last minutes, once each; so does a put to
    HISTORY_FREEZE, whose note is no trouble, whatever it says. Without a ring that put is an alarm."""
    watched = {}
    for note in "ended", "stands still", "hangs since":
        ioc, folder = new_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros="US=1000").start(), tmp_path / note.replace(" ", "-")
        folder.mkdir()
        monitor = new_monitor(iocs=ioc.name, before=[f'ebpfMonHistoryKeep "{folder}/history.sqlite" 16 30', f'ebpfMonHistoryRing "{folder}" 4', "var ebpfMonHangLimit 2"])
        watched[note] = (monitor.start(), ioc, folder)
    for note, (monitor, ioc, folder) in watched.items():
        monitor.wait_ioc(ioc)
        monitor.put("HISTORY_FREEZE", f"the run {note} for today")
        until(lambda folder=folder: len(list(folder.glob("frozen-*.tar"))) == 1, 20, "the first file")
    monitor, ioc, _ = watched["hangs since"]
    monitor.set_filter(LEVEL="chains")
    monitor.wait_ioc(ioc, level="chains")
    ioc.put("HOLD:BUSY.SNAM", "sleepFor")
    ioc.put("HOLD:BUSY.A", 60e6)
    ioc.put("HOLD.SCAN", "1 second", wait=False)
    os.kill(watched["stands still"][1].pid, signal.SIGSTOP)
    watched["ended"][1].kill()
    for note, (monitor, ioc, folder) in watched.items():
        def frozen(folder=folder):
            return sorted(folder.glob("frozen-*.tar"))

        until(lambda: len(frozen()) == 2, 60, lambda: ask(folder / "history.sqlite", "-k", "event", "-n", "0"))
        events = [[r["value"] for r in rows(file, "-k", "event")] for file in frozen()]
        assert events[0][-1] == f"the run {note} for today" and f"IOC {ioc.name} " in events[1][-1] and f" {note} " in events[1][-1] + " ", events
    os.kill(watched["stands still"][1].pid, signal.SIGCONT)
    plain = new_monitor().start()
    plain.put("HISTORY_FREEZE", "now")
    assert plain.get("HISTORY_FREEZE.SEVR") == 3


def rows_or_none(file, *options):
    got = subprocess.run([ASK, "-d", file, "--json", *options], capture_output=True, text=True, timeout=60)
    assert got.returncode in (0, 1), got.stderr
    return got.stdout


def test_gaps(keep, new_monitor, new_ioc):
    """A history says when nobody watched, and whether the monitor had ended in order."""
    for how in ("exit", "kill"):
        monitor = keep()
        if how == "exit":
            monitor.process.send("exit")
        else:
            os.kill(monitor.process.pid, signal.SIGKILL)
        monitor.process.wait(20)
    keep()
    until(lambda: count(keep.file, "kind = 'gap'") == 2, 20, "two gaps")
    assert ask(keep.file, "NOBODY:*", status=1).count("NOT WATCHED") == 2  # whatever is asked
    kinds = [(r["kind"], "without order" in r["value"]) for r in rows(keep.file) if r["kind"] in ("start", "gap")]
    assert kinds == [("start", False), ("gap", False), ("gap", True)]


def test_clock(keep, new_ioc, tmp_path):
    """The clock of the host is set ahead by two months, back by five, and right again, and back while nobody watches: each put has its
    time, nothing is too old, and the history says what happened."""
    clock, day = tmp_path / "clock", 86400
    clock.write_bytes(struct.pack("q", 0))
    environ = preload(tmp_path, "setClock") | {"SET_CLOCK": str(clock)}

    def set_clock(seconds):
        with clock.open("r+b") as file:
            file.write(struct.pack("q", seconds))

    monitor, ioc = keep(environ=environ), new_ioc(DATABASE).start()
    monitor.wait_ioc(ioc)
    steps = [(0, ""), (60 * day, "ahead by 5184000."), (-90 * day, "back by 12960000."), (0, "ahead by 7776000.")]
    for value, (seconds, said) in enumerate(steps, 1):
        set_clock(seconds)
        if said:
            until(lambda: count(keep.file, f"kind = 'event' AND value LIKE '%clock%{said}%'") == 1, 20, "the history says so")
        ioc.put("SET2", value)
        until(lambda: count(keep.file, f"value = '{value}' AND pv LIKE '%:SET2'") == 1, 20, "the put")
        with sqlite3.connect(keep.file, timeout=10) as base:
            at, = base.execute(f"SELECT time FROM rows WHERE value = '{value}' AND pv LIKE '%:SET2'").fetchone()
        assert abs(at / 1e9 - time.time() - seconds) < 20
    assert sum(r["n"] for r in rows(keep.file, "-k", "put", ioc.prefix + "SET2")) == len(steps)
    os.kill(monitor.process.pid, signal.SIGKILL)
    monitor.process.wait(20)
    set_clock(-3600)
    keep(environ=environ)
    until(lambda: count(keep.file, "kind = 'gap' AND value LIKE '%how long is not known: the clock was set back'") == 1, 20, "the gap")
    assert is_whole(keep.file)


def test_killed_while_it_writes(keep, new_ioc):
    """SIGKILL at random moments of a flood: the file is whole, no row is there twice, and none has a value that nobody sent."""
    ioc = new_ioc(DATABASE).start()
    pv, = ca.pvs([ioc.prefix + "SET3"])
    choice, value = random.Random(7), 0
    for _ in range(size(4, 40)):
        monitor = keep()
        monitor.wait_ioc(ioc)
        for _ in range(choice.randrange(50, 1500)):
            value += 1
            pv.put(value, wait=False)
        pv.get(use_monitor=False)
        os.kill(monitor.process.pid, signal.SIGKILL)
        monitor.process.wait(20)
        assert is_whole(keep.file)
    with sqlite3.connect(keep.file) as base:
        got = [int(float(v)) for v, in base.execute("SELECT value FROM rows WHERE pv LIKE '%:SET3' ORDER BY id")]
    assert got == sorted(set(got)) and got and got[-1] <= value


def test_written_over(keep, new_ioc):
    """Another program writes over the file: what is written then could not be read by anybody. A new one is begun when it is moved away."""
    monitor, ioc = keep(), new_ioc(DATABASE).start()
    monitor.wait_ioc(ioc)
    keep.file.write_bytes(bytes(50000))
    ioc.put("SET2", 1)
    until(lambda: monitor.get("HISTORY_STATE") == 2, 20, lambda: monitor.text("HISTORY_MSG"))
    assert re.search("written over|not a database", monitor.text("HISTORY_MSG")), monitor.text("HISTORY_MSG")
    for file in keep.file.parent.glob("history.sqlite*"):
        file.rename(keep.file.parent / f"away-{file.name}")
    ioc.put("SET2", 2)
    until(lambda: monitor.get("HISTORY_STATE") == 1, 40, lambda: monitor.text("HISTORY_MSG"))
    ioc.put("SET2", 3)
    until(lambda: count(keep.file, "pv LIKE '%:SET2' AND value = '3'"), 20, lambda: ask(keep.file))
    assert is_whole(keep.file)


def test_full(keep, new_ioc):
    """The file keeps its size: the oldest rows go. What links write does not push out what people wrote."""
    ioc = new_ioc(DATABASE).start()
    ioc.put("SET2", 4711)
    monitor = keep(megabytes=4)
    monitor.wait_ioc(ioc)
    pv, = ca.pvs([ioc.prefix + "SET3"])
    ioc.put("SET2", 4712)
    sent = 0
    while count(keep.file, "value = '1'") or sent < 8000:
        for _ in range(2000):
            sent += 1
            pv.put(sent, wait=False)
        pv.get(use_monitor=False)
        assert sent < 60000
    until(lambda: count(keep.file, f"value = '{sent}'"), 30, "the last one")
    assert monitor.get("HISTORY_STATE") == 1 and monitor.get("HISTORY_LOST_CNT") == 0
    assert keep.file.stat().st_size <= 4 << 20
    assert is_whole(keep.file)


def test_cannot_be_written(new_monitor, tmp_path):
    """A file of another program stays as it is, and of two monitors one writes a file; the other runs, and says what to do."""
    file = tmp_path / "other.sqlite"
    with sqlite3.connect(file) as base:
        base.execute("CREATE TABLE theirs (x)")
    monitor = new_monitor(before=[f'ebpfMonHistoryKeep "{file}"']).start()
    until(lambda: monitor.get("HISTORY_STATE") == 2, 20, "trouble")
    assert "another program" in monitor.text("HISTORY_MSG") and monitor.get("STATE", as_string=True) == "Running"
    with sqlite3.connect(tmp_path / "cut.sqlite") as base:
        base.executescript("; ".join((V1, V2, V3, "ALTER TABLE rows ADD COLUMN hash TEXT; PRAGMA user_version = 4")))
    cut = (tmp_path / "cut.sqlite").read_bytes()
    (tmp_path / "cut.sqlite").write_bytes(cut[:4096] + bytes(len(cut) - 4096))
    assert "malformed" in subprocess.run([ASK, "-d", tmp_path / "cut.sqlite"], capture_output=True, text=True).stderr
    mine, second = (new_monitor(before=[f'ebpfMonHistoryKeep "{tmp_path}/mine.sqlite"']).start() for _ in range(2))  # each put would be there twice
    until(lambda: "another monitor writes" in second.text("HISTORY_MSG"), 20, lambda: second.text("HISTORY_MSG"))
    os.kill(mine.process.pid, signal.SIGKILL)
    until(lambda: second.get("HISTORY_STATE") == 1, 30, lambda: second.text("HISTORY_MSG"))
    assert "another program" in subprocess.run([ASK, "-d", file], capture_output=True, text=True).stderr


@pytest.mark.parametrize("options", [["-f", "soon"], ["-n", "many"], ["A", "B"], ["--nothing"], ["-f", "25:00"], ["-f", "03:60"], ["-f", "03:10:61"],
                                     ["-f", "2026-11-31"], ["-f", "2026-13-01 10:00"], ["-f", "03:10:nan"], ["-f", "-nanh"],
                                     ["-f", "now", "-t", "-1h"], ["report", "now", "-1h"], ["-f", "now..-1h"]])
def test_wrong_question(tmp_path, options):
    got = subprocess.run([ASK, "-d", tmp_path / "none", *options], capture_output=True, text=True)
    assert got.returncode == 2 and got.stderr


def test_values_and_names_are_left_out(keep, new_ioc, tmp_path):
    """Nor are they in the way, the cause, or the reason; the link is. No packets are kept then, because they have addresses."""
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [{"name": "closed", "pv": "*:SET", "max": 1}]}))
    monitor, ioc = keep(more=f' "values names"\nebpfMonHistoryRing "{tmp_path}" 4', rules=rules), new_ioc(NEAR, macros="FAR=NOWHERE:").start()
    monitor.wait_ioc(ioc)
    ioc.put("SET", 4711)
    until(lambda: count(keep.file, "pv LIKE '%:LATE'"), 20, "the effect")
    row, = rows(keep.file, ioc.prefix + "SET")
    late, = rows(keep.file, "-a", ioc.prefix + "LATE")
    assert "value" not in row and "user" not in row and "who" not in row and "4711" not in json.dumps(row)
    assert row["origin"] == "CA" and row["reason"] == 'rule "closed"'
    assert late["origin"] == f"link {ioc.prefix}SLOW.OUT, chain of {ioc.prefix}SET" and not late.keys() & {"value", "user", "who", "peer"}
    until(lambda: count(keep.file, "value LIKE '%are frozen in%'"), 20, "what the rules did not expect freezes")
    file, = tmp_path.glob("frozen-*.tar")
    assert "packets" not in subprocess.run(["tar", "-tf", file], capture_output=True, text=True, check=True).stdout


def test_disk_full(new_monitor, new_ioc, tmp_path):
    """While the disk is full the monitor goes on and says so; afterwards a row says how many rows are missing."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0755", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("no right to mount a file system")
    try:
        file = disk / "history.sqlite"
        monitor, ioc = new_monitor(before=[f'ebpfMonHistoryKeep "{file}" 64 30']).start(), new_ioc(DATABASE).start()
        monitor.wait_ioc(ioc)
        pv, = ca.pvs([ioc.prefix + "SET3"])
        sent = 0
        while monitor.get("HISTORY_STATE") != 2:
            for _ in range(500):
                sent += 1
                pv.put(sent, wait=False)
            pv.get(use_monitor=False)
            assert sent < 60000
        assert "disk" in monitor.text("HISTORY_MSG") and monitor.get("STATE", as_string=True) == "Running"
        until(lambda: monitor.get("HISTORY_LOST_CNT") > 0, 20, "rows that are lost")
        assert monitor.get("HISTORY_STATE.SEVR") == monitor.get("HISTORY_LOST_CNT.SEVR") == 2  # MAJOR
        assert monitor.text("HISTORY_MSG").startswith(monitor.get("HISTORY_STATE.AMSG")[:34] or "?")
        until(lambda: (monitor.get("HOST_STATUS"), monitor.text("HOST_STATUS_MSG")) == (2, monitor.text("HISTORY_MSG")), 5,
              lambda: monitor.text("HOST_STATUS_MSG"))
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        ioc.put("SET2", 4711)
        until(lambda: monitor.get("HISTORY_STATE") == 1, 40, lambda: monitor.text("HISTORY_MSG"))
        assert (monitor.get("HISTORY_STATE.SEVR"), monitor.get("HISTORY_STATE.AMSG")) == (0, "")
        until(lambda: count(file, "kind = 'lost'"), 20, "the row that says so")
        with sqlite3.connect(file) as base:
            kept, = base.execute("SELECT count(*) FROM rows WHERE kind = 'put' AND pv LIKE '%:SET3'").fetchone()
            lost, = base.execute("SELECT sum(n) FROM rows WHERE kind = 'lost'").fetchone()
        assert kept and 0 <= kept + lost - sent <= 10, (kept, lost, sent)  # rows of other kinds may be lost, too
        assert is_whole(file)
        monitor.process.send("exit")
        monitor.process.wait(20)
    finally:
        subprocess.run(["umount", "-l", disk])
