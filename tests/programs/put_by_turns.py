# SPDX-License-Identifier: BSD-3-Clause
"""Puts numbers to a PV, without and with callback in turns. Every 50th time it also puts a large array.

    put_by_turns ADDRESS PORT PV ARRAY_PV

It prints "ready" when it is connected. For each line "FIRST COUNT" of its stdin it puts FIRST … FIRST + COUNT - 1, then
-1, and prints "done".
"""
import sys

from tests.harness import rawca

address, port, pv, array = sys.argv[1:5]
client = rawca.RawCa(int(port), "far", "farhost", address)
client.sid(pv)
client.sid(array)
print("ready", flush=True)
for line in sys.stdin:
    first, count = map(int, line.split())
    for i in range(first, first + count):
        client.put(pv, rawca.LONG, [i], notify=i % 2 == 1, sync=i % 2 == 1)
        if i % 50 == 0:
            client.put(array, rawca.DOUBLE, [float(i + k) for k in range(2000)], notify=True)
    client.put(pv, rawca.LONG, [-1], notify=True)
    print("done", flush=True)
