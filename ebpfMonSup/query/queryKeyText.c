/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "ioc/syscallName.h"
#include "query/queryKeyText.h"
#include "query/querySpec.h"

static void nameIoc(uint32_t iocId, ebpfMonTargets *targets, char *text, size_t size)
{
    const ebpfMonTarget *t;

    snprintf(text, size, iocId ? "IOC %u" : "-", (unsigned)iocId);
    if (!targets || !iocId)
        return;
    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    if (t)
        ebpfMonTextCopy(text, size, t->name);
    ebpfMonTargetsUnlock(targets);
}

static void nameRecord(uint32_t iocId, uint64_t precord, ebpfMonTargets *targets, char *text, size_t size)
{
    const ebpfMonTarget *t;
    long index;

    if (!precord) {
        snprintf(text, size, "-");
        return;
    }
    snprintf(text, size, "0x%" PRIx64, precord);
    if (!targets)
        return;
    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    index = t && t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    if (index >= 0)
        ebpfMonTextCopy(text, size, ebpfMonCatalogueName(t->cat, (uint32_t)index));
    ebpfMonTargetsUnlock(targets);
}

void ebpfMonQueryKeyText(const struct ebpfMonQueryField *f, const uint8_t *key, ebpfMonTargets *targets, char *text,
                         size_t size)
{
    uint64_t n[2] = { 0, 0 };

    memcpy(n, key, f->size < sizeof(n) ? f->size : sizeof(n));
    if (ebpfMonQueryIsText(f))
        ebpfMonTextCopyBytes(text, size, (const char *)key, f->size);
    else if (ebpfMonQueryIsRecord(f))
        nameRecord((uint32_t)n[0], n[1], targets, text, size);
    else if (f->what == EBPFMON_QUERY_IOC)
        nameIoc((uint32_t)n[0], targets, text, size);
    else if (f->what == EBPFMON_QUERY_SYSCALL)
        ebpfMonSyscallName((long)n[0], text, size);
    else if (f->what == EBPFMON_QUERY_PREEMPTED)
        snprintf(text, size, "%s", n[0] ? "preempted" : "woken");
    else if (ebpfMonQueryIsSigned(f))
        snprintf(text, size, "%" PRId64, (int64_t)n[0]);
    else
        snprintf(text, size, "%" PRIu64, n[0]);
}
