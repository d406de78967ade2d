/* SPDX-License-Identifier: BSD-3-Clause */
#include "ioc/caServer.h"
#include "ioc/mutexes.h"
#include "ioc/recordLinks.h"
#include "ioc/scanLists.h"
#include "watch/targetLayouts.h"

/* Nonzero: the layout fits to the records, and to the functions of this IOC. */
static int isPossible(const ebpfMonTarget *t, const ebpfMonCatalogue *cat, const ebpfMonBaseRelease *base)
{
    const int hasChannels = !(t->image.core->oldNames & (1u << ebpfMonFnProcessNotify)); /* EPICS 3.14: dbPutNotify */

    return ebpfMonBaseReleaseIsAlike(base, cat->base) && base->has.channels == hasChannels;
}

void ebpfMonTargetLayoutsChoose(const ebpfMonTarget *t, ebpfMonCatalogue *cat)
{
    ebpfMonMem *mem = t->follower.mem;
    const ebpfMonBaseRelease *base, *first = NULL, *found = NULL;
    const char *odd;

    ebpfMonMemFlush(mem); /* its budget of bytes and time begins anew: the database may have used it up */
    for (unsigned i = 0; !found && (base = ebpfMonBaseReleaseGet(i)) != NULL; i++) {
        if (!isPossible(t, cat, base))
            continue;
        if (!first)
            first = base;
        if (ebpfMonMutexesAreKnown(mem, cat, base) >= 0 &&
            ebpfMonCaServerIsKnown(mem, cat, base, t->image.clientQ, &odd) >= 0)
            found = base;
    }
    if (found || first)
        cat->base = found ? found : first;
    ebpfMonMemFlush(mem);
}

void ebpfMonTargetLayoutsRead(ebpfMonTarget *t)
{
    ebpfMonTargetLayoutsChoose(t, t->cat);
    t->follower.oddLocks = !ebpfMonLockSetsAreKnown(t->follower.mem, t->cat);
    t->follower.hasLists = ebpfMonScanListsAreKnown(t->follower.mem, t->cat);
    ebpfMonMemFlush(t->follower.mem);
}

static int lookAtServer(ebpfMonTarget *t)
{
    int known;

    ebpfMonMemFlush(t->follower.mem);
    known = ebpfMonCaServerIsKnown(t->follower.mem, t->cat, t->cat->base, t->image.clientQ, &t->follower.oddMember);
    ebpfMonMemFlush(t->follower.mem);
    return known;
}

int ebpfMonTargetLayoutsLookAtServer(ebpfMonTarget *t)
{
    const ebpfMonBaseRelease *before;
    int known;

    if (t->follower.isServerKnown || t->follower.oddServer >= EBPFMON_ODD_SERVER || !t->follower.isPrepared)
        return 0;
    before = t->cat->base;
    known = lookAtServer(t);
    if (known < 0) {
        ebpfMonTargetLayoutsChoose(t, t->cat);
        known = lookAtServer(t);
    }
    t->follower.isServerKnown = known > 0;
    t->follower.oddServer = known < 0 ? t->follower.oddServer + 1 : 0;
    return t->follower.oddServer == EBPFMON_ODD_SERVER || t->cat->base != before;
}
