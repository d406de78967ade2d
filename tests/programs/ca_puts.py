# SPDX-License-Identifier: BSD-3-Clause
"""ca_puts ADDRESS PORT PV VALUE...: writes these numbers, one after the other, and ends when the last one is answered. "-": the numbers
come from the standard input, one in a line."""
import sys

from tests.harness import rawca

address, port, pv, *values = sys.argv[1:]
client = rawca.RawCa(int(port), addr=address)
for value in sys.stdin if values == ["-"] else values:
    assert client.put(pv, rawca.DOUBLE, [float(value)], notify=True) == 1
client.close()
print("done", flush=True)
