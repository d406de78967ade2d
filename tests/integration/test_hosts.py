# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces for two hosts, a monitor for each, which share nothing but a collector."""
import os
import subprocess

import pytest
from harness import badlink, db, env
from harness.far import FarIoc
from harness.rotel import Rotel
from harness.wait import until


@pytest.fixture(scope="module")
def link():
    with badlink.BadLink() as made:
        yield made


@pytest.fixture(scope="module")
def rotel():
    r = Rotel().start()
    yield r
    r.discard()


@pytest.fixture(scope="module")
def iocs(tmp_path_factory, link):
    """At A one that writes to the one at B by a CA link."""
    tmp = tmp_path_factory.mktemp("far")
    below = FarIoc(tmp, link, db=db.READY + db.record("ao", "IN", FLNK="$(P)END") + db.counter("END")).start()
    above = FarIoc(tmp, link, end=link.a, db=db.READY + db.record("calc", "ROOT", CALC="VAL+1", FLNK="$(P)SEND") +
                   db.record("calcout", "SEND", CALC="VAL+1", OUT=f"{below.prefix}IN CA PP"),
                   environ={"EPICS_CA_ADDR_LIST": f"{link.addrB}:{below.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"}).start()
    yield above, below
    for ioc in (above, below):
        ioc.discard()


@pytest.fixture(scope="module")
def monitors(module_monitor, iocs, rotel):
    """Each sees its own IOC, and takes the other one for a stranger."""
    made = []
    for ioc in iocs:
        m = module_monitor(before=[f'ebpfMonOtlp "{rotel.url}" "traces"'], iocs=ioc.name).start()
        m.wait_ioc(ioc)
        m.set_filter(LEVEL="trace")
        until(lambda: m.iocs()[ioc.pid][3] == "trace", 20, "level trace")
        made.append(m)
    return made


def caput(end, address, ioc, record):
    environ = {**os.environ, "EPICS_CA_ADDR_LIST": f"{address}:{ioc.port}", "EPICS_CA_AUTO_ADDR_LIST": "NO"}
    subprocess.run(badlink.in_namespace(end, [env.BASE_BIN / "caput", "-c", "-w", "5", ioc.prefix + record, "1"]),
                   env=environ, check=True, capture_output=True, timeout=30)


def test_two_halves_join(link, iocs, monitors, rotel):
    """The chain at A, the message that it sends, the chain at B: told by two monitors, one trace."""
    above, below = iocs
    seen = set()

    def joined():
        caput(link.a, link.addrA, above, "ROOT.PROC")  # the link may not be connected yet
        spans = rotel.spans()
        for s in spans:
            if s["service"] == below.name and s["name"] == below.prefix + "IN" and "epics.chain.cause" in s["attributes"]:
                trace = [x for x in spans if x["trace"] == s["trace"]]
                seen.add(tuple(sorted({x["service"] for x in trace})))
                if any("epics.put.link" in x["attributes"] for x in trace) and \
                        any(x["name"] == above.prefix + "ROOT" for x in trace):
                    return trace
        return None

    spans = until(joined, 30, lambda: f"{above.name} and {below.name} in one trace: {seen}")
    # the other monitor sees the sender's process too, for it is not on another host really: without its link
    by_id = {s["id"]: s for s in spans if s["kind"] != "SPAN_KIND_CLIENT" or "epics.put.link" in s["attributes"]}
    chain = next(s for s in spans if s["service"] == below.name and "epics.chain.cause" in s["attributes"])
    message = by_id[chain["parent"]]
    assert message["service"] == above.name and message["kind"] == "SPAN_KIND_CLIENT", message
    assert message["attributes"]["epics.put.link"] == above.prefix + "SEND.OUT"
    root = by_id[message["parent"]]
    assert root["name"] == above.prefix + "ROOT" and root["attributes"]["epics.chain.records"] == "2"
