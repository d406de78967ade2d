/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsTime.h>
#include <errlog.h>
#include <stdio.h>
#include <string.h>
#include "common/text.h"
#include "model/put.h"

/* --- puts --- */

/* Puts as text. */

const char *ebpfMonThroughName(ebpfMonThrough through)
{
    static const char *const names[ebpfMonByCount] = {
        "CA", "PVA", "link", "CA link", "shell", "start-up", "thread"
    };

    return (unsigned)through < ebpfMonByCount ? names[through] : "?";
}

const char *ebpfMonPutResultName(ebpfMonPutResult result)
{
    static const char *const names[] = { "ok", "failed", "denied", "unknown", "sent", "lost", "unwritten", "pending" };

    return (unsigned)result < sizeof(names) / sizeof(names[0]) ? names[result] : "?";
}

int ebpfMonPutHasFailed(const ebpfMonPut *put)
{
    switch (put->result) {
    case ebpfMonPutFailed:
    case ebpfMonPutDenied:
    case ebpfMonPutLost:
    case ebpfMonPutUnwritten:
        return 1;
    default:
        return 0;
    }
}

void ebpfMonPutGetAddress(const ebpfMonPut *put, char *buf, size_t size)
{
    const char *at = put->peer + (put->peer[0] == '['), *end = put->peer[0] == '[' ? "]" : ":";

    snprintf(buf, size, "%.*s", (int)strcspn(at, end), at);
    if (strcmp(buf, EBPFMON_NOT_KNOWN) == 0)
        buf[0] = 0;
}

size_t ebpfMonPutGetRecordLength(const char *name)
{
    return strcspn(name, ".");
}

int ebpfMonPutIsAutomatic(const ebpfMonPut *put)
{
    switch (put->through) {
    case ebpfMonByCa:
    case ebpfMonByPva:
        return put->byProgram;
    case ebpfMonByShell:
        return 0;
    default:
        return 1;
    }
}

#define TEXT(member) {offsetof(ebpfMonPut, member), sizeof(((ebpfMonPut *)0)->member)}

void ebpfMonPutClean(ebpfMonPut *put)
{
    static const struct {
        size_t at, size;
    } texts[] = {
        TEXT(ioc), TEXT(pv), TEXT(channel), TEXT(val), TEXT(old), TEXT(after), TEXT(user), TEXT(authority), TEXT(host),
        TEXT(realUser), TEXT(command), TEXT(container), TEXT(thread), TEXT(link), TEXT(linkIoc), TEXT(root),
        TEXT(cause), TEXT(who), TEXT(origin), TEXT(message), TEXT(rule), TEXT(group), TEXT(gateway),
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ebpfMonTextClean((char *)put + texts[i].at, texts[i].size);
}

/* "became 10"; of a call "returned 10 in 1.25 ms"; "": there is nothing to say. */
static void formatAfter(const ebpfMonPut *put, char *buf, size_t size)
{
    buf[0] = 0;
    if (put->took)
        snprintf(buf, size, "%s%s%sin %.3g ms", put->after[0] ? "returned " : "", put->after, put->after[0] ? " " : "",
                 (double)put->took / 1e6);
    else if (put->after[0])
        snprintf(buf, size, "became %s", put->after);
}

/* How the result is told: at the end of a line, and in a few words. */
static const struct {
    const char *inLine, *brief;
} resultTexts[] = {
    [ebpfMonPutOk] = { "", "" },
    [ebpfMonPutFailed] = { " FAILED", "fails" },
    [ebpfMonPutDenied] = { " DENIED", "denied" },
    [ebpfMonPutUnknown] = { " (result not seen)", "not seen" },
    [ebpfMonPutSent] = { " (no reply asked)", "" },
    [ebpfMonPutLost] = { " LOST: sent, but the IOC never made it", "lost: the IOC never made it" },
    [ebpfMonPutUnwritten] = { " UNWRITTEN: answered OK, but no record was written", "answered OK, not written" },
    [ebpfMonPutPending] = { "", "" },
};

/* Adds why the put failed; nothing if that is not known, as in a history. */
static void addWhy(const ebpfMonPut *put, char *text, size_t size)
{
    char why[128] = "";

    if (!put->message[0] && put->status)
        errSymLookup(put->status, why, sizeof(why));
    if (put->message[0] || why[0])
        ebpfMonTextAdd(text, size, ": %s", put->message[0] ? put->message : why);
}

size_t ebpfMonPutLine(const ebpfMonPut *put, char *buf, size_t size)
{
    char when[40];
    char result[128] = "";
    char after[sizeof(put->after) + 40];
    char line[2 * EBPFMON_LINE_SIZE]; /* has room for all parts at their greatest length */
    const char *old = put->old[0] || put->hasOld ? put->old : "?";

    if (!size)
        return 0;
    epicsTimeToStrftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S.%06f", &put->time);
    ebpfMonTextCopy(result, sizeof(result), resultTexts[put->result].inLine);
    if (put->result == ebpfMonPutFailed)
        addWhy(put, result, sizeof(result));
    else if (put->result == ebpfMonPutPending)
        snprintf(result, sizeof(result), " (%s)", put->message);
    if (put->isPartly)
        strcat(result, ", and made other members");
    formatAfter(put, after, sizeof(after));
    snprintf(line, sizeof(line), "%s %s %s -> %s%s%s%s%s%s%s%s%s%s", when, put->pv, old, put->val,
             after[0] ? " (" : "", after, after[0] ? ")" : "",
             put->who[0] ? " by " : "", put->who,
             put->origin[0] ? " (" : "", put->origin, put->origin[0] ? ")" : "", result);
    ebpfMonTextCopy(buf, size, line);
    return strlen(buf);
}

size_t ebpfMonPutOutcome(const ebpfMonPut *put, char *buf, size_t size)
{
    char text[EBPFMON_LINE_SIZE] = "";

    ebpfMonTextCopy(text, sizeof(text), resultTexts[put->result].brief);
    if (put->result == ebpfMonPutOk || put->result == ebpfMonPutSent) {
        formatAfter(put, text, sizeof(text));
    } else if (put->result == ebpfMonPutFailed) {
        addWhy(put, text, sizeof(text));
    } else if (put->result == ebpfMonPutPending) {
        strcpy(text, put->message);
    }
    if (put->isPartly)
        strncat(text, "; other members made", sizeof(text) - strlen(text) - 1);
    return ebpfMonTextCopy(buf, size, text), strlen(buf);
}

#define BRIEF_VALUE 12 /* bytes of a long value that stay beside a long name */
#define BRIEF_RULE  6  /* bytes of the rule that are shown at least; else it is left out */

/* Writes the end of "text" in at most "room" bytes (at least 4). Returns the length. */
static size_t copyEnd(char *dst, size_t room, const char *text)
{
    size_t length = strlen(text);

    if (length > room) {
        text += length - (room - 3);
        while (((unsigned char)*text & 0xc0) == 0x80) /* do not begin within a character of UTF-8 */
            text++;
        length = (size_t)sprintf(dst, "...%s", text);
    } else {
        memcpy(dst, text, length + 1);
    }
    return length;
}

void ebpfMonPutBrief(const ebpfMonPut *put, char buf[EBPFMON_BRIEF_SIZE])
{
    const size_t room = EBPFMON_BRIEF_SIZE - 1, both = room - 3; /* room for name and value */
    int hasName = put->user[0] && !ebpfMonPutIsAnonymous(put);
    const char *by = put->isUnsure && hasName ? " by perhaps " : " by ";
    const char *user = hasName ? put->user : put->who;
    size_t pv = strlen(put->pv), value = strlen(put->val), used;

    if (pv + value > both) {
        size_t least = value < BRIEF_VALUE ? value : BRIEF_VALUE;

        value = pv + least < both ? both - pv : least;
    }
    used = copyEnd(buf, both - value, put->pv);
    used += (size_t)sprintf(buf + used, " = ");
    ebpfMonTextCopy(buf + used, value + 1, put->val);
    used = strlen(buf);
    if (!user[0] || used + strlen(by) + strlen(user) > room)
        return;
    used += (size_t)snprintf(buf + used, EBPFMON_BRIEF_SIZE - used, "%s%s", by, user);
    if (put->rule[0] && used + 2 + BRIEF_RULE <= room) {
        strcpy(buf + used, ": ");
        ebpfMonTextCopy(buf + used + 2, EBPFMON_BRIEF_SIZE - used - 2, put->rule);
    }
}
