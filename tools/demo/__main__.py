# SPDX-License-Identifier: BSD-3-Clause
"""The demo: an unmodified softIoc with clients runs, then the monitor starts, then the demo shows what the monitor
sees: in a terminal by ebpfMonTop, else as lines. What it shows comes from the monitor's PVs alone.

EPICS_BASE is the path of EPICS Base. tools/demo.sh starts the demo.
"""
import argparse
import json
import os
import pathlib
import pwd
import signal
import subprocess
import sys
import threading
import time

from stage import Failed, Stage

from tests.harness import rawca
from tests.harness.paths import BASE_BIN, DB, MONITOR, MONITOR_BOOT, TOP

MACHINE_P, MONITOR_P = "DEMO:", "DEMO:EBPF:"
PUTS = [f"PUT_{n}" for n in ("TIMES", "PVS", "OLD_VALUES", "VALUES", "WRITERS")]
LISTS = ["IOC_NAMES", "CHAIN_TOP_NAMES", *PUTS]
SCALARS = ["STATE", "STATE_MSG.VAL$", "LOG_STATE", "PUT_BAD_OPEN_CNT", "PUT_BAD_REASON.VAL$"]
OPERATOR = "DEMO:MAG:CURRENT:SET"
RULES = TOP / "tools/demo/rules.json"
SHOW = MONITOR.parent / "ebpfMonTop"
NUMBERS = 3000000  # that the IOC "machine-orbit" stores as texts: slower than its scan

NEXT = """WHAT TO TRY NEXT
  Who changed my set point? Why is my scan late? Who still uses this PV?
    You type, it answers:                  documentation/use/tutorial.md
  Watch the IOCs of this host, as root:    cd iocBoot/iocEbpfMon && ../../{bin}/ebpfMon st.cmd
  and look at them, in another terminal:   {bin}/ebpfMonTop $(hostname -s):EBPF:
  The same as displays for Phoebus:        ebpfMonApp/op/bob/ebpfMon.bob; pictures in documentation/use/operator.md
  As a service on each host:               make deb; documentation/use/installation.md"""


class Values:
    """The newest value of each PV, as camonitor prints it."""

    def __init__(self):
        self._values = {}
        self._severities = {}
        self._times = {}  # of lists; None: it is being changed
        self._puts = []

    def line(self, text):
        if not text.startswith(MONITOR_P):
            return  # a message of the client library
        name, when, *values = text.replace('\\"', '"').split("\t")  # camonitor escapes the quotes of long strings
        name = name.removeprefix(MONITOR_P)
        values = values[:-2]  # status and severity
        if name in LISTS:
            # for arrays camonitor prints the number of elements
            self._times[name] = None
            self._values[name] = values[1:] if len(values) > 1 else values
            self._times[name] = when
        elif name in SCALARS and values:
            self._values[name] = values[0]
            self._severities[name] = text.rpartition("\t")[2]

    def get(self, name):
        return self._values.get(name, "")

    def list(self, name):
        return self._values.get(name, [])

    def puts(self):
        """Time, PV, old value, new value and writer of the newest ones. While an update has changed only some of these
        columns: the ones before."""
        before = [self._times.get(n) for n in PUTS]
        rows = list(zip(*(self.list(n) for n in PUTS)))
        if len(set(before)) == 1 and before[0] and before == [self._times.get(n) for n in PUTS]:
            self._puts = rows
        return self._puts

    def unexpected(self):
        """Whether there are unexpected puts, and why."""
        name = "PUT_BAD_OPEN_CNT"
        text = f"{name} {self.get(name)} {self._severities.get(name) or 'NO_ALARM'}"
        return text if self.get(name) == "0" else f"{text}: {self.get('PUT_BAD_REASON.VAL$')}"


class Operators(threading.Thread):
    """Puts by people and scripts, a limited number."""

    def __init__(self, stage, panel):
        super().__init__(daemon=True)
        self._stage, self._panel = stage, panel
        self._ending = threading.Event()

    def run(self):
        stage, turn = self._stage, 0
        acts = [
            lambda n: stage.run("caput", OPERATOR, 100 + n % 7 * 5),
            lambda n: stage.run("caput", "-c", "DEMO:VALVE:CMD", "Open" if n % 2 else "Close"),
            lambda n: [self._panel.put(100 + n + i / 10) for i in range(5)],  # the script: a ramp
            lambda n: stage.run("caput", "DEMO:SHIFT:NOTE", f"shift {n}: all is well"),
            lambda n: stage.run("caput", "-c", "DEMO:S03:G2:PRESSURE.HIGH", f"{1.3 + n % 3 / 10:.1f}e-7"),
            lambda n: stage.run("caput", "-a", "DEMO:ORBIT:REF", 3, n, n + 0.5, n + 1),
            lambda n: stage.run("caput", OPERATOR, 450),  # more than a rule allows
            lambda n: None,
            lambda n: stage.run("caput", MONITOR_P + "PUT_BAD_ACK", 1),  # … and an operator acknowledges it
        ]
        while turn < 60 and not self._ending.wait(1.0):
            acts[turn % len(acts)](turn)
            turn += 1

    def end(self):
        self._ending.set()
        self.join(20)


def script(stage):
    """The shipped st.cmd, changed for the demo: the monitor watches the IOC of the demo only."""
    text = (MONITOR_BOOT / "st.cmd").read_text().replace("\niocInit\n", f"""
ebpfMonFilter "machine*"
ebpfMonRules "{RULES}"
ebpfMonJsonLog "{stage.tmp / "puts.json"}"
ebpfMonHistoryKeep "{stage.tmp / "history.sqlite"}" 64 1
dbLoadRecords "{DB / "ebpfMonWatch.db"}", "P={MONITOR_P},REC={OPERATOR}"
dbLoadRecords "{DB / "ebpfMonIoc.db"}", "P={MONITOR_P},IOC=machine-orbit"
iocInit
""")
    path = stage.tmp / "st.cmd"
    path.write_text(text)
    return path


class Panel:
    """An operator's panel: a client that opens its channel before the monitor starts."""

    def __init__(self, port, name):
        self._name = name
        self._client = rawca.RawCa(port, "operator", "console")
        self._client.sid(name)

    def put(self, value):
        self._client.put(self._name, rawca.DOUBLE, [value], sync=False)

    def close(self):
        self._client.close()


def set_up(stage, values):
    print("demo: starting two unmodified softIocs: a small machine, and one with a scan that is too slow")
    machine = stage.start([BASE_BIN / "softIoc", "st.cmd"], stage.machine_port, cwd=TOP / "tools/demo", P=MACHINE_P,
                          IOC="machine")
    stage.wait_for(machine, stage.machine_port, MACHINE_P + "BEAM:LIFETIME", "softIoc")
    stage.start([BASE_BIN / "softIoc", "-m", f"P={MACHINE_P},N={NUMBERS}", "-d", "orbit.db"], stage.orbit_port,
                cwd=TOP / "tools/demo", IOC="machine-orbit")
    stage.start([BASE_BIN / "camonitor", *(MACHINE_P + n for n in ("BEAM", "MAG:CURRENT", "VALVE:STATUS"))])
    panel = Panel(stage.machine_port, OPERATOR)
    print("demo: clients are connected to them; now the monitor starts")
    monitor = stage.start([MONITOR, script(stage)], stage.monitor_port, cwd=MONITOR_BOOT, EBPFMON_P=MONITOR_P,
                          USER=pwd.getpwuid(os.geteuid()).pw_name)  # who may acknowledge
    stage.wait_for(monitor, stage.monitor_port, MONITOR_P + "STATE", "the monitor IOC")
    stage.start([BASE_BIN / "camonitor", "-F", "\t", "-S", *(MONITOR_P + n for n in SCALARS + LISTS)],
                on_line=values.line)
    wait_until_running(values, monitor)
    print(f"demo: the monitor runs; rules of {RULES.relative_to(TOP)} are in force, puts go to a JSON log")
    return monitor, panel


def wait_until_running(values, monitor, seconds=30):
    """Waits until the monitor is Running and has found both IOCs."""
    end = time.monotonic() + seconds
    while (values.get("STATE") not in ("Running", "Degraded") or values.get("LOG_STATE") != "Ok" or
           not {"machine", "machine-orbit"} <= set(values.list("IOC_NAMES"))):
        if values.get("STATE") == "Failed" or not monitor.running or time.monotonic() > end:
            raise Failed("\n".join([f"the monitor does not run: {values.get('STATE')} {values.get('STATE_MSG.VAL$')}",
                                    *list(monitor.lines)[-15:]]))
        time.sleep(0.05)


def show(stage, *args):
    """The command that shows the monitor."""
    return subprocess.Popen([SHOW, *map(str, args), MONITOR_P], env=stage.clients)


def live(stage, monitor, seconds):
    """ebpfMonTop has the terminal until the user ends it, or the time is over."""
    shown = show(stage, "-v", "shift")
    end = time.monotonic() + seconds
    try:
        while shown.poll() is None and time.monotonic() < end:
            still(monitor)
            time.sleep(0.1)
    finally:
        shown.terminate()  # it puts the terminal in order
        shown.wait(10)


def plain(values, monitor, seconds):
    """Prints each put at once. All other values are on the page at the end."""
    end, seen, opened = time.monotonic() + seconds, set(), "0"
    while time.monotonic() < end:
        for row in reversed(values.puts()):
            if row not in seen:
                seen.add(row)
                when, pv, old, new, who = row
                print(f"{when}  {pv}  {old} → {new}  by {who}", flush=True)
        if opened != values.get("PUT_BAD_OPEN_CNT"):
            opened = values.get("PUT_BAD_OPEN_CNT")
            print(f"  {values.unexpected()}", flush=True)
        still(monitor)
        time.sleep(0.25)


def last_pages(stage):
    """What the operator cares about, and where the time goes: printed, so that it stays on the terminal."""
    for view, rows in (("shift", 8), ("chains", 5)):
        print(f"\n$ ebpfMonTop -1 -v {view} -r {rows} {MONITOR_P}", flush=True)
        show(stage, "-1", "-v", view, "-r", rows).wait(30)


def draw_pictures(stage, values, folder):
    import pictures  # it needs packages that the demo does without
    end = time.monotonic() + 60
    while "450" not in values.list("PUT_VALUES"):
        if time.monotonic() > end:
            raise Failed("there was no unexpected put")
        time.sleep(0.1)
    when, pv, old, new, who = next(put for put in values.puts() if put[3] == "450")
    stage.run("caput", f"{MONITOR_P}HISTORY_FROM", "today")
    macros = {"REC": OPERATOR, "IOC": "machine-orbit", "TIME": when, "PV": pv, "OLD": old, "NEW": new, "WRITER": who,
              "ORIGIN": "", "RESULT": "", "WHY": values.get("PUT_BAD_REASON.VAL$")}
    pictures.draw(stage, SHOW, MONITOR_P, [f"{k}={v}" for k, v in macros.items()], values.list("IOC_NAMES"), folder)


def logged(path):
    """Two lines of the JSON log: the newest unexpected put, and the newest put by a link."""
    lines = path.read_text().splitlines()
    for key in ("unexpected", "link"):
        yield from [line for line in lines if key in json.loads(line)][-1:]


def still(monitor):
    if not monitor.running:
        raise Failed("\n".join(["the monitor IOC has ended:", *list(monitor.lines)[-15:]]))


def ended(number, _):
    raise SystemExit(0 if number == signal.SIGINT else 128 + number)


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ended)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", nargs="?", type=float, default=60 if terminal else 20)
    parser.add_argument("--pictures", metavar="FOLDER", type=pathlib.Path, help="draws pictures for the documentation")
    args = parser.parse_args()
    stage, operators, panel, code, lines = None, None, None, 0, []
    values = Values()
    try:
        stage = Stage()
        monitor, panel = set_up(stage, values)
        operators = Operators(stage, panel)
        operators.start()
        if not SHOW.exists():
            raise Failed(f"{SHOW} was not built: it needs ncurses (Debian: libncurses-dev)")
        if args.pictures:
            draw_pictures(stage, values, args.pictures)
        elif terminal:
            live(stage, monitor, args.seconds)
        else:
            plain(values, monitor, args.seconds)
        if not values.puts() or not values.list("CHAIN_TOP_NAMES"):
            raise Failed(f"the monitor saw nothing: {values.get('STATE')} {values.get('STATE_MSG.VAL$')}")
        last_pages(stage)
        lines = list(logged(stage.tmp / "puts.json"))
    except Failed as why:
        print(f"demo: {why}", file=sys.stderr)
        code = 1
    except SystemExit as end:
        code = end.code
    finally:
        # No signal may stop us here: we end all processes that we started, and wait for them.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if operators:
            operators.end()
        if panel:
            panel.close()
        if stage:
            stage.close()
    if not code:
        print("\n".join(["", "TWO LINES OF THE JSON LOG", *lines, "", NEXT.format(bin=MONITOR.parent.relative_to(TOP))]))
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader of our output has ended
        os._exit(1)
