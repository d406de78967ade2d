# SPDX-License-Identifier: BSD-3-Clause
# Finds the tables that the headers of bpf/ declare, for helpers.c: a line of C for each.
/^MAP TABLE\(/ { split($0, part, /[(,]/); print "ELEMENTS(" part[2] ")" }
/^MAP struct/ { kind = "ELEMENTS" }
/BLOCKS_OF\(/ && !/define/ { kind = "BLOCKS" }
/BPF_MAP_TYPE_RINGBUF/ { kind = "" }
/BPF_MAP_TYPE_QUEUE/ { kind = "QUEUE" }
/} [a-zA-Z]+ SEC\("\.maps"\);/ {
    match($0, /} [a-zA-Z]+ SEC/)
    if (kind != "")
        print kind "(" substr($0, RSTART + 2, RLENGTH - 6) ")"
}
