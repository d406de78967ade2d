/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "common/text.h"
#include "publish/hostStatus.h"

/* The worst trouble; 0: there is none. "text" has "size" bytes. */
static int findTrouble(const ebpfMonPublished *p, char *text, size_t size)
{
    const ebpfMonHealth *h = &p->health;

    if (h->gone)
        snprintf(text, size, "IOC %s", h->goneText);
    else if (h->still)
        snprintf(text, size, "IOC %s", h->stillText);
    else if (h->hangs)
        snprintf(text, size, "%u %s", h->hangs, h->hangs == 1 ? "thread hangs" : "threads hang");
    else if (p->unexpected.open)
        snprintf(text, size, "%d unexpected %s open", p->unexpected.open,
                 p->unexpected.open == 1 ? "put is" : "puts are");
    else if (h->isFarLate)
        snprintf(text, size, "%s", h->lateText);
    else
        return 0;
    return 1;
}

static int findWarning(const ebpfMonPublished *p, char *text, size_t size)
{
    if (p->state == ebpfMonDegraded)
        ebpfMonTextCopy(text, size, p->stateMessage);
    else if (p->health.lateNow)
        ebpfMonTextCopy(text, size, p->health.lateText);
    else if (p->losses.isGrowing)
        snprintf(text, size, "events are lost: %s", p->losses.newest);
    else if (p->packets.isLosing)
        snprintf(text, size, "packets are lost");
    else if (p->log.state == ebpfMonLogTrouble)
        ebpfMonTextCopy(text, size, p->log.message);
    else if (p->rules.refused)
        ebpfMonTextCopy(text, size, p->rules.message);
    else if (p->audit.count)
        ebpfMonTextCopy(text, size, p->audit.text);
    else
        return 0;
    return 1;
}

void ebpfMonHostStatusSet(ebpfMonPublished *p)
{
    ebpfMonHostValues *host = &p->host;

    if (findTrouble(p, host->text, sizeof(host->text)))
        host->status = ebpfMonHostTrouble;
    else if (findWarning(p, host->text, sizeof(host->text)))
        host->status = ebpfMonHostWarning;
    else {
        host->status = ebpfMonHostOk;
        snprintf(host->text, sizeof(host->text), "%s", p->stateMessage);
    }
}
