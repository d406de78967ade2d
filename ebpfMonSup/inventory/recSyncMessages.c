/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/bigEndian.h"
#include "inventory/recSyncMessages.h"

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
