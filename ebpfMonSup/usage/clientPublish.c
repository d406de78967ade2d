/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes the clients that have a channel which matches the patterns. Clients with most channels come first. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsString.h>

#include "common/text.h"
#include "model/published.h"
#include "usage/clientReport.h"

#define ELEMENT 40 /* bytes of an element of a waveform of texts: MAX_STRING_SIZE of Base */

/* Returns a row for a client. If all rows are taken, the row of the client with the fewest channels, if it has fewer
 * than "channels"; else NULL. */
static ebpfMonClientRow *findRowPlace(ebpfMonClientValues *values, unsigned channels)
{
    ebpfMonClientRow *least = &values->row[0];

    values->count++;
    if (values->rows < EBPFMON_CLIENT_ROWS)
        return &values->row[values->rows++];
    for (unsigned i = 1; i < values->rows; i++)
        if (values->row[i].channels < least->channels)
            least = &values->row[i];
    return least->channels < channels ? least : NULL;
}

/* Writes user@address:port. A long name of a user is cut so that the address, which it cannot choose, is still in an
 * element of a waveform of texts. */
static void nameClient(const ebpfMonCaClient *client, char *text, size_t size)
{
    char addr[INET_ADDRSTRLEN] = "?", from[INET_ADDRSTRLEN + sizeof("@:65535")], user[ELEMENT];

    inet_ntop(AF_INET, &client->addr, addr, sizeof(addr));
    snprintf(from, sizeof(from), "@%s:%u", addr, (unsigned)ntohs(client->port));
    ebpfMonTextCopy(user, sizeof(user) - strlen(from), client->user);
    snprintf(text, size, "%s%s", user, from);
}

static void addClient(ebpfMonClientValues *values, const ebpfMonClientIoc *ioc, unsigned i, const ebpfMonCaClient *sum)
{
    const ebpfMonCaClient *client = &ioc->clients->client[i];
    ebpfMonClientRow *row = findRowPlace(values, sum->channels);

    values->channels += sum->channels;
    values->subscriptions += sum->subscriptions;
    if (!row)
        return;
    *row = (ebpfMonClientRow){ .pid = ioc->facts[i].who.peerPid, .channels = sum->channels,
                               .subscriptions = sum->subscriptions, .since = sum->since, .bytes = ioc->facts[i].bytes };
    nameClient(client, row->name, sizeof(row->name));
    snprintf(row->ioc, sizeof(row->ioc), "%s", ioc->name);
    snprintf(row->command, sizeof(row->command), "%s", ioc->facts[i].who.command);
}

static void addClientUse(const ebpfMonCaUse *use, ebpfMonCaClient *sum)
{
    sum->channels++;
    sum->subscriptions += use->subscriptions;
    if (!sum->since.secPastEpoch || epicsTimeLessThan(&use->since, &sum->since))
        sum->since = use->since;
}

/* c->use is sorted by client, so one walk through it serves all clients. */
static void addIoc(ebpfMonClientValues *values, const ebpfMonClientIoc *ioc)
{
    const ebpfMonCaClients *c = ioc->clients;
    const char *pattern = values->pvPattern;
    size_t at = 0;

    for (unsigned i = 0; i < c->clients; i++) {
        ebpfMonCaClient sum = { .channels = 0 };

        for (; at < c->uses && c->use[at].client == i; at++)
            if (pattern[0] && (epicsStrGlobMatch(c->names + c->use[at].name, pattern) ||
                               epicsStrGlobMatch(ebpfMonCatalogueName(ioc->cat, c->use[at].record), pattern)))
                addClientUse(&c->use[at], &sum);
        if (!pattern[0])
            sum = c->client[i];
        if (!pattern[0] || sum.channels)
            addClient(values, ioc, i, &sum);
    }
}

static int compareRows(const void *left, const void *right)
{
    const ebpfMonClientRow *l = left, *r = right;

    if (l->channels != r->channels)
        return l->channels < r->channels ? 1 : -1;
    return strcmp(l->name, r->name);
}

void ebpfMonClientReportPublish(ebpfMonClientTable *table)
{
    ebpfMonClientValues *values = calloc(1, sizeof(*values));
    const ebpfMonClientIoc *ioc;
    ebpfMonPublished *published;

    if (!values)
        return;
    published = ebpfMonPublishedLock();
    memcpy(values->iocPattern, published->clients.iocPattern, sizeof(values->iocPattern));
    memcpy(values->pvPattern, published->clients.pvPattern, sizeof(values->pvPattern));
    ebpfMonPublishedUnlock();
    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++) {
        if (values->iocPattern[0] && !epicsStrGlobMatch(ioc->name, values->iocPattern))
            continue;
        values->unread += !ioc->isRead && ioc->clientQ;
        if (ioc->clients)
            addIoc(values, ioc);
    }
    values->look = (double)ebpfMonClientTableGetCost(table) / 1e6;
    ebpfMonClientTableUnlock(table);
    qsort(values->row, values->rows, sizeof(values->row[0]), compareRows);
    published = ebpfMonPublishedLock();
    /* the operator may have changed the patterns meanwhile: do not put the old ones back */
    memcpy(values->iocPattern, published->clients.iocPattern, sizeof(values->iocPattern));
    memcpy(values->pvPattern, published->clients.pvPattern, sizeof(values->pvPattern));
    published->clients = *values;
    epicsTimeGetCurrent(&published->time[ebpfMonGroupClients]);
    ebpfMonPublishedUnlock();
    free(values);
    ebpfMonPublishedNotify(ebpfMonGroupClients);
}
