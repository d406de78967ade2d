# SPDX-License-Identifier: BSD-3-Clause
"""The BPF programs fit on the stack of kernels that have one stack for all functions of a program."""
import pytest
from tests.harness import bpf, paths

OBJECTS = sorted((paths.TOP / "ebpfMonSup" / f"O.{paths.ARCH}").glob("ebpfMon*Bpf.o.bpf"))


@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: p.name)
def test_bpf_stack(path):
    programs = bpf.Object(path)
    needed = {" > ".join(names): size for size, names in map(programs.deepest, programs.programs())}
    assert needed
    assert not {names: size for names, size in needed.items() if size > bpf.LIMIT}


def test_objects():
    assert len(OBJECTS) == 5
