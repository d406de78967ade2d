# SPDX-License-Identifier: BSD-3-Clause
"""Each unit test program is one test here, so it can run at the same time as other tests. "make runtests" runs the same
programs."""
import os
import re
import subprocess

import pytest

from tests.harness import paths

SOURCES = paths.TESTS / "unit"
BUILT = SOURCES / f"O.{paths.ARCH}"
PROGRAMS = sorted(p.stem for p in SOURCES.glob("test*.c*") if (BUILT / f"{p.stem}.t").exists())


def find_fault(said):
    """The fault in this output of a program (testanything.org); None if there is none."""
    plan = re.search(r"(?m)^1\.\.(\d+)", said)
    checks = re.findall(r"(?m)^(ok|not ok) +(\d+)(.*)", said)
    if not plan:
        return "no plan"
    if "Bail out!" in said:
        return "it gave up"
    if failed := [number for result, number, more in checks if result != "ok" and "# TODO" not in more]:
        return f"failed: {', '.join(failed)}"
    if [int(number) for _, number, _ in checks] != list(range(1, int(plan[1]) + 1)):
        return f"{len(checks)} checks of {plan[1]}"
    return None


@pytest.mark.parametrize("program", PROGRAMS)
def test_unit(program):
    """Its exit status, its plan and its checks."""
    environ = {**os.environ, "HARNESS_ACTIVE": "1"}  # without it, Base's testDone does not always print a plan
    done = subprocess.run([f"./{program}"], cwd=BUILT, text=True, errors="replace", timeout=300,
                          env=environ, stdin=subprocess.DEVNULL, capture_output=True)
    fault = f"exit {done.returncode}" if done.returncode else find_fault(done.stdout)
    assert not fault, f"{fault}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("said, fault", [
    ("1..2\nok  1 - a\n# x\nok  2 - b\n", None), ("1..0 # SKIP no root\n", None), ("1..1\nnot ok  1 - a # TODO later\n", None),
    ("1..2\nok  1 - a\n", "1 checks of 2"), ("1..1\nok  1 - a\nok  2 - b\n", "2 checks of 1"), ("ok  1 - a\n", "no plan"),
    ("1..2\nok  1 - a\nnot ok  2 - b\n", "failed: 2"), ("1..1\nok  1 - a\nBail out! no memory\n", "it gave up")])
def test_output_of_a_program(said, fault):
    assert find_fault(said) == fault
