# SPDX-License-Identifier: BSD-3-Clause
"""The BPF programs fit on the stack of kernels that have one stack for all functions of a program, and use the stack of
their thread also on kernels that would give them another one (KEEP_THREAD_STACK in bpf/common/core.bpf.h)."""
import pytest
from tests.harness import bpf, paths

OBJECTS = sorted(paths.TOP.glob(f"ebpfMon*/**/O.{paths.ARCH}/ebpfMon*Bpf.o.bpf"))


@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: p.name)
def test_bpf_stack(path):
    programs = bpf.Object(path)
    needed = {" > ".join(names): size for size, names in map(programs.deepest, programs.programs())}
    assert needed
    assert not {names: size for names, size in needed.items() if size > bpf.LIMIT}


# The kernel gives these kinds no stack of their own (bpf_enable_priv_stack()): they run where nothing preempts them by
# themselves.
NEVER_PREEMPTED = "iter/task", "socket", "tc"


@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: p.name)
def test_stack_of_the_thread(path):
    programs = bpf.Object(path)
    found = [programs.functions[p] for p in programs.programs()]
    assert found
    assert not [f.name for f in found if f.tail_call == (f.section in NEVER_PREEMPTED)]


def test_objects():
    assert len(OBJECTS) == 5
