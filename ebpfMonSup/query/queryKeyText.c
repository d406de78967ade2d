/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "host/peerText.h"
#include "host/syscallName.h"
#include "query/queryFileText.h"
#include "query/queryKeyText.h"
#include "query/querySpec.h"

static void nameIoc(uint32_t iocId, ebpfMonTargets *targets, char *text, size_t size)
{
    const ebpfMonTarget *t;

    snprintf(text, size, iocId ? "IOC %u" : "-", (unsigned)iocId);
    if (!targets || !iocId)
        return;
    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    if (t)
        ebpfMonTextCopy(text, size, t->name);
    ebpfMonTargetsUnlock(targets);
}

static void nameRecord(uint32_t iocId, uint64_t precord, ebpfMonTargets *targets, char *text, size_t size)
{
    const ebpfMonTarget *t;
    long index;

    if (!precord) {
        snprintf(text, size, "-");
        return;
    }
    snprintf(text, size, "0x%" PRIx64, precord);
    if (!targets)
        return;
    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, iocId);
    index = t && t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    if (index >= 0)
        ebpfMonTextCopy(text, size, ebpfMonCatalogueName(t->cat, (uint32_t)index));
    ebpfMonTargetsUnlock(targets);
}

/* Writes "RECORD.FIELD", or "RECORD" if the field is VAL. */
static void namePut(const uint64_t n[3], ebpfMonTargets *targets, char *text, size_t size)
{
    const ebpfMonField *field;
    const ebpfMonTarget *t;
    size_t used;

    nameRecord((uint32_t)n[0], n[1], targets, text, size);
    if (!n[1] || !targets)
        return;
    used = strlen(text);
    ebpfMonTargetsLock(targets);
    t = ebpfMonTargetsFindById(targets, (uint32_t)n[0]);
    field = t && t->cat ? ebpfMonCatalogueField(t->cat, n[2]) : NULL;
    if (field && strcmp(field->name, "VAL") != 0)
        snprintf(text + used, size - used, ".%s", field->name);
    ebpfMonTargetsUnlock(targets);
}

static void nameWho(const uint8_t *key, char *text, size_t size)
{
    struct ebpfMonQueryWho who;
    uint32_t addr6[4];
    char raw[80];

    memcpy(&who, key, sizeof(who));
    switch (who.kind) {
    case EBPFMON_QUERY_BY_CA:
        snprintf(raw, sizeof(raw), "%.15s@%.19s", who.user, who.host);
        break;
    case EBPFMON_QUERY_BY_PEER:
        memcpy(addr6, who.host, sizeof(addr6));
        ebpfMonPeerTextEnd(who.peer.addr, addr6, who.peer.port, raw, sizeof(raw));
        break;
    case EBPFMON_QUERY_BY_THREAD:
        snprintf(raw, sizeof(raw), "%.15s", who.comm);
        break;
    default:
        snprintf(raw, sizeof(raw), "-");
    }
    ebpfMonTextCopy(text, size, raw);
}

static void nameFile(const uint8_t *key, char *text, size_t size)
{
    struct ebpfMonQueryFile file;

    memcpy(&file, key, sizeof(file));
    ebpfMonQueryFileText(&file, text, size);
}

static void nameFunction(uint32_t iocId, uint64_t address, const ebpfMonQueryNames *names, char *text, size_t size)
{
    snprintf(text, size, "0x%" PRIx64, address);
    for (size_t i = 0; i < names->functions; i++)
        if (names->function[i].iocId == iocId && names->function[i].address == address) {
            ebpfMonTextCopy(text, size, names->function[i].name);
            return;
        }
}

/* As ebpfMonQueryKeyText. */
static int nameLock(const uint64_t n[3], const ebpfMonQueryNames *names, double seen, char *text, size_t size)
{
    ebpfMonQueryLockAnswer answer = ebpfMonQueryLockUnknown;
    ebpfMonQueryLock lock = { .record = 0 };

    if (names->locks && n[1])
        answer = ebpfMonQueryLocksFind(names->locks, (uint32_t)n[0], n[1], seen, &lock);
    if (answer != ebpfMonQueryLockFound) {
        snprintf(text, size, "0x%" PRIx64, n[1]);
    } else if (lock.record) {
        size_t used;

        nameRecord((uint32_t)n[0], lock.record, names->targets, text, size);
        used = strlen(text);
        snprintf(text + used, size - used, " (lock set)");
    } else {
        ebpfMonTextCopy(text, size, lock.creator);
    }
    return answer == ebpfMonQueryLockLater;
}

int ebpfMonQueryKeyText(const struct ebpfMonQueryField *f, const uint8_t *key, const ebpfMonQueryNames *names,
                        double seen, char *text, size_t size)
{
    ebpfMonTargets *targets = names->targets;
    uint64_t n[3] = { 0, 0, 0 };
    double number;

    memcpy(n, key, f->size < sizeof(n) ? f->size : sizeof(n));
    if (ebpfMonQueryIsWho(f))
        nameWho(key, text, size);
    else if (ebpfMonQueryIsFile(f))
        nameFile(key, text, size);
    else if (f->what == EBPFMON_QUERY_FUNCTION)
        nameFunction((uint32_t)n[0], n[1], names, text, size);
    else if (f->what == EBPFMON_QUERY_SITE)
        snprintf(text, size, "%s", ebpfMonQuerySitesGetName(names->sites, n[0]));
    else if (f->what == EBPFMON_QUERY_PUT)
        namePut(n, targets, text, size);
    else if (ebpfMonQueryIsText(f))
        ebpfMonTextCopyBytes(text, size, (const char *)key, f->size);
    else if (ebpfMonQueryIsRecord(f))
        nameRecord((uint32_t)n[0], n[1], targets, text, size);
    else if (ebpfMonQueryIsLock(f))
        return nameLock(n, names, seen, text, size);
    else if (f->what == EBPFMON_QUERY_IOC)
        nameIoc((uint32_t)n[0], targets, text, size);
    else if (f->what == EBPFMON_QUERY_SYSCALL)
        ebpfMonSyscallName((long)n[0], text, size);
    else if (f->what == EBPFMON_QUERY_PREEMPTED)
        snprintf(text, size, "%s", n[0] ? "preempted" : "woken");
    else if (ebpfMonQueryIsDouble(f))
        snprintf(text, size, "%.10g", (memcpy(&number, n, sizeof(number)), number));
    else if (ebpfMonQueryIsSigned(f))
        snprintf(text, size, "%" PRId64, (int64_t)n[0]);
    else
        snprintf(text, size, "%" PRIu64, n[0]);
    return 0;
}
