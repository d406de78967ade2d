/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stack is kept for some seconds: to take one goes through the symbols of half a dozen files. The record in hand is
 * told from the registers that a function must keep for its caller: the innermost function that put a record's address
 * into one of them works on that record (process(precord), readValue(precord) and so on need it after each call).
 */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "health/hangStack.h"
#include "watch/target.h"
#include "probe/loader.h"
#include "ioc/procStat.h"
#include "ioc/stack.h"

#define KEPT    8 /* hangs whose stack is shown */
#define REFRESH 5000000000ull /* ns */

static struct kept {
    uint32_t tid;
    uint64_t begin, taken, used;
    unsigned n;
    ebpfMonFrame frame[EBPFMON_STACK_MAX];
    char     record[EBPFMON_HEALTH_NAME];
} kept[KEPT];

/* NULL: it has none, and more than KEPT hang. */
static struct kept *keptOf(uint32_t tid, uint64_t begin, uint64_t now)
{
    struct kept *oldest = &kept[0];

    for (int i = 0; i < KEPT; i++) {
        if (kept[i].tid == tid && kept[i].begin == begin) {
            kept[i].used = now;
            return &kept[i];
        }
        if (kept[i].used < oldest->used)
            oldest = &kept[i];
    }
    if (oldest->used && now - oldest->used < REFRESH)
        return NULL;
    *oldest = (struct kept){ .tid = tid, .begin = begin, .used = now };
    return oldest;
}

static void recordInHand(uint32_t id, const ebpfMonFrame *frame, unsigned n, char *name, size_t size)
{
    ebpfMonTarget *t;
    long index = -1;

    ebpfMonTargetsLock(ebpfMonTheTargets);
    t = ebpfMonTargetsFindById(ebpfMonTheTargets, id);
    /* of the outermost frame no caller is known, and so not what it put into a register itself */
    for (unsigned f = 0; t && t->cat && f + 1 < n && index < 0; f++)
        for (int r = 0; r < EBPFMON_SAVED && index < 0; r++)
            if (frame[f].saved[r] && frame[f].saved[r] != frame[f + 1].saved[r])
                index = ebpfMonCatalogueFindAddr(t->cat, frame[f].saved[r]);
    snprintf(name, size, "%s", index >= 0 ? ebpfMonCatalogueName(t->cat, (uint32_t)index) : "");
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
}

static void take(pid_t pid, uint32_t id, struct kept *k)
{
    ebpfMonRegs regs = { .known = 0 };
    struct ebpfMonTaskRegs r;

    if (ebpfMonKernelGetRegs(k->tid, &r) == 0)
        regs = (ebpfMonRegs){ .reg = { [3] = r.bx, [6] = r.bp, [EBPFMON_REG_SP] = r.sp, [12] = r.r12, [13] = r.r13,
                                       [14] = r.r14, [15] = r.r15, [EBPFMON_REG_PC] = r.ip },
                              .known = 1u << 3 | 1u << 6 | 1u << EBPFMON_REG_SP | 0xfu << 12 | 1u << EBPFMON_REG_PC };
    k->n = ebpfMonStackGet(pid, (pid_t)k->tid, &regs, k->frame);
    recordInHand(id, k->frame, k->n, k->record, sizeof(k->record));
}

static struct kept *find(uint32_t tid, uint64_t begin)
{
    for (int i = 0; i < KEPT; i++)
        if (kept[i].tid == tid && kept[i].begin == begin)
            return &kept[i];
    return NULL;
}

void ebpfMonHangStack(pid_t pid, ebpfMonHang *h)
{
    uint64_t now = ebpfMonClockMonotonic();
    struct kept *k = keptOf(h->tid, h->begin, now);
    size_t used = strlen(h->what);
    const char *separator = ", at ";

    h->now[0] = 0;
    if (!k)
        return;
    if (!k->taken || now - k->taken > REFRESH) {
        take(pid, h->id, k);
        k->taken = now;
    }
    snprintf(h->now, sizeof(h->now), "%s", k->record);
    for (unsigned i = 0; i < k->n; i++) {
        const char *name = k->frame[i].name[0] ? k->frame[i].name : k->frame[i].file;

        if (used + strlen(separator) + strlen(name) >= sizeof(h->what))
            break;
        used += (size_t)snprintf(h->what + used, sizeof(h->what) - used, "%s%s", separator, name);
        separator = " < ";
    }
}

static char *line(ebpfMonHealth *health)
{
    return health->hangLines < EBPFMON_HANG_LINES ? health->hangLine[health->hangLines++] : NULL;
}

void ebpfMonHangStackLines(const ebpfMonHang *h, pid_t pid, ebpfMonHealth *health)
{
    const struct kept *k = find(h->tid, h->begin);
    char kernel[200], *at = line(health);

    if (at)
        snprintf(at, EBPFMON_HANG_LINE, "%s since %.0f s", h->who, h->since);
    if (!k)
        return;
    ebpfMonProcKernelStack(pid, (pid_t)h->tid, kernel, sizeof(kernel));
    if (kernel[0] && (at = line(health)) != NULL)
        snprintf(at, EBPFMON_HANG_LINE, "  in the kernel: %s", kernel);
    for (unsigned i = 0; i < k->n && (at = line(health)) != NULL; i++)
        snprintf(at, EBPFMON_HANG_LINE, "  #%u %s+0x%x (%s)", i, k->frame[i].name, k->frame[i].offset,
                 k->frame[i].file);
}
