/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/bigEndian.h"
#include "wire/caMessage.h"

#define CLIENT 1u
#define SERVER 2u
#define SIZE_MAX_STRICT (64u << 20)
#define SIZE_MAX_LOOSE  (1u << 30)
#define STATUS_MAX   (64u << 3) /* caerr.h: the last code is ECA_UNRESPTMO, number 60 */
#define PRIORITY_MAX 99u
#define MINOR_MAX    63u        /* the newest is 13 */
#define CLAIM_MAX    1024u
#define ERROR_MAX    4096u

/* Which side sends a command over TCP (tcpJumpTable of rsrv's camessage.c and of libca's cac.cpp). The other commands
 * are obsolete, or only in datagrams; rsrv closes a circuit that has one. */
static const uint8_t senders[] = {
    [EBPFMON_CA_VERSION] = CLIENT | SERVER,
    [EBPFMON_CA_EVENT_ADD] = CLIENT | SERVER,
    [EBPFMON_CA_EVENT_CANCEL] = CLIENT | SERVER,
    [EBPFMON_CA_READ] = CLIENT | SERVER,
    [EBPFMON_CA_WRITE] = CLIENT,
    [EBPFMON_CA_SEARCH] = CLIENT | SERVER,
    [EBPFMON_CA_EVENTS_OFF] = CLIENT,
    [EBPFMON_CA_EVENTS_ON] = CLIENT,
    [EBPFMON_CA_READ_SYNC] = CLIENT | SERVER,
    [EBPFMON_CA_ERROR] = SERVER,
    [EBPFMON_CA_CLEAR_CHANNEL] = CLIENT | SERVER,
    [EBPFMON_CA_NOT_FOUND] = SERVER,
    [EBPFMON_CA_READ_NOTIFY] = CLIENT | SERVER,
    [EBPFMON_CA_CREATE_CHAN] = CLIENT | SERVER,
    [EBPFMON_CA_WRITE_NOTIFY] = CLIENT | SERVER,
    [EBPFMON_CA_CLIENT_NAME] = CLIENT,
    [EBPFMON_CA_HOST_NAME] = CLIENT,
    [EBPFMON_CA_ACCESS_RIGHTS] = SERVER,
    [EBPFMON_CA_ECHO] = CLIENT | SERVER,
    [EBPFMON_CA_CREATE_CH_FAIL] = SERVER,
    [EBPFMON_CA_SERVER_DISCONN] = SERVER
};

int ebpfMonCaHeaderParse(ebpfMonCaHeader *h, const uint8_t *p, size_t have)
{
    if (have && p[0])
        return -1;
    if (have >= 2 && p[1] >= sizeof senders)
        return -1;
    if (have < EBPFMON_CA_HEADER)
        return 0;
    h->cmd = ebpfMonBigEndianGet16(p);
    h->size = ebpfMonBigEndianGet16(p + 2);
    h->type = ebpfMonBigEndianGet16(p + 4);
    h->count = ebpfMonBigEndianGet16(p + 6);
    h->cid = ebpfMonBigEndianGet32(p + 8);
    h->extra = ebpfMonBigEndianGet32(p + 12);
    h->head = EBPFMON_CA_HEADER;
    if (h->size == 0xffff) {
        if (h->count)
            return -1;
        if (have < EBPFMON_CA_HEADER_MAX)
            return 0;
        h->size = ebpfMonBigEndianGet32(p + 16);
        h->count = ebpfMonBigEndianGet32(p + 20);
        h->head = EBPFMON_CA_HEADER_MAX;
    }
    return h->size % 8 ? -1 : 1; /* both ends refuse a size that is not aligned */
}

/* Nonzero: the size is that of dbr_size_n() of db_access.h, padded. A single string may be shorter than 40 bytes. */
static int sizeFits(const ebpfMonCaHeader *h)
{
    const ebpfMonCaType *t;
    uint64_t want;

    if (h->type >= EBPFMON_CA_TYPES)
        return 0;
    t = &ebpfMonCaTypes[h->type];
    want = t->meta + (uint64_t)h->count * t->size;
    want = (want + 7) / 8 * 8;
    return h->size == want || (t->base == 0 && h->count == 1 && h->size && h->size < want);
}

static int isStatus(uint32_t status)
{
    return status > 0 && status < STATUS_MAX;
}

static int isPlausibleFromClient(const ebpfMonCaHeader *h)
{
    switch (h->cmd) {
    case EBPFMON_CA_VERSION: /* with a count of 0, 16 zero bytes would be a message */
        /* caproto sends cid 1 */
        return !h->size && h->type <= PRIORITY_MAX && h->count && h->count <= MINOR_MAX && h->cid <= 1 && !h->extra;
    case EBPFMON_CA_EVENT_ADD:
        return h->size == 16 && h->type < EBPFMON_CA_TYPES;
    case EBPFMON_CA_EVENT_CANCEL:
    case EBPFMON_CA_READ:
    case EBPFMON_CA_READ_NOTIFY:
        return !h->size && h->type < EBPFMON_CA_TYPES;
    case EBPFMON_CA_WRITE:
    case EBPFMON_CA_WRITE_NOTIFY:
        return h->size && sizeFits(h); /* a write without elements looks like too many other things */
    case EBPFMON_CA_SEARCH:
        return h->size && h->size <= CLAIM_MAX && (h->type == 5 || h->type == 10) && h->count && h->count <= MINOR_MAX;
    case EBPFMON_CA_CREATE_CHAN:
        return h->size && h->size <= CLAIM_MAX && !h->type && !h->count && h->extra <= MINOR_MAX;
    case EBPFMON_CA_CLIENT_NAME:
    case EBPFMON_CA_HOST_NAME:
        return h->size && h->size <= CLAIM_MAX && !h->type && !h->count && !h->cid && !h->extra;
    case EBPFMON_CA_CLEAR_CHANNEL:
        return !h->size && !h->type && !h->count;
    default: /* EVENTS_OFF, EVENTS_ON, READ_SYNC, ECHO */
        return !h->size && !h->type && !h->count && !h->cid && !h->extra;
    }
}

static int isPlausibleFromServer(const ebpfMonCaHeader *h)
{
    switch (h->cmd) {
    case EBPFMON_CA_VERSION:
        /* caproto sends cid 1 */
        return !h->size && h->type <= PRIORITY_MAX && h->count && h->count <= MINOR_MAX && h->cid <= 1 && !h->extra;
    case EBPFMON_CA_EVENT_ADD: /* without a payload it confirms a cancellation, and m_cid is no status */
        return h->size ? sizeFits(h) && isStatus(h->cid) : h->type < EBPFMON_CA_TYPES;
    case EBPFMON_CA_EVENT_CANCEL:
        return !h->size && h->type < EBPFMON_CA_TYPES;
    case EBPFMON_CA_READ:
        return sizeFits(h);
    case EBPFMON_CA_READ_NOTIFY: /* without a payload: the server refused the read */
        return isStatus(h->cid) && (sizeFits(h) || (!h->size && h->type < EBPFMON_CA_TYPES));
    case EBPFMON_CA_SEARCH:
        return h->size <= 8 && h->type && !h->count;
    case EBPFMON_CA_ERROR:
        return h->size >= EBPFMON_CA_HEADER && h->size <= ERROR_MAX && !h->type && !h->count && isStatus(h->extra);
    case EBPFMON_CA_NOT_FOUND:
        return !h->size && (h->type == 5 || h->type == 10);
    case EBPFMON_CA_CREATE_CHAN:
        return !h->size && h->type <= 6;
    case EBPFMON_CA_WRITE_NOTIFY:
        return !h->size && h->type < EBPFMON_CA_TYPES && isStatus(h->cid);
    case EBPFMON_CA_ACCESS_RIGHTS:
        return !h->size && !h->type && !h->count && h->extra <= 3;
    case EBPFMON_CA_CLEAR_CHANNEL:
        return !h->size && !h->type && !h->count;
    case EBPFMON_CA_CREATE_CH_FAIL:
    case EBPFMON_CA_SERVER_DISCONN:
        return !h->size && !h->type && !h->count && !h->extra;
    default: /* READ_SYNC, ECHO */
        return !h->size && !h->type && !h->count && !h->cid && !h->extra;
    }
}

int ebpfMonCaHeaderPlausible(const ebpfMonCaHeader *h, int fromServer, int strict)
{
    if (h->cmd >= sizeof senders || !(senders[h->cmd] & (fromServer ? SERVER : CLIENT))
        || h->size > (strict ? SIZE_MAX_STRICT : SIZE_MAX_LOOSE))
        return 0;
    return !strict || (fromServer ? isPlausibleFromServer(h) : isPlausibleFromClient(h));
}

int ebpfMonCaText(char *text, size_t size, const uint8_t *p, size_t n)
{
    size_t i;

    for (i = 0; i < n && p[i]; i++) {
        if (p[i] < 0x20 || p[i] == 0x7f)
            return -1;
        if (i < size - 1)
            text[i] = (char)p[i];
    }
    text[i < size ? i : size - 1] = 0;
    return 0;
}
