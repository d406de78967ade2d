# SPDX-License-Identifier: BSD-3-Clause
"""Logs in a real Loki, sent by a real collector with the shipped configuration: the query of
documentation/use/site/README.md finds a put by the name of its PV. `make site` runs this."""
import json

import pytest
from tests.harness import collector, db, stores
from tests.harness.otlp import Sink
from tests.harness.wait import until

pytestmark = pytest.mark.skipif(bool(stores.missing_loki() or collector.missing()),
                                reason=stores.missing_loki() or collector.missing())


@pytest.fixture
def loki(tmp_path):
    made = stores.Loki(tmp_path)
    yield made.start()
    made.discard()


@pytest.fixture
def site(tmp_path, loki):
    """The collector with the shipped configuration; only its own metrics are off, because they have a fixed port."""
    traces = Sink()
    made = collector.SiteCollector(tmp_path, stores.SITE / "collector.yaml", traces.url, f"{loki.url}/otlp")
    made.more.write_text(json.dumps({"service": {"telemetry": {"metrics": {"level": "none"}}}}))
    yield made.start()
    made.discard()
    traces.discard()


def puts_of(loki, pv):
    return loki.query('{service_name="ebpfMon"} | epics_pv="' + pv + '"')


def test_put_is_in_loki(site, loki, new_ioc, new_monitor):
    """Once, with its value, user and host; the puts to another PV are not in the answer. What was put while Loki was down
    comes when it is there again."""
    ioc = new_ioc(db.READY + db.record("ao", "SET") + db.record("ao", "OTHER")).start()
    monitor = new_monitor(before=['epicsEnvSet OTEL_RESOURCE_ATTRIBUTES "host.name=vm1"',
                                  f'ebpfMonOtlp "{site.url}" "logs"']).start()
    monitor.wait_ioc(ioc)
    ioc.put("OTHER", 1)
    ioc.put("SET", 777)
    (labels, line), = until(lambda: puts_of(loki, ioc.prefix + "SET"), 60, lambda: f"{site.process.output()}\n{loki.process.output()}")
    assert labels["epics_value"] == "777" and labels["host_name"] == "vm1" and "777" in line
    loki.process.kill()
    ioc.put("SET", 778)
    monitor.wait("PUT_CNT", lambda n: n == 3)
    loki.start()
    until(lambda: [labels["epics_value"] for labels, _ in puts_of(loki, ioc.prefix + "SET")].count("778") == 1, 90,
          lambda: f"{puts_of(loki, ioc.prefix + 'SET')} {site.process.output()}")
