# SPDX-License-Identifier: BSD-3-Clause
"""Links of pvAccess: a put that one makes in another IOC has the link, and what a CP link makes process has it as its cause."""
import itertools

import pytest
from tests.harness import db
from tests.harness.putlog import PutLog
from tests.harness.wait import until

SERVER = db.READY + db.record("ao", "DST") + db.record("ao", "BOTH") + db.record("ao", "SRC")


def links(server):
    def out(name, pv):
        return f'record(ao, "$(P){name}") {{ field(OUT, {{pva: {{pv: "{server}{pv}", proc: "PP"}}}}) }}\n'
    return db.READY + out("OUT", "DST") + out("ONE", "BOTH") + out("TWO", "BOTH") + db.record("ao", "COPY") + \
        f'record(calcout, "$(P)CP") {{ field(INPA, {{pva: {{pv: "{server}SRC", proc: "CP"}}}}) field(CALC, "A") ' \
        'field(OUT, "$(P)COPY PP") }\n'


@pytest.mark.parametrize("kind", ["softIocPVA", "pvxs"])
def test_links(new_monitor, new_ioc, tmp_path, kind):
    server = new_ioc(SERVER, kind=kind).start()
    client = new_ioc(links(server.prefix), kind=kind, environ={"EPICS_PVA_ADDR_LIST": f"127.0.0.1:{server.port + 2000}"}).start()
    log = PutLog(tmp_path / "puts.json")
    monitor = new_monitor(before=[log.command()]).start()
    monitor.wait_ioc(server)
    monitor.wait_ioc(client)

    def put(ioc, record, to):
        """Puts until the link has connected. Returns the line of the put that the link has made, or led to."""
        values = itertools.count(1)

        def look():
            ioc.put(record, next(values))
            return log.of(to)
        return until(look, 30, log.all)[-1]

    line = put(client, "OUT", server.prefix + "DST")
    assert (line["through"], line["link"], line["link_ioc"], line["pid"]) == \
        ("PVA", client.prefix + "OUT.OUT", client.name, str(client.pid)), line
    until(lambda: f", PVA link {client.prefix}OUT.OUT of {client.name}" in monitor.lines("PUT_LOG"), 5,
          lambda: monitor.lines("PUT_LOG"))
    line = put(client, "ONE", server.prefix + "BOTH")
    assert "link" not in line and line["cause"] == f"one of several PVA links of {client.name}", line
    line = put(server, "SRC", client.prefix + "COPY")
    assert (line["through"], line["link"], line["root"], line["cause"]) == \
        ("link", client.prefix + "CP.OUT", client.prefix + "CP", f"CP link from {server.prefix}SRC"), line
