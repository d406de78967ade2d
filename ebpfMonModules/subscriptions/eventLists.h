/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the CA server of an IOC has for its clients: dbEvent.c of Base keeps a queue for each 32 or 36 subscriptions of
 * a client, and counts in each subscription how many updates wait and how many were merged (dbel prints the same).
 * Read from the IOC's memory: its lists at a look, then only the numbers in them. One thread at a time.
 */
#ifndef EBPFMON_EVENTLISTS_H
#define EBPFMON_EVENTLISTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/memory.h"
#include "ioc/baseRelease.h"

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

/* A channel with subscriptions, as ioc/caServer.h knows it. */
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
    uint64_t at;
    uint32_t client;
    uint16_t getix;
} ebpfMonEventQueue;

typedef struct {
    uint64_t at, ext;    /* its evSubscrip, and the event_ext to which this belongs */
    uint32_t channel, client; /* indexes */
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
void ebpfMonEventListsFree(ebpfMonEventLists *lists); /* NULL does no harm */

/* Reads the numbers again. 0; 1: clients, channels or subscriptions came or went, so the lists should be read again;
 * what is gone is marked, and the numbers of the others are right. -1: they cannot be read. */
int ebpfMonEventListsUpdate(ebpfMonEventLists *lists, pid_t pid);

#endif
