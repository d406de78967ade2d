# SPDX-License-Identifier: BSD-3-Clause
"""Names and values of hostile bytes: each text that leaves the monitor is valid UTF-8, without control, bidirectional
and invisible characters. So every client can read it, a log has one line for each put, and no terminal obeys it."""
import json
import os
import re
import socket
import subprocess
import unicodedata

import pytest
from tests.harness import ca, db, loopback, paths, rawca
from tests.harness.ioc import OURS
from tests.harness.wait import until

HOSTILE = [b"\x9b31m", b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x1b[2J\x1b]0;x\x07",
           b"a\nforged line", b"\xe2\x80\xaeevil\xe2\x81\xa6", b"\xe2\x80\xa8\xef\xbb\xbf\xd8\x9c", b"\xc2\x85\xc2\x9b",
           "gr\u00fc\u00df\u2192".encode("utf-8"), "gr\u00fc\u00df".encode("latin-1"), b"x" * 30 + b"\xe2\x86\x92" * 3,
           b"\x80" * 39, b"\xef\xbf\xbe\xf0\x9f\xbf\xbf", b"\xf3\xa0\x81\x81\xe2\x80\x8b"]
RECORDS = (db.READY + db.record("stringout", "STR") + db.record("longout", "LO") + db.record("lso", "LSO", SIZV="100") +
           db.record("waveform", "TXT", FTVL="CHAR", NELM="60") + db.record("waveform", "WF", FTVL="STRING", NELM="3") +
           db.record("mbbo", "MB", ZRST="zero", ONST="one") + db.record("ao", "SLOW", FLNK="$(P)LAST") +
           db.record("ao", "LAST"))
READ_NOTIFY = 15
ESCAPED = re.compile(r"\\x[0-9a-f]{2}")


def unseen(text):
    """The characters of this text that nobody sees, or that change what one sees."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") or ord(c) & 0xfffe == 0xfffe or
            0xfdd0 <= ord(c) <= 0xfdef]


def check(raw, what, lines=False):
    """Fails if these bytes are not such a text. Returns the text."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as e:
        pytest.fail(f"{what} is not UTF-8: {e}: {raw[max(0, e.start - 60):e.end + 20]}")
    bad = [c for c in unseen(text) if not (lines and c == "\n")]
    assert not bad, f"{what} has {bad}: {text[:300]!r}"
    return text


@pytest.fixture(scope="module")
def ioc(module_ioc):
    name = os.fsdecode(b"ioc%dx\x1b[1m\xff\xe2\x80\xae" % os.getpid())
    return module_ioc(RECORDS, name=name).start()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, sink, folder):
    m = module_monitor(watch=[ioc.prefix + "STR", ioc.prefix + "LO"], before=[
        f'ebpfMonJsonLog "{folder / "json"}"', f'ebpfMonCaPutLog "{folder / "text"}" text all',
        f'ebpfMonCaPutLog "{folder / "caput"}" json all', 'epicsEnvSet OTEL_METRIC_EXPORT_INTERVAL 1000',
        f'ebpfMonOtlp "{sink.url}" "logs,metrics,traces"']).start()
    return m.at_level("trace", ioc)


@pytest.fixture(scope="module")
def puts(ioc, monitor):
    """Makes puts with hostile user names, values and channel names. Returns how many puts it made."""
    n = 0
    before = monitor.get("PUT_CNT")
    for i, evil in enumerate(HOSTILE):
        cut = evil[:39]
        client = rawca.RawCa(ioc.port, user=evil, host=HOSTILE[-i])
        client.put_bytes(ioc.prefix + "STR", cut.ljust(40, b"\0"), rawca.STRING, notify=bool(i % 2))
        client.put_bytes(ioc.prefix + "TXT", evil, rawca.CHAR, len(evil))
        client.put_bytes(ioc.prefix + "LSO.VAL$", evil + b"\0", rawca.CHAR, len(evil) + 1)
        client.put_bytes(ioc.prefix + "WF", cut.ljust(40, b"\0") * 3, rawca.STRING, 3)
        client.put_bytes(ioc.prefix + "MB.ONST", evil[:25].ljust(40, b"\0"), rawca.STRING)
        client.put_bytes(ioc.prefix + "MB", b"\0\1", rawca.ENUM)
        client.put_bytes(ioc.prefix + "LO.DESC", cut.ljust(40, b"\0"), rawca.STRING)
        client.put_bytes(ioc.prefix + "SLOW.PROC", b"\0\1", rawca.SHORT)
        client.put_bytes(ioc.prefix + "LO", cut.ljust(40, b"\0"), rawca.STRING, notify=True)  # this put fails
        client.close()
        n += 9
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for evil in HOSTILE * 4:
            s.sendto(rawca.search(evil), ("127.0.0.1", ioc.port))
    monitor.wait("PUT_CNT", lambda v: v - before >= n, 20)
    return n


def string_records(monitor):
    """The names of all records of the monitor that show text."""
    types = {}
    for rtype in ("lsi", "stringin", "lso", "stringout", "waveform", "aSub"):
        for name in monitor.command(f'dbl {rtype}'):
            if name.startswith(monitor.prefix):
                types[name] = rtype
    return types


def read_bytes(client, name, dtype):
    """The value of a channel as bytes. Of an array: as much as fits into a message of old clients."""
    size = 40 if dtype == rawca.STRING else 1
    count = min(ca.pv(name).nelm, 16000 // size)
    client.send(rawca.message(READ_NOTIFY, dtype=dtype, count=count, cid=client.sid(name), extra=1))
    return client.until(READ_NOTIFY)[-1].payload


def test_all_pvs_by_channel_access(monitor, puts):
    """Checks each element of a string array: a text that was cut ends with a whole character."""
    client, wrong = rawca.RawCa(monitor.port), []
    seen = 0
    for name, rtype in string_records(monitor).items():
        if rtype in ("lso", "stringout") or rtype == "aSub":
            continue  # PVs that operators write, and the file in which they are kept
        if rtype == "waveform" and ca.get(name + ".FTVL", as_string=True) == "STRING" or rtype == "stringin":
            value = read_bytes(client, name, rawca.STRING)
            cells = [value[i:i + 40].split(b"\0")[0] for i in range(0, len(value), 40)]
        elif rtype == "lsi" or ca.get(name + ".FTVL", as_string=True) == "CHAR":
            value = read_bytes(client, name + (".VAL$" if rtype == "lsi" else ""), rawca.CHAR)
            cells = value.split(b"\0")[0].split(b"\n") if rtype == "waveform" else [value.split(b"\0")[0]]
        else:
            continue
        for cell in cells:
            try:
                check(cell, name)
            except (AssertionError, pytest.fail.Exception) as e:
                wrong.append(str(e)[:300])
            seen += b"\\x" in cell
    client.close()
    assert not wrong, f"{len(wrong)} texts:\n" + "\n".join(wrong[:10])
    assert seen > 50


def test_all_pvs_by_pvaccess(monitor, puts):
    """All tables and all records of texts by p4p, which decodes each of them."""
    tables = ["PUTS", "BAD_PUTS", "IOCS", "PROC_TOP", "CHAIN_TOP", "LOSSES", "UNFOUND", "SEARCHES", "IOC_HEALTH",
              "IOC_DELAYS", "SCANS"]
    names = [n for n, t in string_records(monitor).items() if t not in ("lso", "stringout", "aSub")]
    with loopback.pva_context(monitor.port, nt=False) as context:
        for name in [monitor.prefix + t for t in tables] + names:
            try:
                text = repr(context.get(name, timeout=60))
            except TimeoutError:
                assert name.removeprefix(monitor.prefix) in tables, name  # not a table of this monitor
                continue
            assert not unseen(text.replace("\n", "")), f"{name}: {text[:300]}"
        rows = dict(context.get(monitor.prefix + "PUTS", timeout=60).value.items())
    writers = next(c for c in rows.values() if any("@" in str(w) for w in c))
    assert any(ESCAPED.search(str(w)) for w in writers), list(writers)[:5]


def test_what_is_shown(monitor, puts, ioc):
    """Valid characters stay. An invalid byte is shown visibly."""
    client = rawca.RawCa(monitor.port)
    value = read_bytes(client, monitor.prefix + "PUT_VALUES", rawca.STRING)
    client.close()
    values = {value[i:i + 40].split(b"\0")[0].decode() for i in range(0, len(value), 40)}
    assert {r"\x9b31m", r"\xff\xfe", r"\x1b[2J\x1b]0;x\x07", "gr\u00fc\u00df\u2192", r"gr\xfc\xdf"} <= values
    # other IOCs of this host may be in the list, too
    assert any(name.endswith(r"x\x1b[1m\xff\xe2\x80\xae") for name in monitor.list("IOC_NAMES"))


def test_caget(monitor, puts):
    for name in ("PUT_LAST", "PUT_WRITERS", "PUT_VALUES", "IOC_NAMES", "UNFOUND_NAMES"):
        out = subprocess.run([paths.BASE_BIN / "caget", "-t", monitor.prefix + name],
                             env=loopback.client(monitor.port), capture_output=True, timeout=60)
        assert out.returncode == 0
        check(out.stdout, name, lines=True)


@pytest.mark.parametrize("kind", ["json", "text", "caput"])
def test_logs(monitor, puts, folder, kind):
    """One line for each put, each of valid UTF-8."""
    until(lambda: (folder / kind).read_bytes().count(b"\n") >= puts, 15,
          lambda: f"{puts} lines: {(folder / kind).read_bytes()[-500:]}")
    lines = (folder / kind).read_bytes().splitlines()
    for raw in lines:
        text = check(raw, f"the log {kind}")
        if kind != "text":
            for member in json.loads(text).values():
                assert not unseen(str(member)), member
    # the monitor's own IOC is not watched: each line is one of our puts
    assert sum(b"forged" in line and not re.match(rb'\{"(time|date)|\d\d-', line) for line in lines) == 0
    assert any(rb"\\x1b[2J" in line for line in lines)


def test_shell(monitor, puts):
    """No escape character reaches the terminal of the operator."""
    lines = []
    for command in ("ebpfMonReport 2", 'ebpfMonPuts 200', f'ebpfMonRecords "{OURS}" "*"', 'ebpfMonChains "*"',
                    "ebpfMonSearches", "ebpfMonPutsUnexpected", "dbior drvEbpfMon 2"):
        lines += monitor.command(command)
    assert any(r"\x1b[2J" in l for l in lines)
    # the shell prints what the pytest process decodes with replacement: an invalid byte shows as U+FFFD
    bad = [l for l in monitor.process.lines if unseen(l.replace("\t", "")) or "\ufffd" in l]
    assert not bad, bad[:5]


def test_otlp(monitor, puts, sink):
    """Logs, metrics and spans: valid JSON of valid UTF-8, and all names of it are readable."""
    def has_all():
        bodies = [b for _, b in list(sink.bodies)]
        return all(any(kind in b for b in bodies) for kind in (b"resourceLogs", b"resourceMetrics", b"resourceSpans"))

    until(has_all, 20, "logs, metrics and spans")
    until(lambda: sum(b.count(b'"epics.pv"') for _, b in list(sink.bodies) if b"resourceLogs" in b) >= puts, 20, "all puts")
    for _, body in list(sink.bodies):
        text = check(body, "OTLP", lines=True)

        def look(value):
            for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
                look(part)
            assert not (isinstance(value, str) and unseen(value)), value

        look(json.loads(text))
