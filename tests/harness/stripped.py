# SPDX-License-Identifier: BSD-3-Clause
"""Programs of IOCs that were stripped, and a monitor that looks for files with their symbols. The fixtures are those of a module
that imports them."""
import os
import subprocess

import pytest

from . import paths
from .wait import until


def run(*command, **how):
    return subprocess.run([str(c) for c in command], check=True, text=True, capture_output=True, **how).stdout


def build_id(program):
    return next(line.split()[-1] for line in run("readelf", "-n", program).splitlines() if "Build ID:" in line)


def set_build_id(program, copy, number):
    data = program.read_bytes()
    old = bytes.fromhex(build_id(program))
    assert data.count(old) == 1
    copy.write_bytes(data.replace(old, number))
    copy.chmod(0o755)


@pytest.fixture
def program(tmp_path):
    """Makes a program with symbols and the same program stripped, with a new build-id. One text of the program is
    changed, so the monitor does not recognise its functions without symbols."""
    whole, stripped = tmp_path / "whole", tmp_path / "bare" / "staticIoc"
    stripped.parent.mkdir()
    set_build_id(paths.STATIC_IOC, whole, os.urandom(20))
    whole.write_bytes(whole.read_bytes().replace(b"dbtr(dbProcess)", b"dbtr(DBPROCESS)"))
    run("strip", "-o", stripped, whole)
    return whole, stripped


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The places where the monitor looks for symbols: the folder of the site, and the cache of a debuginfod client."""
    top = tmp_path_factory.mktemp("places")
    return top / "site", top / "cache"


@pytest.fixture(scope="module")
def monitor(module_monitor, places):
    return module_monitor(environ={"EBPFMON_SYMBOLS": f"/nowhere:{places[0]}", "DEBUGINFOD_CACHE_PATH": str(places[1])}).start()


def note_of(monitor, ioc):
    """The note of this IOC. None if the table does not have this IOC."""
    return dict(zip(map(int, monitor.list("IOC_PIDS")), monitor.list("IOC_NOTES"))).get(ioc.pid)


def wait_note(monitor, ioc, text, seconds=20):
    """Waits until the note of this IOC has this text."""
    return until(lambda: (n := note_of(monitor, ioc)) and text in n and n, seconds, lambda: f"{text!r}: {note_of(monitor, ioc)}")
