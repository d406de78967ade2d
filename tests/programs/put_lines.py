# SPDX-License-Identifier: BSD-3-Clause
"""put_lines ADDRESS PORT PV: keeps one CA connection open, and puts each line of its stdin, with an answer."""
import sys

from tests.harness import rawca

client = rawca.RawCa(int(sys.argv[2]), user="anna", addr=sys.argv[1])
client.sid(sys.argv[3])
print("ready", flush=True)
for line in sys.stdin:
    client.put(sys.argv[3], rawca.DOUBLE, [float(line)], notify=True)
    print(f"made {line.strip()}", flush=True)
