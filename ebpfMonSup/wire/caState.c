/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "wire/caState.h"

#define SOON_NS 1000000000ull

static ebpfMonCaChannel *getEntryChannel(const ebpfMonIdEntry *entry)
{
    return entry ? (ebpfMonCaChannel *)(uintptr_t)entry->value : NULL;
}

ebpfMonCaChannel *ebpfMonCaBySid(const ebpfMonCaState *s, uint32_t sid)
{
    return getEntryChannel(ebpfMonIdFind(&s->bySid, sid));
}

ebpfMonCaChannel *ebpfMonCaByCid(const ebpfMonCaState *s, uint32_t cid)
{
    return getEntryChannel(ebpfMonIdFind(&s->byCid, cid));
}

void ebpfMonCaChannelRemove(ebpfMonCaState *s, ebpfMonCaChannel *ch)
{
    if (!ch)
        return;
    if (ch->hasCid)
        ebpfMonIdRemove(&s->byCid, ch->cid);
    if (ch->hasSid)
        ebpfMonIdRemove(&s->bySid, ch->sid);
    ebpfMonCircuitStats(s->circuit)->channels--;
    ebpfMonCircuitFree(s->circuit, ch, ch->size);
}

ebpfMonCaChannel *ebpfMonCaChannelSet(ebpfMonCaState *s, const uint32_t *cid, const uint32_t *sid, const char *name)
{
    unsigned max = ebpfMonCircuitLimits(s->circuit)->channels;
    size_t len = strnlen(name, EBPFMON_CA_NAME_MAX);
    ebpfMonCaChannel *ch = ebpfMonCircuitAlloc(s->circuit, sizeof *ch + len + 1);
    uint64_t value = (uintptr_t)ch;

    if (ch) {
        ch->size = sizeof *ch + len + 1;
        ch->cid = cid ? *cid : 0;
        ch->sid = sid ? *sid : 0;
        ch->hasCid = ch->hasSid = 0;
        ch->type = -1;
        ch->count = 0;
        memcpy(ch->name, name, len);
        ch->name[len] = 0;
        ebpfMonCircuitStats(s->circuit)->channels++;
        if (cid) {
            ebpfMonCaChannelRemove(s, ebpfMonCaByCid(s, *cid));
            ch->hasCid = ebpfMonIdSet(s->circuit, &s->byCid, max, *cid, value, 0);
        }
        if (sid) {
            ebpfMonCaChannelRemove(s, ebpfMonCaBySid(s, *sid));
            ch->hasSid = ebpfMonIdSet(s->circuit, &s->bySid, max, *sid, value, 0);
        }
        if ((!cid || ch->hasCid) && (!sid || ch->hasSid))
            return ch;
        ebpfMonCaChannelRemove(s, ch);
    }
    ebpfMonCircuitStats(s->circuit)->noMemory++;
    return NULL;
}

static void clearTable(ebpfMonCaState *s, ebpfMonIdTable *t, int withCid)
{
    for (unsigned i = 0; i < t->room; i++) {
        ebpfMonCaChannel *ch = t->slot[i].value ? getEntryChannel(&t->slot[i]) : NULL;

        /* a channel that is in both tables is freed with the second */
        if (ch && (withCid || !ch->hasCid)) {
            ebpfMonCircuitStats(s->circuit)->channels--;
            ebpfMonCircuitFree(s->circuit, ch, ch->size);
        }
    }
    ebpfMonIdClear(s->circuit, t);
}

void ebpfMonCaChannelsClear(ebpfMonCaState *s)
{
    clearTable(s, &s->bySid, 0);
    clearTable(s, &s->byCid, 1);
}

void ebpfMonCaWriteNote(ebpfMonCaState *s, const ebpfMonCaHeader *h, uint64_t time)
{
    ebpfMonCaWrite *w;

    if (!s->recent) {
        s->recent = ebpfMonCircuitAlloc(s->circuit, EBPFMON_CA_RECENT * sizeof *s->recent);
        if (!s->recent) {
            ebpfMonCircuitStats(s->circuit)->noMemory++;
            return;
        }
        memset(s->recent, 0, EBPFMON_CA_RECENT * sizeof *s->recent);
    }
    w = &s->recent[s->recentNext++ % EBPFMON_CA_RECENT];
    *w = (ebpfMonCaWrite){ s->puts, time, h->cid, h->extra, h->count, h->type, h->cmd, 0 };
}

static int isSame(const ebpfMonCaWrite *w, const ebpfMonCaHeader *h)
{
    /* a server without extended headers returns only the low half of the count */
    return w->id && !w->settled && w->cmd == h->cmd && w->cid == h->cid && w->extra == h->extra && w->type == h->type
        && (w->count & 0xffff) == (h->count & 0xffff);
}

/*
 * A server handles requests in order, so an error settles all puts before its own. Several puts may look the same. Then
 * we take the oldest one of the last second, because the puts of a burst are refused one after the other. If there is
 * none in the last second, we take the newest one: a put that is not refused at once was made.
 */
uint64_t ebpfMonCaWriteFailed(ebpfMonCaState *s, const ebpfMonCaHeader *h, uint64_t time)
{
    ebpfMonCaWrite *found = NULL;

    if (!s->recent)
        return 0;
    for (unsigned i = 0; i < EBPFMON_CA_RECENT; i++) { /* the oldest one comes first */
        ebpfMonCaWrite *w = &s->recent[(s->recentNext + i) % EBPFMON_CA_RECENT];

        if (!isSame(w, h))
            continue;
        found = w;
        if (time < w->time || time - w->time < SOON_NS)
            break;
    }
    if (!found)
        return 0;
    for (unsigned i = 0; i < EBPFMON_CA_RECENT; i++)
        if (s->recent[i].id <= found->id)
            s->recent[i].settled = 1;
    return found->id;
}
