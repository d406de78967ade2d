/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is connected to the CA server of an IOC, to which channels, and who has subscribed: rsrv's own lists, as its
 * command casr goes through them, read from its memory.
 */
#ifndef EBPFMON_CACLIENTS_H
#define EBPFMON_CACLIENTS_H

#include <epicsTime.h>
#include "ioc/catalogue.h"

#define EBPFMON_CACLIENT_CHANNELS 100000 /* of one IOC: what comes after them is counted only */

typedef struct {
    uint32_t client;        /* index of its client */
    uint32_t record;        /* index in the catalogue */
    uint32_t sid;
    uint32_t subscriptions;
    uint64_t at;            /* address of its channel_in_use */
    epicsTimeStamp since;   /* when the server made the channel, by its own clock */
    uint32_t name;          /* offset in "names": as the client wrote it; of an IOC without dbChannel (3.14)
                             * RECORD.FIELD */
} ebpfMonCaUse;

typedef struct {
    uint64_t at;            /* address of its struct client */
    uint32_t addr;          /* network byte order, the port too */
    uint16_t port;
    char     user[40], host[64]; /* as the client claims */
    uint32_t channels, subscriptions; /* all; also of channels that are not in "use" */
    epicsTimeStamp since;   /* of its oldest channel; secPastEpoch 0: it has none */
    size_t   firstUse;      /* its channels in "use" begin here, and end where those of the next client begin */
} ebpfMonCaClient;

typedef struct {
    ebpfMonCaClient *client;
    unsigned clients;
    ebpfMonCaUse *use;      /* by client, and those of a client by sid */
    size_t   uses;
    size_t   leftOut;       /* channels that are not in "use": there are too many, or no memory for them */
    char    *names;
    size_t   nameBytes;
} ebpfMonCaClients;

/*
 * "clientQ": ebpfMonImage.clientQ. Flushes the reader before and after. NULL: the lists cannot be read, they change
 * while they are read, or they cannot be believed: each channel must lead back to its client, and to a record of the
 * catalogue. Takes 1 s at most. The caller frees the result.
 */
ebpfMonCaClients *ebpfMonCaClientsRead(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t clientQ);

/* Finds a channel of the client at this address and port (network byte order). NULL: there is none. */
const ebpfMonCaUse *ebpfMonCaClientsFindUse(const ebpfMonCaClients *clients, uint32_t addr, uint16_t port,
                                            uint32_t sid);

void ebpfMonCaClientsFree(ebpfMonCaClients *clients); /* NULL does no harm */

#endif
