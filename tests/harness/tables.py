# SPDX-License-Identifier: BSD-3-Clause
"""The tables in documentation/develop/tried.md: what was tried on which kernel, release of Base and user, and what came
out. And the one in documentation/use/operator.md: which light a shift sees, and when (tools/whyTrial.sh -l).

The commands that try it record the results here, in tests/results, and write the tables anew:

  tools/kernels.sh, tools/clangs.sh, tools/matrix.sh, tools/capabilities.sh, tools/modules.sh, tools/whyTrial.sh

  python -m tests.harness.tables              writes all tables of the documents from the recorded results
  python -m tests.harness.tables releases F   records what test_releases.py found first; F: its JUnit file

A row is recorded when it is tried, with its date: the others stay as they are. Rows that are alike share a line.
"""
import datetime
import json
import re
import sys
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TRIED = TOP / "documentation" / "develop" / "tried.md"
OPERATOR = TOP / "documentation" / "use" / "operator.md"
RESULTS = TOP / "tests" / "results"
FEATURES_HEADER = TOP / "ebpfMonSup" / "probe" / "kernelLoad.h"

# What the kernel has: member of ebpfMonFeatures → what ebpfMonReport calls it, and since when kernels have it.
FEATURES = {
    "loop": ("bpf_loop", "5.17"),
    "uprobeMulti": ("uprobe_multi", "6.6"),
    "recvLength": ("receives", "5.5"),
    "connectState": ("inet_sock_set_state", "4.16"),
    "returnUnderSeccomp": ("return probes under seccomp", "all but some from 6.11 on"),
}

# What works: its name in the table → the checks of tests/kernels/check.py, as a regular expression.
WORKS = {
    "puts by CA and PVA: values, writer, process":
        r"put: (writer, values|callback|by PVA|to another IOC|value after processing)",
    "puts by links, and who caused them": r"put: by a link.*|level puts",
    "exact counts at level trace": r"counts: (level )?trace.*",
    "exact counts at level chains": r"counts: level chains",
    "exact counts at level counts": r"counts: (level counts|counts again.*)|level off.*",
    "chains: latency, scan periods": r"latency|scan threads",
    "traces": r"trace of .*",
    "threads that hang": r"a hang",
    "their stacks": r"stack of the hang.*",
    "an IOC ends and comes back": r"IOCs|an IOC that was killed|counts: restarted",
    "packets": r"packets are read",
    "queries": r"query .*",
    "the clock is set back": r".* when the clock is set back",
    "no event is lost": r"no event is lost",
    "nothing is harmed":
        r"the (IOCs still run|monitor exits)|no warning of the kernel|a process under seccomp.*",
    "state Running, in time": r"state.*|nothing took too long|cost of a trap.*",
}

RELEASES = {  # what works → tests that must all have passed
    "found by name and release": ["test_is_watched"],
    "counts": ["test_counts"],
    "links that change": ["test_links_that_change"],
    "puts": ["test_puts", "test_types_of_channel_access", "test_put_that_is_refused", "test_octal_and_hexadecimal"],
    "links that write": ["test_link_that_writes"],
    "chains, traces": ["test_chains"],
    "causes of CP links": ["test_cause_of_a_cp_link"],
    "health": ["test_health"],
    "queues": ["test_queues"],
}
LATE = [7, 0, 10]  # the first release that has …
LATE_RELEASES = {
    "expressions of 160 letters": ["test_long_expression"],
    "inputs to U, outputs to P": ["test_last_links"],
    "messages of alarms": ["test_alarm_message"],
    "dbServerStats": ["test_server_statistics"],
    "64 callback threads": ["test_callback_threads"],
    "puts to QSRV 2 with options": ["test_options_of_a_put"],
}


def today():
    return datetime.date.today().isoformat()


def load(name):
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def record(name, rows):
    """Adds these rows to what was recorded, or replaces them, and writes the document."""
    known = load(name)
    known.update(rows)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(known, indent=1) + "\n")
    write()


def line(cells):
    return "| " + " | ".join(cells) + " |\n"


def head(cells):
    return line(cells) + "|" + "---|" * len(cells) + "\n"


def tell(what, words):
    return textwrap.fill(f"{what}: {'; '.join(words)}.", 120) + "\n\n"


def merged(rows):
    """Lines of (name, cells): names with the same cells share a line, in the order of the first of them."""
    lines = {}
    for name, *cells in rows:
        lines.setdefault(tuple(cells), []).append(name)
    return "".join(line(["; ".join(names), *cells]) for cells, names in lines.items())


def number(text):
    """The key by which releases and kernels are sorted."""
    return [int(n) for n in re.findall(r"\d+", text)]


# --- kernels -----------------------------------------------------------------------------------------------
def judge(checks, pattern):
    """checks: name → passed. "–": none was made."""
    seen = [ok for name, ok in checks.items() if re.fullmatch(pattern, name)]
    return "–" if not seen else "right" if all(seen) else "**no**"


def judge_kernel(checks, pattern):
    """The same; of counts "marked" if some were lower bounds, and marked as such."""
    seen = judge(checks, pattern)
    exact = judge(checks, pattern.replace("counts: ", "each count is exact, not a lower bound: "))
    return "marked" if seen == "right" and exact == "**no**" else seen


def others(checks, patterns, of=judge):
    """What is not right, of all that these regular expressions name."""
    found = {what: of(checks, pattern) for what, pattern in patterns.items()}
    wrong = [f"{what}: {cell}" for what, cell in found.items() if cell not in ("right", "–")]
    untried = ", ".join(what for what, cell in found.items() if cell == "–")
    return "; ".join(wrong + ["not tried: " + untried] * bool(untried)) or "nothing"


def kernels():
    rows = sorted(load("kernels").values(), key=lambda row: number(row["kernel"]))
    names = [row["kernel"].split("-")[0] + (" on aarch64" if row["kernel"].endswith("arm64") else "") for row in rows]
    text = tell("Tried", WORKS)
    text += head(["kernel", "not right, or not tried", "tried"])
    text += merged((name, others(row["checks"], WORKS, judge_kernel), row["date"]) for name, row in zip(names, rows))
    text += "\n" + head(["the kernel has", "since", "not in"])
    for label, since in FEATURES.values():
        without = [name for name, row in zip(names, rows) if row["features"].get(label) != "yes"]
        text += line([f"`{label}`", since, ", ".join(without) or "–"])
    return text


def feature_members():
    """The members of struct ebpfMonFeatures."""
    body = re.search(r"typedef struct \{([^}]*)\} ebpfMonFeatures;", FEATURES_HEADER.read_text())
    return re.findall(r"(?m)^    int (\w+);", body.group(1))


# --- kernels that preempt ----------------------------------------------------------------------------------
REALTIME = {  # what works → checks of tests/kernels/realtime.py, as a regular expression
    "kernel, IOC and monitor": r"the .*|STATE .*|threads .*",
    "counts at level trace": r"level trace: all counts.*",
    "counts at level chains": r"level chains: all counts.*",
    "counts at level counts": r"level counts: all counts.*",
    "puts": r"level \w+: all puts.*",
    "queries": r"query .*",
}


def realtime():
    rows = sorted(load("realtime").items(), key=lambda item: (number(item[1]["kernel"])[:3], item[0]))
    text = tell("Tried", REALTIME)
    text += head(["kernel", "not right, or not tried", "tried"])
    return text + merged((f"{row['kernel']} {row['append']}".strip(), others(row["checks"], REALTIME), row["date"])
                         for _, row in rows)


# --- releases of clang -------------------------------------------------------------------------------------
def clangs():
    rows = sorted(load("clangs").values(), key=lambda row: number(row["version"]))
    found = {name: of["kernel"] for row in rows for name, of in row["kernels"].items()}
    names = sorted(found, key=lambda name: (number(found[name])[:3], name))
    titles = [found[n].split("-")[0] + (" real-time" if n.endswith("-rt") else "") for n in names]
    lines = []
    for row in rows:
        refused = [title for n, title in zip(names, titles) if row["kernels"].get(n, {"refused": True})["refused"]]
        lines.append([row["version"], str(row["stack"]), ", ".join(refused) or "none",
                      min(c["date"] for c in row["kernels"].values())])
    return (tell("Kernels", titles) + head(["clang", "stack", "kernels that refuse them, or not tried", "tried, from"])
            + merged(lines))


# --- releases of EPICS Base --------------------------------------------------------------------------------
def read_releases(path, kernel):
    """The rows of a JUnit file of test_releases.py."""
    rows = {}
    for case in ET.parse(path).iter("testcase"):
        found = re.fullmatch(r"(\w+)\[([\d.]+)-(\w+(?:-[a-z]+-O\w)?)(-.+)?\]", case.get("name"))
        if found and case.find("skipped") is None:
            passed = case.find("failure") is None and case.find("error") is None
            row = rows.setdefault(f"{found[2]} {found[3]}", {"date": today(), "kernel": kernel, "tests": {}})
            row["tests"][found[1]] = row["tests"].get(found[1], True) and passed
    return rows


def releases():
    rows = sorted(load("releases").items(), key=lambda item: ([-n for n in number(item[0].split(" ")[0])], item[0]))
    patterns, late = ({what: "|".join(tests) for what, tests in of.items()} for of in (RELEASES, LATE_RELEASES))
    found = {}  # release, what was not right, date → how it was built → compilers
    for name, row in rows:
        release, build = name.split(" ")
        how, _, compiler = build.partition("-")
        tried = patterns | (late if number(release) >= LATE else {})
        alike = found.setdefault((release, others(row["tests"], tried), row["date"]), {})
        alike.setdefault(how, []).append(compiler.replace("-", " -") or "gcc -O3")
    lines = []
    for cells, of in found.items():
        hows = {}  # compilers → how
        for how, compilers in of.items():
            hows.setdefault(", ".join(compilers), []).append(how)
        lines.append(["; ".join(f"{', '.join(hows[c])}: {c}" for c in hows), *cells])
    text = tell("Tried", RELEASES) + tell("From 7.0.10 on, too", LATE_RELEASES) + head(["builds", "EPICS Base", "not right, or not tried", "tried"])
    return text + "".join(line(cells) for cells in lines)


# --- capabilities ------------------------------------------------------------------------------------------
def capabilities():
    def said(row, answer):
        return ", ".join(s for s, a in row["subjects"].items() if a == answer) or "–"

    return head(["user", "IOCs can be watched", "no", "part", "tried"]) + merged(
        (name, row["watched"], said(row, "no"), said(row, "part"), row["date"]) for name, row in load("capabilities").items())


# --- modules -----------------------------------------------------------------------------------------------
def modules():
    """A line for each module: how many processings were compared, and where a count was not exact."""
    text = head(["module", "records", "processings", "not exact", "puts by links of these records", "commit", "tried"])
    for name, row in load("modules").items():
        cells = {level: re.fullmatch(r"([\d,]+) of (\d+) records(?:; (.*))?", row[level])
                 for level in ("counts", "chains", "turns", "trace") if row.get(level, "–") != "–"}
        done = sum(int(found[1].replace(",", "")) for found in cells.values())
        wrong = [f"{level}: {found[3]}" for level, found in cells.items() if found[3]]
        text += line([name, next(iter(cells.values()))[2], f"{done:,}", "; ".join(wrong) or "none", row.get("writers", "–"), row["commit"],
                      row["date"]])
    return text


def compare_logs(said):
    """What was recorded ("1,184 in both; other new in 1,184"), without numbers where all puts are alike."""
    found = re.fullmatch(r"([\d,]+) in both(?:; other (.*))?", said)
    if not found:
        return "only in ebpfMon" if said.startswith("0 in caPutLog") else said
    return re.sub(f" in {found[1]}(?!,?\\d)", "", f"other {found[2]}") if found[2] else "same" if found[1] != "0" else "none"


def put_logs():
    rows = [(name, *(compare_logs(row.get(key, "–")) for key in ("text", "json")), row["date"])
            for name, row in load("putLogs").items()]
    return head(["puts", "caPutLog's text", "its JSON", "tried"]) + merged(rows)


def tls():
    rows = [(name, *(f"{row[key]:,}" for key in ("puts", "client", "issuer")), "yes" if row["named"] else "no", row["commit"], row["date"])
            for name, row in load("tls").items()]
    return head(["clients", "puts of each", "name and process right", "issuer right", "named among clients and users", "commit of pvxs",
                 "tried"]) + merged(rows)


# --- ebpfMonWhy --------------------------------------------------------------------------------------------
def why():
    """A line for each part of the way that the first line of an answer names. Faults and lines are in tests/results/why.json."""
    found = {}
    for row in load("why").values():
        about = row["first"].split(":")[0] if re.match(r"\w+:", row["first"]) else "no IOC has it"
        found.setdefault(about, []).append(row)
    text = head(["the first line is about", "faults", "right", "neighbours fine", "tried, from"])
    for about, rows in found.items():
        right, fine = (sum(row[key] == good for row in rows) for key, good in (("verdict", "right"), ("neighbour", "fine")))
        text += line([about, f"{len(rows)}", f"{right}", f"{fine}", min(row["date"] for row in rows)])
    return text


# --- lights of a shift -------------------------------------------------------------------------------------
LIGHTS = {  # what happens (tests/faults/lights.py) → PV, severity, display (ebpfMon….bob), part of what the light of the host says
    "an unexpected put": ("PUT_BAD_LAST", "MAJOR", "Puts", "unexpected put to VAC:SHUT"),
    "a scan of 0.1 s takes 0.12 s": ("SCAN_LATE_NOW", "MINOR", "Health", 'IOC ring: scan ".1 second" takes 0.12 s, slowest record RING:SLEEP'),
    "… takes 0.3 s": ("SCAN_LATE_NOW", "MAJOR", "Health", 'IOC ring: scan ".1 second" takes 0.3 s'),
    "a record hangs": ("HANG_CNT", "MAJOR", "Health", "IOC ring: a thread hangs in RING:HOLD:BUSY"),
    "an idle IOC is stopped": ("IOC_STILL_CNT", "MAJOR", "Health", "IOC vac stands still: stopped by a signal"),
    "an IOC dies": ("IOC_GONE_CNT", "MAJOR", "Health", "IOC vac gone since 09:55 (signal 11)"),
    "… and another is stopped": ("IOC_STILL_CNT", "MAJOR", "Health", "IOC vac gone since 09:55 (signal 11); IOC ring stands still"),
    "80 searches a second fail": ("UNFOUND_RATE", "MINOR", "Clients", "82 searches a second are in vain: NOT:THERE"),
    "events, packets are lost": ("LOST_CNT", "MINOR", "Puts", "events are lost: event ring full; packets are lost"),
    "disk of the history full": ("HISTORY_STATE", "MAJOR", "History", "history: not written: database or disk is full"),
    "disk of a put log full": ("LOG_LOST_CNT", "MAJOR", "Puts", "399 lines of put logs are lost: /log/puts.json: disk full"),
}


def lights():
    found = load("lights")
    return head(["what happens", "PV, alarm, display", "the light says", "seen, gone after s"]) + "".join(
        line([title, f"`{pv}` {severity}, {display}", says, f"{found[title]['seen']}, {found[title]['gone']}"])
        for title, (pv, severity, display, says) in LIGHTS.items())


# --- the documents -----------------------------------------------------------------------------------------
TABLES = {TRIED: {"kernels": kernels, "realtime": realtime, "clangs": clangs, "releases": releases, "capabilities": capabilities,
                  "modules": modules, "putLogs": put_logs, "tls": tls, "why": why},
          OPERATOR: {"lights": lights}}


def put_in(path):
    """This document with new tables. Each table is between two comments with its name."""
    document = path.read_text()
    for name, make in TABLES[path].items():
        document, found = re.subn(rf"(?s)(<!-- begin {name}[^>]*-->\n).*?(<!-- end {name} -->)",
                                  lambda m, make=make: m.group(1) + make() + m.group(2), document)
        assert found == 1, f"{path} has no place for the table {name}"
    return document


def write():
    for path in TABLES:
        path.write_text(put_in(path))


def main(arguments):
    if not arguments:
        write()
        return 0
    name, path, kernel = arguments
    assert name == "releases"
    rows = read_releases(path, kernel)
    record("releases", rows)
    for build, row in rows.items():
        wrong = [test for test, ok in row["tests"].items() if not ok]
        print(f"{build:20} {'not right: ' + ', '.join(wrong) if wrong else 'right'}")
    return 0 if rows and all(all(row["tests"].values()) for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
