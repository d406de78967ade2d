/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/array.h"
#include "common/bigEndian.h"
#include "common/hash.h"
#include "host/procStat.h"
#include "inventory/recSyncLink.h"

static void closeRecSyncLink(ebpfMonRecSyncLink *link, const char *why);

/* --- messages --- */


#define MAGIC       0x5243 /* "RC" */
#define HEADER      8
#define ANNOUNCED   16
#define BODY_MAX    (1u << 24) /* no message of a server is so long */

enum { SEND_GREETING = 1, SEND_PONG = 2, SEND_RECORD = 3, SEND_DONE = 5, SEND_INFO = 6, GOT_GREETING = 0x8001,
       GOT_PING = 0x8002 };

void ebpfMonRecSyncOutFree(ebpfMonRecSyncOut *out)
{
    free(out->bytes);
    memset(out, 0, sizeof(*out));
}

/* Adds a message with a body of "length" zeros. Returns the body; NULL: there is no room. */
static uint8_t *beginMessage(ebpfMonRecSyncOut *out, unsigned message, size_t length)
{
    uint8_t *at;

    if (out->isFull || out->length + HEADER + length > EBPFMON_RECSYNC_BYTES_MAX ||
        ebpfMonArrayGrow(&out->bytes, &out->room, out->length + HEADER + length, 65536, 1)) {
        out->isFull = 1;
        return NULL;
    }
    at = out->bytes + out->length;
    ebpfMonBigEndianSet16(at, MAGIC);
    ebpfMonBigEndianSet16(at + 2, message);
    ebpfMonBigEndianSet32(at + 4, (uint32_t)length);
    memset(at + HEADER, 0, length);
    out->length += HEADER + length;
    return at + HEADER;
}

void ebpfMonRecSyncAddGreeting(ebpfMonRecSyncOut *out, uint32_t key)
{
    uint8_t *at = beginMessage(out, SEND_GREETING, 8); /* version 0, type of client 0, two unused bytes, key */

    if (at)
        ebpfMonBigEndianSet32(at + 4, key);
}

void ebpfMonRecSyncAddPong(ebpfMonRecSyncOut *out, uint32_t nonce)
{
    uint8_t *at = beginMessage(out, SEND_PONG, 4);

    if (at)
        ebpfMonBigEndianSet32(at, nonce);
}

void ebpfMonRecSyncAddDone(ebpfMonRecSyncOut *out)
{
    beginMessage(out, SEND_DONE, 4);
}

/* The body: number, 0 for a record or 1 for an alias, length of the type, length of the name, type, name. */
static void addRecordMessage(ebpfMonRecSyncOut *out, uint32_t number, int isAlias, const char *type, const char *name)
{
    size_t typeLength = strlen(type), nameLength = strlen(name);
    uint8_t *at;

    if (typeLength > UINT8_MAX || nameLength > UINT16_MAX) /* no name of Base is so long */
        return;
    at = beginMessage(out, SEND_RECORD, 8 + typeLength + nameLength);
    if (!at)
        return;
    ebpfMonBigEndianSet32(at, number);
    at[4] = (uint8_t)isAlias;
    at[5] = (uint8_t)typeLength;
    ebpfMonBigEndianSet16(at + 6, (unsigned)nameLength);
    memcpy(at + 8, type, typeLength);
    memcpy(at + 8 + typeLength, name, nameLength);
}

void ebpfMonRecSyncAddRecord(ebpfMonRecSyncOut *out, uint32_t number, const char *type, const char *name)
{
    addRecordMessage(out, number, 0, type, name);
}

void ebpfMonRecSyncAddAlias(ebpfMonRecSyncOut *out, uint32_t number, const char *name)
{
    addRecordMessage(out, number, 1, "", name);
}

void ebpfMonRecSyncAddInfo(ebpfMonRecSyncOut *out, uint32_t number, const char *name, const char *value)
{
    size_t nameLength = strlen(name), valueLength = strlen(value);
    uint8_t *at;

    if (!nameLength || nameLength > UINT8_MAX || valueLength > UINT16_MAX)
        return;
    at = beginMessage(out, SEND_INFO, 8 + nameLength + valueLength);
    if (!at)
        return;
    ebpfMonBigEndianSet32(at, number);
    at[4] = (uint8_t)nameLength;
    ebpfMonBigEndianSet16(at + 6, (unsigned)valueLength);
    memcpy(at + 8, name, nameLength);
    memcpy(at + 8 + nameLength, value, valueLength);
}

/* --- received ---------------------------------------------------------------------------------------- */

uint8_t *ebpfMonRecSyncInGetRoom(ebpfMonRecSyncIn *in, size_t *room)
{
    *room = sizeof(in->bytes) - in->length;
    return in->bytes + in->length;
}

static void dropBytes(ebpfMonRecSyncIn *in, size_t count)
{
    memmove(in->bytes, in->bytes + count, in->length - count);
    in->length -= count;
}

void ebpfMonRecSyncInAdd(ebpfMonRecSyncIn *in, size_t count)
{
    in->length += count;
}

/* Drops the received bytes of a message that is not needed. */
static void skipRest(ebpfMonRecSyncIn *in)
{
    size_t now = in->skip < in->length ? (size_t)in->skip : in->length;

    in->skip -= now;
    dropBytes(in, now);
}

int ebpfMonRecSyncInTake(ebpfMonRecSyncIn *in, uint32_t *nonce)
{
    unsigned message;
    uint32_t length;
    int isShort;

    skipRest(in);
    if (in->skip || in->length < HEADER)
        return ebpfMonRecSyncNothing;
    message = ebpfMonBigEndianGet16(in->bytes + 2);
    length = ebpfMonBigEndianGet32(in->bytes + 4);
    if (ebpfMonBigEndianGet16(in->bytes) != MAGIC || length > BODY_MAX)
        return ebpfMonRecSyncBad;
    isShort = message == GOT_PING ? length < 4 : message == GOT_GREETING ? length < 1 : 0;
    if (isShort)
        return ebpfMonRecSyncBad;
    if (message == GOT_PING && in->length < HEADER + 4)
        return ebpfMonRecSyncNothing;
    if (message == GOT_PING)
        *nonce = ebpfMonBigEndianGet32(in->bytes + HEADER);
    in->skip = (uint64_t)HEADER + length;
    skipRest(in);
    return message == GOT_PING ? ebpfMonRecSyncPing :
           message == GOT_GREETING ? ebpfMonRecSyncGreeting : ebpfMonRecSyncOther;
}

int ebpfMonRecSyncParseAnnouncement(const uint8_t *bytes, size_t length, ebpfMonRecSyncServer *server)
{
    if (length < ANNOUNCED || ebpfMonBigEndianGet16(bytes) != MAGIC || ebpfMonBigEndianGet16(bytes + 2) != 0 ||
        ebpfMonBigEndianGet16(bytes + 8) == 0)
        return -1;
    memcpy(&server->address, bytes + 4, sizeof(server->address));
    memcpy(&server->port, bytes + 8, sizeof(server->port));
    server->key = ebpfMonBigEndianGet32(bytes + 12);
    return 0;
}

/* --- the connection --- */

#define STEP_MAX    (1u << 20) /* bytes that one call sends at most, so other links do not wait long */
#define PONGS_MAX   4096u      /* bytes: answers to pings that may wait to be sent, hundreds of them */
#define LOOK_AGAIN  20.0       /* s after the upload: are the variables still the same? */
#define PAUSE_MAX   1280.0     /* s, at most, between two looks whether packets have shown more PVs of a server */
#define AGAIN_MIN   5.0        /* s until an IOC that could not be read is read again */
#define AGAIN_MAX   320.0

/* The variables that the RecSync client of an IOC sends, and CONTACT, which many sites set. */
static const char *const variableNames[] = {
    "EPICS_BASE", "TOP", "ARCH", "IOC", "EPICS_CA_ADDR_LIST", "EPICS_CA_AUTO_ADDR_LIST", "EPICS_CA_MAX_ARRAY_BYTES",
    "PWD", "EPICS_HOST_ARCH", "ENGINEER", "LOCATION", "CONTACT", NULL
};

static const char *const fieldNames[] = {"DESC", NULL};

ebpfMonRecSyncLink *ebpfMonRecSyncLinkNew(const ebpfMonInventoryIoc *ioc, double now)
{
    ebpfMonRecSyncLink *link = calloc(1, sizeof(*link));

    if (link) {
        link->ioc = *ioc;
        link->file = -1;
        link->deadline = now + EBPFMON_RECSYNC_SETTLE;
        link->pause = LOOK_AGAIN;
        link->again = AGAIN_MIN;
    }
    return link;
}

void ebpfMonRecSyncLinkFree(ebpfMonRecSyncLink *link)
{
    if (!link)
        return;
    closeRecSyncLink(link, "");
    ebpfMonCatalogueRelease(link->ioc.cat);
    free(link);
}

/* Closes the connection; then the server forgets the IOC. "why": the reason, empty if it is no failure. */
static void closeRecSyncLink(ebpfMonRecSyncLink *link, const char *why)
{
    snprintf(link->why, sizeof(link->why), "%s", why);
    if (link->file >= 0)
        close(link->file);
    link->file = -1;
    link->state = ebpfMonRecSyncIdle;
    link->deadline = link->lookAt = 0;
    ebpfMonRecSyncOutFree(&link->out);
    link->sent = link->upload = 0;
    memset(&link->in, 0, sizeof(link->in));
}

static int setLinkFailure(ebpfMonRecSyncLink *link, const char *what, int err)
{
    char why[sizeof(link->why)];

    snprintf(why, sizeof(why), "%s%s%s", what, err ? ": " : "", err ? strerror(err) : "");
    closeRecSyncLink(link, why);
    return -1;
}

/* Waits longer each time: to read an IOC costs both it and us. */
static int setUnreadable(ebpfMonRecSyncLink *link, const char *what, double now)
{
    setLinkFailure(link, what, 0);
    link->isUnreadable = 1;
    link->deadline = now + link->again;
    link->again = link->again < AGAIN_MAX ? 2 * link->again : AGAIN_MAX;
    return -1;
}

int ebpfMonRecSyncLinkConnect(ebpfMonRecSyncLink *link, const struct sockaddr_in *server, uint32_t key, double now)
{
    link->isUnreadable = 0;
    link->file = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->file < 0)
        return setLinkFailure(link, "a socket cannot be made", errno);
    if (connect(link->file, (const struct sockaddr *)server, sizeof(*server)) && errno != EINPROGRESS)
        return setLinkFailure(link, "the server cannot be reached", errno);
    ebpfMonRecSyncAddGreeting(&link->out, key);
    link->upload = link->out.length;
    link->state = ebpfMonRecSyncConnecting;
    link->deadline = now + EBPFMON_RECSYNC_ANSWER;
    link->why[0] = 0;
    return 0;
}

int ebpfMonRecSyncLinkLookForClient(ebpfMonRecSyncLink *link)
{
    link->isOwn = ebpfMonProcHasThread(link->ioc.pid, "reccaster"); /* the thread of caster.c, RecSync */
    return link->isOwn;
}

uint32_t ebpfMonRecSyncLinkGetEvents(const ebpfMonRecSyncLink *link)
{
    return EPOLLIN | (link->state == ebpfMonRecSyncConnecting || link->sent < link->out.length ? EPOLLOUT : 0u);
}

/* --- what is sent ------------------------------------------------------------------------------------ */

static void sendVariable(void *arg, const char *name, const char *value)
{
    ebpfMonRecSyncAddInfo(arg, 0, name, value);
}

/* Adds the variables of the IOC. Returns a hash of them. */
static uint64_t addVariables(const ebpfMonInventoryIoc *ioc, const char *variables, ebpfMonRecSyncOut *out)
{
    const ebpfMonInventorySink sink = { sendVariable, NULL, out };
    size_t before = out->length;

    ebpfMonInventoryReadVariables(ioc, variableNames, variables, &sink);
    return ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, out->bytes + before, out->length - before);
}

/* An IOC that starts may open the port of its PVA server, or set a variable, after the monitor has read them. A server
 * takes variables only together with records, so all is sent again then. */
static int areVariablesNew(const ebpfMonRecSyncLink *link, const char *variables)
{
    ebpfMonRecSyncOut out = {0};
    uint64_t hash = addVariables(&link->ioc, variables, &out);

    ebpfMonRecSyncOutFree(&out);
    return hash != link->variables;
}

static int sendRecord(void *arg, const ebpfMonInventoryRecord *record)
{
    ebpfMonRecSyncLink *link = arg;
    uint32_t number = record->index + 1; /* 0 is the IOC itself */

    ebpfMonRecSyncAddRecord(&link->out, number, record->type, record->name);
    for (unsigned i = 0; i < record->aliases; i++)
        ebpfMonRecSyncAddAlias(&link->out, number, record->alias[i]);
    for (unsigned i = 0; i < record->infos; i++)
        ebpfMonRecSyncAddInfo(&link->out, number, record->info[i].name, record->info[i].value);
    for (unsigned i = 0; i < record->fields; i++) /* DESC: RecSync sends it as an info tag of this name */
        ebpfMonRecSyncAddInfo(&link->out, number, "recordDesc", record->field[i].value);
    return link->out.isFull;
}

/* Adds the PVs of a server that is not EPICS Base. Nobody knows their record types, but a RecSync server wants one. */
static void addPvs(ebpfMonRecSyncLink *link)
{
    unsigned count;
    char *names = ebpfMonPacketServersCopyPvs(link->ioc.packetServers, link->ioc.iocId, &count);

    link->records = 0;
    for (const char *name = names; link->records < count; name += strlen(name) + 1)
        ebpfMonRecSyncAddRecord(&link->out, ++link->records, "unknown", name);
    free(names);
}

/* A server takes new records only together with all others, which is much work for Channel Finder. So each time that
 * there were new ones, the next look comes later. */
static int arePvsNew(ebpfMonRecSyncLink *link, double now)
{
    unsigned count;

    free(ebpfMonPacketServersCopyPvs(link->ioc.packetServers, link->ioc.iocId, &count));
    if (count == link->records) {
        link->lookAt = now + link->pause;
        return 0;
    }
    link->pause = link->pause < PAUSE_MAX ? 2 * link->pause : PAUSE_MAX;
    return 1;
}

/* Compares what can have changed since the upload. */
static int isNew(ebpfMonRecSyncLink *link, const char *variables, double now)
{
    link->lookAt = 0;
    return ebpfMonRecSyncLinkLookForClient(link) || areVariablesNew(link, variables) ||
           (link->ioc.packetServers && arePvsNew(link, now));
}

static int makeUpload(ebpfMonRecSyncLink *link, ebpfMonWorker *worker, const char *variables, double now)
{
    const ebpfMonInventorySink sink = { sendVariable, sendRecord, link };
    char why[120];

    link->variables = addVariables(&link->ioc, variables, &link->out);
    if (link->ioc.packetServers) {
        addPvs(link);
    } else {
        if (ebpfMonInventoryReadRecords(&link->ioc, fieldNames, worker, &sink, why, sizeof(why)))
            return setUnreadable(link, link->out.isFull ? "its records need more than 128 MB" : why, now);
        link->records = link->ioc.cat->count;
    }
    ebpfMonRecSyncAddDone(&link->out);
    if (link->out.isFull)
        return setUnreadable(link, "its records need more than 128 MB", now);
    link->again = AGAIN_MIN;
    link->upload = link->out.length;
    link->state = ebpfMonRecSyncSends;
    return 0;
}

/* --- the socket -------------------------------------------------------------------------------------- */

static int finishConnect(ebpfMonRecSyncLink *link)
{
    struct sockaddr_in peer;
    socklen_t size = sizeof(int), peerSize = sizeof(peer);
    int err = 0;

    if (getsockopt(link->file, SOL_SOCKET, SO_ERROR, &err, &size) || err)
        return setLinkFailure(link, "the server cannot be reached", err ? err : errno);
    if (getpeername(link->file, (struct sockaddr *)&peer, &peerSize) == 0)
        link->state = ebpfMonRecSyncGreets;
    return 0;
}

static int sendSome(ebpfMonRecSyncLink *link, double now)
{
    size_t before = link->sent;

    while (link->sent < link->out.length && link->sent - before < STEP_MAX) {
        ssize_t n = send(link->file, link->out.bytes + link->sent, link->out.length - link->sent, MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0)
            return setLinkFailure(link, "the server closed the connection", errno);
        link->sent += (size_t)n;
    }
    if (link->sent != before && link->state == ebpfMonRecSyncSends)
        link->deadline = now + EBPFMON_RECSYNC_ANSWER;
    if (link->sent == link->out.length && link->out.length) { /* free the megabytes: the next message is a short pong */
        ebpfMonRecSyncOutFree(&link->out);
        link->sent = link->upload = 0;
    }
    return 0;
}

/* A server that sends pings and does not read would fill our memory with pongs. Before it has all records, a ping does
 * not say that the connection makes progress. */
static int answerPing(ebpfMonRecSyncLink *link, uint32_t nonce, double now)
{
    size_t begin = link->sent > link->upload ? link->sent : link->upload;

    ebpfMonRecSyncAddPong(&link->out, nonce);
    if (link->out.length - begin > PONGS_MAX)
        return setLinkFailure(link, "the server does not read the answers to its pings", 0);
    if (link->state == ebpfMonRecSyncDone)
        link->deadline = now + EBPFMON_RECSYNC_PING;
    return 0;
}

static int handleMessages(ebpfMonRecSyncLink *link, ebpfMonWorker *worker, const char *variables, double now)
{
    uint32_t nonce;
    int message;

    while ((message = ebpfMonRecSyncInTake(&link->in, &nonce)) != ebpfMonRecSyncNothing) {
        if (message == ebpfMonRecSyncBad)
            return setLinkFailure(link, "the program that answers is not a RecSync server", 0);
        if (message == ebpfMonRecSyncPing && answerPing(link, nonce, now))
            return -1;
        if (message == ebpfMonRecSyncGreeting && link->state == ebpfMonRecSyncGreets &&
            makeUpload(link, worker, variables, now))
            return -1;
    }
    return 0;
}

static int receiveSome(ebpfMonRecSyncLink *link, ebpfMonWorker *worker, const char *variables, double now)
{
    for (int i = 0; i < 16; i++) { /* a server sends few bytes, so 16 reads are enough for one call */
        size_t room;
        uint8_t *to = ebpfMonRecSyncInGetRoom(&link->in, &room);
        ssize_t n = recv(link->file, to, room, 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n <= 0)
            return setLinkFailure(link, "the server closed the connection", n ? errno : 0);
        ebpfMonRecSyncInAdd(&link->in, (size_t)n);
        if (handleMessages(link, worker, variables, now))
            return -1;
    }
    return 0;
}

int ebpfMonRecSyncLinkWork(ebpfMonRecSyncLink *link, ebpfMonWorker *worker, const char *variables, double now)
{
    if (link->state == ebpfMonRecSyncIdle)
        return 0;
    if (link->state == ebpfMonRecSyncConnecting && finishConnect(link))
        return -1;
    if (link->state != ebpfMonRecSyncConnecting &&
        (receiveSome(link, worker, variables, now) || sendSome(link, now)))
        return -1;
    if (link->state == ebpfMonRecSyncSends && link->sent >= link->upload) {
        link->state = ebpfMonRecSyncDone;
        link->deadline = now + EBPFMON_RECSYNC_PING;
        link->lookAt = now + link->pause;
    }
    if (link->state == ebpfMonRecSyncDone && link->lookAt && now >= link->lookAt && isNew(link, variables, now)) {
        closeRecSyncLink(link, "");
        return 0;
    }
    if (now > link->deadline)
        return setLinkFailure(link, link->state == ebpfMonRecSyncDone ? "the server sends no pings any more" :
                                                                    "the server does not answer", 0);
    return 0;
}
