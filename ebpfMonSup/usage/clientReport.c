/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>

#include <epicsString.h>

#include "common/clock.h"
#include "usage/clientReport.h"

#define USERS_MAX 20000 /* lines of ebpfMonUsers */
#define CELL ebpfMonTextReportAddCell

static void formatAddress(const ebpfMonCaClient *client, char *buf, size_t size)
{
    char addr[INET_ADDRSTRLEN] = "?";

    inet_ntop(AF_INET, &client->addr, addr, sizeof(addr));
    snprintf(buf, size, "%s:%u", addr, ntohs(client->port));
}

static void addTime(ebpfMonTextReport *report, const epicsTimeStamp *time)
{
    char text[24] = "-";

    if (time->secPastEpoch)
        epicsTimeToStrftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", time);
    CELL(report, " %s", text);
}

static void addBytes(ebpfMonTextReport *report, int64_t bytes)
{
    if (bytes < 0)
        CELL(report, "-");
    else
        CELL(report, "%lld", (long long)bytes);
}

static void addClientLine(ebpfMonTextReport *report, const ebpfMonClientIoc *ioc, unsigned i)
{
    const ebpfMonCaClient *client = &ioc->clients->client[i];
    const ebpfMonClientFacts *facts = &ioc->facts[i];
    char address[32];

    formatAddress(client, address, sizeof(address));
    CELL(report, "%s", ioc->name);
    CELL(report, " %s@%s", client->user, client->host);
    CELL(report, " %s", address);
    if (facts->who.peerPid)
        CELL(report, "%u", (unsigned)facts->who.peerPid);
    else
        CELL(report, "-");
    CELL(report, "%u", (unsigned)client->channels);
    CELL(report, "%u", (unsigned)client->subscriptions);
    addBytes(report, facts->bytes);
    addTime(report, &client->since);
    CELL(report, " %s", facts->who.command);
}

/* Adds a line if the list of clients is old or not complete. Nonzero: there is no list. */
static int addNote(ebpfMonTextReport *report, const ebpfMonClientIoc *ioc)
{
    if (!ioc->clientQ) {
        ebpfMonTextReportAdd(report, "%s: it has no CA server of EPICS Base\n", ioc->name);
        return 1;
    }
    if (!ioc->clients) {
        ebpfMonTextReportAdd(report, "%s: the list of its clients could not be read yet; try again in a moment\n",
                             ioc->name);
        return 1;
    }
    if (!ioc->isRead)
        ebpfMonTextReportAdd(report, "%s: could not be read now; this list is %.0f s old\n", ioc->name,
                             (double)(ebpfMonClockMonotonic() - ioc->readAt) / 1e9);
    if (ioc->clients->leftOut)
        ebpfMonTextReportAdd(report, "%s: %zu more channels are not listed: there are too many\n", ioc->name,
                             ioc->clients->leftOut);
    return 0;
}

void ebpfMonClientReportAddClients(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *iocPattern)
{
    static const ebpfMonReportColumn columns[] = {
        {"IOC", -20}, {" client", -24}, {" address", -22}, {"pid", 8}, {"channels", 9}, {"subscribed", 11},
        {"bytes sent", 13}, {" oldest channel since", -21}, {" command", 0}
    };
    const ebpfMonClientIoc *ioc;

    ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++)
        if (epicsStrGlobMatch(ioc->name, iocPattern) && !addNote(report, ioc))
            for (unsigned i = 0; i < ioc->clients->clients; i++)
                addClientLine(report, ioc, i);
    ebpfMonClientTableUnlock(table);
}

static int matchesPattern(const ebpfMonClientIoc *ioc, const ebpfMonCaUse *use, const char *pattern)
{
    return !pattern[0] || epicsStrGlobMatch(ioc->clients->names + use->name, pattern) ||
           epicsStrGlobMatch(ebpfMonCatalogueName(ioc->cat, use->record), pattern);
}

/* Adds a number that was counted in packets: ">5" is a lower bound, "-" is not known. */
static void addCount(ebpfMonTextReport *report, const ebpfMonUpdateCount *count, uint64_t number)
{
    if (!count || !count->updates)
        CELL(report, "-");
    else
        CELL(report, "%s%llu", count->isAtLeast ? ">" : "", (unsigned long long)number);
}

static void addUser(ebpfMonTextReport *report, const ebpfMonClientIoc *ioc, size_t index)
{
    const ebpfMonCaUse *use = &ioc->clients->use[index];
    const ebpfMonUpdateCount *count = ioc->counts ? &ioc->counts[index] : NULL;
    const ebpfMonCaClient *client = &ioc->clients->client[use->client];
    const ebpfMonClientFacts *facts = &ioc->facts[use->client];
    char address[32];

    formatAddress(client, address, sizeof(address));
    CELL(report, "%s", ioc->clients->names + use->name);
    CELL(report, " %s", ioc->name);
    CELL(report, " %s@%s", client->user, client->host);
    CELL(report, " %s", address);
    CELL(report, "%u", (unsigned)use->subscriptions);
    addCount(report, count, count ? count->updates : 0);
    addCount(report, count, count ? count->bytes : 0);
    addTime(report, &use->since);
    CELL(report, " %s", facts->who.command);
}

void ebpfMonClientReportAddUsers(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *pvPattern)
{
    static const ebpfMonReportColumn columns[] = {
        {"PV", -32}, {" IOC", -20}, {" client", -24}, {" address", -22}, {"subscribed", 11}, {"updates", 10},
        {"bytes", 12}, {" since", -20}, {" command", 0}
    };
    const ebpfMonClientIoc *ioc;
    unsigned found = 0;

    ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++) {
        if (addNote(report, ioc))
            continue;
        for (size_t i = 0; i < ioc->clients->uses; i++)
            if (matchesPattern(ioc, &ioc->clients->use[i], pvPattern) && found++ < USERS_MAX)
                addUser(report, ioc, i);
    }
    ebpfMonClientTableUnlock(table);
    if (found > USERS_MAX)
        ebpfMonTextReportAdd(report, "... and %u more: choose a narrower pattern\n", found - USERS_MAX);
}
