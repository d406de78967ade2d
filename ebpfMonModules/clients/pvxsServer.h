/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is connected to the server of QSRV 2 (pvxs), as its own report says: also over TLS, where packets show nothing,
 * and on connections that are older than the monitor. Read from the memory of the IOC.
 */
#ifndef EBPFMON_PVXSSERVER_H
#define EBPFMON_PVXSSERVER_H

#include "host/memory.h"

#define EBPFMON_PVXS_CLIENTS  4096  /* of one IOC; what comes after them is left out */
#define EBPFMON_PVXS_CHANNELS 20000

typedef struct {
    uint32_t client;        /* index */
    uint32_t sid;           /* ascending, of a client */
    uint32_t name;          /* offset in "names" */
    uint32_t monitors;
} ebpfMonPvxsChannel;

typedef struct {
    char     peer[64];      /* address:port */
    char     method[16];    /* "x509", "ca", "anonymous" */
    char     account[64];   /* as this method tells; "": the client has not said it yet */
    char     authority[64]; /* who vouches for it; "": nobody */
    int      isTls;         /* … -1: this release of pvxs does not say it, as it has no TLS */
    uint32_t channels, monitors;
    size_t   firstChannel;  /* its channels stand together */
} ebpfMonPvxsClient;

typedef struct {
    ebpfMonPvxsClient *client;
    unsigned clients;
    ebpfMonPvxsChannel *channel;
    size_t   channels;
    char    *names;
    size_t   nameBytes;
} ebpfMonPvxsClients;

/* The variable of its server, and an exported function of the same file (ioc/iochooks.cpp). */
#define EBPFMON_PVXS_VARIABLE "_ZN4pvxs3ioc12_GLOBAL__N_19pvxServerE"
#define EBPFMON_PVXS_FUNCTION "_ZN4pvxs3ioc6serverEv"

/* "variable": address of EBPFMON_PVXS_VARIABLE. Flushes the reader before. NULL: there is no client, or the lists
 * cannot be read, change while they are read, or are not those that we know: each connection and channel must
 * lead back to where it is listed. The caller frees the result. */
ebpfMonPvxsClients *ebpfMonPvxsServerRead(ebpfMonMem *mem, uint64_t variable);
void ebpfMonPvxsClientsFree(ebpfMonPvxsClients *clients); /* NULL does no harm */

#endif
