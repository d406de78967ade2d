/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "model/published.h"
#include "rules/rules.h"
#include "rules/rulesFile.h"
#include "rules/rulesParse.h"

#define FILE_MAX (1024u * 1024u)

/* The whole file, which the caller frees; NULL and why. */
static char *readAll(const char *file, size_t *length, char *why, size_t size)
{
    struct stat info;
    char *text = NULL;
    ssize_t n = 1;
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* does not wait for the other end of a pipe */

    if (fd < 0 || fstat(fd, &info)) {
        snprintf(why, size, "%s: %s. Correct the name or the permissions", file, strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        snprintf(why, size, "%s: not a regular file. Give the name of one", file);
    } else if (info.st_size > (off_t)FILE_MAX) {
        snprintf(why, size, "%s: has more than %u bytes. Use patterns for several PVs", file, FILE_MAX);
    } else if (!(text = malloc(FILE_MAX + 1))) {
        snprintf(why, size, "%s: out of memory", file);
    } else {
        for (*length = 0; *length <= FILE_MAX && n > 0; *length += n > 0 ? (size_t)n : 0)
            n = read(fd, text + *length, FILE_MAX + 1 - *length);
        if (n < 0 || *length > FILE_MAX) {
            snprintf(why, size, "%s: %s. Try again", file, n < 0 ? strerror(errno) : "grew while it was read");
            free(text);
            text = NULL;
        }
    }
    if (fd >= 0)
        close(fd);
    return text;
}

static ebpfMonRuleSet *readRules(const char *file, char *why, size_t size)
{
    size_t length;
    char *text = readAll(file, &length, why, size);
    ebpfMonRuleSet *set;

    if (!text)
        return NULL;
    set = ebpfMonRulesParse(file, text, length, why, size);
    free(text);
    return set;
}

int ebpfMonRulesFileCheck(const char *file, unsigned *rules, char *text, size_t size)
{
    ebpfMonRuleSet *set = readRules(file, text, size);

    if (!set)
        return -1;
    *rules = set->ruleCount;
    snprintf(text, size, "%u rules in %s are right; not loaded", set->ruleCount, file);
    ebpfMonRuleSetFree(set);
    return 0;
}

/* Says what is in force after a load. "published" is locked. */
static void describeLoad(ebpfMonPublished *published, const char *refused)
{
    char now[32], text[1024];
    epicsTimeStamp time;

    epicsTimeGetCurrent(&time);
    published->time[ebpfMonGroupRules] = time;
    epicsTimeToStrftime(now, sizeof(now), "%Y-%m-%d %H:%M:%S", &time);
    published->rules.refused = refused != NULL;
    if (!refused)
        snprintf(text, sizeof(text), "%u rules in force since %s", published->rules.count, now);
    else if (published->rules.file[0])
        snprintf(text, sizeof(text), "refused %s, the %u rules before stay in force: %s", now, published->rules.count,
                 refused);
    else
        snprintf(text, sizeof(text), "refused %s, no rules are in force: %s", now, refused);
    ebpfMonTextCopy(published->rules.message, sizeof(published->rules.message), text);
}

int ebpfMonRulesFileLoad(const char *file, char *text, size_t size)
{
    char path[PATH_MAX], why[512], *lastFile = ebpfMonRulesBeginLoad();
    ebpfMonRuleSet *set = NULL;
    ebpfMonPublished *published;
    unsigned count = 0;

    if (!file || !file[0])
        file = lastFile;
    if (!file[0])
        snprintf(why, sizeof(why), "no rules file was named yet. Give one: ebpfMonRules \"FILE\"");
    else if (strlen(file) >= EBPFMON_RULES_FILE_SIZE || (realpath(file, path) && strlen(path) >= EBPFMON_RULES_FILE_SIZE))
        snprintf(why, sizeof(why), "the name of the rules file has more than %u characters. Move it",
                 (unsigned)EBPFMON_RULES_FILE_SIZE - 1);
    else { /* its full name: the next load may come from another folder */
        if (file != lastFile)
            strcpy(lastFile, realpath(file, path) ? path : file);
        set = readRules(lastFile, why, sizeof(why));
    }
    if (set) {
        count = set->ruleCount;
        ebpfMonRulesSet(set);
    }
    published = ebpfMonPublishedLock();
    if (set) {
        strcpy(published->rules.file, lastFile);
        published->rules.count = count;
    }
    describeLoad(published, set ? NULL : why);
    ebpfMonTextCopy(text, size, published->rules.message);
    ebpfMonPublishedUnlock();
    ebpfMonRulesEndLoad();
    ebpfMonPublishedNotify(ebpfMonGroupRules);
    return set ? 0 : -1;
}
