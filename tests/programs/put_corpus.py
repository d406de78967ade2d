# SPDX-License-Identifier: BSD-3-Clause
"""Makes puts of every kind to one server: put_corpus.py ca|pva ADDRESS PORT. PORT is the port of Channel Access.

Each line of its stdin is a JSON list of puts: [PV, DBR type or null, values, with reply?]. The program sends all of
them without a pause, and waits until the server has answered or executed all. Then it prints one line, a JSON list with
an answer for each put: null if the put has no reply, "" if it was accepted, else a text. If the connection breaks, it
prints "gone", and connects again for the next line.
"""
import json
import sys

from tests.harness import rawca

protocol, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])


def ca_puts(client, puts):
    sids = {pv: client.sid(pv) for pv, *_ in puts}
    for i, (pv, dbr, values, notify) in enumerate(puts):
        client.send(rawca.write(sids[pv], dbr, values, notify, 1000 + i))
    client.send(rawca.message(rawca.ECHO))
    answers, echo = [None] * len(puts), False
    while not echo or any(n and a is None for (*_, n), a in zip(puts, answers)):
        m = client.receive()
        echo |= m.command == rawca.ECHO
        if m.command == rawca.WRITE_NOTIFY:
            answers[m.extra - 1000] = "" if m.cid == 1 else f"status {m.cid}"
        elif m.command == rawca.ERROR and int.from_bytes(m.payload[:2], "big") in (rawca.WRITE, rawca.WRITE_NOTIFY):
            i = int.from_bytes(m.payload[12:16], "big") - 1000  # the request's header is in the error message
            if 0 <= i < len(puts):
                answers[i] = f"status {m.extra}"
    return answers


def pva_puts(context, puts):
    """All puts of one call are under way at the same time, so each PV may be in "puts" only once."""
    answers = context.put([pv for pv, *_ in puts], [v[0] if len(v) == 1 else v for _, _, v, _ in puts], timeout=100,
                          throw=False)
    return ["" if a is None else str(a) or "refused" for a in answers]


def connect():
    if protocol == "ca":
        return rawca.RawCa(port, "far", "farhost", address)
    from p4p.client.thread import Context
    return Context("pva", useenv=False, conf={"EPICS_PVA_ADDR_LIST": f"{address}:{port + 2000}",
                                             "EPICS_PVA_AUTO_ADDR_LIST": "NO"})


print("ready", flush=True)
connection = None
for line in sys.stdin:
    try:
        connection = connection or connect()
        print(json.dumps((ca_puts if protocol == "ca" else pva_puts)(connection, json.loads(line))), flush=True)
    except (ConnectionError, TimeoutError) as error:
        connection.close()
        connection = None
        print("gone", type(error).__name__, flush=True)
