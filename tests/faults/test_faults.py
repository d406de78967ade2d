# SPDX-License-Identifier: BSD-3-Clause
"""Processes are killed, stopped for a while and asked to end, at random moments of everything that they do. What must
hold afterwards is judged by the kernel, by the IOCs and by what was sent, not by the monitor (scene.py).

  FAULT_SEED=N      the same faults again (their moments depend on the machine); it is printed
  FAULTS=N          so many of each kind, each kind in a test of its own; else a few of all kinds
  FAULT_SECONDS=N   a test begins no fault after this time
"""
import collections
import os
import random
import signal
import time

import pytest
from tests.faults.phases import Phases
from tests.faults.scene import Flood, Scene

KINDS = [("IOC", "SIGKILL"), ("IOC", "SIGSTOP"), ("monitor", "SIGKILL"), ("monitor", "SIGSTOP"), ("monitor", "SIGTERM")]
FAULTS = int(os.environ.get("FAULTS", "0"))
SECONDS = float(os.environ.get("FAULT_SECONDS", "12"))
STOPPED = 0.05, 1.0  # seconds between SIGSTOP and SIGCONT
LATE = 12            # seconds after which the monitor publishes no put any more (isUnmatched, put/putJoin.c: 10 s)


class Fault:
    def __init__(self, kind, rng):
        (self.who, self.signal), self.phase = kind, rng.choice(Phases.NAMES)
        self.part, self.stopped = rng.random(), rng.uniform(*STOPPED)

    def __str__(self):
        return f"{self.signal} to the {self.who}, phase \"{self.phase}\" at {self.part:.2f}"

    def happen(self, scene, phases):
        phases.prepare(self.phase)
        floods = [Flood(i).start() for i in (scene.stays, scene.victim) if i.running]
        scene.note()
        phases.begin(self.phase)
        process = (scene.victim if self.who == "IOC" else scene.monitor).process
        time.sleep(self.part * phases.takes[self.phase])  # the moment of the fault is what is tested
        scene.note()
        process.signal(getattr(signal, self.signal))
        if self.signal == "SIGSTOP":
            time.sleep(self.stopped)
            process.signal(signal.SIGCONT)
        else:
            process.wait(20)
        for flood in floods:
            flood.end()
            scene.sent |= set(flood.sent)
        phases.finish(self.phase)
        # Watched before and after: then all of the flood was seen.
        for ioc, flood in zip((scene.stays, scene.victim), floods):
            if scene.monitor.process.running and ioc.running and ioc.name in scene.base:
                scene.logged(flood.sent)


@pytest.fixture
def scene(tmp_path, repeater):
    s = Scene(tmp_path)
    try:
        yield s.start()
    finally:
        s.discard()


def _choose(kinds, rng):
    """All kinds in turn, in a random order."""
    while True:
        for kind in rng.sample(kinds, len(kinds)):
            yield Fault(kind, rng)


@pytest.mark.parametrize("kinds", [[k] for k in KINDS] if FAULTS else [KINDS],
                         ids=["-".join(k) for k in KINDS] if FAULTS else ["all"])
def test_faults(scene, kinds):
    seed = int(os.environ.get("FAULT_SEED") or random.SystemRandom().randrange(1 << 32))
    phases, done, faults = Phases(scene), collections.Counter(), _choose(kinds, random.Random(seed))
    phases.measure()
    scene.recover()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and not sum(done.values()) == FAULTS > 0:
        fault = next(faults)
        try:
            fault.happen(scene, phases)
            scene.recover()
        except Exception as error:
            raise AssertionError(f"FAULT_SEED={seed}, fault {sum(done.values()) + 1}: {fault}") from error
        done[f"{fault.signal} to the {fault.who}, {fault.phase}"] += 1
    if FAULTS:
        time.sleep(LATE)  # nothing tells that nothing more comes
        scene.judge_log()
    print(f"FAULT_SEED={seed}: {sum(done.values())} faults")
    for what, number in sorted((done + scene.noted).items()):
        print(f"  {number:4} {what}")
