# SPDX-License-Identifier: BSD-3-Clause
"""The monitor IOC, started with the shipped start-up script, its PVs and its shell."""
import itertools
import os
import re
from collections import namedtuple

from . import ca, loopback, paths, rawca
from .ioc import OURS
from .process import Process
from .wait import Late, until

_serial = itertools.count(1)

Counts = namedtuple("Counts", "count trapped entered flags")


def _rights():
    """With EBPFMON_RIGHTS=service every monitor has only the capabilities of the service's unit: the command that is put before."""
    if os.environ.get("EBPFMON_RIGHTS") != "service":
        return []
    unit = (paths.TOP / "service" / "ebpfmon.service").read_text()
    names = re.search(r"(?m)^AmbientCapabilities=(.*)", unit).group(1).lower().replace("cap_", "").split()
    return ["setpriv", "--bounding-set", ",".join(["-all", *("+" + name for name in names)])]


class Monitor:
    """A monitor without a CPU budget, because tests make IOCs busier than a budget allows. It watches the IOCs of this
    process only."""
    program = paths.MONITOR

    def __init__(self, tmp, watch=(), iocs=OURS, budget=0, prefix=None, before=(), environ=None):
        n = next(_serial)
        self.prefix = prefix or f"M{os.getpid()}:{n}:"
        self.name = f"mon{os.getpid()}x{n}"  # its name as an IOC, for other monitors
        self.port = loopback.take_port()
        self.tmp = tmp
        self.watch = list(watch)
        self.environ = environ or {}  # more of the environment
        self.before = list(before)  # lines for the shell before iocInit
        self.filter = f'ebpfMonFilter "{iocs}" "" "" "" "" "" "" "" {budget}'
        self.process = None

    def script(self):
        """The shipped st.cmd, with the lines of this test before its iocInit."""
        text = (paths.MONITOR_BOOT / "st.cmd").read_text()
        db = paths.DB / "ebpfMonWatch.db"
        add = [f'dbLoadRecords("{db}", "P={self.prefix},REC={r}")' for r in self.watch] + \
            self.before + [self.filter]
        new, n = re.subn(r"(?m)^iocInit\b", lambda m: "\n".join([*add, m.group()]), text, count=1)
        assert n == 1, "st.cmd has no iocInit"
        path = self.tmp / f"{self.prefix.replace(':', '_')}st.cmd"
        path.write_text(new)
        return path

    def launch(self, wrap=()):
        """Starts it and waits until it answers a search for STATE. "wrap": a command that is put before it, for example
        to take privileges away."""
        self.process = Process([*wrap, *_rights(), self.program, self.script()], cwd=paths.MONITOR_BOOT,
                               env=loopback.server(self.port, EBPFMON_P=self.prefix, IOC=self.name,
                                                  **self.environ))
        until(lambda: rawca.answers(self.port, self.prefix + "STATE") or not self.process.running, 30,
              lambda: f"the monitor IOC started\n{self.process.output()}")
        assert self.process.running, f"the monitor ended\n{self.process.output()}"
        return self

    def start(self):
        self.launch()
        self.wait_state("Running", 30)
        return self

    def wait_state(self, state, seconds=15):
        try:
            until(lambda: self.get("STATE", as_string=True) == state, seconds, "")
        except Late:
            raise Late(f"STATE is {self.get('STATE', as_string=True)}, not {state}: {self.text('STATE_MSG')}\n"
                       f"{self.process.output()}") from None

    # --- PVs ---------------------------------------------------------------------------------------------
    def get(self, name, **how):
        return ca.get(self.prefix + name, **how)

    def time_stamp(self, name):
        return ca.time_stamp(self.prefix + name)

    def text(self, name):
        return ca.get_text(self.prefix + name)

    def lines(self, name):
        """The text of a char waveform."""
        return ca.get_chars(self.prefix + name)

    def losses(self):
        """Lost events: reason → number."""
        return {r: n for r, n in zip(self.list("LOST_REASONS"), self.list("LOST_CNTS")) if n}

    def put(self, name, value):
        ca.put(self.prefix + name, value)

    def list(self, name):
        """A waveform as a list of its elements in use."""
        value = self.get(name)
        value = [value] if isinstance(value, (str, float, int)) else list(value)
        return [ca.utf8(v) if isinstance(v, str) else v for v in value]

    def wait(self, name, predicate, seconds=10):
        seen = []

        def look():
            seen[:] = [self.get(name)]
            return predicate(seen[0])

        until(look, seconds, lambda: f"{name}, which is {seen}")
        return seen[0]

    def wait_text(self, name, predicate, seconds=10):
        seen = []

        def look():
            seen[:] = [self.text(name)]
            return predicate(seen[0])

        until(look, seconds, lambda: f"{name}, which is {seen}")
        return seen[0]

    def set_filter(self, **values):
        """Writes FILTER_<NAME>. Waits until the filter is in force, that is, until its generation has changed. On a
        busy host this may be long after the filter was accepted; FILTER_STATUS tells."""
        before = self.get("FILTER.VALC")
        for name, value in values.items():
            self.put(f"FILTER_{name}", value)
        until(lambda: self.get("FILTER.VALC") != before and not self.filter_status().startswith("accepted, being applied"),
              20, lambda: f"the filter {values} in force: {self.filter_status()}")

    def filter_status(self):
        return self.lines("FILTER.VALA")

    # --- which IOCs --------------------------------------------------------------------------------------
    def iocs(self):
        """pid → (name, version, number of records, level). Without the rows of IOCs that are gone: these have no pid."""
        def read():
            """Reads the columns; None if the list changed meanwhile."""
            columns = [self.list(c) for c in ("IOC_PIDS", "IOC_NAMES", "IOC_VERSIONS", "IOC_RECORD_CNTS", "IOC_LEVELS")]
            return columns if columns[0] == self.list("IOC_PIDS") and len(set(map(len, columns))) == 1 else None

        columns = until(read, 10, "the same list of IOCs in each column")
        return {int(pid): (str(name), str(version), int(recs), str(level))
                for pid, name, version, recs, level in zip(*columns) if int(pid)}

    def wait_ioc(self, ioc, level="chains", records=1, seconds=20):
        """Waits until the IOC is watched at this level and so many records are known."""
        def watched():
            row = self.iocs().get(ioc.pid)
            return row if row and row[3] == level and row[2] >= records else None

        return until(watched, seconds,
                     lambda: "\n".join([f"{ioc.name} (pid {ioc.pid}) at level {level}:", *self.command("ebpfMonIocs"),
                                        self.process.output(), ioc.process.output()]))

    def at_level(self, level, *iocs):
        """Sets the level of all IOCs that match the filter. Waits until these IOCs have it. Returns itself."""
        for ioc in iocs:
            self.wait_ioc(ioc)
        self.set_filter(LEVEL=level)
        for ioc in iocs:
            self.wait_ioc(ioc, level=level)
        return self

    def wait_gone(self, pid, seconds=10):
        until(lambda: pid not in self.iocs(), seconds, lambda: f"pid {pid} gone: {self.iocs()}")

    # --- reports -----------------------------------------------------------------------------------------
    def command(self, line):
        return self.process.command(line)

    def records(self, ioc, pattern="*"):
        """The table of the command ebpfMonRecords: name → Counts."""
        found = {}
        for line in self.command(f'ebpfMonRecords "{ioc}" "{pattern}"'):
            words = line.split()
            numbers = [i for i, w in enumerate(words) if i and w.isdigit()]
            if len(numbers) < 3:
                continue  # the header, "IOC name:"
            count, trapped, entered = (int(words[i]) for i in numbers[:3])
            found[words[0]] = Counts(count, trapped, entered, set(words[numbers[2] + 1:]) - {"-"})
        return found

    # --- its end -----------------------------------------------------------------------------------------
    def stop(self):
        if self.process:
            self.process.close()

    def discard(self):
        self.stop()
        if self.port:
            loopback.give_port(self.port)
            self.port = None
            ca.forget(self.prefix)


class CoreMonitor(Monitor):
    """A monitor without the modules of ebpfMon, but with the one of tests/module. With EBPFMON_MODULES=none all are so."""
    folder = paths.TESTS / "module"
    program = folder / f"O.{paths.ARCH}" / "exampleMonitor"

    def script(self):
        path = super().script()
        made = self.folder / "O.Common"
        text = path.read_text().replace('"$(TOP)/dbd/ebpfMon.dbd"', f'"{made / "exampleMonitor.dbd"}"')
        text = text.replace("ebpfMon_register", "exampleMonitor_register")
        text = re.sub(r"(?m)^dbLoadRecords .*ebpfMon(Clients|History|Inventory|Otlp|Queues|Subscriptions|Uses|Waits).db.*$", "", text)
        text = re.sub(r"(?m)^dbLoadRecords .*ebpfMonDevice.db.*$", f'dbLoadRecords "{made / "exampleModule.db"}", "P={self.prefix}"', text)
        path.write_text(text)
        return path
