/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection to a RecSync server for one IOC. No function waits: each call does what is possible now. Only the
 * thread of recSync.c uses this module. Times: s, monotonic.
 */
#ifndef EBPFMON_RECSYNCLINK_H
#define EBPFMON_RECSYNCLINK_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include "shared/iocInventory.h"

/* --- messages ---
 *
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

/* --- the connection --- */

typedef enum {
    ebpfMonRecSyncIdle,       /* no connection */
    ebpfMonRecSyncConnecting,
    ebpfMonRecSyncGreets,     /* waits for the server's greeting */
    ebpfMonRecSyncSends,      /* sends its records */
    ebpfMonRecSyncDone        /* all records were sent, and the server sends pings */
} ebpfMonRecSyncState;

typedef struct ebpfMonRecSyncLink {
    struct ebpfMonRecSyncLink *next;
    ebpfMonInventoryIoc ioc;
    ebpfMonRecSyncState state;
    int      file;            /* its socket; -1: none */
    double   deadline;        /* the state must change before this time; Idle: no connection is made before it */
    double   lookAt;          /* when the variables and PVs are compared with those that were sent; 0: not any more, or
                               * not yet sent */
    double   pause;           /* of a server that is not EPICS Base: s until its PVs are looked at again */
    uint64_t variables;       /* a hash of those that were sent */
    ebpfMonRecSyncOut out;
    size_t   sent;            /* bytes of "out" that were sent */
    size_t   upload;          /* bytes at the begin of "out" that are greeting and upload; behind them are pongs */
    ebpfMonRecSyncIn in;
    unsigned records;         /* records that the server has, or gets now */
    char     why[160];        /* why the last connection failed; empty: it did not */
    int      isSeen;          /* the IOC is still watched. Only recSync.c uses this */
    int      isOwn;           /* the IOC has a RecSync client of its own: no connection is made for it */
    int      isUnreadable;    /* the last connection ended because the IOC could not be read */
    double   again;           /* s after which such an IOC is read again. It doubles each time, up to 320 s */
} ebpfMonRecSyncLink;

#define EBPFMON_RECSYNC_ANSWER 20.0 /* s that the server may take for the connection, the greeting, or a part of the
                                     * bytes */
#define EBPFMON_RECSYNC_PING   80.0 /* s without a ping, after which the server counts as gone. It pings every few s */

#define EBPFMON_RECSYNC_SETTLE  2.0 /* s that an IOC gets to open its ports, before the first connection */

/* The link owns the reference of ioc->cat from now on. NULL without memory: the caller keeps it. */
ebpfMonRecSyncLink *ebpfMonRecSyncLinkNew(const ebpfMonInventoryIoc *ioc, double now);
void ebpfMonRecSyncLinkFree(ebpfMonRecSyncLink *link); /* NULL does no harm */

/* Begins a connection. "key": from the announcement of the server. 0, or -1: link->why says what is wrong. */
int ebpfMonRecSyncLinkConnect(ebpfMonRecSyncLink *link, const struct sockaddr_in *server, uint32_t key, double now);

/* Looks whether the IOC has a RecSync client of its own, sets isOwn, and returns it. Such an IOC would be in the server
 * twice. */
int ebpfMonRecSyncLinkLookForClient(ebpfMonRecSyncLink *link);

/* Sends and receives as much as is possible without waiting. After the greeting of the server it reads the IOC,
 * which may take seconds; "worker": the calling thread, for signs of progress; "variables": names of further
 * variables of the environment. 0, or -1: the connection is closed, and link->why says why. If the IOC is the reason,
 * isUnreadable is set, and the deadline is when it is to be tried again. It is closed with 0, too, if the variables or
 * PVs are no longer those that were sent, or the IOC has a client of its own. */
int ebpfMonRecSyncLinkWork(ebpfMonRecSyncLink *link, ebpfMonWorker *worker, const char *variables, double now);

/* The events of epoll for which the link waits. */
uint32_t ebpfMonRecSyncLinkGetEvents(const ebpfMonRecSyncLink *link);

#endif
