/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Reads the arguments of USDT probes, which are in registers, on the stack, or in variables. The user part knows where
 * (shared/usdt.c). */
#ifndef EBPFMON_QUERYUSDT_BPF_H
#define EBPFMON_QUERYUSDT_BPF_H

#include "query/queryWho.bpf.h"

/* The user part sets the number of elements, and writes them before the probes are attached. */
TABLE(sites, HASH, 1, struct ebpfMonQuerySiteKey, struct ebpfMonQuerySite);

/* A program may read its context at constant offsets only. So the register is read as memory of the kernel. */
static __always_inline __u64 readRegister(const void *ctx, __u32 word)
{
    __u64 value = 0;

    if (word < EBPFMON_QUERY_REGS)
        bpf_probe_read_kernel(&value, sizeof(value), ctx + 8 * word);
    return value;
}

/* Reads one argument. 0, or nonzero: it cannot be read. */
static __always_inline int readOperand(const struct ebpfMonQueryOperand *op, const void *ctx, __u64 *to)
{
    __u64 at = readRegister(ctx, op->base) + op->number, n[2] = {}; /* two words, because the mask below is for the
                                                                     * verifier */
    __u32 size = op->size & 15, up = (64 - 8 * size) & 63;

    if (op->kind == EBPFMON_QUERY_NO_OPERAND)
        return -1;
    if (op->kind == EBPFMON_QUERY_MEMORY) {
        if (bpf_probe_read_user(n, size, (void *)(at + (readRegister(ctx, op->index) << (op->shift & 3)))))
            return -1;
    } else {
        n[0] = at;
    }
    *to = op->isSigned ? (__u64)((__s64)(n[0] << up) >> up) : n[0] << up >> up;
    return 0;
}

/* Reads the arguments that the query needs. */
static __always_inline void readOperands(struct queryEvent *e, struct pt_regs *ctx)
{
    struct ebpfMonQuerySiteKey key = { .ip = PT_REGS_IP(ctx), .tgid = e->tgid };
    const struct ebpfMonQuerySite *site = bpf_map_lookup_elem(&sites, &key);

    e->regs = (__u64)ctx;
    e->ip = site ? site->first : key.ip;
#pragma unroll
    for (__u32 i = 0; i < EBPFMON_QUERY_ARGS; i++)
        if ((plan.args >> i & 1) && (!site || readOperand(&site->arg[i], ctx, &e->arg[i])))
            e->unread |= 1u << i;
}

#endif
