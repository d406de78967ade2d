# SPDX-License-Identifier: BSD-3-Clause
"""Follows documentation/use/tutorial.md: types each command into its terminal, with the demo's IOCs and the default
ports, and compares each output with the tutorial: texts, PVs, writers, causes and written values, but not times, counts
and process ids."""
import contextlib
import os
import re

import pytest
from tests.harness import paths, tutorial
from tests.harness.ioc import NO_REALTIME
from tests.harness.process import Process
from tests.harness.wait import until

TEXT = (paths.TOP / "documentation" / "use" / "tutorial.md").read_text()
SECTIONS = re.findall(r"^## (.*\?)$", TEXT, re.M)


@pytest.fixture
def terminals(tmp_path):
    """Shells as of a new user: no variable of EPICS is set."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("EPICS_") and k != "PYTHONPATH"}
    # This network namespace has the loopback interface only.
    environ |= {"EPICS_CAS_BEACON_ADDR_LIST": "127.255.255.255", "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1",
                "EPICS_PVA_ADDR_LIST": "127.0.0.1", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}
    # a repeater at the default port that ends after the test: a client would start one that never ends
    repeater = Process([paths.BASE_BIN / "caRepeater"], environ)
    made = {n: Process([*NO_REALTIME, "bash", "-m"], environ, cwd=paths.TOP.parent) for n in "1234"}
    yield made
    repeater.kill()
    for shell in made.values():
        for child in reversed(children(shell.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, 15)
        shell.kill()


def children(pid):
    try:
        found = [int(c) for c in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except FileNotFoundError:  # it has ended meanwhile
        return []
    return [d for c in found for d in [c, *children(c)]]


def test_questions_of_the_heading():
    """The heading tells the number of questions, and it is right."""
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    assert TEXT.startswith(f"# Tutorial: {words[len(SECTIONS) - 1]} questions\n")
    for question in ("Who changed my set point?", "Why is my 10 Hz scan late?", "Which records are busy?",
                     "Who still uses this PV?"):
        assert question in SECTIONS


def test_each_command(terminals, tmp_path):
    text = TEXT.replace("/tmp/", f"{tmp_path}/").replace("linux-x86_64", paths.ARCH)
    text = text.replace("cd ebpfMon ", f"cd {paths.TOP} ").replace("$HOME/.cache/ebpfmon/base-7.0.8.1", str(paths.BASE))
    names = {"vm": paths.HOST, "/root/ebpfMon": str(paths.TOP)}
    compared = 0
    log = tmp_path / "ebpfMonPuts.json"
    for step in tutorial.steps(text):
        if "caput" in step.commands:  # a person types after all probes are attached; on a busy host this takes long
            until(lambda: '"seen":"inside"' in log.read_text(), 20, "a put by a link, seen inside of the IOC")
        if "PUT_BAD_ACK" in step.commands:  # it acknowledges what PVs have shown, also the rows, which come a moment later
            shell = terminals[step.terminals[0]]
            until(lambda: "CURRENT:SET" in " ".join(shell.command("caget -S DEMO:EBPF:PUT_BAD_LOG", 60)), 20, "the put is shown")
        for terminal in step.terminals:
            compared += run(terminals[terminal], step, names)
    assert compared >= 15, "outputs that were compared"


def run(shell, step, names):
    """Types the commands. Returns how many outputs were compared."""
    if step.commands.strip() == "exit":
        shell.send("exit")  # ends an IOC: the shell below it continues
        until(lambda: not [c for c in children(shell.pid)], 20, lambda: f"its end\n{shell.output()}")
        return 0
    output = shell.command(step.commands.rstrip("\n"), 60)
    first = list(output)
    for shown in step.shows:
        def rest():
            return tutorial.missing(shown, output, names)

        def again():
            if rest() and step.only_reads:
                output[:] = shell.command(step.commands.rstrip("\n"), 60)
            return not rest()

        until(again, 60, lambda: f"line {step.line} of the tutorial:\n{step.commands}\nshould also print" +
              "\n".join(["", *rest(), "and printed first", *first, "and last", *output]))
    return len(step.shows)
