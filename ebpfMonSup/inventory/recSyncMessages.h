/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of RecSync, version 0: bytes to send, and bytes received. All numbers are in network order.
 *
 * A header of 8 bytes ("RC", number of the message, bytes that follow), then the body. We send a greeting (1), pongs (2),
 * records and aliases (3), "all sent" (5) and names with values (6), of a record or, with the record number 0, of the IOC.
 * The server sends a greeting (0x8001) and pings (0x8002). It announces itself by UDP with 16 bytes: "RC", 0, its address
 * (all ones: that of the sender), its TCP port, and a key that the greeting repeats.
 */
#ifndef EBPFMON_RECSYNCMESSAGES_H
#define EBPFMON_RECSYNCMESSAGES_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_RECSYNC_PORT      5049
#define EBPFMON_RECSYNC_BYTES_MAX (128u << 20) /* that wait to be sent */

/* Bytes to send. All zero at first. */
typedef struct {
    uint8_t *bytes;
    size_t   length, room;
    int      isFull;   /* more than EBPFMON_RECSYNC_BYTES_MAX, or no memory: what was added last is missing */
} ebpfMonRecSyncOut;

void ebpfMonRecSyncOutFree(ebpfMonRecSyncOut *out);
void ebpfMonRecSyncAddGreeting(ebpfMonRecSyncOut *out, uint32_t key);
void ebpfMonRecSyncAddPong(ebpfMonRecSyncOut *out, uint32_t nonce);
void ebpfMonRecSyncAddRecord(ebpfMonRecSyncOut *out, uint32_t number, const char *type, const char *name);
void ebpfMonRecSyncAddAlias(ebpfMonRecSyncOut *out, uint32_t number, const char *name);
void ebpfMonRecSyncAddInfo(ebpfMonRecSyncOut *out, uint32_t number, const char *name, const char *value);
void ebpfMonRecSyncAddDone(ebpfMonRecSyncOut *out);

enum { ebpfMonRecSyncNothing, ebpfMonRecSyncGreeting, ebpfMonRecSyncPing, ebpfMonRecSyncOther, ebpfMonRecSyncBad };

/* Bytes received. All zero at first. */
typedef struct {
    uint8_t  bytes[64];
    size_t   length;
    uint64_t skip;     /* of a message that is longer than those that we know */
} ebpfMonRecSyncIn;

/* Where the next bytes go, and how many at most. */
uint8_t *ebpfMonRecSyncInGetRoom(ebpfMonRecSyncIn *in, size_t *room);
/* So many came. */
void ebpfMonRecSyncInAdd(ebpfMonRecSyncIn *in, size_t count);
/* Takes the next message: one of the enum; of a ping its number. "Bad": this is no RecSync. */
int ebpfMonRecSyncInTake(ebpfMonRecSyncIn *in, uint32_t *nonce);

typedef struct {
    uint32_t address;  /* network order; all ones: that of the sender */
    uint16_t port;     /* network order */
    uint32_t key;
} ebpfMonRecSyncServer;

/* 0, or -1: it is no announcement. */
int ebpfMonRecSyncParseAnnouncement(const uint8_t *bytes, size_t length, ebpfMonRecSyncServer *server);

#endif
