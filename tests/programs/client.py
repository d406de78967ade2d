# SPDX-License-Identifier: BSD-3-Clause
"""A client that runs as a given user: client.py KIND UID PV [PVA SERVER].

KIND is ca (a put without callback), cacb (a put with callback) or pva. The program connects and prints "ready". For
each line "FIRST COUNT AT_ONCE" of its stdin it puts COUNT numbers (FIRST, FIRST+1, …) and prints "done"; by pvAccess it does not wait
for the answer of one before it has sent AT_ONCE of them. It ends when its stdin ends. PVA SERVER is the port where it searches, or
ADDRESS:PORT of the server itself.
"""
import os
import sys

kind, uid, name = sys.argv[1:4]

# The libraries are loaded as root, because the user may have no right to read them. The connection is made as the user.
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
    where = {"EPICS_PVA_NAME_SERVERS": sys.argv[4], "EPICS_PVA_ADDR_LIST": ""} if ":" in sys.argv[4] else \
        {"EPICS_PVA_ADDR_LIST": f"127.0.0.1:{sys.argv[4]}"}
    context = Context("pva", conf={**where, "EPICS_PVA_AUTO_ADDR_LIST": "NO"}, useenv=False)
    context.get(name, timeout=10)

    def put(values, at_once):
        for n in range(0, len(values), at_once):
            some = values[n:n + at_once]
            context.put([name] * len(some), list(some), timeout=10)
else:
    pv = epics.PV(name, auto_monitor=False)
    if not pv.wait_for_connection(10):
        sys.exit(f"no connection to {name}")

    def put(values, _):
        for v in values:
            pv.put(v, wait=kind == "cacb", timeout=10)
        epics.ca.flush_io()

print("ready", flush=True)
for line in sys.stdin:
    first, count, at_once = map(int, line.split())
    put(range(first, first + count), at_once)
    print("done", flush=True)
