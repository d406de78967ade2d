/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* How a table of the kernel part is defined. Includes nothing of ours, so the packet filter has it, too. */
#ifndef EBPFMON_TABLE_BPF_H
#define EBPFMON_TABLE_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* kind: what follows BPF_MAP_TYPE_; number: elements */
#define TABLE(name, kind, number, keyType, valueType) \
    struct {                                          \
        __uint(type, BPF_MAP_TYPE_##kind);            \
        __uint(max_entries, number);                  \
        __type(key, keyType);                         \
        __type(value, valueType);                     \
    } name SEC(".maps")

#endif
