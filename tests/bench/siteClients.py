# SPDX-License-Identifier: BSD-3-Clause
"""The clients of tests/bench/site.py: 200 CA monitors, 50 puts and 100 gets per second, until stdin ends."""
import sys
import threading

import epics

MONITORS, PUTS, GETS = 200, 50, 100
PACE = 50  # rounds per second


def main():
    monitored = [epics.PV(f"BENCH:1:{i}:0", auto_monitor=True) for i in range(MONITORS)]
    puts = [epics.PV(f"BENCH:PUT{i}", auto_monitor=False) for i in range(10)]
    for pv in monitored + puts:
        if not pv.wait_for_connection(30):
            sys.exit(f"{pv.pvname} does not connect")
    print("ready", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    turn = 0
    while not ended.wait(1 / PACE):
        for _ in range(PUTS // PACE):
            puts[turn % len(puts)].put(turn)
            turn += 1
        for _ in range(GETS // PACE):
            puts[turn % len(puts)].get(use_monitor=False)


if __name__ == "__main__":
    main()
