# SPDX-License-Identifier: BSD-3-Clause
"""One put as a user: put_as.py KIND UID CLAIM PORT PV VALUE [ADDRESS]. It prints what the server said.

KIND is ca (plain), mapped (by a socket of IPv6), cacb (with callback), ack (acknowledges an alarm), leave (closes at once), libca or pva. CLAIM is the
user name that the client sends. libca and pva send the name of their user; to claim "root" they run in a user namespace
of their own, as "unshare -Ur caput" does. The port is that of the CA server.
"""
import ctypes
import os
import socket
import struct
import sys

kind, uid, claim, port, name, value, *address = sys.argv[1:]
address = address[0] if address else "127.0.0.1"
CLONE_NEWUSER, PR_SET_DUMPABLE = 0x10000000, 4


def become_root_of_a_namespace():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_DUMPABLE, 1)  # else /proc/self is root's
    assert libc.unshare(CLONE_NEWUSER) == 0, os.strerror(ctypes.get_errno())
    with open("/proc/self/uid_map", "w", encoding="ascii") as f:
        f.write(f"0 {uid} 1")
    assert os.getuid() == 0


# Libraries are loaded as root, because the user may not be able to read them. The user opens the connection.
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads cannot make a user namespace
if kind == "pva":
    from p4p.client.thread import Context, RemoteError
elif kind == "libca":
    os.environ.update(EPICS_CA_ADDR_LIST=f"{address}:{port}")
    import epics
    import epics.ca

    library = epics.ca.find_libca()
    ctypes.CDLL(library)
    epics.ca.find_libca = lambda: library
else:
    from tests.harness import rawca
if int(uid):
    os.setgid(int(uid))
    os.setuid(int(uid))

if kind == "libca" or (kind == "pva" and claim == "root" and int(uid)):
    become_root_of_a_namespace()

if kind == "pva":
    context = Context("pva", conf={"EPICS_PVA_ADDR_LIST": f"{address}:{int(port) + 2000}",
                                   "EPICS_PVA_AUTO_ADDR_LIST": "NO"}, useenv=False)
    try:
        context.put(name, value, timeout=10)
        print("ok")
    except RemoteError as e:
        print("refused", e)
    context.close()
elif kind == "libca":
    pv = epics.PV(name, auto_monitor=False)
    assert pv.wait_for_connection(10)
    epics.ca.replace_printf_handler(lambda *a: None)
    print("writable" if pv.write_access else "read-only", pv.put(value, wait=True, timeout=10))
else:
    connection = None
    if kind == "mapped":
        connection = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        connection.connect(("::ffff:" + address, int(port)))
    client = rawca.RawCa(int(port), user=claim, addr=address, connection=connection)
    if kind == "leave":
        sid = client.sid(name)
        client.send(rawca.write(sid, rawca.STRING, [value]))
        print("sent")
    elif kind == "ack":
        client.put_bytes(name, struct.pack(">H", int(value)), 36)
        print("sent")
    else:
        status = client.put(name, rawca.STRING, [value], notify=kind == "cacb")
        print("ok" if status == 1 else f"refused {status}")
    client.close()
