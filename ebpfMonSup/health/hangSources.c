/* SPDX-License-Identifier: BSD-3-Clause */
#include "health/hangSources.h"
#include "host/memory.h"
#include "host/procStat.h"
#include "ioc/baseLayout.h"
#include "probe/kernelTables.h"

static unsigned readStack(pid_t pid, pid_t tid, ebpfMonFrame frame[EBPFMON_STACK_MAX])
{
    ebpfMonStackStart start = { .returns = 0 };
    ebpfMonKernelRegs found;

    if (ebpfMonKernelGetRegs((uint32_t)tid, &found) == 0) {
        struct ebpfMonTaskRegs r = found.regs;

        start.regs = (ebpfMonRegs){.reg = {[3] = r.bx,
                                           [6] = r.bp,
                                           [EBPFMON_REG_SP] = r.sp,
                                           [12] = r.r12,
                                           [13] = r.r13,
                                           [14] = r.r14,
                                           [15] = r.r15,
                                           [EBPFMON_REG_PC] = r.ip},
                                   .known = 1u << 3 | 1u << 6 | 1u << EBPFMON_REG_SP | 0xfu << 12 |
                                            1u << EBPFMON_REG_PC};
        for (unsigned i = 0; i < found.returns && i < EBPFMON_STACK_RETURNS; i++)
            start.ret[start.returns++] = (ebpfMonReturn){ .slot = found.ret[i].slot, .to = found.ret[i].to };
    }
    return ebpfMonStackGet(pid, tid, &start, frame);
}

static uint64_t readLockSet(pid_t pid, uint64_t lset)
{
    struct layoutLockRecord lock;
    uint64_t at;

    return ebpfMonMemReadNow(pid, lset, &at, sizeof(at)) || ebpfMonMemReadNow(pid, at, &lock, sizeof(lock)) ?
           0 : lock.plockSet;
}

const ebpfMonHangSources ebpfMonHangSourcesHost = {
    ebpfMonProcThread, ebpfMonProcKernelStack, readStack, readLockSet, ebpfMonKernelGetReleased
};
