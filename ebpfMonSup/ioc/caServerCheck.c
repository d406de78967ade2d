/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks whether the structs of an IOC's CA server have the layout of ioc/baseRelease.h. See caServer.h. */
#include <string.h>
#include <sys/socket.h>

#include "ioc/baseLayout.h"
#include "ioc/caServer.h"

#define CLIENT_HEAD 256
#define CHANNEL_HEAD 128
#define NAME_MAX_SIZE 512 /* of a user or host, as rsrv takes it (camessage.c, client_name_action) */

typedef struct {
    ebpfMonMem *mem;
    const ebpfMonCatalogue *cat;
    const ebpfMonBaseRelease *base;
} Look;

/* A name, or none yet. */
static int isChannelName(ebpfMonMem *mem, uint64_t at)
{
    char name[NAME_MAX_SIZE];

    return !at || ebpfMonMemStr(mem, at, name, sizeof(name)) == 0;
}

/* The channel belongs to this client, and leads to a record. */
static int isChannel(const Look *l, uint64_t at, uint64_t client)
{
    const ebpfMonBaseRelease *b = l->base;
    char ciu[CHANNEL_HEAD];
    uint64_t precord, as;
    uint32_t access;

    if (ebpfMonMemRead(l->mem, at, ciu, sizeof(ciu)) || ebpfMonMemNumberAt(ciu, b->ciuClient) != client)
        return 0;
    precord = ebpfMonMemNumberAt(ciu, b->ciuDbch);
    if (b->chanAddr)
        precord = ebpfMonMemPtr(l->mem, precord + b->chanAddr);
    as = ebpfMonMemNumberAt(ciu, b->ciuAs);
    return ebpfMonCatalogueFindAddr(l->cat, precord) >= 0 &&
           (!as || (ebpfMonMemRead(l->mem, as + b->asAccess, &access, sizeof(access)) == 0 &&
                    access <= EBPFMON_AS_WRITE));
}

/* 1: it is a client with a channel; 0: it may be a client, without a channel; -1: it is not a client. */
static int judgeClient(const Look *l, uint64_t at, const char *head)
{
    const ebpfMonBaseRelease *b = l->base;
    struct layoutList channels;
    uint16_t family;
    uint32_t stk, cnt;

    memcpy(&family, head + b->clAddr, sizeof(family));
    memcpy(&stk, head + b->clRecvStk, sizeof(stk));
    memcpy(&cnt, head + b->clRecvCnt, sizeof(cnt));
    memcpy(&channels, head + b->clChans, sizeof(channels));
    if (family != AF_INET || !ebpfMonMemNumberAt(head, b->clRecvBuf) || stk > cnt ||
        !isChannelName(l->mem, ebpfMonMemNumberAt(head, b->clUser)) ||
        !isChannelName(l->mem, ebpfMonMemNumberAt(head, b->clHost)) || channels.count < 0 ||
        !channels.first != !channels.count)
        return -1;
    if (!channels.first)
        return 0;
    return isChannel(l, channels.first, at) ? 1 : -1;
}

int ebpfMonCaServerIsKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t clientQ)
{
    Look l = { mem, cat, &cat->base };
    struct layoutList q;
    char head[CLIENT_HEAD];
    int known = 0;

    if (!clientQ || ebpfMonMemRead(mem, clientQ, &q, sizeof(q)))
        return 0;
    for (uint64_t at = q.first; at && known == 0 && q.count-- > 0; at = ebpfMonMemNumberAt(head, 0)) {
        if (ebpfMonMemRead(mem, at, head, sizeof(head)))
            return -1;
        known = judgeClient(&l, at, head);
    }
    return known;
}
