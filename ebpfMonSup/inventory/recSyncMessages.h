/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of RecSync, version 0: makes the bytes to send, and reads the received bytes. All numbers are in network
 * order. No shared state.
 *
 * A message has a header of 8 bytes ("RC", the kind of the message, the length of the body) and a body. We send a
 * greeting (1), pongs (2), records and aliases (3), "all sent" (5), and names with values (6). A name with a value
 * belongs to a record, or, with the record number 0, to the IOC. The server sends a greeting (0x8001) and pings
 * (0x8002).
 *
 * The server announces itself by UDP with 16 bytes: "RC", 0, its address (all ones: the address of the sender), its TCP
 * port, and a key, which our greeting repeats.
 */
#ifndef EBPFMON_RECSYNCMESSAGES_H
#define EBPFMON_RECSYNCMESSAGES_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_RECSYNC_PORT      5049
#define EBPFMON_RECSYNC_BYTES_MAX (128u << 20) /* bytes that may wait to be sent */

/* Bytes to send. All zero at first. */
typedef struct {
    uint8_t *bytes;
    size_t   length, room;
    int      isFull;   /* a message was left out: more than EBPFMON_RECSYNC_BYTES_MAX, or no memory */
} ebpfMonRecSyncOut;

/* The functions Add… set out->isFull if there is no room. "number": of the record, 0 is the IOC. */
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
    uint64_t skip;     /* bytes that are still to be dropped: the rest of a message */
} ebpfMonRecSyncIn;

/* Returns the place for the next received bytes; *room: how many at most. */
uint8_t *ebpfMonRecSyncInGetRoom(ebpfMonRecSyncIn *in, size_t *room);
/* So many bytes were received. */
void ebpfMonRecSyncInAdd(ebpfMonRecSyncIn *in, size_t count);
/* Takes out the next message. Returns its kind, from the enum above: Nothing: no message is complete; Bad: this is
 * not RecSync. *nonce: the number of a ping, which our pong repeats. */
int ebpfMonRecSyncInTake(ebpfMonRecSyncIn *in, uint32_t *nonce);

typedef struct {
    uint32_t address;  /* network order; all ones: the address of the sender */
    uint16_t port;     /* network order */
    uint32_t key;
} ebpfMonRecSyncServer;

/* Reads an announcement. 0, or -1: the bytes are not one. */
int ebpfMonRecSyncParseAnnouncement(const uint8_t *bytes, size_t length, ebpfMonRecSyncServer *server);

#endif
