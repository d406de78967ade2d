/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "host/procRead.h"
#include "watch/followed.h"

ebpfMonTarget *ebpfMonFollowedNew(void)
{
    struct {
        ebpfMonTarget target;
        ebpfMonFollowed followed;
    } *made = calloc(1, sizeof(*made));

    if (!made)
        return NULL;
    made->target.followed = &made->followed;
    return &made->target;
}

/* The text is "EPICS R7.0.8.1" or "EPICS 7.0.10.1-DEV", as a string or behind a pointer, as releases differ. */
void ebpfMonFollowedReadVersion(ebpfMonTargets *targets, ebpfMonTarget *t)
{
    char text[64] = "", *r;
    uint64_t at = t->image.releaseVersion;

    if (at && t->image.releaseIsPointer)
        at = ebpfMonMemPtr(t->followed->mem, at);
    if (at)
        ebpfMonMemStr(t->followed->mem, at, text, sizeof(text));
    r = strchr(text, ' ');
    r = r ? r + 1 : text;
    r += *r == 'R';
    ebpfMonTargetsLock(targets);
    ebpfMonTextCopyBytes(t->version, sizeof(t->version), r, strcspn(r, " \n"));
    ebpfMonTargetsUnlock(targets);
}

void ebpfMonFollowedWriteNameless(const ebpfMonBinary *core, int isRecognised, char note[EBPFMON_NOTE_SIZE])
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

void ebpfMonFollowedFindName(ebpfMonTargets *targets, ebpfMonTarget *t)
{
    int status = ebpfMonProcIocName(t->pid, t->name, sizeof(t->name));

    t->followed->probes.nameDenied = status > 0;
    if (status < 0)
        snprintf(t->name, sizeof(t->name), "pid%d", (int)t->pid);
    ebpfMonTargetTextTellApart(targets, t->pid, t->name);
}

/* --- functions without symbols --- */

#define STRANGE_LEAST 3 /* fewer may be chance: a module with a record of its own that is in no database */

int ebpfMonFunctionTrialLook(ebpfMonFunctionTrial *trial, uint64_t strange, uint64_t counted)
{
    if (trial->verdict != ebpfMonFunctionsOpen)
        return 0;
    trial->strange += strange;
    if (trial->strange >= STRANGE_LEAST && trial->strange > counted)
        trial->verdict = ebpfMonFunctionsWrong;
    else if (counted)
        trial->verdict = ebpfMonFunctionsRight;
    return trial->verdict != ebpfMonFunctionsOpen;
}
