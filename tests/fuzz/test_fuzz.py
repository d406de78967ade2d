# SPDX-License-Identifier: BSD-3-Clause
"""Compiles and runs all fuzzers (tests/fuzz/Makefile), four at a time. They have a low priority, because they take much CPU
time, and other tests wait for events meanwhile; but not the lowest, with which they would not end on a busy host."""
import os
import re
import subprocess
import warnings

from tests.harness import paths
from tests.harness.soak import size, soak


@soak
def test_fuzz():
    seconds = os.environ.get("FUZZ_SECONDS", size("40", "600"))
    done = subprocess.run(["nice", "-n", "10", "make", "-s", "-k", "-j4", "-C", paths.TESTS / "fuzz", "run",
                           f"FUZZ_SECONDS={seconds}", f"FUZZ_PART={size(16, 1)}"], text=True, errors="replace", timeout=int(seconds) + 1500,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    counts = re.findall(r"(\w+) ok, (\d+) of (\d+) inputs", done.stdout)
    assert len(counts) == len(list((paths.TESTS / "fuzz").glob("fuzz*.c"))), done.stdout
    if few := [f"{name} {run} of {wanted}" for name, run, wanted in counts if int(run) < int(wanted)]:
        warnings.warn(f"the machine was too busy for all inputs in {seconds} s: {', '.join(few)}")
