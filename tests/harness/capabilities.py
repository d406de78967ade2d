# SPDX-License-Identifier: BSD-3-Clause
"""Runs "ebpfMon --check" of an installed monitor as root, as the user of the unit, and without each of its
capabilities. Records the results for documentation/develop/tried.md. As root."""
import subprocess
import sys

from . import tables
from .service import Installed, as_user

SUBJECTS = ["programs", "probes", "memory", "files", "names", "packets", "containers", "stacks"]
NOBODY = 65534


def users(unit):
    """What the table calls a user → the command in front of the monitor."""
    own = unit.capabilities
    rows = {"root": [], "the unit's": as_user(NOBODY, own)}
    rows |= {f"the unit's without {c}": as_user(NOBODY, [d for d in own if d != c]) for c in own}
    rows |= {f"the unit's with {c}": as_user(NOBODY, [*own, c]) for c in ("CAP_SYS_ADMIN", "CAP_NET_ADMIN")}
    rows["no capabilities"] = as_user(NOBODY, [])
    return rows


def check(command):
    """Exit status, and subject → verdict."""
    run = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False, timeout=300)
    return run.returncode, {line[5:16].strip(): line[:5].strip().lower() for line in run.stdout.splitlines()[:-1]}


def main():
    place = Installed().install()
    try:
        rows = {}
        for name, before in users(place.unit).items():
            status, said = check([*before, place.program])
            rows[name] = {"date": tables.today(), "watched": "no" if status else "yes",
                          "subjects": {s: said.get(s, "–") for s in SUBJECTS}}
            print(f"{name}: {rows[name]['watched']}")
        tables.record("capabilities", rows)
    finally:
        place.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
