# SPDX-License-Identifier: BSD-3-Clause
"""The writer of a put is right, also immediately after a link was changed. The monitor recognises a link by the address
of its dbChannel. When a link is removed, its address is free, and the next channel of a client may get it. The monitor
has not yet read the address of a new link."""
import pytest
from tests.harness import db, rawca
from tests.harness.putlog import PutLog
from tests.harness.wait import settled, until

PAIRS = 20
RECORDS = db.READY + "".join(db.record("longout", f"OUT{i}", OUT=f"$(P)OLD{i}.VAL") + db.record("ao", f"OLD{i}") +
                             db.record("ao", f"NEW{i}") for i in range(PAIRS))


@pytest.fixture
def scene(new_ioc, new_monitor, tmp_path):
    ioc = new_ioc(RECORDS).start()
    log = PutLog(tmp_path / "puts.json")
    monitor = new_monitor(iocs=ioc.name, before=[log.command()]).start()
    monitor.wait_ioc(ioc)
    client = rawca.RawCa(ioc.port, "tester", "testhost")
    yield ioc, monitor, client, log.all
    client.close()


def put_text(client, pv, text):
    client.put_bytes(pv, text.encode() + b"\0", rawca.STRING)


def test_channel_in_place_of_a_link(scene):
    """A client removes links, connects to other PVs and writes to them, without a pause."""
    ioc, monitor, client, rows = scene
    for i in range(PAIRS):
        client.sid(f"{ioc.prefix}OUT{i}.OUT")
    for i in range(PAIRS):
        put_text(client, f"{ioc.prefix}OUT{i}.OUT", "")
        client.put(f"{ioc.prefix}NEW{i}.HIGH", rawca.DOUBLE, [i])
    until(lambda: len(rows()) >= 2 * PAIRS, 10, lambda: rows())
    seen = settled(rows, 10, quiet=3)
    assert len(seen) == 2 * PAIRS, seen
    wrong = [o for o in seen if (o["through"], o["result"], "link" in o) != ("CA", "ok", False)]
    assert not wrong, f"{len(wrong)}: {wrong[:3]}"
    assert monitor.get("AUDIT_CNT") == 0, monitor.text("AUDIT")


def test_link_that_is_new(scene):
    """A client changes links and makes the records use them at once."""
    ioc, monitor, client, rows = scene
    for i in range(PAIRS):
        client.sid(f"{ioc.prefix}OUT{i}.OUT")
        client.sid(f"{ioc.prefix}OUT{i}")
    for i in range(PAIRS):
        put_text(client, f"{ioc.prefix}OUT{i}.OUT", f"{ioc.prefix}NEW{i}.VAL")
        client.put(f"{ioc.prefix}OUT{i}", rawca.LONG, [i])
    until(lambda: len(rows()) >= 3 * PAIRS, 10, lambda: rows())
    seen = settled(rows, 10, quiet=3)
    assert len(seen) == 3 * PAIRS, seen
    by_link = [o for o in seen if "NEW" in o["pv"]]
    wrong = [o for o in by_link if (o["through"], o.get("link")) != ("link", f"{o['pv'].replace('NEW', 'OUT')}.OUT")]
    assert not wrong, f"{len(wrong)}: {wrong[:3]}"


def test_connecting_to_what_nobody_may_write(scene):
    """A client writes, then connects to fields that cannot be written. The connection is not taken for a put, and no
    put is missing."""
    ioc, monitor, client, rows = scene
    for i in range(PAIRS):
        client.put(f"{ioc.prefix}OUT{i}", rawca.LONG, [i])
        client.sid(f"{ioc.prefix}OUT{i}.NAME")
    client.put(f"{ioc.prefix}NEW0", rawca.DOUBLE, [1])
    until(lambda: any(o["pv"] == f"{ioc.prefix}NEW0" for o in rows()), 10, lambda: rows())
    assert len([o for o in rows() if o["through"] == "CA"]) == PAIRS + 1
    assert monitor.get("AUDIT_CNT") == 0, monitor.text("AUDIT")


def test_links_put_in_quick_succession(scene):
    """Each put to a link field has its result, although the field has the text of the next one as soon as one looks."""
    ioc, monitor, client, rows = scene
    for i in range(PAIRS):
        client.sid(f"{ioc.prefix}OUT{i}.OUT")
    sent = [(f"{ioc.prefix}OUT{i}.OUT", f" NOBODY:{n} PP" if n % 3 else "") for n in range(20) for i in range(PAIRS)]
    for pv, text in sent:
        put_text(client, pv, text)
    until(lambda: len(rows()) >= len(sent), 10, lambda: rows())
    seen = settled(rows, 10, quiet=3)
    assert sorted((o["pv"], o["value"]) for o in seen) == sorted((pv, text) for pv, text in sent)
    wrong = [o for o in seen if o["result"] != "ok"]
    assert not wrong, f"{len(wrong)} of {len(sent)}: {wrong[:3]}"
