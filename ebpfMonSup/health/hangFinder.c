/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "health/hangFinder.h"
#include "health/hangStack.h"
#include "watch/target.h"
#include "probe/loader.h"
#include "ioc/procStat.h"

static int waitsForLock(const ebpfMonSeenThread *t)
{
    char name[16], what[128];

    return ebpfMonProcThread((pid_t)t->seen.tgid, (pid_t)t->tid, name, what, sizeof(what)) == 0 &&
           strstr(what, " futex") != NULL;
}

/* Since when this thread has held its lock set, 0: it does not. The thread table has those that wait for it as well:
 * the holder is the one that does not wait in the kernel for a mutex; if all do, the one that asked first. It had to
 * wait, too, when somebody released the set after it had asked. */
static uint64_t heldSince(const ebpfMonSeenThread *threads, unsigned count, unsigned i)
{
    const struct ebpfMonThread *t = &threads[i].seen;
    uint64_t since = t->held[0].begin, released = ebpfMonKernelGetReleased(t->tgid, t->held[0].lockSet);
    int waits = waitsForLock(&threads[i]);

    for (unsigned k = 0; k < count; k++) {
        const struct ebpfMonThread *o = &threads[k].seen;
        int first = o->held[0].begin < t->held[0].begin;

        if (k == i || o->tgid != t->tgid || !o->heldCount || o->held[0].lockSet != t->held[0].lockSet)
            continue;
        if ((waits && !waitsForLock(&threads[k])) || (first && (waits || !waitsForLock(&threads[k]))))
            return 0;
    }
    return released > since ? released : since;
}

static int isLong(uint64_t since, uint64_t now, uint64_t limit)
{
    return since && now > since && now - since >= limit;
}

/* Since when this thread has hung, 0: it does not. What only waits for a lock set hangs because another one does. */
static uint64_t hangsSince(const ebpfMonSeenThread *threads, unsigned count, unsigned i, uint64_t now, uint64_t limit)
{
    const struct ebpfMonThread *t = &threads[i].seen;
    uint64_t since = t->busySince;

    if (t->heldCount && isLong(t->held[0].begin, now, limit))
        since = heldSince(threads, count, i);
    return isLong(since, now, limit) ? since : 0;
}

/* Copies what names the IOC and the record. 0, or -1: it is not watched any more. */
static int nameOf(const struct ebpfMonThread *t, ebpfMonHang *h, char *ioc, size_t iocSize, char *record, size_t size)
{
    const ebpfMonTarget *target;
    long index = -1;

    ebpfMonTargetsLock(ebpfMonTheTargets);
    target = ebpfMonTargetsFindByPid(ebpfMonTheTargets, (pid_t)t->tgid);
    if (target) {
        h->id = target->iocId;
        snprintf(ioc, iocSize, "%s", target->name);
        if (t->heldCount && target->cat)
            index = ebpfMonCatalogueFindAddr(target->cat, t->held[0].root);
        snprintf(record, size, "%s", index >= 0 ? ebpfMonCatalogueName(target->cat, (uint32_t)index) : "?");
    }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    return target ? 0 : -1;
}

unsigned ebpfMonHangsFind(const ebpfMonSeenThread *threads, unsigned count, uint64_t now, ebpfMonHang *found,
                          ebpfMonHealth *health)
{
    uint64_t limit = (uint64_t)(ebpfMonHangLimit * 1e9);
    unsigned n = 0;

    health->hangLines = 0;
    for (unsigned i = 0; ebpfMonHangLimit > 0 && i < count && n < EBPFMON_HEALTH_HANGS; i++) {
        const struct ebpfMonThread *t = &threads[i].seen;
        char name[16], ioc[EBPFMON_HEALTH_NAME], record[EBPFMON_HEALTH_NAME];
        uint64_t since = hangsSince(threads, count, i, now, limit);
        ebpfMonHang *h = &found[n];
        int inRecord = t->heldCount && isLong(t->held[0].begin, now, limit), another;

        if (!since || nameOf(t, h, ioc, sizeof(ioc), record, sizeof(record)) ||
            ebpfMonProcThread((pid_t)t->tgid, (pid_t)threads[i].tid, name, h->what, sizeof(h->what)))
            continue;
        h->tid = threads[i].tid;
        /* one, whatever it locks meanwhile */
        h->begin = isLong(t->busySince, now, limit) ? t->busySince : t->held[0].begin;
        h->since = (double)(now - since) / 1e9;
        ebpfMonHangStack((pid_t)t->tgid, h);
        another = h->now[0] && (!inRecord || strcmp(h->now, record) != 0);
        snprintf(h->who, sizeof(h->who), "IOC %s (pid %u): thread %s (%u) in %s%s%s%s", ioc, t->tgid, name,
                 threads[i].tid, inRecord ? "record " : "a callback", inRecord ? record : "",
                 another ? ", at " : "", another ? h->now : "");
        ebpfMonHangStackLines(h, (pid_t)t->tgid, health);
        n++;
    }
    return n;
}
