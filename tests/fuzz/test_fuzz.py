# SPDX-License-Identifier: BSD-3-Clause
"""Each fuzzer runs for a bounded time (FUZZ_SECONDS), on CPU time that nobody else wants."""
import os
import subprocess

import pytest

from tests.harness import paths

FUZZERS = sorted(p.stem for p in (paths.TESTS / "fuzz").glob("fuzz*.c"))


@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_fuzz(fuzzer):
    seconds = os.environ.get("FUZZ_SECONDS", "20")
    done = subprocess.run(["chrt", "--idle", "0", "make", "-s", "-C", paths.TESTS / "fuzz", f"run-{fuzzer}",
                           f"FUZZ_SECONDS={seconds}"], text=True, errors="replace", timeout=int(seconds) + 300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
