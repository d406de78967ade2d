# SPDX-License-Identifier: BSD-3-Clause
"""Prints a table of what test_releases.py found: a row for each build of each release. The argument is its JUnit file."""
import re
import sys
import xml.etree.ElementTree as ET

COLUMNS = {  # what a row says: the tests of which each must have passed
    "found by name and release": ["test_is_watched"],
    "counts": ["test_counts"],
    "links that change": ["test_links_that_change"],
    "puts": ["test_puts", "test_types_of_channel_access", "test_put_that_is_refused"],
    "links that write": ["test_link_that_writes"],
    "chains, traces": ["test_chains"],
}


def read(path):
    """(release, kind) → test → whether all of its cases passed."""
    rows = {}
    for case in ET.parse(path).iter("testcase"):
        found = re.fullmatch(r"(\w+)\[([\d.]+)-(\w+)(-\d+)?\]", case.get("name"))
        if found and case.find("skipped") is None:
            passed = case.find("failure") is None and case.find("error") is None
            row = rows.setdefault((found[2], found[3]), {})
            row[found[1]] = row.get(found[1], True) and passed
    return rows


def main(path):
    rows = read(path)
    print("| EPICS Base | build | " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * (2 + len(COLUMNS)))
    for (release, kind), seen in rows.items():
        marks = ["–" if not any(t in seen for t in tests) else "right" if all(seen.get(t) for t in tests) else "**no**"
                 for tests in COLUMNS.values()]
        print(f"| {release} | {kind} | " + " | ".join(marks) + " |")
    return 0 if rows and all(all(seen.values()) for seen in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
