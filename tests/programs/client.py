# SPDX-License-Identifier: BSD-3-Clause
"""A client program of its own user: client.py KIND UID PV [PVA SERVER'S PORT].

KIND is ca (plain put), cacb (put with callback), or pva. Connects, says "ready", then for each line
"FIRST COUNT" puts FIRST, FIRST+1, … and says "done". Ends with its stdin.
"""
import os
import sys

kind, uid, name = sys.argv[1:4]

# The libraries are loaded as root (they may lie where others cannot read), the connection is the user's.
if kind == "pva":
    from p4p.client.thread import Context
else:
    import ctypes

    import epics
    import epics.ca

    library = epics.ca.find_libca()
    ctypes.CDLL(library)
    epics.ca.find_libca = lambda: library
if int(uid):
    os.setgid(int(uid))
    os.setuid(int(uid))

if kind == "pva":
    context = Context("pva", conf={"EPICS_PVA_ADDR_LIST": f"127.0.0.1:{sys.argv[4]}",
                                   "EPICS_PVA_AUTO_ADDR_LIST": "NO"}, useenv=False)
    context.get(name, timeout=10)

    def put(values):
        for v in values:
            context.put(name, v, timeout=10)
else:
    pv = epics.PV(name, auto_monitor=False)
    if not pv.wait_for_connection(10):
        sys.exit(f"no connection to {name}")

    def put(values):
        for v in values:
            pv.put(v, wait=kind == "cacb", timeout=10)
        epics.ca.flush_io()

print("ready", flush=True)
for line in sys.stdin:
    first, count = map(int, line.split())
    put(range(first, first + count))
    print("done", flush=True)
