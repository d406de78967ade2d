# SPDX-License-Identifier: BSD-3-Clause
"""The page of the demo as lines of text, made from the monitor's PVs only."""


def number(text):
    try:
        return float(text)
    except ValueError:
        return 0.0


def micro(us):
    for factor, unit in ((1, "µs"), (1e3, "ms"), (1e6, "s ")):
        if us < 1000 * factor or factor == 1e6:
            return f"{us / factor:6.1f} {unit}"
    return ""


def state(pvs):
    names = pvs.list("IOC_NAMES")
    rows = zip(names, pvs.list("IOC_PIDS"), pvs.list("IOC_VERSIONS"), pvs.list("IOC_RECORD_CNTS"), pvs.list("IOC_LEVELS"))
    yield f"{pvs.get('STATE')}: {pvs.get('STATE_MSG.VAL$')}"
    for name, pid, version, records, level in sorted(rows, key=lambda row: row[4] == "off")[:4]:
        yield f"  {name}  pid {pid}  EPICS {version}  {records} records  level {level}"


def puts(pvs, rows):
    yield f"PUTS   {pvs.get('PUT_CNT')} in all, newest first"
    for time, pv, old, new, who in recent(pvs)[:rows]:
        yield f"  {time[-15:]:15.15}  {pv:27.27} {old:>12.12} → {new:<12.12} {who}"


def unexpected(pvs):
    text = f"PUT_BAD_OPEN_CNT {pvs.get('PUT_BAD_OPEN_CNT')} {pvs.severity('PUT_BAD_OPEN_CNT')}"
    return f"{text}: {pvs.get('PUT_BAD_REASON.VAL$')}" if pvs.get("PUT_BAD_OPEN_CNT") != "0" else text


def recent(pvs):
    return list(zip(*(pvs.list(n) for n in ("PUT_TIMES", "PUT_PVS", "PUT_OLD_VALUES", "PUT_VALUES", "PUT_WRITERS"))))


def busiest(pvs, rows):
    yield f"BUSIEST RECORDS   {number(pvs.get('PROC_RATE')):.0f} processings a second"
    top = list(zip(pvs.list("PROC_TOP_NAMES"), pvs.list("PROC_TOP_CNTS"), pvs.list("PROC_TOP_RATES")))[:rows]
    best = max([number(r) for _, _, r in top] + [1e-9])
    for name, count, rate in top:
        bar = "█" * round(20 * number(rate) / best)
        yield f"  {name:32.32} {number(count):9.0f} ×  {number(rate):6.1f} /s  {bar}"


def chains(pvs, rows):
    yield "SLOWEST CHAINS by their first record      number        mean         p99         max   lock wait"
    columns = [pvs.list("CHAIN_TOP_" + c) for c in ("NAMES", "CNTS", "MEANS", "P99S", "MAXS", "LOCK_WAITS")]
    for name, count, *latencies in list(zip(*columns))[:rows]:
        yield f"  {name:36.36} {number(count):9.0f}   " + "   ".join(micro(number(v)) for v in latencies)


def histogram(pvs, rows):
    counts = [number(v) for v in pvs.list("CHAIN_HIST")]
    edges = [number(v) for v in pvs.list("CHAIN_HIST_EDGES")]
    used = [i for i, v in enumerate(counts) if v and i < len(edges)]
    yield f"LATENCY OF ALL CHAINS   {sum(counts):.0f}"
    if not used:
        return
    span = list(range(used[0], used[-1] + 1))
    span = span if len(span) <= rows else span[-rows:]
    for i in span:
        yield f"  from {micro(edges[i])}  {counts[i]:9.0f}  {'█' * round(40 * counts[i] / max(counts))}"


def cost(pvs):
    yield (f"COST   {number(pvs.get('COST')):.3f} % of one core taken from the IOC"
           f" ({number(pvs.get('TRAP_COST')):.0f} ns a trap)"
           f"   the monitor itself {number(pvs.get('CPU')):.1f} %, {number(pvs.get('MEM')):.0f} MB"
           f"   events lost {pvs.get('LOST_CNT')}")


def page(pvs, height):
    """The whole page, in so many lines."""
    room = max(height - 18, 8)
    lines = [*state(pvs), ""]
    lines += [*puts(pvs, max(room // 3, 3)), unexpected(pvs), ""]
    lines += [*busiest(pvs, max(room // 6, 2)), ""]
    lines += [*chains(pvs, max(room // 5, 3)), ""]
    lines += [*histogram(pvs, max(room // 4, 3)), ""]
    return lines[:max(height - 2, 0)] + [*cost(pvs)]
