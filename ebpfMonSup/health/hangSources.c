/* SPDX-License-Identifier: BSD-3-Clause */
#include "health/hangSources.h"
#include "host/procStat.h"
#include "probe/kernelTables.h"

static unsigned readStack(pid_t pid, pid_t tid, ebpfMonFrame frame[EBPFMON_STACK_MAX])
{
    ebpfMonRegs regs = { .known = 0 };
    struct ebpfMonTaskRegs r;

    if (ebpfMonKernelGetRegs((uint32_t)tid, &r) == 0)
        regs = (ebpfMonRegs){ .reg = { [3] = r.bx, [6] = r.bp, [EBPFMON_REG_SP] = r.sp, [12] = r.r12, [13] = r.r13,
                                       [14] = r.r14, [15] = r.r15, [EBPFMON_REG_PC] = r.ip },
                              .known = 1u << 3 | 1u << 6 | 1u << EBPFMON_REG_SP | 0xfu << 12 | 1u << EBPFMON_REG_PC };
    return ebpfMonStackGet(pid, tid, &regs, frame);
}

const ebpfMonHangSources ebpfMonHangSourcesHost = {
    ebpfMonProcThread, ebpfMonProcKernelStack, readStack, ebpfMonKernelGetReleased
};
