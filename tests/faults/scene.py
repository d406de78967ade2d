# SPDX-License-Identifier: BSD-3-Clause
"""Two IOCs, a monitor, clients that put all the time, and the judges of a fault.

The IOC "stays" lives as long as the scene. The IOC "victim" and the monitor are killed, stopped and started again.
Shells answer here instead of PVs: clients of a PV need seconds until they find a restarted server.
"""
import collections
import itertools
import json
import os
import signal
import threading

from tests.harness import db, kernel, loopback, paths, rawca
from tests.harness.ioc import Ioc
from tests.harness.monitor import Monitor
from tests.harness.process import Process
from tests.harness.wait import settled, until

RECORDS = db.READY + db.record("longout", "V", FLNK="$(P)C0") + db.chain("C", 3)
FOLDER = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 6)  # this kernel has it (probe/closer.c)
TRAP = 0xcc           # int3
PUTS = 5              # of a proof that everything works
WARM = 5              # faults; until then memory is used for the first time
READERS = 8           # that look at other processes: those of the threads that may ask at the same time; five were seen
MEMORY = 16 << 20     # by so much the memory of a process may grow over all faults
_values = itertools.count(1)  # no value is put twice


class ShellMonitor(Monitor):
    """The monitor, read through its shell."""

    def spawn(self):
        """Starts it, and does not wait."""
        self.process = Process([paths.MONITOR, self.script()], cwd=paths.MONITOR_BOOT,
                               env=loopback.server(self.port, EBPFMON_P=self.prefix, IOC=self.name))

    def state(self):
        return next((l.split('"')[1] for l in self.command(f"dbgf {self.prefix}STATE") if l.startswith("DBF_")), "")

    def count_audits(self):
        """Cross-checks that failed."""
        return next(int(l.split()[1]) for l in self.command(f"dbgf {self.prefix}AUDIT_CNT") if l.startswith("DBF_"))

    def level_of(self, pid):
        words = [l.split() for l in self.command("ebpfMonIocs")]
        return next((w[4] for w in words if len(w) > 4 and w[1] == str(pid) and w[3] != "0"), None)

    def want_level(self, level):
        self.process.send(f"dbpf {self.prefix}FILTER_LEVEL {level}")

    def wait_level(self, ioc, level="chains"):
        until(lambda: self.level_of(ioc.pid) == level, 20,
              lambda: f"{ioc.name} (pid {ioc.pid}) at level {level}\n" + self.process.output())

    def wait_running(self):
        until(lambda: self.state() == "Running", 20, lambda: f"STATE Running: {self.state()}\n{self.process.output()}")


class Log:
    """The JSON log of the puts to these PVs. It is read on from where the last reading ended."""

    def __init__(self, path, *pvs):
        self.path, self._pvs, self._at = path, pvs, 0
        self.lines = collections.defaultdict(list)  # (pv, value) → its lines

    def command(self):
        return f'ebpfMonJsonLog "{self.path}" 1000 0 1 all'

    def read(self):
        if self.path.exists():
            with open(self.path, "rb") as f:
                f.seek(self._at)
                whole = f.read().rpartition(b"\n")[0]
            if whole:
                self._at += len(whole) + 1
            for line in whole.split(b"\n") if whole else []:
                # A monitor that was killed may have left a part of a line, and the next one wrote behind it.
                try:
                    put = json.loads(line)
                except ValueError:
                    self.lines["not JSON"].append(line)
                    continue
                if put["pv"] in self._pvs:
                    self.lines[put["pv"], str(put["value"])].append(put)
        return self.lines


class Flood:
    """A client that puts all the time. "sent" is what it wrote: [(pv, value)]."""

    def __init__(self, ioc):
        self.pv, self.sent, self._stop = ioc.prefix + "V", [], threading.Event()
        self._ca = rawca.RawCa(ioc.port)
        self._sid = self._ca.sid(self.pv)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def put(self):
        value = next(_values)
        self.sent.append((self.pv, str(value)))  # before: also a put that fails half way may have arrived
        self._ca.send(rawca.write(self._sid, rawca.LONG, [value], notify=value % 3 == 0, ioid=value))

    def _run(self):
        try:
            while not self._stop.wait(0.005):
                self.put()
        except OSError:
            pass  # the IOC ended

    def end(self):
        """Returns when the IOC has served everything, or has ended."""
        self._stop.set()
        if self._thread.ident:
            self._thread.join()
        try:
            self._ca.send(rawca.message(rawca.ECHO))
            self._ca.until(rawca.ECHO)
        except OSError:
            pass
        self._ca.close()


class Scene:
    def __init__(self, tmp):
        self.stays, self.victim = Ioc(tmp, RECORDS), Ioc(tmp, RECORDS)
        self.log = Log(tmp / "puts.json", self.stays.prefix + "V", self.victim.prefix + "V")
        self.monitor = ShellMonitor(tmp, before=[self.log.command()])
        self.sent = set()       # all puts of this scene
        self.base = {}          # name of an IOC → processings of C2, less what the monitor counted
        self.sizes, self.memory = {}, {}  # of processes, by their names
        self.tids, self.objects = set(), set()  # threads and BPF objects of the last monitor
        self.judged = max(kernel.leaks(), default=(0, 0))  # the newest message that a probe was not removed
        self.noted = collections.Counter()

    def start(self):
        for ioc in (self.stays, self.victim):
            ioc.start()
        self.start_monitor()
        return self

    def start_monitor(self):
        self.monitor.spawn()
        self.monitor.wait_running()

    def discard(self):
        for thing in (self.monitor, self.victim, self.stays):
            if thing.process:
                thing.process.signal(signal.SIGCONT)
            thing.discard()

    def attach(self):
        """Has both IOCs watched at level chains."""
        self.monitor.want_level("chains")
        for ioc in (self.stays, self.victim):
            self.monitor.wait_level(ioc)

    # --- before and after a fault ------------------------------------------------------------------------
    def note(self):
        """What belongs to the monitor, before something happens to it."""
        if self.monitor.process.running:
            self.tids = kernel.threads(self.monitor.process.pid)
            self.objects = kernel.held(self.monitor.process.pid)

    def recover(self):
        """Everything runs again. Then all of it works, and nothing is left of what ended."""
        if not self.monitor.process.running:
            self.judge_end_of_monitor()
        if not self.victim.running:
            assert not os.path.exists(f"/proc/{self.victim.pid}"), "the IOC has ended, and its process is still there"
            self.base.pop(self.victim.name, None)
            self.victim.start()
        if not self.monitor.process.running:
            self.base.clear()
            self.sizes = {key: size for key, size in self.sizes.items() if key[0] != "monitor"}
            self.memory.pop("monitor", None)
            self.start_monitor()
        self.monitor.wait_running()
        self.attach()
        self.note()
        self.prove()
        self.judge_sizes()
        self.judge_log()

    def judge_end_of_monitor(self):
        kernel.nothing_left(self.objects)
        for ioc in filter(lambda i: i.running, (self.stays, self.victim)):
            left = kernel.changed_code(ioc.pid)
            # Without the folder of links, a thread that is killed while it removes a probe leaves the trap.
            known = not FOLDER and len(left) <= self.new_leaks() and all(now == TRAP for *_, now in left)
            assert not left or known, f"code of {ioc.name}: {left}"
            if left:
                self.noted["traps left by the kernel"] += 1
                self.serves(ioc)
                self.heal(ioc)
        self.noted["probes not removed"] += self.new_leaks()
        self.judged = max(kernel.leaks(), default=(0, 0))

    def new_leaks(self):
        return sum(leak > self.judged and leak[1] in self.tids for leak in kernel.leaks())

    def heal(self, ioc):
        """The next monitor that probes these places and leaves them takes the trap with it."""
        self.start_monitor()
        self.monitor.wait_level(ioc)
        self.note()
        self.code_is_restored()
        self.monitor.process.send("exit")
        self.monitor.process.wait(20)
        kernel.nothing_left(self.objects)

    def code_is_restored(self):
        """At level off the code of the IOCs is that of their files. "Off" is shown when the last probe is off."""
        self.monitor.want_level("off")
        for ioc in filter(lambda i: i.running, (self.stays, self.victim)):
            self.monitor.wait_level(ioc, "off")
            left = []

            def restored():
                left[:] = kernel.changed_code(ioc.pid)
                return not left

            until(restored, 5, lambda: f"code of {ioc.name} at level off: {left}")

    # --- the judges --------------------------------------------------------------------------------------
    def processed(self, ioc):
        """How often the IOC itself says that it processed C2."""
        return next(int(float(l.split()[1])) for l in ioc.command(f"dbgf {ioc.prefix}C2") if l.startswith("DBF_"))

    def serves(self, ioc):
        """It answers clients, and its records process."""
        before, client = self.processed(ioc), Flood(ioc)
        for _ in range(PUTS):
            client.put()
        client.end()
        self.sent |= set(client.sent)
        assert self.processed(ioc) == before + PUTS, f"{ioc.name}: {before} and {PUTS} puts, {self.processed(ioc)}"
        return client.sent

    def uncounted(self, ioc):
        counts = self.monitor.records(ioc.name).get(ioc.prefix + "C2")
        return self.processed(ioc) - (counts.count if counts else 0)

    def prove(self):
        """From here on each put is logged once and each processing counted, for as long as both live."""
        for ioc in (self.stays, self.victim):
            if ioc.name not in self.base:
                # What processed while the probes came on may be counted with the next chain: here is that chain.
                self.serves(ioc)
                self.base[ioc.name] = settled(lambda i=ioc: self.uncounted(i), 5, 0.2)
            self.logged(self.serves(ioc))
            until(lambda: self.uncounted(ioc) == self.base[ioc.name], 5,
                  lambda: f"{ioc.name}: of C2 {self.uncounted(ioc)} not counted, before {self.base[ioc.name]}")

    def logged(self, sent):
        """All of these puts are in the log, as accepted."""
        until(lambda: all(self.log.read().get(key) for key in sent), 10,
              lambda: f"not logged: {[key for key in sent if not self.log.lines.get(key)][:10]}")
        bad = [line for key in sent for line in self.log.lines[key] if line.get("result", "ok") != "ok"]
        assert not bad, bad[:10]

    def judge_log(self):
        """No put twice, and none that nobody sent."""
        torn = self.log.read().pop("not JSON", [])
        self.noted["torn lines of the log"] += len(torn)
        assert len(torn) <= 1, torn
        twice = [lines for lines in self.log.lines.values() if len(lines) > 1]
        assert not twice, f"{len(twice)} puts twice: {twice[:3]}"
        unknown = [key for key in self.log.lines if key not in self.sent]
        assert not unknown, f"nobody sent {unknown[:10]}"
        if self.monitor.process.running:
            assert self.monitor.count_audits() == 0, "\n".join(
                ["a cross-check failed", *self.monitor.command(f"dbgf {self.monitor.prefix}AUDIT.VAL$"),
                 self.monitor.process.output()])

    def judge_sizes(self):
        """Descriptors, threads, BPF objects and memory do not grow. Readers (host/foreign.h) come and go, each with a file."""
        def readers(pid):
            n = kernel.threads_named(pid, "ebpfMonReader")
            assert n <= READERS, f"{n} readers"
            return n

        for name, pid in (("monitor", self.monitor.process.pid), ("stays", self.stays.pid)):
            def sizes(pid=pid):
                # The monitor reads packets of each network namespace that has an IOC, also of those of other tests:
                # only sizes with as many of them are compared.
                return (kernel.count_programs(pid, "ebpfmon_wire"),), \
                    (kernel.descriptors(pid) - readers(pid), len(kernel.threads(pid)) - readers(pid), len(kernel.held(pid)))

            def is_flat(name=name):
                spaces, now = sizes()
                before = self.sizes.get((name, spaces)) or settled(sizes, 5)[1]
                # At first probes of an IOC that ended may still be there, so later there may be less.
                self.sizes[name, spaces] = tuple(map(min, now, before))
                return all(a <= b for a, b in zip(now, before))

            until(is_flat, 5, lambda: f"{name}: descriptors, threads, BPF objects {sizes()}, before {self.sizes}")
            memory = self.memory.setdefault(name, [])
            memory.append(kernel.own_memory(pid))
            assert memory[-1] - memory[:WARM][-1] < MEMORY, f"memory of {name} after each fault: {memory}"
            until(lambda: "D" not in kernel.thread_states(pid).values(), 10, f"a thread of {name} is stuck")
