/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <epicsString.h>

#include "record/filterInputs.h"
#include "settings/settingsFile.h"

#define HEAD "ebpfMonSettings 1"
#define PUTS_MAX 64 /* as many as are kept, EBPFMON_UNEXPECTED_MAX */

/* --- a filter --- */

void ebpfMonSettingsWriteFilter(const ebpfMonFilter *f, char text[EBPFMON_SETTINGS_FILTER])
{
    /* in the order of the inputs of the filter record */
    snprintf(text, EBPFMON_SETTINGS_FILTER, "%s\n%s\n%s\n%s\n%s\n%s\n%.17g\n%u\n%.17g\n%.17g", f->ioc, f->record,
             f->field, f->host, f->user, ebpfMonLevelName(f->level), f->slowUs, f->sample, f->budget, f->timed);
}

int ebpfMonSettingsReadFilter(const char *text, ebpfMonFilter *filter, char *why, size_t size)
{
    char line[EBPFMON_SETTINGS_FILTER];

    *filter = ebpfMonFilterDefault;
    for (unsigned in = 0; in < EBPFMON_FILTER_INPUTS; in++) {
        size_t length = strcspn(text, "\n");

        if (length >= sizeof(line)) {
            snprintf(why, size, "a line is too long");
            return -1;
        }
        memcpy(line, text, length);
        line[length] = 0;
        if (ebpfMonFilterParse(filter, in, line, why, size))
            return -1;
        text += length + (text[length] == '\n');
    }
    return ebpfMonFilterCheck(filter, why, size);
}

/* --- a put --- */

typedef enum { isChars, isInt, isLong, isDouble, isHash } memberType;

typedef struct {
    const char *name;
    size_t      offset, size;
    memberType  type;
} memberOfPut;

#define MEMBER(member, type) { #member, offsetof(ebpfMonPut, member), sizeof(((ebpfMonPut *)0)->member), type }

/* "time" and "at" are written apart; "serial" is new each time; links across IOCs (linkChain) end with the monitor. */
static const memberOfPut members[] = {
    MEMBER(ioc, isChars), MEMBER(pv, isChars), MEMBER(channel, isChars), MEMBER(group, isChars),
    MEMBER(val, isChars), MEMBER(old, isChars), MEMBER(after, isChars), MEMBER(user, isChars),
    MEMBER(authority, isChars), MEMBER(host, isChars), MEMBER(peer, isChars), MEMBER(server, isChars),
    MEMBER(published, isChars),
    MEMBER(gateway, isChars), MEMBER(gatewayServer, isChars), MEMBER(gatewayClients, isInt),
    MEMBER(realUser, isChars), MEMBER(command, isChars), MEMBER(container, isChars), MEMBER(thread, isChars),
    MEMBER(link, isChars), MEMBER(linkIoc, isChars), MEMBER(root, isChars), MEMBER(cause, isChars),
    MEMBER(who, isChars), MEMBER(origin, isChars), MEMBER(message, isChars), MEMBER(rule, isChars),
    MEMBER(hasOld, isInt), MEMBER(isNumber, isInt), MEMBER(oldIsNumber, isInt), MEMBER(isText, isInt),
    MEMBER(oldIsText, isInt), MEMBER(isConverted, isInt), MEMBER(isWrapped, isInt), MEMBER(isUnsure, isInt),
    MEMBER(isPartly, isInt), MEMBER(byIoc, isInt), MEMBER(unexpected, isInt), MEMBER(seen, isInt),
    MEMBER(peerPid, isInt), MEMBER(peerUid, isInt), MEMBER(through, isInt), MEMBER(result, isInt),
    MEMBER(count, isLong), MEMBER(oldCount, isLong), MEMBER(status, isLong), MEMBER(number, isDouble),
    MEMBER(oldNumber, isDouble), MEMBER(converted, isDouble), MEMBER(wrapped, isDouble), MEMBER(hash, isHash),
    MEMBER(took, isHash),
};

static void writeText(FILE *file, const char *name, const char *text)
{
    fprintf(file, "%s ", name);
    epicsStrPrintEscaped(file, text, strlen(text));
    fputc('\n', file);
}

static void writePut(FILE *file, const ebpfMonPut *put)
{
    fprintf(file, "put %u.%09u\n", put->time.secPastEpoch, put->time.nsec);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const memberOfPut *m = &members[i];
        const void *at = (const char *)put + m->offset;
        char name[32];

        snprintf(name, sizeof(name), "put.%s", m->name);
        if (m->type == isChars && *(const char *)at)
            writeText(file, name, at);
        else if (m->type == isInt && *(const int *)at)
            fprintf(file, "%s %d\n", name, *(const int *)at);
        else if (m->type == isLong)
            fprintf(file, "%s %ld\n", name, *(const long *)at);
        else if (m->type == isDouble)
            fprintf(file, "%s %.17g\n", name, *(const double *)at);
        else if (m->type == isHash)
            fprintf(file, "%s %llu\n", name, *(const unsigned long long *)at);
    }
}

static void readMember(ebpfMonPut *put, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const memberOfPut *m = &members[i];
        void *at = (char *)put + m->offset;

        if (strcmp(m->name, name) != 0)
            continue;
        if (m->type == isChars)
            ebpfMonTextCopy(at, m->size, value);
        else if (m->type == isInt)
            *(int *)at = (int)strtol(value, NULL, 10);
        else if (m->type == isLong)
            *(long *)at = strtol(value, NULL, 10);
        else if (m->type == isDouble)
            *(double *)at = strtod(value, NULL);
        else
            *(uint64_t *)at = strtoull(value, NULL, 10);
        return;
    }
}

/* --- an IOC that is gone --- */

/* The name comes last: it may have blanks. */
static void writeGone(FILE *file, const ebpfMonGoneIoc *gone)
{
    fprintf(file, "gone %u.%09u %d %d %u ", gone->time.secPastEpoch, gone->time.nsec, gone->pid, gone->hasExit,
            gone->exitCode);
    epicsStrPrintEscaped(file, gone->name, strlen(gone->name));
    fputc('\n', file);
}

static void readGone(ebpfMonSettingsKept *kept, const char *value)
{
    ebpfMonGoneIoc *gone = &kept->goneIoc[kept->gone];
    int at = 0;

    if (kept->gone == EBPFMON_HEALTH_GONE ||
        sscanf(value, "%u.%9u %d %d %u %n", &gone->time.secPastEpoch, &gone->time.nsec, &gone->pid, &gone->hasExit,
               &gone->exitCode, &at) < 5 || !at || !value[at])
        return;
    ebpfMonTextCopy(gone->name, sizeof(gone->name), value + at);
    kept->gone++;
}

/* --- all --- */

void ebpfMonSettingsWrite(const ebpfMonSettingsKept *kept, FILE *file)
{
    fprintf(file, HEAD "\n");
    writeText(file, "start", kept->start);
    writeText(file, "filter", kept->filter);
    for (unsigned i = 0; i < kept->levels; i++) {
        fprintf(file, "level %s ", ebpfMonLevelName((ebpfMonLevel)kept->level[i].level));
        epicsStrPrintEscaped(file, kept->level[i].pattern, strlen(kept->level[i].pattern));
        fputc('\n', file);
    }
    for (unsigned i = 0; i < kept->puts; i++)
        writePut(file, &kept->put[i]);
    for (unsigned i = 0; i < kept->gone; i++)
        writeGone(file, &kept->goneIoc[i]);
    for (unsigned i = 0; i < kept->iocs; i++)
        writeText(file, "ioc", kept->ioc[i]);
}

static void readLevel(ebpfMonSettingsKept *kept, char *value)
{
    char *pattern = strchr(value, ' ');
    int level;

    if (!pattern || kept->levels == EBPFMON_LEVEL_RULES_MAX)
        return;
    *pattern++ = 0;
    level = ebpfMonLevelParse(value);
    if (level < 0 || strlen(pattern) >= EBPFMON_PATTERN_SIZE)
        return;
    kept->level[kept->levels].level = level;
    strcpy(kept->level[kept->levels++].pattern, pattern);
}

static void readLine(ebpfMonSettingsKept *kept, const char *name, char *value)
{
    if (strcmp(name, "start") == 0) {
        snprintf(kept->start, sizeof(kept->start), "%s", value);
    } else if (strcmp(name, "filter") == 0) {
        snprintf(kept->filter, sizeof(kept->filter), "%s", value);
    } else if (strcmp(name, "level") == 0) {
        readLevel(kept, value);
    } else if (strcmp(name, "gone") == 0) {
        readGone(kept, value);
    } else if (strcmp(name, "ioc") == 0 && kept->iocs < EBPFMON_HEALTH_IOCS) {
        ebpfMonTextCopy(kept->ioc[kept->iocs++], sizeof(kept->ioc[0]), value);
    } else if (strcmp(name, "put") == 0 && kept->puts < PUTS_MAX) {
        ebpfMonPut *put = &kept->put[kept->puts++];

        memset(put, 0, sizeof(*put));
        sscanf(value, "%u.%9u", &put->time.secPastEpoch, &put->time.nsec);
    } else if (strncmp(name, "put.", 4) == 0 && kept->puts) {
        readMember(&kept->put[kept->puts - 1], name + 4, value);
    }
}

/* The two are places in tables. */
static int isSound(const ebpfMonPut *put)
{
    return (unsigned)put->through < ebpfMonByCount && (unsigned)put->result <= ebpfMonPutUnwritten && put->unexpected;
}

int ebpfMonSettingsRead(char *text, ebpfMonSettingsKept *kept)
{
    char *line = text, *next;

    memset(kept, 0, sizeof(*kept));
    if (strncmp(text, HEAD "\n", strlen(HEAD) + 1) != 0)
        return -1;
    kept->put = calloc(PUTS_MAX, sizeof(*kept->put));
    if (!kept->put)
        return -1;
    for (line = strchr(text, '\n') + 1; *line; line = next) {
        char *end = line + strcspn(line, "\n"), *value = line + strcspn(line, " \n");

        next = end + (*end == '\n');
        if (value == end) /* a name alone */
            continue;
        *end = *value++ = 0;
        epicsStrnRawFromEscaped(value, strlen(value) + 1, value, strlen(value));
        readLine(kept, line, value);
    }
    for (unsigned i = kept->puts; i-- > 0;)
        if (!isSound(&kept->put[i]))
            memmove(&kept->put[i], &kept->put[i + 1], (--kept->puts - i) * sizeof(*kept->put));
    return 0;
}
