# SPDX-License-Identifier: BSD-3-Clause
"""ebpfMonTop shows what caget shows, and its screen on a terminal is right."""
import re
import subprocess

import pytest
from tests.harness import ca, db, loopback, paths
from tests.harness.terminal import Terminal
from tests.harness.wait import patient, settled, stays_false, until

TOP = paths.MONITOR.parent / "ebpfMonTop"
UP, DOWN, END = "\x1b[A", "\x1b[B", "\x1b[4~"  # key codes of the console of Linux
LONG = "LONG" + 36 * "X"  # with any prefix it is cut in lists


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(db.READY + db.record("ao", "AO", HOPR="200", DRVH="200") + db.record("ao", "BO") + db.record("ao", "LIMITED", DRVH="10") +
                      db.record("stringout", "TEXT") + db.record("ao", "TARGET") +
                      db.record("ao", "LINK", OUT="$(P)TARGET PP", VAL="3.5") + db.chain("C", 5) +
                      db.record("ao", LONG)).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, tmp_path_factory):
    rules = tmp_path_factory.mktemp("rules") / "rules.json"
    rules.write_text('{"default": "allow", "rules": [{"name": "limit", "pv": "*AO", "min": 0, "max": 100}]}')
    m = module_monitor(before=[f'ebpfMonRules "{rules}"']).start()
    m.wait_ioc(ioc)
    return m


@pytest.fixture(scope="module")
def quiet(monitor, ioc):
    """Makes puts and chains, and waits until the PVs do not change any more."""
    for value in (1, 2, 150):
        ioc.put("AO", value)
    ioc.put("BO", 7.25)
    ioc.put("LINK.PROC", 1)
    ioc.put("TEXT", "m\u00fcde")
    for _ in range(50):
        ioc.put("C0.PROC", 1)
    monitor.wait("PUT_CNT", lambda n: n >= 55)
    monitor.wait("CHAIN_TOP_NAMES", lambda names: ioc.prefix + "C0" in monitor.list("CHAIN_TOP_NAMES"))
    settled(lambda: (monitor.list("CHAIN_TOP_CNTS"), monitor.list("PROC_TOP_CNTS")), 10, 2)
    return monitor


def run(monitor, *args, **more):
    """Runs ebpfMonTop. Returns its output."""
    done = subprocess.run([TOP, *map(str, args), monitor.prefix], env=loopback.client(monitor.port), timeout=patient(20),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, **more)
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode()  # it must be valid UTF-8
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), text
    return text


def rows(text, title):
    """The rows of a table, each as a list of cells. Two spaces or more separate columns."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(title))
    end = next((i for i in range(first, len(lines)) if not lines[i].strip()), len(lines))
    return [re.split(r" {2,}", line.strip()) for line in lines[first + 2:end]]


def caget(monitor, name):
    """The elements of a list, as caget prints them."""
    out = ca.run("caget", "-F", "\t", "-g", "15", monitor.prefix + name, port=monitor.port)
    assert out.returncode == 0, out.stdout
    return out.stdout.rstrip("\n").split("\t")[2:][:int(monitor.get(name + ".NORD"))]


def test_rows_are_those_of_caget(quiet, ioc):
    text = run(quiet, "-1", "-v", "puts")
    columns = [caget(quiet, f"PUT_{n}") for n in ("TIMES", "PVS", "OLD_VALUES", "VALUES")]
    shown = rows(text, "PUTS")
    assert len(shown) == len(columns[0]) >= 7 and re.search(r"  x50 since \d\d:\d\d:\d\d from 1$", text, re.M), shown  # 50 puts of one writer
    for row, (time, pv, old, new) in zip(shown, zip(*columns)):
        assert row[0] == time and row[1] == pv
        if old and new:
            assert row[2] == old and row[3] == new
    # compare only the IOCs of this test: others start and end between two outputs
    assert ioc.name in caget(quiet, "IOC_NAMES") and str(ioc.pid) in caget(quiet, "IOC_PIDS")
    assert [ioc.name, str(ioc.pid)] in [r[:2] for r in rows(run(quiet, "-1", "-v", "iocs"), "IOCS")]
    chains = zip(*(caget(quiet, f"CHAIN_TOP_{n}") for n in ("NAMES", "CNTS", "MEANS", "MAXS")))
    for row, (name, count, mean, most) in zip(rows(run(quiet, "-1", "-v", "chains"), "SLOWEST"), chains):
        assert row[:3] == [name, count, f"{float(mean) / 1000:.3f}"] and row[4] == f"{float(most) / 1000:.3f}"


def test_narrow_screen(quiet, ioc):
    """On 80 columns PVs are whole, and how many puts there were; old values and IOCs go first."""
    screen = Terminal([TOP, "-v", "puts", quiet.prefix], loopback.client(quiet.port), 24, 80)
    try:
        screen.wait(lambda t: re.search(rf"  {re.escape(ioc.prefix)}C0.PROC  .*  x50 ", t), "the run", 20)
        heading = next(line.split() for line in screen.text.splitlines() if line.split()[:2] == ["time", "PV"])
        assert {"new", "writer", "result"} <= set(heading) and "IOC" not in heading, heading
    finally:
        screen.close()


def test_automatic_puts(quiet, ioc):
    """A put that a record makes through its link, with the link and its cause."""
    until(lambda: any(r[1].startswith(ioc.prefix + "TARGET") for r in rows(run(quiet, "-1", "-v", "auto"), "PUTS BY IOCS")), 10,
          lambda: run(quiet, "-1", "-v", "auto"))
    row = next(r for r in rows(run(quiet, "-1", "-v", "auto"), "PUTS BY IOCS") if r[1].startswith(ioc.prefix + "TARGET"))
    assert "3.5" in row and any(f"{ioc.prefix}LINK.OUT" in cell for cell in row) and ioc.name in row, row
    assert f"{ioc.prefix}TARGET" not in run(quiet, "-1", "-v", "puts")
    assert row[1] in [r[1] for r in rows(run(quiet, "-1", "-e", ioc.prefix + "TARGET"), "PUTS BY IOCS")]


def test_shift(quiet, ioc):
    """The view "shift" shows puts, unexpected puts and late threads, in this order."""
    text = run(quiet, "-1", "-v", "shift")
    order = [text.index(t) for t in ("\nPUTS, newest first", "\nUNEXPECTED PUTS", "\nSCAN THREADS")]
    assert order == sorted(order)
    assert [r[2] for r in rows(text, "UNEXPECTED PUTS")] == ["150"]
    assert ioc.prefix + "AO" in {r[1] for r in rows(text, "PUTS, newest first")}


def test_histogram_is_whole(quiet):
    counts = [float(v) for v in caget(quiet, "CHAIN_HIST")]
    edges = [float(v) for v in caget(quiet, "CHAIN_HIST_EDGES")]
    used = [i for i, n in enumerate(counts) if n]
    shown = rows(run(quiet, "-1", "-v", "chains"), "LATENCY")  # in ms
    assert [(float(r[0]), float(r[1])) for r in shown] == [(round(e / 1000, 3), n) for e, n in zip(edges, counts)][used[0]:used[-1] + 1]
    assert max(len(r[2]) for r in shown if len(r) > 2) == 40


def test_header_says_state_and_losses(quiet, ioc):
    head = ""

    def is_same():
        """The worst cause is the unexpected put."""
        nonlocal head
        head = run(quiet, "-1").split("\n\n")[0]
        return head.startswith(f"ebpfMon {quiet.prefix}  Running  {quiet.text('HOST_STATUS_MSG')}") and f"unexpected put to {ioc.prefix}AO" in head

    until(is_same, 20, lambda: f"{quiet.text('HOST_STATUS_MSG')!r} in {head!r}")
    assert re.search(rf"puts {quiet.get('PUT_CNT'):.0f}  .*unexpected 1  .*limit", head)
    assert re.search(r"lost \d+ .*log Off .*checks: all cross-checks agree", head)


def test_one_record_and_filter(quiet, ioc):
    name = ioc.prefix + "BO"
    text = run(quiet, "-1", "-e", name)
    assert {r[1] for r in rows(text, "PUTS")} == {name} and ioc.prefix + "AO" not in text.partition("\n\n")[2]  # the header names it: unexpected
    assert {r[1] for r in rows(run(quiet, "-1", "-v", "puts", "-f", "*:bo"), "PUTS")} == {name}
    assert "m\u00fcde" in run(quiet, "-1", "-v", "puts", "-f", "m\u00fcd")


def test_record_whose_name_is_cut(quiet, ioc, terminal):
    """The rows of a record with a long name are those whose names begin as it does, as far as they are known. The histogram,
    which is the same for all users, is not asked for a part of a name."""
    name = ioc.prefix + LONG
    cut = name[:36] + "..."
    ioc.put(LONG, 41)
    until(lambda: rows(run(quiet, "-1", "-v", "puts", "-f", cut), "PUTS"), 10, "the put")
    assert {r[1] for r in rows(run(quiet, "-1", "-e", name), "PUTS")} == {cut}
    assert not rows(run(quiet, "-1", "-e", name[:30]), "PUTS"), "another record"
    screen = terminal()
    screen.type("p/long\r")
    screen.wait(lambda t: "filter: long" in t and cut in t, "the put")
    screen.type("\r")
    screen.wait(lambda t: f"RECORD {cut}   and others that begin so" in t, "all that may be of this record")
    assert {r[1] for r in rows(screen.text, "PUTS")} == {cut}
    screen.type("h")
    screen.wait(lambda t: "this name is cut: start ebpfMonTop -e RECORD" in t, "what to do")
    assert quiet.text("CHAIN_HIST_ROOT") == ""


def test_batches(quiet):
    text = run(quiet, "-n", 3, "-d", 0.1, "-v", "losses")
    assert text.count(f"ebpfMon {quiet.prefix}  Running") == 3


@pytest.mark.parametrize("args, why", [(("-1", "NOBODY:HAS:"), "no answer from NOBODY:HAS:STATE"),
                                       (("-1", "-v", "nothing", "X:"), "no view nothing"),
                                       (("-n", "0", "X:"), "not a number from 1"), (("X:",), "not a terminal")])
def test_refuses(args, why):
    done = subprocess.run([TOP, "-w", "0.3", *args], env=loopback.environment(), timeout=patient(10), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode and why in done.stderr and not done.stdout


def test_unknown_terminal():
    """On a host that does not know our terminal it says what to do."""
    screen = Terminal([TOP, "X:"], loopback.environment(), 24, 160, term="no-such-terminal")
    try:
        until(lambda: screen.ended() is not None, 10, "its end")
        assert screen.status == 2
        assert 'does not know the terminal "no-such-terminal": set TERM=xterm-256color, or use -1' in screen.text
    finally:
        screen.close()


def test_help_names_all_options():
    text = subprocess.run([TOP, "--help"], stdout=subprocess.PIPE, text=True, check=True, timeout=patient(5)).stdout
    for word in ("-1", "-n", "-d", "-v", "-f", "-e", "-r", "-w", "overview", "chains"):
        assert word in text


@pytest.fixture
def terminal(quiet):
    made = []

    def new(monitor=quiet, lines=40, columns=160):
        made.append(Terminal([TOP, "-d", "0.05", monitor.prefix], loopback.client(monitor.port), lines, columns))
        return made[-1]

    yield new
    for t in made:
        t.close()


def test_screen_follows_and_colours(quiet, ioc, terminal):
    screen = terminal()
    screen.wait(lambda t: "Running" in t and "BUSIEST RECORDS" in t and ioc.prefix + "C0" in t, "the overview")
    screen.type("u")
    screen.wait(lambda t: "150" in t and "BUSIEST" not in t, "the unexpected puts")
    assert screen.colour("150 ") == "red"
    screen.type("p")
    ioc.put("BO", 8.125)
    screen.wait(lambda t: "8.125" in t, "a put that was just made")
    assert screen.colour("8.125") == "default"
    for i in range(2):  # a put that was not made as it was sent; then its row is not the newest
        ioc.put("LIMITED", 12.5 + i)
        screen.wait(lambda t, i=i: re.search(rf"{12.5 + i} .*became 10", t), "the limited put")
        assert screen.colour(f"{12.5 + i} ") == "brown"
    ioc.put("BO", 7.25)
    screen.type("q")
    until(lambda: screen.ended() is not None, 10, "its end")
    assert screen.status == 0


def test_into_a_record_and_back(quiet, ioc, terminal):
    screen = terminal()
    screen.wait(lambda t: "7.25" in t, "the overview")
    screen.type("p")
    screen.wait(lambda t: "BUSIEST" not in t and "PUTS" in t, "the view of puts")
    screen.type("/:AO\r")
    screen.wait(lambda t: "filter: :AO" in t and ":BO" not in t, "puts to AO only")
    screen.type(DOWN)
    until(lambda: screen.reversed().split()[1:4] == [ioc.prefix + "AO", "1", "2"], 10,
          lambda: f"the cursor in the second row: {screen.reversed()!r}\n{screen.text}")
    screen.type("\r")
    screen.wait(lambda t: f"RECORD {ioc.prefix}AO" in t and "SLOWEST CHAINS" in t, "the record")
    screen.type("\x1b")
    screen.wait(lambda t: "RECORD" not in t and "PUTS" in t, "back")
    screen.type("\x1b")
    screen.wait(lambda t: ":BO" in t, "all puts")


def test_sorts(quiet, ioc, terminal):
    screen = terminal()
    screen.type("p>>")  # sorted by PV
    screen.wait(lambda t: "PVv" in t and "7.25" in t, "the mark of the sorted column, and rows")
    names = [r[1] for r in rows(screen.text, "PUTS")]
    assert names == sorted(names) and names[0] == ioc.prefix + "AO"
    screen.type("r")
    screen.wait(lambda t: "PV^" in t, "the other order")
    names = [r[1] for r in rows(screen.text, "PUTS")]
    assert names == sorted(names, reverse=True)


def test_pause(quiet, ioc, terminal):
    screen = terminal()
    screen.type("p")
    screen.wait(lambda t: "7.25" in t, "puts")
    screen.type(" ")
    screen.wait(lambda t: "PAUSED" in t, "the pause")
    before = rows(screen.text, "PUTS")
    count = quiet.get("PUT_CNT")
    ioc.put("BO", 8765.5)
    quiet.wait("PUT_CNT", lambda n: n > count)
    screen.type(DOWN)  # the screen is drawn, and the values stay
    until(lambda: screen.reversed() == screen.lines[6], 10, "the cursor in the second row")
    assert stays_false(lambda: "8765.5" in screen.text, 0.5)
    assert rows(screen.text, "PUTS") == before
    screen.type(" ")
    screen.wait(lambda t: "8765.5" in t and "PAUSED" not in t, "the present")
    ioc.put("BO", 7.25)


def test_histogram_of_one_root(quiet, ioc, terminal):
    """A user who may write CHAIN_HIST_ROOT can choose the root. The harness runs as root, who may."""
    screen = terminal()
    screen.type("c")
    screen.wait(lambda t: ioc.prefix + "C0" in t and "LATENCY of all chains" in t, "chains")
    row = next(i for i, r in enumerate(rows(screen.text, "SLOWEST")) if r[0] == ioc.prefix + "C0")
    screen.type(DOWN * row + "h")
    screen.wait(lambda t: f"LATENCY of the chains of {ioc.prefix}C0   50" in t, "the histogram of C0")
    assert quiet.text("CHAIN_HIST_ROOT") == ioc.prefix + "C0"
    screen.type("H")
    screen.wait(lambda t: "LATENCY of all chains" in t, "all chains")


def test_small_screen(quiet, terminal):
    screen = terminal(lines=10, columns=30)
    screen.wait(lambda t: "PUTS" in t, "a page of ten lines")
    screen.resize(40, 160)
    screen.wait(lambda t: "SLOWEST CHAINS" in t, "a page of forty lines")


def test_texts_below_the_screen(quiet, ioc, terminal):
    """The tables take all lines. Tab goes to the texts after them, and then to the first table again."""
    screen = terminal(lines=16, columns=80)

    def events():
        return screen.text.partition("EVENTS OF IOCS")[2].partition("\n")[2].partition("\n")[0].strip()

    def oldest():
        return quiet.lines("IOC_EVENTS").splitlines()[-1][:78].rstrip()

    screen.type("i")
    screen.wait(lambda t: "HEALTH OF IOCS" in t and "EVENTS OF IOCS" not in t, "the tables only")
    screen.type("\t\t\t")
    screen.wait(lambda t: "THREADS THAT HANG" in t and "EVENTS OF IOCS" in t and "HEALTH" not in t and events(), "the texts")
    screen.resize(7, 80)  # room for one line of the texts
    screen.wait(lambda t: screen.lines[5].startswith("EVENTS OF IOCS") and screen.lines[6].startswith("?"), "the smaller screen")
    screen.type(END)
    screen.wait(lambda t: screen.lines[5].strip() == oldest(), "the last line, not a page without lines")
    screen.type(UP)
    screen.wait(lambda t: screen.lines[5].strip() != oldest(), "one line up")
    screen.resize(16, 80)
    screen.type("\t")
    screen.wait(lambda t: "HEALTH OF IOCS" in t and "EVENTS OF IOCS" not in t, "the tables again")
    screen.type("p\t")
    screen.wait(lambda t: "PUTS, newest first" in t, "the only table: this view has no text")


def test_help_is_whole(terminal):
    """A terminal of usual size has all of the help at once. On a smaller one it is moved, as far as its last line."""
    screen = terminal(lines=24, columns=80)
    screen.wait(lambda t: "Running" in t, "the overview")
    screen.type("?")
    screen.wait(lambda t: t.startswith("KEYS") and "closes this help; q: ends" in t, "the help")
    whole = screen.lines[:-1]
    assert all(whole)
    screen.resize(12, 160)
    screen.wait(lambda t: t.splitlines()[:11] == whole[:11], "its first lines, which are not cut at 80 columns")
    screen.type(END)
    screen.wait(lambda t: t.splitlines()[1:11] == whole[-10:], "its last lines")
    screen.type(UP)
    screen.wait(lambda t: t.splitlines()[1:11] == whole[-11:-1], "one line up")
    screen.type("?")
    screen.wait(lambda t: "Running" in t, "the overview")
    assert screen.reversed() == screen.lines[5], "the cursor has not moved"


def test_nobody_answers(quiet):
    """A wrong prefix, on a screen: it says what to check, and shows no values."""
    screen = Terminal([TOP, "NOBODY:HAS:"], loopback.client(quiet.port), 24, 80)
    try:
        screen.wait(lambda t: "NO ANSWER yet from NOBODY:HAS:STATE" in t and "Check the prefix" in t and "audit" not in t, "help")
        screen.type("q")
        until(lambda: screen.ended() is not None, 10, "its end")
    finally:
        screen.close()


def test_header_has_what_is_not_normal(quiet, terminal):
    """On a screen what is normal takes one line, and what is in alarm follows. The view "losses" has all states; at 80 columns its
    lines are broken, on ten lines they are cut."""
    screen = terminal(lines=24, columns=80)
    screen.wait(lambda t: re.search(r"^IOCs .* unexpected 1  rule \"limit\"", t.partition("\n\n")[0].replace("\n   ", ""), re.M | re.S) and
                "audit" not in t and "gone" not in t, "a short header")
    assert "PUTS, newest first" in screen.text and "BUSIEST RECORDS" in screen.text
    screen.type("l")
    screen.wait(lambda t: "checks: all cross-checks agree" in t and re.search(r"memory \d+ MB", t) and "gone 0" in t, "the whole header")
    screen.resize(10, 80)
    screen.wait(lambda t: "audit" not in t and "LOST EVENTS" in t.splitlines()[5], "a header of four lines")


def test_events_view(quiet, ioc, terminal):
    screen = terminal(lines=24, columns=80)
    screen.type("e")
    screen.wait(lambda t: "EVENTS OF IOCS" in t and "THREADS THAT HANG" in t and "PUTS" not in t, "events")


def test_reason_goes_with_the_acknowledgement(quiet, ioc):
    """The header has the reason of an unexpected put until somebody has acknowledged it."""
    assert 'unexpected 1  rule "limit"' in run(quiet, "-1")
    quiet.put("PUT_BAD_ACK", 1)
    until(lambda: "unexpected 0\n" in run(quiet, "-1"), 10, lambda: run(quiet, "-1"))
    ioc.put("AO", 150)  # as it was
    quiet.wait("PUT_BAD_OPEN_CNT", lambda n: n == 1)


def test_comes_back(new_monitor, ioc, terminal):
    """The monitor ends and starts again. The screen says that it is gone, and later shows its values again."""
    monitor = new_monitor().start()
    screen = terminal(monitor)
    screen.wait(lambda t: "Running" in t, "the overview")
    screen.type(f"/{ioc.name}\r")  # else other IOCs of the host may fill the rows of the table
    screen.wait(lambda t: "Running" in t and len(re.findall(rf"{ioc.name} +{ioc.pid}", t)) == 1, "our IOC")
    monitor.process.close()
    screen.wait(lambda t: "NO ANSWER since" in t and re.search(rf"{ioc.name} +{ioc.pid}", t), "what was known")
    monitor.start()
    screen.wait(lambda t: "NO ANSWER" not in t and "Running" in t, "the monitor", 60)
    monitor.wait_ioc(ioc)
    screen.type("/\r")
    ioc.put("BO", 11.75)
    screen.wait(lambda t: "11.75" in t, "a put that the new one saw")


def test_why(quiet, ioc, terminal):
    """A question by the key x: it begins with the record of the row, the answer stands below, and long lines are broken."""
    screen = terminal(lines=40, columns=80)
    screen.type("p/:BO\r")
    screen.wait(lambda t: "filter: :BO" in t and ioc.prefix + "BO" in t, "puts to BO")
    screen.type("x")
    screen.wait(lambda t: f"why, PV [client]: {ioc.prefix}BO_" in t and "WHY IS THIS PV" in t, "the beginning of the question")
    screen.type(" nobody\r")
    screen.wait(lambda t: re.search(rf"NOT WHAT I SEE\?\n  {ioc.prefix}BO nobody\n\n  post: no client \"nobody\" has subscribed to it", t), "the answer")
    assert re.search(r"^    write +(not known|fine) .*\n        \S", screen.text, re.M), screen.text
    assert quiet.text("WHY_PV") == ioc.prefix + "BO nobody" and quiet.lines("WHY_TEXT").split()[0] == "post:"
    assert "post: no client" in run(quiet, "-1", "-v", "why").replace("\n", " ")
    screen.type("x\x1bp")
    screen.wait(lambda t: "PUTS" in t, "no question")
    assert quiet.text("WHY_PV") == ioc.prefix + "BO nobody"
