/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define USE_TYPED_RSET
#include <dbAccessDefs.h>
#include <dbStaticLib.h>
#include <epicsTime.h>

#include "monitor/decode.h"
#include "monitor/value.h"
#include "target/layout.h"
#include "target/procInfo.h"

#define PORTS_NS 1000000000ull /* an unknown port is looked for again after this */
#define COMMANDS 256 /* commands of clients remembered, by pid */

epicsTimeStamp ebpfMonWallTime(uint64_t ktime)
{
    struct timespec mono, wall;
    uint64_t ns;
    epicsTimeStamp ts;
    time_t sec;

    /* The offset is taken anew each time: two cheap calls, and a stepped clock needs no detection. */
    clock_gettime(CLOCK_MONOTONIC, &mono);
    clock_gettime(CLOCK_REALTIME, &wall);
    ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec -
         ((uint64_t)mono.tv_sec * 1000000000u + (uint64_t)mono.tv_nsec) + ktime;
    sec = (time_t)(ns / 1000000000u);
    epicsTimeFromTime_t(&ts, sec);
    ts.nsec = (epicsUInt32)(ns % 1000000000u);
    return ts;
}

/* What a client is called: its command line while it lives, else the kernel's 15 characters. */
static const char *commandOf(const struct ebpfMonOwner *own)
{
    static struct {
        uint32_t pid;
        uint64_t start;
        char comm[EBPFMON_COMM_MAX];
        char text[48];
    } known[COMMANDS];
    unsigned i = own->pid % COMMANDS;

    /* A pid that runs another program now has another comm; the worst case is one stale script name. */
    if (known[i].pid != own->pid || strncmp(known[i].comm, own->comm, EBPFMON_COMM_MAX) != 0) {
        known[i].pid = own->pid;
        memcpy(known[i].comm, own->comm, EBPFMON_COMM_MAX);
        if (ebpfMonProcCommand((pid_t)own->pid, known[i].text, sizeof(known[i].text)))
            snprintf(known[i].text, sizeof(known[i].text), "%.*s", EBPFMON_COMM_MAX, own->comm);
    }
    return known[i].text;
}

/* Whether the connection came in to a server. A device that a driver thread talks to is no client, though
 * that thread read from its socket last. */
static int isServer(ebpfMonTarget *t, uint16_t sport, uint64_t now)
{
    unsigned port = ntohs(sport);

    if (!(t->ports[port / 8] & (1u << (port % 8))) && now - t->portsAt > PORTS_NS) {
        t->portsAt = now;
        ebpfMonProcListening(t->pid, t->ports);
    }
    return !!(t->ports[port / 8] & (1u << (port % 8)));
}

static void address(char *buf, size_t size, uint32_t addr, uint16_t port)
{
    char text[INET_ADDRSTRLEN] = "?";
    struct in_addr in = { .s_addr = addr };

    inet_ntop(AF_INET, &in, text, sizeof(text));
    snprintf(buf, size, "%s:%u", text, ntohs(port));
}

static void rootName(ebpfMonTarget *t, uint64_t root, char *buf, size_t size)
{
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, root) : -1;

    if (index >= 0)
        snprintf(buf, size, ", chain of %s", ebpfMonCatalogueName(t->cat, (uint32_t)index));
    else
        buf[0] = 0;
}

/* Who, and through what. A client is who it claims to be until the kernel knows better: its own process'
 * user and command stand beside the claim. */
static void author(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, ebpfMonPut *put)
{
    char peer[40], real[40] = "", chain[80] = "", local[100] = "";
    const char *protocol = ev->isCA ? "CA" : "PVA";

    if (ev->root && ev->root != ev->precord)
        rootName(t, ev->root, chain, sizeof(chain));
    if (!ev->peer.addr || (!ev->isCA && !isServer(t, ev->peer.sport, ev->head.ktime))) { /* no client: a thread of the IOC itself */
        snprintf(put->who, sizeof(put->who), "thread %.*s", EBPFMON_COMM_MAX, ev->comm);
        snprintf(put->origin, sizeof(put->origin), "%s", chain[0] ? chain + 2 : "in the IOC");
        return;
    }
    address(peer, sizeof(peer), ev->peer.addr, ev->peer.port);
    if (ev->owner.pid)
        ebpfMonProcUser((uid_t)ev->owner.uid, real, sizeof(real));
    snprintf(put->user, sizeof(put->user), "%s", ev->user[0] ? ev->user : real);
    if (ev->host[0])
        snprintf(put->host, sizeof(put->host), "%s", ev->host);
    else
        snprintf(put->host, sizeof(put->host), "%.*s", (int)strcspn(peer, ":"), peer);
    put->peerPid = ev->owner.pid;
    if (ev->owner.pid)
        snprintf(local, sizeof(local), " %s[%u]", commandOf(&ev->owner), ev->owner.pid);
    snprintf(put->who, sizeof(put->who), "%s@%s%s", put->user[0] ? put->user : "?", put->host, local);
    if (ev->owner.pid)
        snprintf(put->origin, sizeof(put->origin), "%s %s uid %s%s", protocol, peer, real, chain);
    else
        snprintf(put->origin, sizeof(put->origin), "%s %s%s", protocol, peer, chain);
}

static void linkText(const struct ebpfMonPutEvent *ev, const char *target, char *buf, size_t size)
{
    static const char *const maximize[] = { "NMS", "MS", "MSI", "MSS" };
    const char *process = ev->linkMask & LAYOUT_PVL_CPP ? "CPP" : ev->linkMask & LAYOUT_PVL_CP ? "CP" :
                          ev->linkMask & LAYOUT_PVL_CA ? "CA" : ev->linkMask & LAYOUT_PVL_PP ? "PP" : "NPP";

    if (!target[0] || (ev->linkType != LAYOUT_LINK_PV && ev->linkType != LAYOUT_LINK_DB &&
                       ev->linkType != LAYOUT_LINK_CA) || ev->fieldType == ebpfMonDbfFwdlink)
        ebpfMonTextCopy(buf, size, target);
    else
        snprintf(buf, size, "%s %s %s", target, process, maximize[ev->linkMask & LAYOUT_PVL_MSMODE]);
}

void ebpfMonDecodeLinkResult(ebpfMonTarget *t, uint64_t linkAt, ebpfMonPut *put)
{
    struct layoutPvLink link;
    char now[EBPFMON_TEXT_SIZE] = "";
    size_t want = strcspn(put->val, " \t");
    uint64_t name;

    if (ebpfMonMemReadNow(t->pid, linkAt, &link, sizeof(link)))
        return;
    /* value.pv_link.pvname, or value.constantStr, which is the first member of the union */
    if (link.type == LAYOUT_LINK_CONSTANT)
        name = link.backNext;
    else if (link.type == LAYOUT_LINK_PV || link.type == LAYOUT_LINK_DB || link.type == LAYOUT_LINK_CA)
        name = link.pvname;
    else
        return;
    for (size_t i = 0; name && i + 1 < sizeof(now); i++)
        if (ebpfMonMemReadNow(t->pid, name + i, &now[i], 1) || !now[i])
            break;
    if (strlen(now) == want && strncmp(now, put->val, want) == 0) {
        put->result = ebpfMonPutOk;
    } else {
        put->result = ebpfMonPutFailed;
        put->status = S_dbLib_badLink;
    }
}

/* Names from the catalogue; before there is one, or for a record that is newer, from the record itself:
 * its name is the first member of dbCommon. */
static void names(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const ebpfMonField *f, ebpfMonPut *put)
{
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, ev->precord) : -1;
    char record[EBPFMON_NAME_SIZE] = "?";

    if (index >= 0)
        snprintf(record, sizeof(record), "%s", ebpfMonCatalogueName(t->cat, (uint32_t)index));
    else if (ebpfMonMemReadNow(t->pid, ev->precord, record, sizeof(record)) == 0)
        record[sizeof(record) - 1] = 0;
    if (f && strcmp(f->name, "VAL") == 0)
        snprintf(put->pv, sizeof(put->pv), "%s", record);
    else
        snprintf(put->pv, sizeof(put->pv), "%s.%.6s", record, f ? f->name : "?");
}

/* The types of the CA protocol (db_access.h: DBR_STRING, SHORT, FLOAT, ENUM, CHAR, LONG, DOUBLE). */
static const int caType[] = {
    ebpfMonDbfString, ebpfMonDbfShort, ebpfMonDbfFloat, ebpfMonDbfEnum, ebpfMonDbfUchar, ebpfMonDbfLong,
    ebpfMonDbfDouble,
};

/* A single number, by the field's type: a client may send it as text. */
static int isNumber(const ebpfMonValue *v, int fieldType, const char *text, double *number)
{
    char *end;

    if (v->count != 1 || fieldType < ebpfMonDbfChar || fieldType > ebpfMonDbfDouble || !text[0])
        return 0;
    *number = strtod(text, &end);
    return !*end;
}

int ebpfMonDecodePut(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, size_t size, ebpfMonPut *put,
                     int *linkChanged)
{
    const uint8_t *data = (const uint8_t *)(ev + 1);
    const ebpfMonField *f = t->cat ? ebpfMonCatalogueField(t->cat, ev->pfldDes) : NULL;
    ebpfMonValue old = { .len = ev->oldLen }, new = { .len = ev->newLen };

    if (size < sizeof(*ev) || ev->oldLen > EBPFMON_VAL_MAX || ev->newLen > EBPFMON_VAL_MAX ||
        size < sizeof(*ev) + ev->oldLen + ev->newLen)
        return 0;
    memset(put, 0, sizeof(*put));
    put->time = ebpfMonWallTime(ev->head.ktime);
    put->hasOld = 1;
    snprintf(put->ioc, sizeof(put->ioc), "%s", t->name);
    names(t, ev, f, put);
    author(t, ev, put);

    old.data = data;
    old.type = ev->fieldType;
    old.size = ev->fieldSize;
    old.count = ev->oldCount >= 0 ? ev->oldCount : ev->nElements;
    new.data = data + ev->oldLen;
    new.type = ev->dbrType;
    new.size = 40;
    new.count = ev->nRequest;
    /* CA puts are converted in place before dbPut, but not those that were refused before. */
    new.network = ev->site == EBPFMON_SITE_DENIED || ev->isCA == 2;
    if (ev->site == EBPFMON_SITE_LINK) {
        char target[EBPFMON_VAL_MAX + 1];

        snprintf(target, sizeof(target), "%.*s", (int)old.len, (const char *)old.data);
        linkText(ev, target, put->old, sizeof(put->old));
    } else {
        ebpfMonValueText(t, f, ev->precord, &old, put->old, sizeof(put->old));
    }
    if (new.network && ev->dbrType >= 0 && ev->dbrType < (int)(sizeof(caType) / sizeof(caType[0])))
        new.type = caType[ev->dbrType];
    else if (ev->dbrType > ebpfMonDbfEnum) /* DBR_PUT_ACKT, DBR_PUT_ACKS: alarm acknowledgement */
        new.type = ebpfMonDbfUshort;
    ebpfMonValueText(t, f, ev->precord, &new, put->val, sizeof(put->val));
    put->count = new.count;
    put->oldCount = old.count;
    put->isNumber = isNumber(&new, ev->fieldType, put->val, &put->number);
    put->oldIsNumber = isNumber(&old, ev->fieldType, put->old, &put->oldNumber);
    put->result = ev->site == EBPFMON_SITE_DENIED ? ebpfMonPutDenied :
                  ev->site == EBPFMON_SITE_DISABLED ? ebpfMonPutFailed : ebpfMonPutUnknown;
    if (ev->site == EBPFMON_SITE_DISABLED)
        put->status = S_db_putDisabled;
    *linkChanged = ev->site == EBPFMON_SITE_LINK ||
                   (f && (strcmp(f->name, "TSE") == 0 || strcmp(f->name, "TSEL") == 0));
    return 1;
}
