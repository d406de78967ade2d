// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Finds at which record a scan list is, on the stack of its thread. scanList() (dbScan.c) needs the address of the
 * record after dbProcess() has returned, to release its lock. So the address is in a register that dbProcess() must
 * preserve. dbProcess() needs all these registers, so it has saved them on the stack; or scanList() itself has put the
 * address there. Both places are just below the entry of scanList(), and the address is the first one of a record
 * there. Addresses deeper on the stack belong to records that this record made process.
 */
#include "pass/passRoot.bpf.h"

/* "sp": the stack pointer at the entry of scanList(), or within. The result goes to struct thread.passRoot. It does not
 * use bpf_loop(), because puts are seen before kernel 5.17, too. */
__attribute__((noinline)) int ebpfmon_find_root(__u64 sp)
{
    struct ebpfMonRecKey key = {};
    struct thread *th;
    struct caller c;

    if (!findCaller(&c) || !(th = bpf_map_lookup_elem(&threads, &c.tid)))
        return 0;
    th->passRoot = 0;
    if (bpf_probe_read_user(th->stack, sizeof(th->stack), (void *)(sp - sizeof(th->stack))))
        return 0;
    key.tgid = c.tgid;
#pragma unroll
    for (int i = EBPFMON_PASS_STACK - 1; i >= 0; i--) {
        key.precord = th->stack[i];
        if (key.precord && bpf_map_lookup_elem(&recIndex, &key)) {
            th->passRoot = key.precord;
            return 0;
        }
    }
    return 0;
}
