#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the corpora of the fuzzers that need EPICS. Each fuzzX.c describes its input. The compiler of this machine
(gcc) makes ELF files, call frame information and code, so these files can differ a little from those in the tree."""
import lzma
import pathlib
import struct
import subprocess
import tempfile

here = pathlib.Path(__file__).parent


def write(fuzzer, files):
    folder = here / "corpus" / fuzzer
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def piece(kind, data):
    data = data.encode() if isinstance(data, str) else data
    return struct.pack(">BH", kind, len(data)) + data


# --- an ELF file with symbols, build id, text to search for, and .eh_frame

CODE = r"""
void *pdbbase, *interruptAccept; int asActive; char *clientQ;
static const char release[] = "EPICS R7.0.8.1";
const char *coreRelease(void) { return release; }
extern long other(long, long, long, long);
static long deep(long n, long m) { long k[6]; for (int i = 0; i < 6; i++) k[i] = other(n, m, i, 1); return k[n & 3] + k[m & 3]; }
long dbProcess(long a) { return deep(a, a + 1) + deep(a + 2, a); }
long dbPut(long a, long b, long c, long d) { long r = other(a, b, c, d); return r + deep(c, d) + other(d, c, b, a); }
void epicsRingPointerPop(long *a) { *a = other(*a, 1, 2, 3); }
"""

CALLS = r"""
extern void dbScanLock(long *), dbScanUnlock(long *), epicsMutexUnlock(long), epicsMutexLock(long);
extern long dbProcess(long *);
long dbGetField(long *a) { dbScanLock(a); long v = *a; dbScanUnlock(a); return v; }
void onceTask(long *a) { dbScanLock(a); dbProcess(a); dbScanUnlock(a); }
void scanList(long **a) {
    for (epicsMutexLock(1), epicsMutexUnlock(1); *a; a++, epicsMutexLock(1), epicsMutexUnlock(1)) {
        dbScanLock(*a); dbProcess(*a); dbScanUnlock(*a); } }
void *pdbbase; long dbScanTable[2] = { 1, 2 };
"""


PROBES = """
#include "usdt.h"
USDT_SEMAPHORE(watched);
int table[4];
int look(int a, long *b)
{
    USDT_PROBE("fuzz", "registers", "-4@%%edi 8@%%rsi 8@$17", USDT_NO_SEMAPHORE, "D"(a), "S"(b));
    if (USDT_IS_WATCHED(watched))
        USDT_PROBE("fuzz", "memory", "-8@8(%%rsi) 4@-4(%%rsi,%%rdi,4) 4@table(%%rip)", "watched", "D"(a), "S"(b));
    return table[a];
}
"""


def sections(path):
    """Returns the sections of an ELF file, from readelf: name → (address, offset, size)."""
    result = {}
    for line in subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout.splitlines():
        word = line.replace("[ ", "[").split()
        if len(word) > 6 and word[0].startswith("[") and word[0][1:-1].isdigit() and word[1].startswith("."):
            result[word[1]] = tuple(int(w, 16) for w in word[3:6])
    return result


def elf():
    files, frames, code = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in {"library": ["-O2"], "debug": ["-O0", "-fno-omit-frame-pointer"],
                              "stripped": ["-O2", "-s", "-fcf-protection=full"], "calls": ["-O2"],
                              "callsStripped": ["-O2", "-s"]}.items():
            out, source = pathlib.Path(folder) / name, pathlib.Path(folder) / "a.c"
            source.write_text(CALLS if name.startswith("calls") else CODE)
            subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-w", "-Wl,--build-id=sha1,-z,max-page-size=16,"
                            "-z,noseparate-code,-z,norelro,--hash-style=gnu", "-Wl,--eh-frame-hdr", *options, source,
                            "-o", out], check=True)
            data, s = out.read_bytes(), sections(out)
            files[name] = data
            if name.startswith("calls"):
                continue
            address, offset, _ = s[".eh_frame_hdr"]
            _, last, size = s[".eh_frame"]
            text = s[".text"]
            for at in (0x40, text[2] // 2, text[2] - 0x20):
                pc = (text[0] + at - address + 0x100) % 2**64
                frames[f"{name}{at:x}"] = struct.pack("<QQ", pc, 0x18) + data[offset:last + size]
            code[name] = b"\x1f" + data[text[1]:text[1] + text[2]]
        # a file with compressed symbols (.gnu_debugdata) and the name of another file with symbols (.gnu_debuglink)
        packed, out = pathlib.Path(folder) / "packed.xz", pathlib.Path(folder) / "packed"
        packed.write_bytes(lzma.compress(files["calls"]))
        link = pathlib.Path(folder) / "calls.debug"
        link.write_bytes(files["calls"])
        subprocess.run(["objcopy", f"--add-section=.gnu_debugdata={packed}", f"--add-gnu-debuglink={link}",
                        pathlib.Path(folder) / "callsStripped", out], check=True)
        files["packed"] = out.read_bytes()
        source.write_text(PROBES)
        subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-O2", "-s", "-I", here.parent / "ioc", "-Wl,-z,max-page-size=16",
                        source, "-o", out], check=True)
        files["usdt"] = out.read_bytes()
    headless = bytearray(files["stripped"])
    headless[40:48] = bytes(8)  # e_shoff: no section headers
    headless[60:62] = bytes(2)
    files["headless"] = bytes(headless)
    write("fuzzElf", files)
    write("fuzzUnwind", frames)
    code["entry"] = b"\x01\xf3\x0f\x1e\xfa\x48\x83\xec\x08\x41\x57\x0f\x84\x10\x00\x00\x00\xc3"
    code["vex"] = b"\x01\xc5\xf8\x77\xc4\xe2\x7d\x18\x05\x00\x00\x00\x00\x62\xf1\x7c\x48\x10\x00\x55\xe9\x00\x00\x00\x00"
    write("fuzzSite", code)


# --- the memory of an IOC

MEMORY = 0x10000
FIELDS = [("NAME", 0, 0), ("SCAN", 12, 61), ("DISP", 2, 70), ("PACT", 2, 144), ("PPN", 17, 80), ("PHAS", 3, 72), ("PROC", 2, 76), ("LSET", 17, 88),
          ("SEVR", 12, 96), ("STAT", 12, 98), ("TSE", 3, 100), ("TSEL", 14, 104), ("TIME", 17, 208), ("FLNK", 16, 216),
          ("SDIS", 14, 320), ("OUT", 15, 424), ("VAL", 10, 528), ("BPTR", 17, 536), ("NORD", 6, 544)]


class Memory:
    def __init__(self):
        self.data = bytearray()

    def here(self):
        return MEMORY + len(self.data)

    def add(self, data):
        at = self.here()
        self.data += data + bytes(-len(data) % 8)
        return at

    def text(self, text):
        return self.add(text.encode() + b"\0")

    def set(self, at, data):
        self.data[at - MEMORY:at - MEMORY + len(data)] = data


def database(types, records, clients=True, old=False):
    """Returns the memory of an IOC. "old": of EPICS 3.15, which has other types, and a DBADDR in each link."""
    m = Memory()
    base = m.add(bytes(16))
    db = m.add(bytes(48))
    m.set(base, struct.pack("<Q", db))
    table = []
    for name, kind, offset in FIELDS:
        special = 2 if name == "VAL" else 0
        size = (56 if old else 80) if 14 <= kind <= 16 else 8
        kind -= 2 if old and kind > 6 else 0
        at = m.text(name)
        table.append(m.add(struct.pack("<QQQQhhIIIhhIQQhH", 0, at, 0, 0, 0, special, kind, 0, 0, 0, 0, 0, 0, 0,
                                       size, offset)))
    fields = m.add(struct.pack(f"<{len(table)}Q", *table))
    typeAt = [m.add(bytes(208)) for _ in range(types)]
    proc = table[0]
    for t, at in enumerate(typeAt):
        name = m.text(["ao", "compress", "calc"][t % 3])
        memory = [m.add(bytes(552)) for _ in range(records)]
        nodes = [m.add(bytes(64)) for _ in range(records)]
        for i, node in enumerate(nodes):
            to = memory[(i + 1) % records]
            addr = struct.pack("<QQQqhhhh", to, to + 528, proc, 1, 10, 8, 0, 10)
            pvt = m.add(addr if old else bytes(8) + addr)
            for offset, mask in ((216, 0), (424, 4), (320, 0)):
                m.set(memory[i] + offset, struct.pack("<QQQQhhIhhIQ", 0, memory[i], pvt, 0, mask, 0, 0, 10, 0, 0, 0) if old
                      else struct.pack("<QhHIQQQQQQQhh", memory[i], 10, 0, 0, 0, 0, 0, 0, 0, pvt, 0, mask, 0))
            m.set(node, struct.pack("<QQQQ", nodes[i + 1] if i + 1 < records else 0, nodes[i - 1] if i else 0,
                                    memory[i], m.text(f"T{t}:R{i}")))
        m.set(at, struct.pack("<QQ", typeAt[t + 1] if t + 1 < types else 0, typeAt[t - 1] if t else 0))
        m.set(at + 40, struct.pack("<QQi", nodes[0] if nodes else 0, nodes[-1] if nodes else 0, records))
        m.set(at + 112, struct.pack("<Qhhhh", name, len(FIELDS), 0, 0, 0))
        m.set(at + 168, struct.pack("<QQi", fields, 0, 552))
    m.set(db + 24, struct.pack("<QQi", typeAt[0], typeAt[-1], types))
    if clients:
        head = [m.add(bytes(160)) for _ in range(2)]
        for i, at in enumerate(head):
            m.set(at, struct.pack("<QQ", head[1] if i == 0 else 0, head[0] if i else 0))
            m.set(at + 96, struct.pack("<QQiiQQi", 0, 0, 3, 0, 0, 0, 1))
        m.set(base + 8, struct.pack("<Q", head[0]))  # clientQ: first client, last client, count
    return bytes(m.data)


def asyn(ports, queued):
    """The memory of an IOC with asyn: pasynBase, ports, and in each so many requests: of device support, and of queueLockPort."""
    m = Memory()
    base = m.add(bytes(8))
    head = m.add(bytes(8))
    m.set(base, struct.pack("<Q", head))
    at = [m.add(bytes(512)) for _ in range(ports)]
    m.set(head, struct.pack("<Q", at[0] if at else 0))
    for i, port in enumerate(at):
        m.set(port, struct.pack("<5Q", at[i + 1] if i + 1 < ports else 0, 0, m.text(f"L{i}"), 0, m.add(bytes(48))))
        request = [m.add(bytes(136)) for _ in range(queued)]
        for k, r in enumerate(request):
            event, record = m.add(bytes(88)), m.add(bytes(64))
            pvt = m.add(struct.pack("<Q", event) if k % 2 else struct.pack("<QQQ", record, 0, r + 104))
            m.set(r, struct.pack("<QQ", request[k + 1] if k + 1 < queued else 0, 0))
            m.set(r + 48, struct.pack("<d", k % 2))
            m.set(r + 72, struct.pack("<Q", port))
            m.set(r + 100, struct.pack("<i", 1))
            m.set(r + 128, struct.pack("<Q", pvt))
            m.add(struct.pack("<QQQ", event + 40, record, pvt))  # words for which the fuzzer looks
        m.set(port + 200, struct.pack("<Q", request[0] if request else 0))
    return bytes(m.data)


# --- events

def event(kind, fields, how=0x70, tid=77):
    return piece(how | kind, struct.pack("<IIIIQ", kind, 4711, tid, 1, 10**12) + fields)


def peer(port):
    return bytes([10, 0, 0, 1, 10, 0, 0, 2]) + struct.pack(">HH", port, 5064) + bytes(4)


def who(port=2000):
    return (peer(port) + bytes(24) + b"anna".ljust(40, b"\0") + b"office1".ljust(64, b"\0") + b"CAS-client".ljust(16, b"\0")
            + b"\1\0\0\0")


def put(ident, record, field, kind, new, old, site=0, port=2000, dbr=10):
    fixed = struct.pack("<QQQQQQqqihhhBBHHBBIIII", ident, 0, record, field, 0, 0, 1, 1, -1, dbr, kind, 8, site, 0, 0, 0, 1,
                        0, 1000, 0, len(new), len(old))
    return event(1, fixed + who(port) + bytes(40) + b"A:AO.VAL".ljust(96, b"\0") + old + new)


def result(ident, status, after):
    return event(2, struct.pack("<QqI", ident, status, len(after)) + after.ljust(40, b"\0") + bytes(4))


def cause(kind, ident):
    return event(kind, struct.pack("<QQQ", 0, 10**12 - 5, 0) + who() + b"A:SEL".ljust(96, b"\0")
                 + struct.pack("<III", ident, 0, 1))


def chain(begin, part, last, count, asynchronous=0, tid=77, handOvers=0):
    fixed = struct.pack("<QQQQQQQiIIII", begin, 10, 0, 5, 0, 0, 5, -1, 0, 0, 1, 0)
    fixed += struct.pack("<8I", asynchronous, *[0] * 7) + struct.pack("<I", handOvers) + b"scan-1".ljust(16, b"\0")
    fixed += struct.pack("<IIIII", 0, count, part, last, count)
    records = b"".join(struct.pack("<IHHQ", i, 0, 0, 1000) + bytes(16) for i in range(count))
    return event(3, fixed + records, tid=tid)


def handOver(kind, chains=0):
    return event(kind, struct.pack("<QQII", 10**12 - 100, 0, 77, 0) + b"cbLow".ljust(16, b"\0") + bytes(16) + bytes(128)
                 + struct.pack("<II", chains, 0))


def events():
    number = struct.pack("<d", 2.5)
    write("fuzzEvents", {
        "put": put(1, 0, 1, 10, number, number) + result(1, 0, number),
        "failed": put(2, 1, 5, 11, b"\1\0", b"\0\0", dbr=11) + result(2, 0x1f70001, b""),
        "text": put(3, 0, 2, 0, b"high\x1b[2J".ljust(41, b"\0"), bytes(41), dbr=0) + result(3, 0, b"high"),
        "denied": put(4, 0, 1, 10, number, number, site=3, port=1000),
        "disabled": put(5, 2, 1, 10, number, number, site=2),
        "link": put(6, 3, 3, 15, b"", b"", site=1),
        "cause": cause(6, 7) + put(7, 3, 1, 10, number, number) + cause(7, 0),
        "chain": chain(10**12 - 1000, 0, 1, 3),
        "parts": chain(10**12 - 1000, 0, 0, 2) + chain(10**12 - 1000, 1, 1, 2),
        "async": chain(10**12 - 900, 0, 1, 1, asynchronous=102) + handOver(8) + chain(10**12 - 800, 0, 1, 2, tid=78)
                 + handOver(9),
        "handOver": chain(10**12 - 100, 0, 1, 2, handOvers=1) + handOver(8) + chain(10**12 - 50, 0, 1, 1)
                    + handOver(9, chains=1),
    })


# --- texts

RULES = r"""// who may write what
{ "default": "deny",
  "rules": [
    { "name": "magnets", "pv": ["DEMO:MAG:*:SET", "A?:*.VAL"], "users": ["alice", "bob"], "verified": true,
      "hosts": ["opi*", "10.1.2.?"], "min": -1.5, "max": 1e3 },
    { "name": "night", "pv": "*", "iocs": "psc*", "origins": ["CA", "PVA", "CA link"], "realUsers": "",
      "times": [{ "days": "Mon-Fri", "from": "22:00", "to": "06:00" }, { "days": "Sat,Sun" }] },
    { "name": "modes", "pv": "M:MODE", "text": ["Idle", "[3] 1 2 *"], "allow": false }
  ] }
"""


def autosaved():
    """Returns inputs of FILTER as autosave may restore them from a .sav file: complete, cut by a full disk, with the
    types of another release, with bytes of another file, with arrays as autosave writes them, with NaN and infinity."""
    pattern = [b"psc*", b"DEMO:*", b"*", b"opi?", b"alice"]
    char = [piece(72 + i, b"\1" + p.ljust(100, b"\0")) for i, p in enumerate(pattern)]  # FTA … FTE: CHAR, NOA 100
    numbers = [piece(72 + 5, b"\5" + struct.pack("<iI", 3, 0)), piece(72 + 6, b"\12" + struct.pack("<d", 1e4)),
               piece(72 + 7, b"\5" + struct.pack("<iI", 1, 0)), piece(72 + 8, b"\12" + struct.pack("<d", 1.0))]

    def number(i, kind, data):
        return piece(72 + i, bytes([kind]) + data)

    nan, inf, tiny = (struct.pack("<d", float(x)) for x in ("nan", "-inf", "5e-324"))
    return {
        "saved": b"".join(char + numbers),
        "savedNoNul": b"".join(piece(72 + i, b"\1" + b"x" * n) for i, n in enumerate((60, 61, 100, 99, 1))),
        "savedCut": (b"".join(char + numbers))[:-5],
        "savedEmpty": b"".join(piece(72 + i, b"") for i in range(9)),
        "savedStrings": b"".join(number(i, 0, t.ljust(40, b"\0")) for i, t in enumerate(
            pattern + [b"chains", b"1e4", b"1", b"1.0"])),
        "savedArray": b"".join(piece(72 + i, b'\1@array@ { "112" "115" "99" "42" }') for i in range(5)),
        "savedFile": b"".join(piece(72 + i, b"\1# save/restore V4.5\n! 1 channel(s) not connected\n<END>") for i in range(5)),
        "savedNan": b"".join(number(i, 10, v) for i, v in ((5, nan), (6, inf), (7, tiny), (8, nan))),
        "savedRange": number(5, 5, struct.pack("<i", -2**31)) + number(6, 10, struct.pack("<d", -1.0))
        + number(7, 5, struct.pack("<i", -1)) + number(8, 10, struct.pack("<d", 1e308)),
        "savedOtherTypes": b"".join(number(i, k, b"\xff" * 8) for i, k in ((0, 5), (1, 10), (2, 11), (5, 9), (6, 8), (7, 7))),
    }


def texts():
    judged = "\0".join(["DEMO:MAG:CURRENT:SET", "115", "A:B.VAL{}", "alice", "bob", "opi1", "10.1.2.3:5000", "psc1"])
    write("fuzzRules", {
        "rules": RULES.encode() + b"\0" + judged.encode(),
        "bad": b'{ "rules": [ { "name": "a\\u001b", "pv": "*" }, { "name": "a", "pv": [] } ] }',
        "type": b'{ "rules": [ { "name": 5, "min": "x", "times": "Mon" } ], "default": "al\x1b[2Jlow" }',
        "open": b'{ "rules": [ { "name": "\\"\\\\", "pv": "*[a]", /* never ends',
    })
    folder = here.parent.parent / "iocBoot" / "iocEbpfMon" / "queries"
    write("fuzzQuery", {p.stem: p.read_bytes() for p in [*folder.glob("*.json"), here.parent / "kernels" / "queries.json"]})
    write("fuzzQuery", {
        "open": b'{"queries": [{"name": "\\"\\\\", "source": {"profile": 1e3}, "keys": [{"arg": 1, /* never ends',
        "bad": b'{"queries": [{"name": "a\\u001b", "keys": [["ioc"]], "where": {"any": null}}, {"top": -1e400}]}',
    })
    write("fuzzFilter", {
        "all": b"".join(piece(i, t) for i, t in enumerate(["psc*", "DEMO:?AG:*", "VAL", "opi*", "", "trace", "1e4",
                                                           "100", "2.5"])),
        "bad": b"".join(piece(i, t) for i, t in enumerate(["[a-z]", "x" * 70, "\x1b", "*" * 60, "é", "7", "nan", "-1",
                                                           "1e999"])),
        "record": b"".join(piece(72 + i, t) for i, t in enumerate([b"\0psc*", b"\1DEMO:*", b"\2VAL", b"\0", b"\1*",
                                                                   b"\0trace", b"\12" + struct.pack("<d", 1e4),
                                                                   b"\5\x64\0\0\0", b"\0002.5"])),
    })
    write("fuzzFilter", autosaved())
    write("fuzzDemangle", {
        "method": b"_ZN9casIntfOS4pollEv", "template": b"_ZNSt6vectorIiSaIiEE9push_backEOi", "pack": b"_Z1fIJidEEvDpT_",
        "doubles": b"_Z1fPFvvE" + b"".join(b"PFv%s%sE" % (s, s) for s in (b"S0_", b"S2_", b"S4_", b"S6_", b"S8_")),
        "nested": b"_Z1f" + b"P" * 200 + b"i", "open": b"_Z1fIXadL_Z1g"})
    values = {}
    for kind in range(20):
        size = {0: 40, 1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 8, 8: 8, 9: 4, 10: 8}.get(kind, 2)
        values[f"one{kind}"] = struct.pack("<BBhq", kind + 1, kind % 2, 0, 1)[:12] + b"1.5\x1b[2J\0".ljust(size, b"\x7f")
        values[f"some{kind}"] = struct.pack("<BBhq", kind + 1, 2, 0, 5) + (b"text \xff\xc3" * 40)[:5 * size]
    write("fuzzValue", values)
    answer = '{"partialSuccess": {"rejectedLogRecords": "3", "errorMessage": "too \\u001b[2J old \\ud83d\\ude00"}}'
    record = b'{"ioc":"a","record":"X:%c","type":"ai","aliases":["X:Y"],"info":{"q":"\\u001b[2J"},"fields":{"HIHI":"%d"}}\n'
    head = b'{"ioc":"a","time":"2026","variables":{"IOC":"a"}}\n'
    write("fuzzInventory", {
        "changed": b"\x80" + head + record % (b"A", 1) + head + record % (b"A", 2),
        "moved": b"\x80" + record % (b"A", 1) + record % (b"B", 1),
        "torn": b"\x40" + record % (b"A", 1) + record[:60] + b'\n{"ioc":"\\',
    })
    write("fuzzRecSync", {
        "announcement": b"RC\0\0\xff\xff\xff\xff\x12\x34\0\0\0\0\0\1",
        "session": b"RC\x80\1\0\0\0\1\0" + b"RC\x80\2\0\0\0\4ping" + b"RC\x80\x77\0\0\0\x50" + b"x" * 80
        + b"RC\x80\2\0\0\0\6ping12",
    })
    write("fuzzOtlp", {
        "answer": piece(8, answer) + piece(8, '{"partialSuccess":{"rejectedSpans":7}}') + piece(8, "<html>"),
        "pairs": piece(9, "a=b, c = %41%0a ,=,d") + piece(11, "Authorization=Bearer%20x,X-Y=") + piece(10, "http://h:1/x"),
        "environment": piece(0, "https://collector:4318/") + piece(1, "k=v,l=%zz") + piece(2, "1e3")
        + piece(3, "service.name=a,b=c") + piece(4, "otlp,none") + piece(5, "http://z:9411/api/v2/spans") + piece(6, "5000")
        + piece(7, "mon"),
    })


def proc():
    stat = "4711 (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 55 66 0 0 20 0 7 0 12345 1000000 777 184467440737 1 1 0 0 0\n"
    maps = ("00400000-00401000 r-xp 00000000 08:01 7   /usr/bin/softIoc\n"
            "7ffd0000-7ffd2000 r-xp 00000000 00:00 0   [vdso]\n"
            "00500000-00600000 r--p 00000000 00:1f 99 /a/b c\\012d (deleted)\n")
    tcp = ("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
           "   0: 0100007F:13C8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1\n"
           "   1: 0100007F:A000 0100007F:13C8 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1\n")
    tcp6 = ("   0: 0000000000000000FFFF00000100007F:13C9 00000000000000000000000000000000:0000 0A 00000000:00000000 "
            "00:00000000 00000000 0 0 4244 1\n")
    library = (here / "corpus" / "fuzzElf" / "stripped").read_bytes()
    write("fuzzProc", {
        "process": piece(0, stat) + piece(1, "Name:\tx\nCapEff:\t00ff\nSeccomp:\t2\n") + piece(2, "softIoc\0-d\0a/st.cmd\0")
        + piece(3, "PWD=/opt/iocs/vac1\0IOC=vac\x1b1\0") + piece(4, "soft\nIoc\n") + piece(14, "/opt/iocs/x"),
        "python": piece(2, "/usr/bin/python3.11\0-W\0x\0-m\0p4p.server\0") + piece(4, "cbLow-1\n") + piece(0, stat),
        "java": piece(2, "java\0-cp\0x\0-jar\0/a/phoebus.jar\0") + piece(15, "/usr/libexec/valgrind/memcheck"),
        "login": piece(2, "-bash: x\0") + piece(2, "sshd: a@pts\0"),
        "net": piece(7, tcp) + piece(8, tcp6) + piece(16, "socket:[4242]") + piece(4, "client\n"),
        "thread": piece(0, stat) + piece(10, "230 0x1 0x2 0x3 0x4 0x5 0x6 0x10040 0x400010\n") + piece(11, "hrtimer")
        + piece(12, "[<0>] hrtimer_nanosleep+0xb5/0x1f0\n[<0>] x\n") + piece(13, "1234567 1 1\n")
        + piece(9, "Limit\nMax open files            1024                 4096 files\n"),
        "cgroup": piece(6, "0::/system.slice/docker-" + "a1" * 32 + ".scope\n1:cpu:/lxc/name\\x2done/x\n"),
        "machine": piece(6, "0::/machine.slice/machine-a\\x2db.scope\n0::/x:cri-containerd:" + "b2" * 32 + "\n"),
        "long": piece(6, "0::/lxc/" + "n" * 300 + "\n") + piece(2, b"a\0" * 40 + b"x/" * 300 + b"st.cmd\0") + piece(4, "c" * 80)
        + piece(15, "/valgrind/" * 60) + piece(7, tcp.replace("4242", "4" * 600)),
        "image": piece(5, maps) + piece(10, "230 0 0 0 0 0 0 0x10040 0x400200\n") + piece(17, library),
    })


elf()
write("fuzzCatalogue", {
    "one": database(1, 1), "two": database(2, 1, False), "three": database(1, 2), "none": database(2, 0, False),
    "old": database(1, 2, old=True),
})
write("fuzzAsynPorts", {"one": asyn(1, 2), "two": asyn(2, 3), "none": asyn(0, 0), "idle": asyn(3, 0)})
# A chain of 1,999 records. Its last record has links to 1,500 records, each of which has a second source. So a stretch
# is searched for long, and not found.
joins = b"".join(struct.pack(">HHHBbB", at, at + 1, 998, 1, 1, 0) for at in (0, 999))
joins += b"".join(struct.pack(">HHHBbB", 1998, 1999 + 500 * k, 499, 0, 1, 0)
                  + struct.pack(">HHHBbB", 3499 + 500 * k, 1999 + 500 * k, 499, 1, 1, 0) for k in range(3))
write("fuzzClosure", {
    "joins": struct.pack(">H", 4999) + joins,
    "chain": struct.pack(">H", 49) + struct.pack(">HHHBbB", 0, 1, 40, 1, 1, 0),
    "tree": struct.pack(">H", 63) + struct.pack(">HHHBbB", 0, 1, 20, 1, 2, 0) + struct.pack(">HHHBbB", 0, 2, 20, 1, 2, 0),
    "joined": struct.pack(">H", 9) + b"".join(struct.pack(">HHHBbB", a, b, 0, 0, 0, 0) for a, b in (
        (0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 3), (5, 5))),
    "large": struct.pack(">H", 4999) + struct.pack(">HHHBbB", 0, 1, 1000, 7, 3, 0) * 20,
})
events()
texts()
proc()
