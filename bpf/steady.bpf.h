/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about steady records. */
#ifndef EBPFMON_STEADY_BPF_H
#define EBPFMON_STEADY_BPF_H

#include "core.bpf.h"

/* There is a put to this field of the record ("pfield": its address; 0: not known). If a pass may leave out the record
 * because of that, the record and all that it makes process are not steady any more. Call it before the put is done. */
int ebpfmon_note_unsteady(__u64 precord, __u64 pfield);

#endif
