/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsString.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "common/text.h"
#include "model/filter.h"
#include "model/put.h"

/* --- levels --- */

/* The names of the levels, which the operator types and IOC_LEVELS shows. */

static const char * const levelName[ebpfMonLevelCount] = {"off", "puts", "counts", "chains", "trace"};

const char *ebpfMonLevelName(ebpfMonLevel level)
{
    return (unsigned)level < ebpfMonLevelCount ? levelName[level] : "?";
}

int ebpfMonLevelParse(const char *name)
{
    int level;

    if (!name)
        return -1;
    for (level = 0; level < ebpfMonLevelCount; level++)
        if (epicsStrCaseCmp(name, levelName[level]) == 0)
            return level;
    return -1;
}

/* --- the filter --- */

/* The filter: which filters are valid, and which puts it shows. */

const ebpfMonFilter ebpfMonFilterDefault = {
    "*", "*", "*", "*", "*", ebpfMonLevelChains, 10000.0, 1, 5.0, 1.0
};

static int checkPattern(char pattern[EBPFMON_PATTERN_SIZE], const char *what, char *why, size_t size)
{
    const char *p;

    if (memchr(pattern, 0, EBPFMON_PATTERN_SIZE) == NULL) {
        snprintf(why, size, "%s pattern is longer than %d characters: shorten it with *",
                 what, EBPFMON_PATTERN_SIZE - 1);
        return -1;
    }
    if (!pattern[0])
        strcpy(pattern, "*");
    for (p = pattern; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            snprintf(why, size, "%s pattern has a control character (code %d) at position %d: type it again",
                     what, (unsigned char)*p, (int)(p - pattern) + 1);
            return -1;
        }
        /* epicsStrGlobMatch() (libCom/src/misc/epicsString.c) knows only ? and *, and takes "[" as a character. A set
         * would never match, and nobody would notice; so it is refused. */
        if (*p == '[') {
            snprintf(why, size, strchr(p, ']') ?
                     "%s pattern \"%s\": [sets] are not supported, use ? for one character, * for any" :
                     "%s pattern \"%s\": [ without ], and [sets] are not supported: use ? for one character",
                     what, pattern);
            return -1;
        }
    }
    if (!ebpfMonTextIsClean(pattern)) { /* names never have such characters, because we escape them */
        snprintf(why, size, "%s pattern has a character that one does not see, or bytes that are not UTF-8: type it "
                 "again", what);
        return -1;
    }
    return 0;
}

int ebpfMonFilterCheck(ebpfMonFilter *filter, char *why, size_t size)
{
    if (checkPattern(filter->ioc, "IOC", why, size) ||
        checkPattern(filter->record, "record", why, size) ||
        checkPattern(filter->field, "field", why, size) ||
        checkPattern(filter->host, "host", why, size) ||
        checkPattern(filter->user, "user", why, size))
        return -1;
    if ((unsigned)filter->level >= ebpfMonLevelCount) {
        snprintf(why, size, "level %d does not exist: 0 (off) to %d (%s)", (int)filter->level,
                 ebpfMonLevelCount - 1, ebpfMonLevelName(ebpfMonLevelCount - 1));
        return -1;
    }
    if (!isfinite(filter->slowUs) || filter->slowUs < 0) {
        snprintf(why, size, "slow-chain limit %g us: give a time of 0 (none) or more", filter->slowUs);
        return -1;
    }
    if (!isfinite(filter->timed) || filter->timed < 0 || filter->timed > 100) {
        snprintf(why, size, "latencies cannot be measured in %g %% of the time: give 0 to 100 %% (always)",
                 filter->timed);
        return -1;
    }
    if (!isfinite(filter->budget) || filter->budget < 0 || filter->budget > 100) {
        snprintf(why, size, "CPU budget %g %%: give 0 (no limit) to 100 %% of one core", filter->budget);
        return -1;
    }
    if (!filter->sample)
        filter->sample = 1;
    return 0;
}

int ebpfMonPatternRead(char pattern[EBPFMON_PATTERN_SIZE], const char *given, const char *what, char *why, size_t size)
{
    /* a pattern that is too long is copied without its terminator, and refused for that reason */
    memcpy(pattern, given, strnlen(given, EBPFMON_PATTERN_SIZE - 1) + 1);
    return checkPattern(pattern, what, why, size);
}

int ebpfMonPatternMatchesIoc(const char *pattern, const char *ioc)
{
    const char *mark = strrchr(ioc, '#');
    char base[EBPFMON_NAME_SIZE];

    if (epicsStrGlobMatch(ioc, pattern))
        return 1;
    if (!mark || !mark[1] || strspn(mark + 1, "0123456789") != strlen(mark + 1))
        return 0;
    snprintf(base, sizeof(base), "%.*s", (int)(mark - ioc), ioc);
    return epicsStrGlobMatch(base, pattern);
}

void ebpfMonFilterFormat(const ebpfMonFilter *filter, char *buf, size_t size)
{
    const char *const pattern[] = { filter->field, filter->host, filter->user };
    static const char *const name[] = { "fields", "hosts", "users" };

    snprintf(buf, size, "level %s for IOCs \"%s\", records \"%s\"", ebpfMonLevelName(filter->level), filter->ioc,
             filter->record);
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(pattern[i], "*") != 0)
            snprintf(buf + strlen(buf), size - strlen(buf), ", %s \"%s\"", name[i], pattern[i]);
}

int ebpfMonFilterWantsPut(const ebpfMonFilter *filter, const char *record, const char *field,
                          const char *host, const char *user)
{
    return epicsStrGlobMatch(record, filter->record) && epicsStrGlobMatch(field, filter->field) &&
           epicsStrGlobMatch(host, filter->host) && epicsStrGlobMatch(user, filter->user);
}
