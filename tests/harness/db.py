# SPDX-License-Identifier: BSD-3-Clause
"""Databases with records that count themselves: VAL grows by one each time a record processes."""

READY = 'record(calc, "$(P)READY") { field(CALC, "1") field(PINI, "YES") }\n'


def record(rtype, name, **fields):
    body = "".join(f' field({f}, "{v}")' for f, v in fields.items())
    return f'record({rtype}, "$(P){name}") {{{body} }}\n'


def counter(name, **fields):
    return record("calc", name, CALC="VAL+1", **fields)


def out_counter(name, **fields):
    return record("calcout", name, CALC="VAL+1", **fields)


def unreadable(name):
    """A record that has more info tags than the monitor believes. So the inventory of its IOC cannot be read."""
    tags = "\n".join(f'    info(tag{i}, "x")' for i in range(1001))
    return f'record(ai, "$(P){name}") {{\n{tags}\n}}\n'


def chain(name, length, **first):
    """name0 → name1 → … by forward links. The first record also gets these fields."""
    text = ""
    for i in range(length):
        fields = dict(first) if i == 0 else {}
        if i + 1 < length:
            fields["FLNK"] = f"$(P){name}{i + 1}"
        text += counter(f"{name}{i}", **fields)
    return text
