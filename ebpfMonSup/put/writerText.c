/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "common/text.h"
#include "put/writerText.h"

void ebpfMonWriterTextFormatCause(const char *user, const char *host, int isUnsure, char *buf, size_t size)
{
    snprintf(buf, size, EBPFMON_PUT_BY "%s%.39s@%.40s", isUnsure ? EBPFMON_PERHAPS : "", user, host);
}

/* A client is called as it claims, because that is how operators know it. What the kernel knows of a client on this
 * host stands beside the claim. */
static void makeWho(ebpfMonPut *put)
{
    char local[160] = "", who[2 * EBPFMON_WHO_SIZE];

    if (put->peer[0]) {
        if (put->peerPid)
            snprintf(local, sizeof(local), " %s[%u]%s%s", put->command, put->peerPid,
                     put->container[0] ? " in " : "", put->container);
        snprintf(who, sizeof(who), "%s%s@%s%s", put->isUnsure ? EBPFMON_PERHAPS : "", put->user[0] ? put->user : "?",
                 put->host, local);
    } else if (put->through == ebpfMonByShell || put->through == ebpfMonByInit) {
        ebpfMonTextSet(who, sizeof(who), ebpfMonThroughName(put->through));
    } else {
        snprintf(who, sizeof(who), "thread %s", put->thread);
    }
    ebpfMonTextCopy(put->who, sizeof(put->who), who);
}

static void makeOrigin(ebpfMonPut *put)
{
    char reason[360] = "";
    int n = 0;

    if (put->link[0])
        n = snprintf(reason, sizeof(reason), ", %s %s%s%s", ebpfMonThroughName(put->through), put->link,
                     put->linkIoc[0] ? " of " : "", put->linkIoc);
    if (put->published[0] && n < (int)sizeof(reason))
        n += snprintf(reason + n, sizeof(reason) - (size_t)n, ", to %s", put->published);
    if (put->group[0] && n < (int)sizeof(reason))
        n += snprintf(reason + n, sizeof(reason) - (size_t)n, ", group %s", put->group);
    if (put->root[0] && n < (int)sizeof(reason))
        n += snprintf(reason + n, sizeof(reason) - (size_t)n, ", chain of %s", put->root);
    if (put->cause[0] && n < (int)sizeof(reason))
        snprintf(reason + n, sizeof(reason) - (size_t)n, ", %s", put->cause);
    if (put->peer[0] && !ebpfMonPutIsInner(put))
        snprintf(put->origin, sizeof(put->origin), "%s %s%s%s%s%s", put->through == ebpfMonByPva ? "PVA" : "CA",
                 put->isUnsure ? EBPFMON_PERHAPS : "", put->peer, put->realUser[0] ? " uid " : "", put->realUser,
                 reason);
    else if (reason[0])
        ebpfMonTextSet(put->origin, sizeof(put->origin), reason + 2);
    else
        ebpfMonTextSet(put->origin, sizeof(put->origin), "in the IOC");
}

void ebpfMonWriterTextComplete(ebpfMonPut *put)
{
    ebpfMonPutClean(put);
    makeWho(put);
    makeOrigin(put);
}
