/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same program wrote both files, so equal records have equal lines, and lines are compared byte by byte. Only lines
 * that differ are read as JSON. The key of a line is its beginning: {"ioc":"…","record":"…".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "inventory/inventoryDiff.h"
#include "inventory/inventoryLine.h"

typedef struct {
    const char *text;
    size_t length, key; /* bytes of the line, and of its key */
} recordLine;

typedef struct {
    recordLine *line;
    size_t count, room;
} recordLines;

/* "at": the quote at which a string begins. Returns the place behind the string; NULL: there is no string, or it has no
 * end. */
static const char *skipString(const char *at, const char *end)
{
    if (at >= end || *at != '"')
        return NULL;
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : NULL;
}

static const char *skipText(const char *at, const char *end, const char *text)
{
    size_t length = strlen(text);

    return at && (size_t)(end - at) >= length && memcmp(at, text, length) == 0 ? at + length : NULL;
}

/* Returns the length of the key; 0: this is not the line of a record. *isIoc: it is the line of an IOC. */
static size_t findKey(const char *text, size_t length, int *isIoc)
{
    const char *end = text + length, *at = skipText(text, end, "{\"ioc\":");

    at = at ? skipString(at, end) : NULL;
    *isIoc = skipText(at, end, ",\"time\":") != NULL;
    at = skipText(at, end, ",\"record\":");
    at = at ? skipString(at, end) : NULL;
    return at ? (size_t)(at - text) : 0;
}

static int collectLines(const char *text, size_t length, recordLines *lines, ebpfMonInventoryDifference *difference)
{
    const char *end = text + length;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((newline ? newline : end) - text);
        int isIoc;
        size_t key = findKey(text, n, &isIoc);

        if (key) {
            if (ebpfMonArrayGrow(&lines->line, &lines->room, lines->count + 1, 1024, sizeof(*lines->line)))
                return -1;
            lines->line[lines->count++] = (recordLine){text, n, key};
        } else if (n && !isIoc)
            difference->odd++;
        text += n;
        text += newline != NULL;
    }
    return 0;
}

static int compareKeys(const void *a, const void *b)
{
    const recordLine *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->key < y->key ? x->key : y->key);

    return order ? order : (x->key > y->key) - (x->key < y->key);
}

static void addName(const recordLine *line, char sign, ebpfMonTextReport *report)
{
    ebpfMonLine names;

    if (ebpfMonLineParse(line->text, line->length, &names) == 0)
        ebpfMonTextReportAdd(report, "%c %s %s (%s)\n", sign, ebpfMonLineGet(&names, "ioc"),
                             ebpfMonLineGet(&names, "record"), ebpfMonLineGet(&names, "type"));
    else
        ebpfMonTextReportAdd(report, "%c %.*s\n", sign, (int)(line->key < 300 ? line->key : 300), line->text);
    ebpfMonLineFree(&names);
}

static void addChange(const recordLine *before, const recordLine *after, ebpfMonTextReport *report)
{
    ebpfMonLine old, new;
    int isRead = ebpfMonLineParse(before->text, before->length, &old) == 0;

    isRead &= ebpfMonLineParse(after->text, after->length, &new) == 0;
    addName(after, '~', report);
    for (unsigned i = 0; isRead && i < new.count; i++) {
        const char *was = ebpfMonLineGet(&old, new.pair[i].name);

        if (strcmp(was, new.pair[i].value) != 0)
            ebpfMonTextReportAdd(report, "    %s: %s%s%s -> \"%s\"\n", new.pair[i].name, was[0] ? "\"" : "",
                                 was[0] ? was : "nothing", was[0] ? "\"" : "", new.pair[i].value);
    }
    for (unsigned i = 0; isRead && i < old.count; i++)
        if (!ebpfMonLineGet(&new, old.pair[i].name)[0])
            ebpfMonTextReportAdd(report, "    %s: \"%s\" -> nothing\n", old.pair[i].name, old.pair[i].value);
    if (!isRead)
        ebpfMonTextReportAdd(report, "    the line is not JSON in one of the files\n");
    ebpfMonLineFree(&old);
    ebpfMonLineFree(&new);
}

static void compareLines(const recordLines *before, const recordLines *after, ebpfMonTextReport *report,
                         ebpfMonInventoryDifference *difference)
{
    size_t i = 0, k = 0;

    while (i < before->count || k < after->count) {
        const recordLine *old = i < before->count ? &before->line[i] : NULL;
        const recordLine *new = k < after->count ? &after->line[k] : NULL;
        int order = !old ? 1 : !new ? -1 : compareKeys(old, new);

        if (order < 0) {
            addName(old, '-', report);
            difference->removed++;
        } else if (order > 0) {
            addName(new, '+', report);
            difference->added++;
        } else if (old->length != new->length || memcmp(old->text, new->text, old->length) != 0) {
            addChange(old, new, report);
            difference->changed++;
        } else
            difference->same++;
        i += order <= 0;
        k += order >= 0;
    }
}

int ebpfMonInventoryDiffTexts(const char *before, size_t beforeLength, const char *after, size_t afterLength,
                              ebpfMonTextReport *report, ebpfMonInventoryDifference *difference)
{
    recordLines old = {0}, new = {0};
    int status;

    memset(difference, 0, sizeof(*difference));
    status = collectLines(before, beforeLength, &old, difference) ||
             collectLines(after, afterLength, &new, difference) ? -1 : 0;
    if (status == 0) {
        if (old.count)
            qsort(old.line, old.count, sizeof(*old.line), compareKeys);
        if (new.count)
            qsort(new.line, new.count, sizeof(*new.line), compareKeys);
        compareLines(&old, &new, report, difference);
    }
    free(old.line);
    free(new.line);
    return status;
}

/* Reads a whole file; the caller frees the text. NULL: "why" says what is wrong. */
static char *readFile(const char *path, size_t *length, char *why, size_t size)
{
    int file;
    struct stat st;
    char *text = NULL;
    ssize_t n = 1;

    *length = 0;
    errno = 0;
    file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && fstat(file, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size <= EBPFMON_INVENTORY_BYTES)
        text = malloc((size_t)st.st_size + 1);
    while (text && n > 0 && *length < (size_t)st.st_size) {
        n = read(file, text + *length, (size_t)st.st_size - *length);
        *length += n > 0 ? (size_t)n : 0;
    }
    if (!text || n < 0) {
        snprintf(why, size, "%.200s: %s", path,
                 errno ? strerror(errno) : "it is not a plain file, or is larger than 512 MB");
        free(text);
        text = NULL;
    }
    if (file >= 0)
        close(file);
    return text;
}

int ebpfMonInventoryDiffFiles(const char *before, const char *after, ebpfMonTextReport *report,
                              ebpfMonInventoryDifference *difference, char *why, size_t size)
{
    size_t oldLength, newLength;
    char *old = readFile(before, &oldLength, why, size);
    char *new = old ? readFile(after, &newLength, why, size) : NULL;
    int status = -1;

    if (new) {
        status = ebpfMonInventoryDiffTexts(old, oldLength, new, newLength, report, difference);
        if (status)
            snprintf(why, size, "out of memory");
    }
    free(old);
    free(new);
    return status;
}
