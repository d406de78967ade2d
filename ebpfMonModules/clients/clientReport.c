/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <epicsString.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clients/clientReport.h"
#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "ebpfMonModule.h"
#include "host/tcpSockets.h"

/* --- published values --- */

/* Publishes the clients that have a channel which matches the patterns. Clients with most channels come first. */

#define ELEMENT 40 /* bytes of an element of a waveform of texts: MAX_STRING_SIZE of Base */
#define CUT_USER 6 /* … of which a user's name has so many at least */

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
 * element of a waveform of texts; only an IPv6 address that is too long itself is cut. */
static void nameClient(const char *claimed, const struct ebpfMonPeer *peer, const char *protocol, char *text,
                       size_t size)
{
    char end[EBPFMON_PEERTEXT_SIZE + sizeof("[]:65535")], from[sizeof(end) + sizeof("@ PVA")], user[ELEMENT];
    char all[sizeof(user) + sizeof(from)];
    size_t room;

    ebpfMonPeerTextEnd(peer->addr, peer->addr6, peer->port, end, sizeof(end));
    room = (size_t)snprintf(from, sizeof(from), "@%s%s", end, protocol);
    room = room + CUT_USER < sizeof(user) ? sizeof(user) - room : CUT_USER;
    ebpfMonTextCopy(user, room, claimed);
    snprintf(all, sizeof(all), "%s%s", user, from);
    ebpfMonTextCopy(text, size < ELEMENT ? size : ELEMENT, all);
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
    nameClient(client->user, &ioc->facts[i].peer, "", row->name, sizeof(row->name));
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

/* --- clients that packets show --- */

/* A client of a server of this host. */
typedef struct {
    struct ebpfMonPeer peer;
    struct ebpfMonFirst first;
    char     user[64], host[64], ioc[EBPFMON_IOCNAME_SIZE];
    unsigned channels, monitors;
    int      isPva;
    pid_t    pid;           /* of the server */
    int64_t  bytes;         /* as in ebpfMonClientFacts */
    uint64_t openedAt;      /* monotonic ns; 0: its begin was not seen, and it may have more channels and monitors */
} pvaCopy;

/* Nonzero: a client of a watched IOC, or of another server of this host. */
static int isOfThisHost(const ebpfMonPacketClient *c)
{
    return c->iocId || (c->pid && c->pid != getpid());
}

/* Nonzero: it is older than the monitor, and the memory of the IOC tells what packets have not shown of it. */
static int isHidden(const ebpfMonClientTable *table, const ebpfMonPacketClient *c)
{
    const ebpfMonClientIoc *ioc;

    for (unsigned n = 0; c->iocId && (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++) {
        const ebpfMonHiddenClients *h = ioc->id == c->iocId ? ioc->hidden : NULL;

        for (unsigned i = 0; h && i < h->clients; i++)
            if (memcmp(&h->client[i].peer, &c->peer, sizeof(c->peer)) == 0)
                return 1;
    }
    return 0;
}

static void countMatching(const ebpfMonPacketClient *c, const char *pattern, unsigned *channels, unsigned *monitors)
{
    *channels = *monitors = 0;
    for (const ebpfMonPacketChannel *ch = c->channel; ch; ch = ch->next)
        *channels += epicsStrGlobMatch(ch->name, pattern) != 0;
    for (const ebpfMonPacketMonitor *m = c->monitor; m; m = m->next)
        *monitors += epicsStrGlobMatch(m->name, pattern) != 0;
}

static int compareEnds(const void *left, const void *right)
{
    const struct ebpfMonPeer *l = &((const pvaCopy *)left)->peer, *r = &((const pvaCopy *)right)->peer;

    if (l->netns != r->netns)
        return l->netns < r->netns ? -1 : 1;
    if (l->addr != r->addr)
        return l->addr < r->addr ? -1 : 1;
    return l->port != r->port ? (l->port < r->port ? -1 : 1) : (l->sport > r->sport) - (l->sport < r->sport);
}

static int compareServers(const void *left, const void *right)
{
    return strcmp(((const pvaCopy *)left)->ioc, ((const pvaCopy *)right)->ioc);
}

typedef struct {
    pvaCopy *copy;         /* in the order of compareEnds */
    size_t   count;
    uint32_t netns;        /* that is read */
} pvaCopies;

static void notePvaBytes(void *arg, const ebpfMonTcpBytes *bytes)
{
    const pvaCopies *all = arg;
    const pvaCopy key = { .peer = { .netns = all->netns, .addr = bytes->remote, .port = bytes->remotePort,
                                    .sport = bytes->localPort } };
    pvaCopy *found = bsearch(&key, all->copy, all->count, sizeof(key), compareEnds);

    if (found && found->peer.saddr == bytes->local)
        found->bytes = (int64_t)bytes->sent;
}

static void readPvaBytes(pvaCopy *copy, size_t count)
{
    pvaCopies all = { .copy = copy, .count = count };

    if (count)
        qsort(copy, count, sizeof(*copy), compareEnds);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || copy[i].peer.netns != copy[i - 1].peer.netns) {
            all.netns = copy[i].peer.netns;
            ebpfMonTcpBytesRead(copy[i].pid, notePvaBytes, &all);
        }
}

/* Those of the servers that match; with a pattern of PVs their channels that match. "*copy" is for the caller to
 * free. */
static size_t copyPvaClients(ebpfMonClientTable *table, const char *iocPattern, const char *pvPattern, pvaCopy **copy)
{
    ebpfMonPacketClients *packets = ebpfMonClientTableGetPackets(table);
    size_t count = 0, room = 0;

    *copy = NULL;
    if (!packets)
        return 0;
    ebpfMonClientTableLock(table);
    ebpfMonPacketClientsLock(packets);
    for (const ebpfMonPacketClient *c = ebpfMonPacketClientsNext(packets, NULL); c;
         c = ebpfMonPacketClientsNext(packets, c)) {
        unsigned channels = c->channels, monitors = c->monitors;
        pvaCopy *to;

        if (pvPattern[0])
            countMatching(c, pvPattern, &channels, &monitors);
        if (!isOfThisHost(c) || isHidden(table, c) || (iocPattern[0] && !epicsStrGlobMatch(c->server, iocPattern)) ||
            (pvPattern[0] && !channels && !monitors) ||
            ebpfMonArrayGrow(copy, &room, count + 1, 64, sizeof(**copy)))
            continue;
        to = &(*copy)[count++];
        *to = (pvaCopy){ .peer = c->peer, .first = c->first, .channels = channels, .monitors = monitors,
                         .openedAt = c->isWhole ? c->openedAt : 0,
                         .isPva = c->protocol == ebpfMonWirePva, .pid = c->pid, .bytes = -1 };
        if (to->channels < to->monitors) /* those that are older are not counted */
            to->channels = to->monitors;
        memcpy(to->user, c->user, sizeof(to->user));
        memcpy(to->host, c->host, sizeof(to->host));
        memcpy(to->ioc, c->server, sizeof(to->ioc));
    }
    ebpfMonPacketClientsUnlock(packets);
    ebpfMonClientTableUnlock(table);
    readPvaBytes(*copy, count);
    return count;
}

/* "at": monotonic ns; 0: not known. */
static epicsTimeStamp getBeginTime(uint64_t at)
{
    epicsTimeStamp time = { .nsec = 0 };

    if (!at)
        return time;
    epicsTimeGetCurrent(&time);
    epicsTimeAddSeconds(&time, -(double)(ebpfMonClockMonotonic() - at) / 1e9);
    return time;
}

static const char *nameProtocol(const ebpfMonHiddenClient *c)
{
    return c->is->isTls > 0 ? " TLS" : " PVA";
}

static void countHidden(const ebpfMonClientIoc *ioc, const ebpfMonHiddenClient *c, const char *pattern,
                        unsigned *channels, unsigned *monitors)
{
    const ebpfMonPvxsClients *all = ioc->hidden->all;

    *channels = c->is->channels;
    *monitors = c->is->monitors;
    if (!pattern[0])
        return;
    *channels = *monitors = 0;
    for (size_t i = c->is->firstChannel; i < all->channels && &all->client[all->channel[i].client] == c->is; i++)
        if (epicsStrGlobMatch(all->names + all->channel[i].name, pattern)) {
            ++*channels;
            *monitors += all->channel[i].monitors;
        }
}

static void addHiddenClients(ebpfMonClientValues *values, const ebpfMonClientIoc *ioc)
{
    for (unsigned i = 0; ioc->hidden && i < ioc->hidden->clients; i++) {
        const ebpfMonHiddenClient *c = &ioc->hidden->client[i];
        unsigned channels, monitors;
        ebpfMonClientRow *row;

        countHidden(ioc, c, values->pvPattern, &channels, &monitors);
        row = values->pvPattern[0] && !channels ? NULL : findRowPlace(values, channels);
        values->channels += channels;
        values->subscriptions += monitors;
        if (!row)
            continue;
        *row = (ebpfMonClientRow){ .pid = c->who.peerPid, .channels = channels, .subscriptions = monitors,
                                   .since = getBeginTime(c->since), .bytes = c->bytes };
        nameClient(c->who.user, &c->peer, nameProtocol(c), row->name, sizeof(row->name));
        snprintf(row->ioc, sizeof(row->ioc), "%s", ioc->name);
        snprintf(row->command, sizeof(row->command), "%s", c->who.command);
    }
}

static void addPvaClients(ebpfMonClientTable *table, ebpfMonClientValues *values)
{
    pvaCopy *copy;
    size_t count = copyPvaClients(table, values->iocPattern, values->pvPattern, &copy);

    for (size_t i = 0; i < count; i++) {
        ebpfMonClientRow *row = findRowPlace(values, copy[i].channels);
        ebpfMonPutClient who = { .peer = "" };

        values->channels += copy[i].channels;
        values->subscriptions += copy[i].monitors;
        if (!row)
            continue;
        ebpfMonPutClientsFind(ebpfMonClientTableGetPutClients(table), &copy[i].peer, &copy[i].first, copy[i].user,
                              copy[i].host, &who);
        *row = (ebpfMonClientRow){ .pid = who.peerPid, .channels = copy[i].channels, .subscriptions = copy[i].monitors,
                                   .since = getBeginTime(copy[i].openedAt), .bytes = copy[i].bytes };
        nameClient(who.user, &copy[i].peer, copy[i].isPva ? " PVA" : "", row->name, sizeof(row->name));
        snprintf(row->ioc, sizeof(row->ioc), "%s", copy[i].ioc);
        snprintf(row->command, sizeof(row->command), "%s", who.command);
    }
    free(copy);
}

static int compareRows(const void *left, const void *right)
{
    const ebpfMonClientRow *l = left, *r = right;

    if (l->channels != r->channels)
        return l->channels < r->channels ? 1 : -1;
    return strcmp(l->name, r->name);
}

static void copyPatterns(ebpfMonClientValues *to, const ebpfMonClientValues *from)
{
    memcpy(to->iocPattern, from->iocPattern, sizeof(to->iocPattern));
    memcpy(to->pvPattern, from->pvPattern, sizeof(to->pvPattern));
}

void ebpfMonClientReportPublish(ebpfMonClientTable *table, ebpfMonClientValues *shown)
{
    ebpfMonClientValues *values = calloc(1, sizeof(*values));
    const ebpfMonClientIoc *ioc;

    if (!values)
        return;
    values->isKnown = 1;
    ebpfMonModuleLock();
    copyPatterns(values, shown);
    ebpfMonModuleUnlock();
    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++) {
        if (values->iocPattern[0] && !epicsStrGlobMatch(ioc->name, values->iocPattern))
            continue;
        values->unread += !ioc->isRead && ioc->clientQ;
        if (ioc->clients)
            addIoc(values, ioc);
        addHiddenClients(values, ioc);
    }
    values->look = (double)ebpfMonClientTableGetCost(table) / 1e6;
    ebpfMonClientTableUnlock(table);
    addPvaClients(table, values);
    qsort(values->row, values->rows, sizeof(values->row[0]), compareRows);
    ebpfMonModuleLock();
    copyPatterns(values, shown); /* the operator may have changed them meanwhile: do not put the old ones back */
    *shown = *values;
    ebpfMonModuleUnlock();
    free(values);
}

/* --- reports --- */

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

static void addPid(ebpfMonTextReport *report, const ebpfMonPutClient *who)
{
    if (who->peerPid)
        CELL(report, "%u", (unsigned)who->peerPid);
    else
        CELL(report, "-");
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
    addPid(report, &facts->who);
    CELL(report, "%u", (unsigned)client->channels);
    CELL(report, "%u", (unsigned)client->subscriptions);
    addBytes(report, facts->bytes);
    addTime(report, &client->since);
    CELL(report, " %s", facts->who.command);
}

static void addHiddenLines(ebpfMonTextReport *report, const ebpfMonClientIoc *ioc)
{
    for (unsigned i = 0; ioc->hidden && i < ioc->hidden->clients; i++) {
        const ebpfMonHiddenClient *c = &ioc->hidden->client[i];
        epicsTimeStamp since = getBeginTime(c->since);

        CELL(report, "%s", ioc->name);
        CELL(report, " %s@%s", c->who.user[0] ? c->who.user : "?", c->who.host);
        CELL(report, " %s%s", c->who.peer, nameProtocol(c));
        addPid(report, &c->who);
        CELL(report, "%u", (unsigned)c->is->channels);
        CELL(report, "%u", (unsigned)c->is->monitors);
        addBytes(report, c->bytes);
        addTime(report, &since);
        CELL(report, " %s%s%s", c->who.command, c->who.authority[0] ? ", certificate by " : "", c->who.authority);
    }
}

static void addPvaLines(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *iocPattern)
{
    pvaCopy *copy;
    size_t count = copyPvaClients(table, iocPattern, "", &copy);

    for (size_t i = 0; i < count; i++) {
        ebpfMonPutClient who = { .peer = "" };
        epicsTimeStamp since = getBeginTime(copy[i].openedAt);

        ebpfMonPutClientsFind(ebpfMonClientTableGetPutClients(table), &copy[i].peer, &copy[i].first, copy[i].user,
                              copy[i].host, &who);
        CELL(report, "%s", copy[i].ioc);
        CELL(report, " %s@%s", who.user[0] ? who.user : "?", who.host);
        CELL(report, " %s%s", who.peer, copy[i].isPva ? " PVA" : "");
        addPid(report, &who);
        CELL(report, "%s%u", copy[i].openedAt ? "" : ">", copy[i].channels);
        CELL(report, "%s%u", copy[i].openedAt ? "" : ">", copy[i].monitors);
        addBytes(report, copy[i].bytes);
        addTime(report, &since);
        CELL(report, " %s", who.command);
    }
    free(copy);
}

/* Adds a line if the list of clients is old or not complete. Nonzero: there is no list. */
static int addNote(ebpfMonTextReport *report, const ebpfMonClientIoc *ioc)
{
    if (!ioc->clientQ) {
        ebpfMonTextReportAdd(report, "%s: it has no CA server of EPICS Base\n", ioc->name);
        return 1;
    }
    if (!ioc->clients) {
        ebpfMonTextReportAdd(report, "%s: the list of its clients could not be read yet; try again in a moment, or see "
                             "its note (ebpfMonIocs)\n", ioc->name);
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
        if (epicsStrGlobMatch(ioc->name, iocPattern)) {
            int hasNone = addNote(report, ioc);

            for (unsigned i = 0; !hasNone && i < ioc->clients->clients; i++)
                addClientLine(report, ioc, i);
            addHiddenLines(report, ioc);
        }
    ebpfMonClientTableUnlock(table);
    addPvaLines(report, table, iocPattern);
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

/* Channels of clients that only the memory of the IOC shows. */
static void addHiddenUsers(ebpfMonTextReport *report, const ebpfMonClientTable *table, const ebpfMonClientIoc *ioc,
                           const char *pattern)
{
    const ebpfMonPvxsClients *all = ioc->hidden ? ioc->hidden->all : NULL;
    ebpfMonPacketClients *packets = ebpfMonClientTableGetPackets(table);

    for (unsigned n = 0; all && n < ioc->hidden->clients; n++) {
        const ebpfMonHiddenClient *c = &ioc->hidden->client[n];
        epicsTimeStamp since = getBeginTime(c->since);

        for (size_t i = c->is->firstChannel; i < all->channels && &all->client[all->channel[i].client] == c->is; i++) {
            const char *name = all->names + all->channel[i].name;

            if ((pattern[0] && !epicsStrGlobMatch(name, pattern)) ||
                (packets && ebpfMonPacketClientsHas(packets, &c->peer, name)))
                continue;
            CELL(report, "%s", name);
            CELL(report, " %s", ioc->name);
            CELL(report, " %s@%s", c->who.user[0] ? c->who.user : "?", c->who.host);
            CELL(report, " %s%s", c->who.peer, nameProtocol(c));
            CELL(report, "%u", (unsigned)all->channel[i].monitors);
            addCount(report, NULL, 0);
            addCount(report, NULL, 0);
            addTime(report, &since);
            CELL(report, " %s", c->who.command);
        }
    }
}

/* Nonzero: it may be the channel of a gateway, for others. */
static int isThroughGateway(const ebpfMonClientTable *table, const ebpfMonClientIoc *ioc, size_t index)
{
    const ebpfMonCaUse *use = &ioc->clients->use[index];
    ebpfMonPacketClients *packets = ebpfMonClientTableGetPackets(table);

    return packets && ioc->facts[use->client].who.peerPid &&
           ebpfMonPacketClientsHasBehind(packets, ioc->clients->names + use->name);
}

static void copyCaUser(const ebpfMonClientIoc *ioc, size_t index, ebpfMonPacketCaUser *to)
{
    const ebpfMonCaUse *use = &ioc->clients->use[index];
    const ebpfMonPutClient *who = &ioc->facts[use->client].who;

    *to = (ebpfMonPacketCaUser){ .pid = (pid_t)who->peerPid };
    ebpfMonTextCopy(to->name, sizeof(to->name), ioc->clients->names + use->name);
    memcpy(to->command, who->command, sizeof(to->command));
}

/* Servers whose clients may have more channels than packets have shown. */
static void addOlder(ebpfMonTextReport *report, ebpfMonClientTable *table)
{
    pvaCopy *copy;
    size_t count = copyPvaClients(table, "", "", &copy);
    unsigned number = 0;

    qsort(copy, count, sizeof(*copy), compareServers);
    for (size_t i = 0; i < count; i++) {
        number += !copy[i].openedAt;
        if (i + 1 < count && strcmp(copy[i].ioc, copy[i + 1].ioc) == 0)
            continue;
        if (number)
            ebpfMonTextReportAdd(report, "%s: %u of its clients may have more PVs: the begin of their connections was "
                                 "not seen\n", copy[i].ioc, number);
        number = 0;
    }
    free(copy);
}

void ebpfMonClientReportAddUsers(ebpfMonTextReport *report, ebpfMonClientTable *table, const char *pvPattern)
{
    static const ebpfMonReportColumn columns[] = {
        {"PV", -32}, {" IOC", -20}, {" client", -24}, {" address", -22}, {"subscribed", 11}, {"updates", 10},
        {"bytes", 12}, {" since", -20}, {" command", 0}
    };
    ebpfMonPacketClients *packets = ebpfMonClientTableGetPackets(table);
    const ebpfMonClientIoc *ioc;
    ebpfMonPacketCaUser *behind = NULL;
    size_t behinds = 0, room = 0;
    unsigned found = 0;

    ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++) {
        addHiddenUsers(report, table, ioc, pvPattern);
        if (addNote(report, ioc))
            continue;
        for (size_t i = 0; i < ioc->clients->uses; i++)
            if (matchesPattern(ioc, &ioc->clients->use[i], pvPattern) && found++ < USERS_MAX) {
                addUser(report, ioc, i);
                if (isThroughGateway(table, ioc, i) &&
                    !ebpfMonArrayGrow(&behind, &room, behinds + 1, 16, sizeof(*behind)))
                    copyCaUser(ioc, i, &behind[behinds++]);
            }
    }
    ebpfMonClientTableUnlock(table);
    if (found > USERS_MAX)
        ebpfMonTextReportAdd(report, "... and %u more: choose a narrower pattern\n", found - USERS_MAX);
    if (packets) {
        ebpfMonPacketClientsAddUsers(packets, report, pvPattern, behind, behinds);
        addOlder(report, table);
    }
    free(behind);
}
