import random, signal, time, os, subprocess
import pytest
from tests.harness import db, kernel, rawca
from tests.harness.wait import until, settled
@pytest.mark.parametrize("rights", ["service", "root"])
def test_pkkill(tmp_path, new_ioc, new_monitor, rights, monkeypatch):
    if rights == "service": monkeypatch.setenv("EBPFMON_RIGHTS", "service")
    iocs = [new_ioc(db.READY + db.chain("C", 3)).start() for _ in range(6)]
    takes = 1.0
    left = []
    leaks0 = len(kernel.leaks())
    for n in range(int(os.environ.get("PKN", "16"))):
        m = new_monitor().start()
        for i in iocs: m.wait_ioc(i)
        probes = sum(len(kernel.changed_code(i.pid)) for i in iocs)
        m.process.send("exit")
        t = time.monotonic()
        part = random.random()
        if n:
            time.sleep(part * takes)
            m.process.signal(signal.SIGKILL)
        m.process.wait(30)
        if not n: takes = time.monotonic() - t
        for _ in range(50):
            rest = sum(len(kernel.changed_code(i.pid)) for i in iocs)
            if not rest: break
            time.sleep(0.1)
        print(n, rights, probes, f"part {part:.2f} of {takes:.2f}", "rest", rest, "leaks", len(kernel.leaks()) - leaks0, flush=True)
        left.append(rest)
    assert not any(left), left
