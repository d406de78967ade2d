/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include "common/text.h"
#include "host/procRead.h"
#include "watch/targetText.h"

#define HOLDERS_MAX 4 /* of one name: one that lives, and some that have just ended */

/* The text is "EPICS R7.0.8.1" or "EPICS 7.0.10.1-DEV", as a string or behind a pointer, as releases differ. */
void ebpfMonTargetTextReadVersion(ebpfMonTargets *targets, ebpfMonTarget *t)
{
    char text[64] = "", *r;
    uint64_t at = t->image.releaseVersion;

    if (at && t->image.releaseIsPointer)
        at = ebpfMonMemPtr(t->follower.mem, at);
    if (at)
        ebpfMonMemStr(t->follower.mem, at, text, sizeof(text));
    r = strchr(text, ' ');
    r = r ? r + 1 : text;
    r += *r == 'R';
    ebpfMonTargetsLock(targets);
    ebpfMonTextCopyBytes(t->version, sizeof(t->version), r, strcspn(r, " \n"));
    ebpfMonTargetsUnlock(targets);
}

void ebpfMonTargetTextWriteNameless(const ebpfMonBinary *core, int isRecognised, char note[EBPFMON_NOTE_SIZE])
{
    if (core->foreign)
        snprintf(note, EBPFMON_NOTE_SIZE,
                 "a program for %s, which an emulator runs here: not seen inside. Run ebpfMon on a host "
                 "of its machine",
                 core->foreign);
    else if (core->isContradicted)
        snprintf(note, EBPFMON_NOTE_SIZE,
                 "stripped, and the symbols of build-id %s are of another program: not seen inside. Make them "
                 "by ebpfMonSymbols",
                 core->buildId);
    else
        snprintf(note, EBPFMON_NOTE_SIZE, "stripped, no symbols of build-id %s found: not seen inside%s. "
                 "ebpfMonSymbols makes some", core->buildId[0] ? core->buildId : "(it has none)",
                 isRecognised ? "" : " (recognition is for x86-64)");
}

void ebpfMonTargetTextFindName(ebpfMonTargets *targets, ebpfMonTarget *t)
{
    int status = ebpfMonProcIocName(t->pid, t->name, sizeof(t->name));

    t->follower.nameDenied = status > 0;
    if (status < 0)
        snprintf(t->name, sizeof(t->name), "pid%d", (int)t->pid);
    ebpfMonTargetTextTellApart(targets, t->pid, t->name);
}

/* The end of an IOC is noticed up to a second late (follower.c). So a restarted IOC keeps its name, although the old
 * process still seems to have it. */
static int isNameTaken(ebpfMonTargets *targets, const char *name)
{
    struct { pid_t pid; uint64_t start; } holder[HOLDERS_MAX];
    unsigned n = 0;
    int taken = 0;

    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *o = ebpfMonTargetsGetFirst(targets); o && n < HOLDERS_MAX; o = o->next)
        if (!o->gone && strcmp(o->name, name) == 0) {
            holder[n].pid = o->pid;
            holder[n++].start = o->start;
        }
    ebpfMonTargetsUnlock(targets);
    for (unsigned i = 0; i < n && !taken; i++)
        taken = !ebpfMonProcIsEnding(holder[i].pid, holder[i].start);
    return taken;
}

void ebpfMonTargetTextTellApart(ebpfMonTargets *targets, pid_t pid, char name[EBPFMON_IOCNAME_SIZE])
{
    char base[EBPFMON_IOCNAME_SIZE];

    if (!isNameTaken(targets, name))
        return;
    snprintf(base, sizeof(base), "%s", name);
    snprintf(name, EBPFMON_IOCNAME_SIZE, "%.48s#%d", base, (int)pid);
}

int ebpfMonRecordNameFind(const ebpfMonTarget *target, uint64_t precord, char *name, size_t size)
{
    long index = target && target->cat ? ebpfMonCatalogueFindAddr(target->cat, precord) : -1;

    snprintf(name, size, "%s", index >= 0 ? ebpfMonCatalogueName(target->cat, (uint32_t)index) : "");
    return index >= 0;
}
