/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the CA server of an IOC has for its clients: dbEvent.c of Base keeps a queue for each 32 or 36 subscriptions of
 * a client, and counts in each subscription how many updates wait and how many were merged (dbel prints the same).
 * Others subscribe to records in the same way: QSRV, for clients of pvAccess, and links within the IOC.
 * Read from the IOC's memory: its lists at a look, then only the numbers in them. One thread at a time.
 */
#ifndef EBPFMON_EVENTLISTS_H
#define EBPFMON_EVENTLISTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/memory.h"
#include "ioc/baseLayout.h"
#include "ioc/catalogue.h"

#define EBPFMON_EVENT_SUBSCRIPTIONS 100000 /* of one IOC; further ones are not read */

/* Where the members lie; their names and their order are those of tools/layoutNumbers.h. */
typedef struct {
    const char *releases;
    struct { uint16_t user_arg, ev_que, npend, nreplace, select, enabled, useValque; } subscription; /* evSubscrip */
    struct { uint16_t evUser, getix; } queue;              /* event_que */
    struct { uint16_t extralabor_arg, flowCtrlMode; } user; /* event_user; it begins with its first queue */
    struct { uint16_t pciu, pdbev; } ext;                  /* event_ext of rsrv/server.h */
    struct { uint16_t sendStk, evuser; } client;           /* struct client, there, too */
} ebpfMonEventLayout;

/* A channel with subscriptions, as clients/caClients.h knows it. */
typedef struct {
    uint64_t at;
    uint32_t client;     /* index */
} ebpfMonEventChannel;

typedef struct {
    uint64_t at, user;   /* its struct client, and its event_user; 0: it has none yet */
    int32_t  channels;   /* in both of its lists; -1: not read yet */
    uint32_t inBuffer;   /* bytes in the server's own send buffer */
    int      isPaused;   /* it has asked for a pause (CA_PROTO_EVENTS_OFF) */
    uint64_t taken;      /* grows when an update is taken from one of its queues; it says no more */
} ebpfMonEventClient;

typedef struct {
    uint64_t at, user;   /* user: its event_user */
    uint32_t client;     /* EBPFMON_EVENT_OTHER: none */
    uint16_t getix;
    uint64_t taken;      /* as that of a client */
} ebpfMonEventQueue;

#define EBPFMON_EVENT_OTHER UINT32_MAX
#define EBPFMON_EVENT_CHANNEL 16 /* where evSubscrip has its channel, in all releases */

/* Who is no CA client and has subscribed. */
typedef struct {
    long     record;     /* index in the catalogue */
    uint64_t function;   /* of the subscriber, which takes its updates */
    uint32_t queue;      /* index */
    uint32_t monitors;   /* the caller's own */
    char     name[128];  /* of the channel, as the subscriber wrote it: RECORD.FIELD{filters} */
} ebpfMonEventOther;

typedef struct {
    uint64_t at, ext;    /* its evSubscrip, and the event_ext to which this belongs; of others: what they passed */
    uint32_t channel, client; /* indexes; of others: channel is that of "other", client is EBPFMON_EVENT_OTHER */
    uint32_t from;       /* where its bytes are in "bytes" */
    uint32_t waiting;    /* updates in the queue */
    uint64_t merged;     /* updates that took the place of one that waited */
    uint8_t  mask;       /* DBE_… */
    uint8_t  isCopied;   /* its updates carry a value. Else (arrays) an update means "send what is in the record", and
                          * one that finds another one waiting is not counted: merged is not known */
    uint8_t  isEnabled, isGone;
} ebpfMonEventSubscription;

typedef struct {
    const ebpfMonEventLayout *layout;
    const ebpfMonBaseRelease *base;
    uint64_t clientQ;
    ebpfMonEventClient *client;
    unsigned clients;
    ebpfMonEventQueue *queue;
    size_t   queues, queueRoom;
    ebpfMonEventSubscription *sub; /* in the order of the channels */
    size_t   subs, subRoom;
    ebpfMonEventOther *other;
    size_t   others, otherRoom;
    ebpfMonMemPart *part;          /* what an update reads */
    size_t   parts, partRoom, size;
    char    *bytes;
} ebpfMonEventLists;

/*
 * Reads the lists of these clients and channels. Takes 1 s at most. NULL: they change while they are read, or there is
 * no memory; or "why" is not empty, and says which member lies otherwise than in all releases that are known. Flush the
 * reader before.
 */
ebpfMonEventLists *ebpfMonEventListsRead(ebpfMonMem *mem, const ebpfMonBaseRelease *base, uint64_t clientQ,
                                         const uint64_t *client, unsigned clients, const ebpfMonEventChannel *channel,
                                         size_t channels, char *why, size_t size);
/*
 * Reads the subscriptions of all who are no CA clients: dbCommon.mlis of each record, without those of "ca" (NULL:
 * there are none; their channels' records are in recordOf, by channel). A record whose list changes is left out. Takes
 * some 0.3 us for each record of the IOC, and 1 s at most. NULL: it cannot be read, or there is no memory.
 */
ebpfMonEventLists *ebpfMonEventListsReadOthers(ebpfMonMem *mem, pid_t pid, const ebpfMonCatalogue *cat,
                                               const ebpfMonEventLists *ca, const long *recordOf);
void ebpfMonEventListsFree(ebpfMonEventLists *lists); /* NULL does no harm */

/* Reads the numbers again. 0; 1: clients, channels or subscriptions came or went, so the lists should be read again;
 * what is gone is marked, and the numbers of the others are right. -1: they cannot be read. */
int ebpfMonEventListsUpdate(ebpfMonEventLists *lists, pid_t pid);

#endif
