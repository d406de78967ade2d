# SPDX-License-Identifier: BSD-3-Clause
"""Counts of the records of modules, level by level: what the monitor counts, and what a preloaded library counts in the IOC
(countCalls.c). tools/modules.sh builds the IOC and runs this.

One processing is one completion: one call of recGblFwdLink for the record.

Each write of a module's record is to name it: the log of puts is compared with WRITERS.

Five IOCs are watched. The one with all modules is watched by chains. Two have records of Base only, some of them with device
support of asyn, so their passes can be watched. The driver of one says nothing until its device support sleeps
(watch/typeTrial.h). One costs so much that the budget forbids the trap. In the last one
records change their ways after the first level.
"""
import collections
import mmap
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.harness import loopback, netns

netns.enter_new()
loopback.use()  # before a client library is imported

from tests.harness import ca, db, paths, tables  # noqa: E402
from tests.harness.device import Device  # noqa: E402
from tests.harness.ioc import Ioc  # noqa: E402
from tests.harness.monitor import Monitor  # noqa: E402
from tests.harness.passes import row  # noqa: E402
from tests.harness.putlog import PutLog  # noqa: E402
from tests.harness.wait import settled, until  # noqa: E402

SECONDS = float(os.environ.get("EBPFMON_MODULES_SECONDS", "12"))  # of each level
SLOWEST = 2.0  # s; no record processes less often
ELEMENT = 80  # bytes, as in countCalls.c
PROTOCOL = """Terminator = CR LF; ReplyTimeout = 500; ReadTimeout = 100; LockTimeout = 5000;
fast { out "FAST?"; in "FAST %f"; }
heard { in "FAST %f"; }
mute { ReplyTimeout = 50; out "MUTE?"; in "MUTE %f"; }
timed { ReplyTimeout = 50; out "TIME?"; in "TIME %(TIME)f %f"; }
"""
LEVELS = {  # name: level, FILTER_TIMED
    "counts": ("counts", 5), "chains": ("chains", 100), "turns": ("chains", 20), "trace": ("trace", 5),
}
MODULES = {"CALC": "calc", "SSCAN": "sscan", "BUSY": "busy", "STD": "std", "MOTOR": "motor", "STATS": "iocStats", "SAVE": "autosave", "STREAM": "StreamDevice", "SCALER": "scaler", "SEQ": "sequencer", "AREA": "asyn, arrays",
           "ASYN": "asyn", "PASS": "asyn, passes", "SLEEP": "asyn, asleep", "OVER": "busy, over the budget", "LATE": "calc, changed later"}
WRITERS = {  # PV: the link that writes there
    "CALC:T1.PROC": "CALC:SW1.OUTN", "CALC:T2": "CALC:SW2.OUTN", "CALC:T3.PROC": "CALC:SW3.OUTN", "CALC:T4": "CALC:SW4.OUTN",
    "CALC:T5": "CALC:SC1.OUT", "CALC:T6": "CALC:SC2.OUT", "CALC:T7": "CALC:SQ.LNK1", "CALC:T8": "CALC:SQ.LNK2", "CALC:T9": "CALC:TR.OUTA",
    "CALC:TA": "CALC:AC.OUT", "SSCAN:POS": "SSCAN:SCAN.P1PV", "SSCAN:DET.PROC": "SSCAN:SCAN.T1PV", "STD:T1": "STD:EPID.OUTL", "STD:T2": "STD:THR.OUT",
    "MOTOR:POS": "MOTOR:M.OUT", "SCALER:OUT": "SCALER:S.COUT",
}
DBD = {"calc": ["calcSupport"], "sscan": ["sscanSupport"], "busy": ["busySupport"], "std": ["stdSupport"], "motor": ["motorSupport", "devSoftMotor"],
       "iocStats": ["devIocStats"], "autosave": ["asSupport"], "asyn": ["asyn", "drvAsynIPPort"], "StreamDevice": ["stream"], "caPutLog": ["caPutLog", "caPutJsonLog"], "scaler": ["scalerSupport"], "sequencer": []}


def pair(name, rtype, **fields):
    """A record of this type, and a record that it makes process."""
    return db.record(rtype, name, FLNK=f"$(P){name}:F", **fields) + db.counter(f"{name}:F")


def modules():
    text = db.READY + db.counter("CALC:TICK", SCAN=".1 second", FLNK="$(P)CALC:FAN")
    text += db.record("fanout", "CALC:FAN", LNK1="$(P)CALC:SW1", LNK2="$(P)CALC:SC1")
    text += pair("CALC:SW1", "swait", INAN="$(P)CALC:TICK", CALC="A+1", OUTN="$(P)CALC:T1.PROC", OOPT="Every Time")
    text += pair("CALC:SW2", "swait", SCAN=".1 second", CALC="VAL+1", OUTN="$(P)CALC:T2.VAL", OOPT="Every Time")
    text += pair("CALC:SW3", "swait", SCAN=".2 second", CALC="VAL+1", OUTN="$(P)CALC:T3.PROC", ODLY="0.05", OOPT="Every Time")
    text += pair("CALC:SW4", "swait", SCAN="I/O Intr", CALC="A", INAN="$(P)CALC:TICK", INAP="Yes", OUTN="$(P)CALC:T4.VAL", OOPT="Every Time")
    text += pair("CALC:SC1", "scalcout", CALC="A+1", INPA="$(P)CALC:TICK NPP", OUT="$(P)CALC:T5.VAL PP", OOPT="Every Time")
    text += pair("CALC:SC2", "scalcout", SCAN=".1 second", CALC="VAL+1", OUT="$(P)CALC:T6 CA", WAIT="Wait", OOPT="Every Time", ODLY="0.03")
    text += pair("CALC:SQ", "sseq", SCAN=".5 second", DLY1=".02", DO1="1", LNK1="$(P)CALC:T7.VAL CA", WAIT1="Wait", DO2="1", LNK2="$(P)CALC:T8 PP")
    text += pair("CALC:TR", "transform", SCAN=".1 second", CLCA="A+1", OUTA="$(P)CALC:T9 PP")
    text += pair("CALC:AC", "acalcout", SCAN=".1 second", NELM="1000", CALC="AA+1", OUT="$(P)CALC:TA PP", OOPT="Every Time")
    text += "".join(pair(f"CALC:T{i}", "ao") for i in "12345") + "".join(db.record("ao", f"CALC:T{i}") for i in "6789")
    text += db.record("waveform", "CALC:TA", FTVL="DOUBLE", NELM="1000")
    text += db.record("ao", "SSCAN:POS") + pair("SSCAN:DET", "calc", CALC="VAL+1")
    text += pair("SSCAN:SCAN", "sscan", NPTS="10", MPTS="100", P1PV="$(P)SSCAN:POS.VAL", P1SP="0", P1EP="9", P1SM="LINEAR", D01PV="$(P)SSCAN:DET.VAL",
                 T1PV="$(P)SSCAN:DET.PROC", PDLY="0.01")
    text += db.record("bo", "SSCAN:GO", SCAN="1 second", VAL="1", OMSL="closed_loop", DOL="1", OUT="$(P)SSCAN:SCAN.EXSC CA")
    text += db.record("calc", "BUSY:TOGGLE", SCAN=".5 second", CALC="!VAL")
    text += pair("BUSY:BUSY", "busy", SCAN=".2 second", OMSL="closed_loop", DOL="$(P)BUSY:TOGGLE NPP")
    text += pair("STD:EPID", "epid", SCAN=".1 second", STPL="5", INP="$(P)CALC:TICK NPP", OUTL="$(P)STD:T1 PP", FBON="1", KP="1", DRVH="9")
    text += pair("STD:THR", "throttle", DLY="0.3", OUT="$(P)STD:T2 PP") + pair("STD:TS", "timestamp", SCAN=".1 second")
    text += db.record("calcout", "STD:PUT", SCAN=".2 second", CALC="VAL+1", OUT="$(P)STD:THR PP")
    text += pair("STD:DAY", "stringin", SCAN=".5 second", DTYP="Time of Day") + pair("STD:T1", "ao") + pair("STD:T2", "ao")
    text += db.record("calcout", "MOTOR:GO", SCAN="1 second", CALC="!VAL", OUT="$(P)MOTOR:M PP") + db.record("ao", "MOTOR:POS", FLNK="$(P)MOTOR:MOVE")
    text += db.record("bo", "MOTOR:DONE", VAL="1", PINI="YES")
    text += db.record("seq", "MOTOR:MOVE", DO1="0", LNK1="$(P)MOTOR:DONE PP", DLY2="0.05", DO2="1", LNK2="$(P)MOTOR:DONE PP")
    text += pair("MOTOR:M", "motor", DTYP="Soft Channel", OUT="$(P)MOTOR:POS PP", DINP="$(P)MOTOR:DONE.VAL", RINP="$(P)MOTOR:POS.VAL", VELO="10",
                 MRES="1", ACCL="0.1", DHLM="100", DLLM="-100", URIP="No")
    text += "".join(pair(f"STATS:{name}", "ai", DTYP="IOC stats", INP=f"@{name}", **scan) for name, scan in (
        ("ioc_cpuload", {"SCAN": ".5 second"}), ("fd", {"SCAN": "I/O Intr"}), ("scanOnceQueueUsed", {"SCAN": "I/O Intr"}),
        ("cbLowQueueUsed", {"SCAN": "I/O Intr"})))
    # ASK waits for answers, HEAR takes the same answers, MUTE expects none
    text += pair("STREAM:ASK", "ai", DTYP="stream", INP="@test.proto fast L0", SCAN=".2 second")
    text += pair("STREAM:HEAR", "ai", DTYP="stream", INP="@test.proto heard L0", SCAN="I/O Intr")
    text += pair("STREAM:MUTE", "ai", DTYP="stream", INP="@test.proto mute L0", SCAN=".5 second")
    # images as areaDetector sends them, with time stamps of the record and of the driver
    text += "".join(pair(f"AREA:{name}", "waveform", DTYP="asynFloat64ArrayIn", INP="@asyn(APD,0,1)SCOPE_WAVEFORM", SCAN="I/O Intr", FTVL=ftvl,
                         NELM="1000", TSE=tse) for name, ftvl, tse in (("IMAGE", "DOUBLE", "0"), ("STAMPED", "DOUBLE", "-2")))
    text += pair("AREA:BACK", "aao", DTYP="asynFloat64ArrayOut", OUT="@asyn(APD,0,1)SCOPE_WAVEFORM", FTVL="DOUBLE", NELM="1000")
    text += 'record(aao, "$(P)AREA:BACK") { info(asyn:READBACK, "1") }\n'
    text += db.record("longin", "SCALER:I1") + db.record("longin", "SCALER:I2") + db.counter("SCALER:TICK", SCAN=".1 second", FLNK="$(P)SCALER:FEED")
    text += db.record("ao", "SCALER:FEED", OMSL="closed_loop", DOL="$(P)SCALER:TICK", OUT="$(P)SCALER:I1 PP") + pair("SCALER:OUT", "ao")
    text += pair("SCALER:S", "scaler", DTYP="Asyn Scaler", OUT="@asyn(SCALER)", FREQ="1", TP="5", RATE="20", COUT="$(P)SCALER:OUT PP")
    text += db.record("bo", "SCALER:GO", SCAN="2 second", VAL="1", OMSL="closed_loop", DOL="1", OUT="$(P)SCALER:S.CNT CA")
    text += pair("SEQ:IN", "calc", CALC="VAL+1", SCAN=".2 second") + pair("SEQ:OUT", "ao") + pair("SEQ:SLOW", "calcout", ODLY="0.02")
    return text + pair("STATS:pwd", "stringin", DTYP="IOC epics var", INP="@CWD", SCAN="1 second")


def control(part):
    return db.record("bo", f"{part}:Run", DTYP="asynInt32", OUT="@asyn(APD,0,1)SCOPE_RUN") + \
        db.record("ao", f"{part}:UpdateTime", DTYP="asynFloat64", OUT="@asyn(APD,0,1)SCOPE_UPDATE_TIME")


def passes(part):
    text = db.READY + "".join(db.counter(f"{part}:C{i}", SCAN=".1 second", FLNK=f"$(P){part}:D{i}") + db.counter(f"{part}:D{i}") for i in range(20))
    text += control(part)
    if part == "SLEEP":
        text += pair("SLEEP:WF", "waveform", DTYP="asynFloat64ArrayIn", INP="@asyn(APD,0,1)SCOPE_WAVEFORM", SCAN="I/O Intr", FTVL="DOUBLE", NELM="100")
    return text + pair(f"{part}:AI", "ai", DTYP="asynFloat64", INP="@asyn(APD,0,1)SCOPE_MEAN_VALUE", SCAN="I/O Intr")


def over():
    """Much more than may be trapped within the budget, and some records that only the trap counts."""
    text = db.READY + "".join(db.counter(f"OVER:C{i}", SCAN=".1 second", FLNK=f"$(P)OVER:D{i}") + db.counter(f"OVER:D{i}") for i in range(500))
    text += pair("OVER:TSE", "calc", TSE="-2", SCAN="1 second", CALC="VAL+1") + db.record("calc", "OVER:TOGGLE", SCAN=".5 second", CALC="!VAL")
    text += pair("OVER:BUSY", "busy", SCAN=".2 second", OMSL="closed_loop", DOL="$(P)OVER:TOGGLE NPP")
    text += pair("OVER:THR", "throttle", DLY="0.05", OUT="$(P)OVER:T1 PP") + pair("OVER:T1", "ao")
    text += db.record("calcout", "OVER:PUT", SCAN=".2 second", CALC="VAL+1", OUT="$(P)OVER:THR PP")
    text += pair("OVER:SW", "swait", SCAN=".1 second", CALC="VAL+1", OUTN="$(P)OVER:T2.PROC", OOPT="Every Time") + pair("OVER:T2", "ao")
    return text + pair("OVER:TR", "transform", SCAN=".1 second", CLCA="A+1") + pair("OVER:SC", "scalcout", SCAN=".2 second", CALC="VAL+1", ODLY="0.03")


def late():
    """Records that change their ways (change_ways)."""
    text = db.READY + pair("LATE:SW", "swait", SCAN=".1 second", CALC="VAL+1", OUTN="$(P)LATE:TO.VAL", OOPT="Never") + pair("LATE:TO", "ao")
    text += pair("LATE:BAD", "ai", PINI="YES", INP="1") + pair("LATE:TR", "transform", SCAN=".1 second", INPA="$(P)LATE:BAD NPP MS", IVLA="Do Nothing")
    return text + pair("LATE:TIMED", "ai", DTYP="stream", INP="@test.proto timed L0", SCAN=".2 second")


class Watched:
    """One of the IOCs: with all modules ("part" ASYN), or with asyn."""
    def __init__(self, cache, tmp, part, text, port=0):
        self.part, self.calls = part, tmp / f"{part}.calls"
        self.ioc = Ioc(tmp, kind="streamIoc", program=cache / "modulesIoc", wrap=(), environ={
            "LD_PRELOAD": str(cache / "countCalls.so"), "COUNT_CALLS": str(self.calls)})
        (tmp / f"{part}.db").write_text(text)
        modules = ["asyn"] if part in ("PASS", "SLEEP") else list(DBD)
        path = ":".join(str(d) for d in [paths.BASE_BIN.parents[1] / "dbd", *(cache / m / "dbd" for m in DBD)])
        driver = cache / "asyn" / "testAsynPortDriverApp"
        dbds = ["base.dbd", *(f"{d}.dbd" for m in modules for d in DBD[m]), driver / "src" / "testAsynPortDriverInclude.dbd"]
        if "sequencer" in modules:
            (tmp / "program.dbd").write_text("registrar(copyingRegistrar)\n")
            dbds.append(tmp / "program.dbd")
        lines = [*(f'dbLoadDatabase("{d}", "{path}")' for d in dbds), "registerAll", 'testAsynPortDriverConfigure("APD", 1000)']
        lines += [f'epicsEnvSet STREAM_PROTOCOL_PATH "{tmp}"', f'drvAsynIPPortConfigure L0 127.0.0.1:{port}'] if port else []
        lines += [f'dbLoadRecords("{tmp / part}.db", "P={self.ioc.prefix}")']
        lines += self.others(cache, tmp, driver) if part == "ASYN" else ["iocInit"]
        (tmp / f"{part}.cmd").write_text("\n".join(lines) + "\n")
        self.ioc.files = [str(tmp / f"{part}.cmd")]
        self.ioc.start()

    def others(self, cache, tmp, driver):
        """The commands for records that modules bring, and for autosave."""
        p = self.ioc.prefix
        (tmp / "auto.req").write_text("".join(f"{p}{name}\n" for name in ("CALC:TICK", "STD:T1", "MOTOR:POS.DESC")))
        return [f'dbLoadRecords("{driver / "Db" / "testAsynPortDriver.db"}", "P={p}ASYN:,R=,PORT=APD,ADDR=0,TIMEOUT=1,NPOINTS=1000")',
                f'dbLoadRecords("{cache / "autosave" / "asApp" / "Db" / "save_restoreStatus.db"}", "P={p}SAVE:")',
                f'save_restoreSet_status_prefix("{p}SAVE:")', f'set_requestfile_path("{tmp}")', f'set_savefile_path("{tmp}")', f'drvScalerSoftConfigure("SCALER", 2, "{p}SCALER:I%d")', "iocInit", f'seq copying "P={p}"',
                'create_monitor_set("auto.req", 2, "")']

    def true(self):
        """Completions by record."""
        with self.calls.open("rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
            found = {}
            for at in range(0, len(m), ELEMENT):
                if m[at + 64:at + 72] != bytes(8):
                    found[m[at:at + 64].split(b"\0")[0].decode()] = int.from_bytes(m[at + 72:at + 80], sys.byteorder)
            return found

    def drive(self, on):
        if self.part in ("OVER", "LATE"):
            return
        if on:
            self.ioc.put(self.part + ":UpdateTime", 0.01)  # 100 Hz
        self.ioc.put(self.part + ":Run", int(on))

    def rest(self, monitor):
        """Both counts, when nothing processes."""
        self.drive(False)
        self.ioc.process.send("iocPause")
        # autosave writes to its records each second, also while the IOC is paused
        return settled(lambda: (self.true(), monitor.records(self.ioc.name)), 60, quiet=0.6 if self.part == "ASYN" else 2.0)

    def go(self):
        self.ioc.command("iocRun")  # before it runs again, its server closes the connection of who writes
        self.drive(True)


def judge(watched, before, after):
    """By module: records, processings, and texts of those that are low and marked, and of those that are wrong."""
    found = {}
    for name, counted in after[1].items():
        true = after[0].get(name, 0) - before[0].get(name, 0)
        got = counted.count - before[1][name].count
        short = name.removeprefix(watched.ioc.prefix)
        m = found.setdefault(MODULES.get(short.split(":")[0], ""), {"records": 0, "processings": 0, "marked": [], "wrong": []})
        if not true and not got:
            continue
        m["records"] += 1
        m["processings"] += true
        if got != true:
            marked = "atleast" in counted.flags and got < true
            m["marked" if marked else "wrong"].append(f"{short} {got} of {true}")
    found.pop("", None)
    return found


def try_level(monitor, all_watched, name):
    level, timed = LEVELS[name]
    monitor.set_filter(TIMED=timed, LEVEL=level)
    for w in all_watched:
        monitor.wait_ioc(w.ioc, level=level)
    before = [w.rest(monitor) for w in all_watched]
    for w in all_watched:
        w.go()
    time.sleep(SECONDS)  # as much as is to be counted
    rows = {}
    for w, b in zip(all_watched, before):
        rows.update(judge(w, b, w.rest(monitor)))
        w.go()
    return rows


def change_ways(ioc, device):
    """What a trial of record types and device supports cannot have seen: a swait begins to write, an input of a transform is invalid,
    a device brings time stamps."""
    ioc.put("LATE:SW.OOPT", "Every Time")
    ioc.put("LATE:BAD.LOLO", 5)
    ioc.put("LATE:BAD.LLSV", "INVALID")
    device.answers["TIME?"] = (0, "TIME 1700000000 1")


def judge_writers(puts, prefix):
    """By module: puts of its records, and what is wrong: another link than the record's own. One that is not named is counted."""
    found = {}
    for put in puts:
        short = put["pv"].removeprefix(prefix)
        if short not in WRITERS:
            continue
        m = found.setdefault(MODULES[short.split(":")[0]], {"puts": 0, "unnamed": collections.Counter(), "wrong": collections.Counter(), "rootless": collections.Counter()})
        m["puts"] += 1
        link = put.get("link", "").removeprefix(prefix)
        m["unnamed"][short] += not link
        m["wrong"][short] += link not in ("", WRITERS[short])
        m["rootless"][short] += not put.get("root")
    return found


def describe_writers(m):
    text = f'{m["puts"]:,} puts'
    for what, words in (("unnamed", "not named"), ("wrong", "**another link**")):
        some = [f"{pv} {n}" for pv, n in m[what].items() if n]
        text += f'; {words}: {", ".join(some[:4])}' if some else ""
    return text


def try_sleep(monitor, watched):
    """The driver is silent until passes are watched, then it interrupts, and is silent again."""
    monitor.set_filter(LEVEL="counts")
    until(lambda: row(monitor, watched.ioc)[0] == "passes", 180, lambda: f"passes: {row(monitor, watched.ioc)}")
    before = watched.rest(monitor)
    watched.go()
    time.sleep(SECONDS)  # as much as is to be counted
    return judge(watched, before, watched.rest(monitor))


def try_budget(monitor, cache, tmp):
    """The budget forbids the trap, and then passes are watched."""
    watched = Watched(cache, tmp, "OVER", over())
    try:
        return judge_budget(monitor, watched)
    finally:
        watched.ioc.discard()


def judge_budget(monitor, watched):
    monitor.set_filter(LEVEL="chains")
    monitor.wait_ioc(watched.ioc)
    monitor.set_filter(LEVEL="chains", TIMED=5, BUDGET=1)
    until(lambda: row(monitor, watched.ioc)[0] == "turns", 120, lambda: f"passes: {row(monitor, watched.ioc)}")
    before = watched.rest(monitor)
    watched.go()
    time.sleep(SECONDS)  # as much as is to be counted
    return judge(watched, before, watched.rest(monitor))


def describe(m):
    text = f'{m["processings"]:,} of {m["records"]} records'
    text += f'; low and marked: {len(m["marked"])}' if m["marked"] else ""
    return text + (f'; **wrong: {", ".join(m["wrong"][:4])}**' if m["wrong"] else "")


def main(cache, levels):
    commits = {m: subprocess.run(["git", "-C", cache / m, "log", "-1", "--format=%h"], capture_output=True, text=True, check=True).stdout.strip()
               for m in DBD}
    with tempfile.TemporaryDirectory() as folder:
        tmp, rows = Path(folder), {}
        (tmp / "test.proto").write_text(PROTOCOL)
        device = Device({"FAST?": (0.02, "FAST 1.0"), "MUTE?": (0, None), "TIME?": (0, None)})
        iocs = [Watched(cache, tmp, "ASYN", modules(), device.port), Watched(cache, tmp, "PASS", passes("PASS")), Watched(cache, tmp, "LATE", late(), device.port)]
        sleeper = Watched(cache, tmp, "SLEEP", passes("SLEEP"))
        log = PutLog(tmp / "puts.json")
        monitor = Monitor(tmp, before=[log.command()]).start()
        try:
            for w in iocs:
                monitor.wait_ioc(w.ioc)
            time.sleep(2 * SLOWEST)  # what processed while probes were attached is counted when it is looked at again
            begin = len(log.of(iocs[0].ioc.prefix))  # before, links were not read yet
            for level in levels:
                found = try_sleep(monitor, sleeper) if level == "sleep" else try_budget(monitor, cache, tmp) if level == "budget" else \
                    try_level(monitor, iocs, level)
                for module, m in found.items():
                    rows.setdefault(module, {})[{"sleep": "counts", "budget": "chains"}.get(level, level)] = describe(m)
                    print(f"{level:8} {module:14} {describe(m)}", m["marked"][:9], flush=True)
                if level == levels[0]:
                    change_ways(iocs[2].ioc, device)
            for module, m in judge_writers(log.of(iocs[0].ioc.prefix)[begin:], iocs[0].ioc.prefix).items():
                if module in rows:
                    rows[module]["writers"] = describe_writers(m)
                print(f"writers  {module:14} {describe_writers(m)}; without root", {k: v for k, v in m["rootless"].items() if v}, flush=True)
        finally:
            monitor.stop()
            for w in [*iocs, sleeper]:
                w.ioc.discard()
            device.close()
    for module, cells in rows.items():
        cells["commit"] = commits[module.split(",")[0]]
        cells["date"] = tables.today()
    tables.record("modules", rows)
    tables.write()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or [*LEVELS, "sleep", "budget"])
