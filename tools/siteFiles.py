#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes what a site imports for one or many monitors: archive requests, an archive policy, an alarm tree, a display of
all hosts.

  tools/siteFiles.py [-o FOLDER] [-d DISPLAYS] [-r RECORD]... [-l LIST] [-c CHANNELS] [PREFIX...]

For example: tools/siteFiles.py -o /tmp/vm1 -d /opt/ebpfMon/ebpfMonApp/op/bob -r RING:CURRENT vm1:EBPF:

  archiver.json  Archiver Appliance, the body of mgmt/bpl/archivePV
  policies.py    Archiver Appliance, a policy that knows the tags
  engine.xml     archive engine of Phoebus (RDB)
  alarm.xml      alarm server of Phoebus
  names.txt      the names of the PVs to archive, one a line
  hosts.bob      display of Phoebus with a row for each host; from 41 hosts on also hosts2.bob and so on

-l: a file of prefixes, one a line; what stands after # is a comment. -c: the answer of Channel Finder, in which each
channel PREFIX + PUT_BAD_ALARM is a monitor, also if it is not active just now; - is the standard input:

  curl -s 'http://HOST:8080/ChannelFinder/resources/channels?~name=*PUT_BAD_ALARM' | tools/siteFiles.py -c -

Which PVs are archived and how is in the records: info(archive, "monitor@1") is method and period in seconds. -r: the
PVs of a record for which ebpfMonWatch.db is loaded. Needs Python 3 and the folder db/, which make fills."""
import argparse
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import hostsDisplay

TOP = Path(__file__).resolve().parent.parent
DATABASES = ("ebpfMon.db", *sorted(f"{p.stem}.db" for p in TOP.glob("ebpfMonModules/*/*.substitutions")))
# What each Archiver Appliance takes (PVNames.java). One other name, and it refuses the whole request.
NAME = re.compile(r"[a-zA-Z0-9_\-+:\[\]<>;./,#{}]+")
NAME_LONGEST = 60  # of a record (PVNAME_STRINGSZ)
POLICY = '''# Policy of the Archiver Appliance for the PVs of ebpfMon. Written by siteFiles.py; take it as policies.py, or call
# ebpfMonPolicy in your own determinePolicy: it returns None for other PVs.
STORES = [
    "pb://localhost?name=STS&rootFolder=${ARCHAPPL_SHORT_TERM_FOLDER}&partitionGranularity=PARTITION_HOUR",
    "pb://localhost?name=MTS&rootFolder=${ARCHAPPL_MEDIUM_TERM_FOLDER}&partitionGranularity=PARTITION_DAY&hold=2&gather=1",
    "pb://localhost?name=LTS&rootFolder=${ARCHAPPL_LONG_TERM_FOLDER}&partitionGranularity=PARTITION_YEAR",
]
# The info tags "archive" of the records: method@period in seconds.
TAGS = %s


def ebpfMonPolicy(pvInfoDict):
    tag = TAGS.get(pvInfoDict["pvName"])
    if tag is None:
        return None
    method, period = tag.split("@")
    return {"policyName": "ebpfMon", "samplingMethod": method.upper(), "samplingPeriod": float(period),
            "dataStores": STORES, "archiveFields": []}


def getPolicyList():
    return {"ebpfMon": "PVs of ebpfMon, by their archive tags", "Default": "all others"}


def getFieldsArchivedAsPartOfStream():
    return ["HIHI", "HIGH", "LOW", "LOLO", "LOPR", "HOPR"]


def determinePolicy(pvInfoDict):
    default = {"policyName": "Default", "samplingMethod": "MONITOR", "samplingPeriod": 1.0, "dataStores": STORES,
               "archiveFields": []}
    return ebpfMonPolicy(pvInfoDict) or default
'''


MARK = "PUT_BAD_ALARM"  # a channel that each monitor has, and nothing else


def read_list(file):
    lines = (line.partition("#")[0].strip() for line in file.read_text().splitlines())
    return [line for line in lines if line]


def read_channels(file):
    """The prefixes in an answer of Channel Finder: a list of objects with a "name"."""
    try:
        channels = json.load(sys.stdin) if str(file) == "-" else json.loads(file.read_text())
        names = [channel["name"] for channel in channels]
    except (ValueError, TypeError, KeyError) as e:
        sys.exit(f"siteFiles: {file}: no channels of Channel Finder: {e!r}")
    found = sorted({name.removesuffix(MARK) for name in names if name.endswith(MARK)})
    if not found:
        sys.exit(f"siteFiles: {file}: no channel of {len(names)} ends in {MARK}, so there is no monitor")
    return found


def tagged(file):
    """Name without prefix, with its macros → archive tag."""
    found = re.finditer(r'^record\(\w+, "\$\(P\)([^"]+)"\) \{$(.*?)^\}', file.read_text(), re.S | re.M)
    tags = {m[1]: re.search(r'info\(archive, "([^"]+)"\)', m[2]) for m in found}
    return {name: tag[1] for name, tag in tags.items() if tag}


def tags_of(prefix, records):
    """PV of one monitor → archive tag."""
    tags = {prefix + name: tag for db in DATABASES for name, tag in tagged(TOP / "db" / db).items() if "$" not in name}
    for record in records:
        for name, tag in tagged(TOP / "db" / "ebpfMonWatch.db").items():
            tags[prefix + name.replace("$(N=$(REC))", record)] = tag
    return tags


def check(names):
    for name in names:
        if not NAME.fullmatch(name):
            sys.exit(f"siteFiles: {name}: an archiver refuses this name. Letters, digits and _-+:[]<>;./,#{{}} are allowed")
        if len(name) > NAME_LONGEST:
            sys.exit(f"siteFiles: {name}: longer than {NAME_LONGEST} characters, so no record can have this name")


def archiver(tags):
    return json.dumps([{"pv": pv, "samplingmethod": tag.split("@")[0].upper(), "samplingperiod": tag.split("@")[1]}
                       for pv, tag in tags.items()], indent=1) + "\n"


def xml(root):
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def engine(hosts):
    root = ET.Element("engineconfig")
    for prefix, tags in hosts.items():
        group = ET.SubElement(root, "group")
        ET.SubElement(group, "name").text = prefix
        for pv, tag in tags.items():
            method, period = tag.split("@")
            channel = ET.SubElement(group, "channel")
            ET.SubElement(channel, "name").text = pv
            ET.SubElement(channel, "period").text = str(float(period))  # the engine takes "1" for an empty text
            ET.SubElement(channel, method)
    return xml(root)


def alarm(prefixes, displays):
    """The components of all hosts in one tree."""
    text = (TOP / "ebpfMonApp" / "op" / "alarm" / "ebpfMon.xml").read_text()
    root = ET.Element("config", name=ET.fromstring(text).get("name"))
    for prefix in prefixes:
        for component in ET.fromstring(text.replace("HOST:EBPF:", prefix).replace("/OPI/", f"{displays}/")):
            root.append(component)
    return xml(root)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", nargs="*")
    parser.add_argument("-o", "--output", type=Path, default=Path("."))
    parser.add_argument("-d", "--displays", default=str(TOP / "ebpfMonApp" / "op" / "bob"))
    parser.add_argument("-r", "--record", action="append", default=[])
    parser.add_argument("-l", "--list", type=Path)
    parser.add_argument("-c", "--channels", type=Path)
    args = parser.parse_args()
    prefixes = list(dict.fromkeys(args.prefix + (read_list(args.list) if args.list else []) +
                                  (read_channels(args.channels) if args.channels else [])))
    if not prefixes:
        parser.error("no prefix: give at least one, or a list")
    if not (TOP / "db" / "ebpfMon.db").exists():
        sys.exit("siteFiles: there is no db/ebpfMon.db: build first (make)")
    hosts = {prefix: tags_of(prefix, args.record) for prefix in prefixes}
    tags = {pv: tag for of_host in hosts.values() for pv, tag in of_host.items()}
    check(tags)
    displays = args.displays.rstrip("/")
    args.output.mkdir(parents=True, exist_ok=True)
    for file, text in (("archiver.json", archiver(tags)), ("policies.py", POLICY % json.dumps(tags, indent=4)),
                       ("engine.xml", engine(hosts)),
                       ("alarm.xml", alarm(hosts, displays)),
                       ("names.txt", "".join(f"{pv}\n" for pv in tags)),
                       *((file, xml(page)) for file, page in hostsDisplay.make_pages(prefixes, displays).items())):
        (args.output / file).write_text(text)
        print(args.output / file)


if __name__ == "__main__":
    main()
