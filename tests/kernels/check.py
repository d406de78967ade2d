# SPDX-License-Identifier: BSD-3-Clause
"""Checks the answers of the emulated machine (guest.sh)."""
import re


SKIPPED = "program not run"  # a kernel that preempts programs may leave one out: the monitor cannot help it, and counts it
NO_MARK = "each count is exact, not a lower bound"  # such a check that did not pass is no fault of the monitor: it says so itself


def row(text):
    """Returns the elements of a waveform. "text" is the output of caget -t -F'|', which begins with their number."""
    return text.split("|")[1:]


def table(said, name, column=1):
    """Column 0 → another one. {}: not all lines are there."""
    lines = said.get(name, "").split("\n")
    return dict(zip(row(lines[0]), (float(n) for n in row(lines[column])))) if len(lines) > column else {}


def losses(said, name):
    return {reason: n for reason, n in table(said, name).items() if reason and n}


def is_x86(said):
    return said.get("machine", "x86_64") == "x86_64"


def own(said, name):
    """Returns how often each record counted itself."""
    return {r: float(n) for r, n in re.findall(r"(?m)^(\S+)\s+(\d+)$", said.get(name, ""))}


def features(said):
    """Returns the features of this kernel from the output of ebpfMonReport: name → yes or no."""
    found = re.search(r"(?m)^  kernel [^:]+: (.*)$", said.get("log", ""))
    return dict(part.rsplit(" ", 1) for part in found.group(1).split(", ")) if found else {}


class Checks:
    def __init__(self, said):
        self.said = said
        self.results = []

    def add(self, name, ok, text=""):
        self.results.append((name, bool(ok), str(text)[:400]))

    def has(self, name, key, *patterns):
        text = self.said.get(key, "(nothing)")
        missing = [p for p in patterns if not re.search(p, text)]
        self.add(name, not missing, f"no {missing} in {text}")

    def same(self, name, before, after):
        """The monitor counted each record as often as the record counted itself. A count that the monitor marks as a lower bound may
        be lower. The text names lost events, too."""
        was, now = own(self.said, f"counters {before}"), own(self.said, f"counters {after}")
        seen0, seen, marks = (table(self.said, f"counted {key}", column) for key, column in
                              ((before, 1), (after, 1), (after, 2)))
        wrong, marked = [], []
        for r in now:
            truth, count = now[r] - was.get(r, 0), seen.get(r, 0) - seen0.get(r, 0)
            if count != truth:
                is_low = marks.get(r) and count < truth
                (marked if is_low else wrong).append(f"{r} {truth:.0f} times, counted {count:.0f}")
        lost = losses(self.said, f"losses {after}")
        self.add(f"counts: {name}", now and marks and now["K:CNT"] > was.get("K:CNT", 0) and not wrong,
                 f"{'; '.join(wrong) or now}; events lost: {lost or 'none'}")
        self.add(f"{NO_MARK}: {name}", not marked, "; ".join(marked))


def puts(c):
    client = r"root@kernels caput\[\d+\] \(CA 127\.0\.0\.1:\d+ uid root\)"
    c.has("put: writer, values", "PUT_LOG", r"K:SET 42 \S+ 43 by " + client, "K:TEXT .*hello by " + client)
    c.has("put: callback", "PUT_LOG", r"K:SET 43 \S+ 200 (\(became 100\) )?by " + client)
    c.has("put: by a link, caused by the client", "PUT_LOG",
          r"K:SET:D 85 \S+ 87 by root@kernels .*link K:SET:C\.OUT, ")
    if is_x86(c.said):
        c.has("put: by PVA", "PUT_LOG", r"P:SET .*7\.5 by root@\S+ pvput\[\d+\] \(PVA 127")
    else:  # a cross build has no PV Access (tools/cross.sh)
        c.has("put: to another IOC", "PUT_LOG", r"P:SET .*7\.5 by root@\S+ caput\[\d+\] \(CA 127")


def check(said, start_only):
    c = Checks(said)
    late = [k for k in said if k.startswith("late")]
    c.add("nothing took too long", not late and "done" in said, late or "the machine did not reach the end of guest.sh")
    c.has("state", "STATE", "^Running$")
    if not start_only:
        full(c)
    queries(c)
    c.has("state in the end", "end STATE", "^Running$")
    lost = losses(said, "lost")
    lost.pop(SKIPPED, None)
    c.add("no event is lost", "end LOST_CNT" in said and not lost, lost)
    c.has("packets are read", "end PACKET_STATE", "^On$")
    c.has("a process under seccomp survives a return probe", "log", "return probes under seccomp yes")
    c.has("it goes on when the clock is set back", "clock back", "^goes on$")
    c.add("counts stay exact when the clock is set forward", said.get("clock forward") == "", said.get("clock forward"))
    c.add("set back by part of a second: what processed then is a lower bound", said.get("clock back a little") == "marked K:TEXT",
          said.get("clock back a little"))
    c.has("counts are lower bounds when the clock is set back", "clock back marks", "^marked K:READY$")
    c.has("the monitor exits", "exit", "^0$")
    c.has("the IOCs still run", "alive", r"^\d+\s+\d+$")
    bad = re.search(r"(?m)^.*(BUG:|WARNING:|Oops|Call Trace|general protection|segfault|stall).*$",
                    said.get("dmesg", ""))
    c.add("no warning of the kernel", not bad, bad and bad.group())
    return c.results


def full(c):
    c.has("IOCs", "IOC_NAMES", "machine", "pva")
    c.same("level trace", "before", "after")
    puts(c)
    c.has("put: value after processing", "PUT_LOG", r"K:SET 43 \S+ 200 \(became 100\) by ")
    c.has("trace of a put", "CHAIN_LOG", r"machine: K:SET .*by put by root@kernels caput", "FLNK > K:SET:B",
          "OUT > K:SET:D")
    c.has("trace of an asynchronous record", "CHAIN_LOG", r"machine: K:ODLY .*3 records in 2 steps",
          "async > K:ODLY:B")
    mean = dict(zip(row(c.said.get("CHAIN_TOP_NAMES", "")), row(c.said.get("CHAIN_TOP_MEANS", ""))))
    c.add("latency", 15e6 <= float(mean.get("K:SLEEP", 0) or 0) < 16e6,
          f"asleep for 15 s, published: {mean.get('K:SLEEP')} us")
    c.has("scan threads", "SCAN_NAMES", r"\.2 second")
    if is_x86(c.said):
        c.has("a hang", "IOC_EVENT_LAST", r"K:SLEEP:BUSY hangs since \d+ s: sleeping in clock_nanosleep",
              "epicsThreadSleep < sleepFor")
        c.has("stack of the hang, with the kernel's", "HANG_STACKS", "in the kernel: hrtimer_nanosleep", r"#3 sleepFor")
    else:  # the monitor reads stacks on x86-64 only
        c.has("a hang", "IOC_EVENT_LAST", r"K:SLEEP\S* hangs since \d+ s: sleeping in clock_nanosleep")
    for level in ("chains", "counts"):
        c.same(f"level {level}", level, f"{level} after")
    c.has("level puts", "AUTO_PUT_LAST", r"K:SET:D .* by root@kernels caput\[\d+\] \(link K:SET:C\.OUT, chain of K:SET, put by root@kernels")
    off, still = table(c.said, "counted counts after"), table(c.said, "counted again")
    moved = own(c.said, "counters again").get("K:CNT", 0) - own(c.said, "counters counts after").get("K:CNT", 0)
    c.add("level off: nothing is counted", moved > 0 and off.get("K:CNT") == still.get("K:CNT"),
          f"{moved} processings, {off.get('K:CNT')}, then {still.get('K:CNT')}")
    c.same("counts again after off", "again", "again after")
    c.same("trace again", "trace", "trace after")
    c.has("an IOC that was killed", "gone", r"machine \(pid \d+\) ended")
    c.same("restarted", "restarted", "restarted after")
    c.has("cost of a trap is measured", "end TRAP_COST", r"^(?!850$)\d")


def queries(c):
    """Checks that the verifier accepts the programs of each source."""
    for name in re.findall(r"Q_[A-Z]+(?=_STATE)", " ".join(c.said)):
        c.add(f"query {name}", c.said[f"{name}_STATE"] == "Running", c.said.get(f"{name}_MSG"))
