// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/* Defines the tables. maps.bpf.h tells what they are for. */
#define MAP
#include "maps.bpf.h"

volatile __u32 ringSleeps;
struct ebpfMonShare shares[EBPFMON_SHARES];

char LICENSE[] SEC("license") = "Dual BSD/GPL";
