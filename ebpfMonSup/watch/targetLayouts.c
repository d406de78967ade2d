/* SPDX-License-Identifier: BSD-3-Clause */
#include "ioc/caServer.h"
#include "ioc/lockSets.h"
#include "ioc/scanLists.h"
#include "watch/targetLayouts.h"

void ebpfMonTargetLayoutsRead(ebpfMonTarget *t)
{
    ebpfMonMemFlush(t->follower.mem); /* its budget of bytes and time begins anew: the database may have used it up */
    t->follower.oddLocks = !ebpfMonLockSetsAreKnown(t->follower.mem, t->cat);
    t->follower.hasLists = ebpfMonScanListsAreKnown(t->follower.mem, t->cat);
    ebpfMonMemFlush(t->follower.mem);
}

int ebpfMonTargetLayoutsLookAtServer(ebpfMonTarget *t)
{
    int known;

    if (t->follower.isServerKnown || t->follower.oddServer >= EBPFMON_ODD_SERVER || !t->follower.isPrepared)
        return 0;
    ebpfMonMemFlush(t->follower.mem);
    known = ebpfMonCaServerIsKnown(t->follower.mem, t->cat, t->image.clientQ);
    ebpfMonMemFlush(t->follower.mem);
    t->follower.isServerKnown = known > 0;
    t->follower.oddServer = known < 0 ? t->follower.oddServer + 1 : 0;
    return t->follower.oddServer == EBPFMON_ODD_SERVER;
}
