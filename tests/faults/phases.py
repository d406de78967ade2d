# SPDX-License-Identifier: BSD-3-Clause
"""The phases in which faults happen. How long each takes is measured: a fault comes at a random moment within it."""
import signal
import time


def _seconds(work, *args):
    begin = time.monotonic()
    work(*args)
    return time.monotonic() - begin


class Phases:
    NAMES = ("flood", "IOC starts", "IOC exits", "attach", "detach", "monitor starts", "monitor exits")

    def __init__(self, scene):
        self.scene, self.takes = scene, {"flood": 0.5}

    def measure(self):
        """Goes through all phases once, without a fault."""
        s, takes = self.scene, self.takes
        takes["detach"] = _seconds(s.code_is_restored)
        takes["attach"] = _seconds(s.attach)
        takes["IOC exits"] = _seconds(s.victim.stop)
        takes["IOC starts"] = _seconds(s.victim.start) + _seconds(s.attach)
        s.note()
        s.monitor.process.send("exit")
        takes["monitor exits"] = _seconds(s.monitor.process.wait, 20)
        s.judge_end_of_monitor()
        takes["monitor starts"] = _seconds(s.start_monitor) + _seconds(s.attach)

    def prepare(self, phase):
        """What must be so when the phase begins."""
        s = self.scene
        if phase == "IOC starts":
            s.victim.kill()
        elif phase == "attach":
            s.code_is_restored()
        elif phase == "monitor starts":
            s.monitor.process.signal(signal.SIGKILL)
            s.monitor.process.wait()
            s.judge_end_of_monitor()

    def begin(self, phase):
        s = self.scene
        if phase == "IOC starts":
            s.victim.start(wait=False)
        elif phase == "IOC exits":
            s.victim.process.send("exit")
        elif phase == "attach":
            s.monitor.want_level("chains")
        elif phase == "detach":
            s.monitor.want_level("off")
        elif phase == "monitor starts":
            s.monitor.spawn()
        elif phase == "monitor exits":
            s.monitor.process.send("exit")

    def finish(self, phase):
        """Waits for what began in this phase and was not prevented by the fault. Forgets what cannot be counted on."""
        s = self.scene
        if phase == "IOC exits":
            s.victim.process.wait(20)
        elif phase == "IOC starts" and s.victim.running:
            s.victim.wait_ready()
            s.base.pop(s.victim.name, None)
        elif phase == "monitor exits":
            s.monitor.process.wait(20)
        elif phase == "detach" and s.monitor.process.running:
            s.code_is_restored()
        if phase in ("attach", "detach", "monitor starts", "monitor exits"):
            s.base.clear()
