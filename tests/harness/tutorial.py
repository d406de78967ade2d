# SPDX-License-Identifier: BSD-3-Clause
"""The steps of a tutorial in Markdown, and whether an output is the one that it shows.

Commands stand in blocks "```sh 34" or "```iocsh 1": what is typed, and in which terminals. The next block without such
a number and language, or "```json", is what these commands print."""
import re
from dataclasses import dataclass

BLOCK = re.compile(r"^```(\w*)(?: (\d+))?\n(.*?)^```$", re.S | re.M)
# What differs from run to run: a number, a time, a process id, an address of memory. Not the number in a name.
LOOSE = re.compile(r"0x[0-9a-f]+|(?<=\")[0-9a-f]{32}(?=\")|(?<![\w.])-?\d[\d.:]*(?:e[-+]\d+)?(?:T[\d:.]+(?:Z|[-+]\d\d:\d\d))?(?![\w])|(?<=\d{4})(?:-\d\d){2}(?:T[\d:.]+(?:Z|[-+]\d\d:\d\d))?|(?<=127\.0\.0\.1:)\d+")


@dataclass
class Step:
    terminals: str     # digits
    commands: str
    shows: list        # blocks; the lines of each
    line: int          # of the document, from 1

    @property
    def only_reads(self):
        """True if the command changes nothing, so it can be typed again until the output is there."""
        return all(re.match(r"caget|pvget|printf|grep|dblsr|ebpfMon", c) for c in self.commands.splitlines())


def steps(text):
    found = []
    for m in BLOCK.finditer(text):
        if m[2]:
            found.append(Step(m[2], m[3], [], text.count("\n", 0, m.start()) + 1))
        elif found and not found[-1].shows and m[1] in ("", "json"):
            found[-1].shows.append(m[3].splitlines())
    return found


def pattern(line, names):
    """The regular expression that a line of the output must match. "names": words that differ in this run."""
    exact = re.compile(r" \d+(?: -> \d+)+ by|\bis not \d+|\d+ or less|\"value\":\d+")  # a value that somebody wrote
    parts, at = [], 0
    keep = [range(*m.span()) for m in exact.finditer(line)]
    for m in LOOSE.finditer(line):
        if any(m.start() in r for r in keep):
            continue
        parts += [re.escape(line[at:m.start()]), r"[-\d.:TZx+a-f]+"]
        at = m.end()
    text = "".join(parts) + re.escape(line[at:])
    for name, here in names.items():
        text = re.sub(rf"(?<!\w){name}(?!\w)", re.escape(here), text)
    text = re.sub(r"DEMO:[A-Z0-9:]*[A-Z0-9](?![A-Z0-9:])", r"\g<0>(?:@\\S+)?", text)  # another IOC of the host has it, too
    text = re.sub(r"DEMO:S\d\d:G\d:[A-Z]+", r"DEMO:S\\d\\d:G\\d:[A-Z]+", text)  # these gauges are alike
    text = re.sub(r"\bIOC$", "IOCs?", text)  # other IOCs run on this host
    # on a busy host this script, which ends at once, has ended before the monitor reads its command line
    text = text.replace(r"python3\ other\.py", r"python3(?:\ other\.py)?")
    return re.compile(r"\s*" + re.sub(r"(?:\\\s|\s)+", r"\\s+", text.strip()) + r"\s*$")


def missing(shown, output, names):
    """Lines that the tutorial shows and the output does not have, in any order."""
    return [line for line in shown if line.strip() and line.strip() != "..."
            and not any(pattern(line, names).match(l) for l in output)]
