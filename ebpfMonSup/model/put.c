/* SPDX-License-Identifier: BSD-3-Clause */
/* A put as text. */
#include <stdio.h>
#include <string.h>

#include <errlog.h>
#include <epicsTime.h>

#include "common/text.h"
#include "model/put.h"

const char *ebpfMonThroughName(ebpfMonThrough through)
{
    static const char *const names[ebpfMonByCount] = {
        "CA", "PVA", "link", "CA link", "shell", "start-up", "thread"
    };

    return (unsigned)through < ebpfMonByCount ? names[through] : "?";
}

const char *ebpfMonPutResultName(ebpfMonPutResult result)
{
    static const char *const names[] = { "ok", "failed", "denied", "unknown", "sent", "lost" };

    return (unsigned)result < sizeof(names) / sizeof(names[0]) ? names[result] : "?";
}

#define TEXT(member) {offsetof(ebpfMonPut, member), sizeof(((ebpfMonPut *)0)->member)}

void ebpfMonPutClean(ebpfMonPut *put)
{
    static const struct {
        size_t at, size;
    } texts[] = {
        TEXT(ioc), TEXT(pv), TEXT(channel), TEXT(val), TEXT(old), TEXT(after), TEXT(user), TEXT(host), TEXT(realUser),
        TEXT(command), TEXT(container), TEXT(thread), TEXT(link), TEXT(linkIoc), TEXT(root), TEXT(cause), TEXT(who),
        TEXT(origin), TEXT(message), TEXT(rule),
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ebpfMonTextClean((char *)put + texts[i].at, texts[i].size);
}

size_t ebpfMonPutLine(const ebpfMonPut *put, char *buf, size_t size)
{
    char when[40];
    char result[128] = "";
    char line[2 * EBPFMON_LINE_SIZE]; /* all parts at their longest fit */
    const char *old = put->old[0] || put->hasOld ? put->old : "?";

    if (!size)
        return 0;
    epicsTimeToStrftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S.%06f", &put->time);
    switch (put->result) {
    case ebpfMonPutOk:
        break;
    case ebpfMonPutFailed:
        strcpy(result, " FAILED: ");
        if (put->message[0])
            ebpfMonTextCopy(result + strlen(result), sizeof(result) - strlen(result), put->message);
        else
            errSymLookup(put->status, result + strlen(result), sizeof(result) - strlen(result));
        break;
    case ebpfMonPutDenied:
        strcpy(result, " DENIED");
        break;
    case ebpfMonPutUnknown:
        strcpy(result, " (result not seen)");
        break;
    case ebpfMonPutSent:
        strcpy(result, " (no reply asked)");
        break;
    case ebpfMonPutLost:
        strcpy(result, " LOST: sent, but the IOC never made it");
        break;
    }
    snprintf(line, sizeof(line), "%s %s %s \xe2\x86\x92 %s%s%s%s%s%s%s%s%s%s", when, put->pv, old, put->val,
             put->after[0] ? " (became " : "", put->after, put->after[0] ? ")" : "",
             put->who[0] ? " by " : "", put->who,
             put->origin[0] ? " (" : "", put->origin, put->origin[0] ? ")" : "", result);
    ebpfMonTextCopy(buf, size, line);
    return strlen(buf);
}
