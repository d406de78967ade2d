/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsString.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yajl_parse.h>
#include "common/array.h"
#include "common/text.h"
#include "inventory/inventoryDiff.h"

/* --- lines --- */

/* Reads a line of an inventory file into pairs: {"type":"ai","info":{"a":"b"},"aliases":["X","Y"]} becomes type = ai,
 * info.a = b, alias X = yes, alias Y = yes. No shared state. */

#define EBPFMON_LINE_PAIRS 512 /* pairs of a line. The pairs after these are left out */

typedef struct {
    struct {
        char *name, *value; /* malloc'ed, clean (common/text.h) */
    } pair[EBPFMON_LINE_PAIRS];
    unsigned count;
} ebpfMonLine;

#define DEPTH_MAX 4
#define NAME_SIZE 160
#define VALUE_MAX 4096 /* bytes of a value that are compared */

typedef struct {
    ebpfMonLine *line;
    char     key[DEPTH_MAX][NAME_SIZE]; /* the newest key of each depth */
    unsigned depth;                     /* how many objects and lists are open */
    unsigned lists;                     /* one bit for each depth: 1 is a list, 0 an object */
} lineParser;

static int isInList(const lineParser *p)
{
    return p->depth && (p->lists >> p->depth & 1);
}

/* Returns what a callback of yajl returns: nonzero to go on; 0 to stop, because there is no memory. */
static int addPair(lineParser *p, const char *text, size_t length)
{
    char value[VALUE_MAX], name[2 * NAME_SIZE + 8];
    ebpfMonLine *line = p->line;

    if (line->count == EBPFMON_LINE_PAIRS)
        return 1;
    ebpfMonTextCopyBytes(value, sizeof(value), text, length);
    if (isInList(p))
        snprintf(name, sizeof(name), "alias %.200s", value);
    else if (p->depth > 1)
        snprintf(name, sizeof(name), "%s.%s", p->key[p->depth - 1], p->key[p->depth]);
    else
        snprintf(name, sizeof(name), "%s", p->key[p->depth]);
    line->pair[line->count].name = strdup(name);
    line->pair[line->count].value = strdup(isInList(p) ? "yes" : value);
    line->count++;
    return line->pair[line->count - 1].name && line->pair[line->count - 1].value;
}

static int onString(void *arg, const unsigned char *text, size_t length)
{
    return addPair(arg, (const char *)text, length);
}

static int onNumber(void *arg, const char *text, size_t length)
{
    return addPair(arg, text, length);
}

static int onKey(void *arg, const unsigned char *text, size_t length)
{
    lineParser *p = arg;

    ebpfMonTextCopyBytes(p->key[p->depth], NAME_SIZE, (const char *)text, length);
    return 1;
}

static int openLevel(lineParser *p, int isList)
{
    if (++p->depth == DEPTH_MAX)
        return 0; /* no line of an inventory is so deep */
    p->key[p->depth][0] = 0;
    p->lists = (p->lists & ~(1u << p->depth)) | (unsigned)isList << p->depth;
    return 1;
}

static int onMap(void *arg)
{
    return openLevel(arg, 0);
}

static int onList(void *arg)
{
    return openLevel(arg, 1);
}

static int onEnd(void *arg)
{
    ((lineParser *)arg)->depth--;
    return 1;
}

/* 0, or -1: the text is not JSON, or there is no memory. The caller frees "line" in both cases. */
static int parseLine(const char *text, size_t length, ebpfMonLine *line)
{
    static const yajl_callbacks calls = {
        .yajl_number = onNumber, .yajl_string = onString, .yajl_start_map = onMap, .yajl_map_key = onKey,
        .yajl_end_map = onEnd, .yajl_start_array = onList, .yajl_end_array = onEnd
    };
    lineParser p = { .line = line };
    yajl_handle handle;
    int isRead;

    memset(line, 0, sizeof(*line));
    handle = yajl_alloc(&calls, NULL, &p);
    if (!handle)
        return -1;
    isRead = yajl_parse(handle, (const unsigned char *)text, length) == yajl_status_ok &&
             yajl_complete_parse(handle) == yajl_status_ok;
    yajl_free(handle);
    return isRead ? 0 : -1;
}

static void freeLine(ebpfMonLine *line)
{
    for (unsigned i = 0; i < line->count; i++) {
        free(line->pair[i].name);
        free(line->pair[i].value);
    }
    line->count = 0;
}

/* The value of a name; "": there is none. */
static const char *getLine(const ebpfMonLine *line, const char *name)
{
    for (unsigned i = 0; i < line->count; i++)
        if (strcmp(line->pair[i].name, name) == 0)
            return line->pair[i].value;
    return "";
}

/* --- differences --- */

/*
 * The same program wrote both files, so equal records have equal lines, and lines are compared byte by byte. Only lines
 * that differ are read as JSON. The key of a line is its beginning: {"ioc":"…","record":"…" of a record, {"ioc":"…" of
 * an IOC. So an IOC comes before its records.
 */

#define EBPFMON_INVENTORY_BYTES (512u << 20) /* largest size of a file */

typedef struct {
    const char *text;
    size_t length, key; /* bytes of the line, and of its key */
    int isIoc;          /* the line of an IOC, not of a record */
} inventoryLine;

typedef struct {
    inventoryLine *line;
    size_t count, room;
} inventoryLines;

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

/* Finds the key of a line; its length is 0 if the line belongs neither to a record nor to an IOC. Returns whether the
 * name of its IOC matches the pattern. */
static int findKey(inventoryLine *line, const char *iocPattern)
{
    const char *end = line->text + line->length, *name = skipText(line->text, end, "{\"ioc\":");
    const char *behind = name ? skipString(name, end) : NULL, *at;

    if (!behind)
        return 0;
    line->isIoc = skipText(behind, end, ",\"time\":") != NULL;
    at = skipText(behind, end, ",\"record\":");
    at = line->isIoc ? behind : at ? skipString(at, end) : NULL;
    line->key = at ? (size_t)(at - line->text) : 0;
    return epicsStrnGlobMatch(name + 1, (size_t)(behind - name) - 2, iocPattern);
}

static int collectLines(const char *text, size_t length, const char *iocPattern, inventoryLines *lines,
                        ebpfMonInventoryDifference *difference)
{
    const char *end = text + length;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((newline ? newline : end) - text);
        inventoryLine line = { .text = text, .length = n };
        int isWanted = findKey(&line, iocPattern);

        if (line.key && isWanted) {
            if (ebpfMonArrayGrow(&lines->line, &lines->room, lines->count + 1, 1024, sizeof(*lines->line)))
                return -1;
            lines->line[lines->count++] = line;
        } else if (n && !line.key)
            difference->odd++;
        text += n;
        text += newline != NULL;
    }
    return 0;
}

static int compareKeys(const void *a, const void *b)
{
    const inventoryLine *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->key < y->key ? x->key : y->key);

    return order ? order : (x->key > y->key) - (x->key < y->key);
}

static void addName(const inventoryLine *line, char sign, ebpfMonTextReport *report)
{
    ebpfMonLine names;

    if (parseLine(line->text, line->length, &names))
        ebpfMonTextReportAdd(report, "%c %.*s\n", sign, (int)(line->key < 300 ? line->key : 300), line->text);
    else if (line->isIoc)
        ebpfMonTextReportAdd(report, "%c %s (IOC)\n", sign, getLine(&names, "ioc"));
    else
        ebpfMonTextReportAdd(report, "%c %s %s (%s)\n", sign, getLine(&names, "ioc"),
                             getLine(&names, "record"), getLine(&names, "type"));
    freeLine(&names);
}

/* The differences of two lines with one key. */
typedef struct {
    const inventoryLine *line; /* the newer one */
    ebpfMonTextReport *report;
    int      isSameProcess;
    unsigned reported;             /* differences in the report */
} lineChange;

/* Whether people ask for this member. In the line of an IOC the time always differs, and the version is there twice.
 * The start counts if it is another process: one and the same start may be computed as a second more or less. */
static int isReported(const lineChange *c, const char *name)
{
    static const char *const omitted[] = {"time", "pid", "records", "variables.EPICS_VERSION"};

    if (!c->line->isIoc)
        return 1;
    for (unsigned i = 0; i < sizeof(omitted) / sizeof(omitted[0]); i++)
        if (strcmp(name, omitted[i]) == 0)
            return 0;
    return !c->isSameProcess || strcmp(name, "variables.IOC_STARTED") != 0;
}

static void addDifference(lineChange *c, const char *name, const char *was, const char *is)
{
    if (!isReported(c, name))
        return;
    if (!c->reported++)
        addName(c->line, '~', c->report);
    ebpfMonTextReportAdd(c->report, "    %s: %s%s%s -> %s%s%s\n", name, was[0] ? "\"" : "", was[0] ? was : "nothing",
                         was[0] ? "\"" : "", is[0] ? "\"" : "", is[0] ? is : "nothing", is[0] ? "\"" : "");
}

static void addDifferences(lineChange *c, const ebpfMonLine *old, const ebpfMonLine *new)
{
    c->isSameProcess = strcmp(getLine(old, "pid"), getLine(new, "pid")) == 0;
    for (unsigned i = 0; i < new->count; i++) {
        const char *was = getLine(old, new->pair[i].name);

        if (strcmp(was, new->pair[i].value) != 0)
            addDifference(c, new->pair[i].name, was, new->pair[i].value);
    }
    for (unsigned i = 0; i < old->count; i++)
        if (!getLine(new, old->pair[i].name)[0])
            addDifference(c, old->pair[i].name, old->pair[i].value, "");
}

/* Returns whether something changed that people ask for; if not, it adds nothing. */
static int addChange(const inventoryLine *before, const inventoryLine *after, ebpfMonTextReport *report)
{
    lineChange change = { .line = after, .report = report };
    ebpfMonLine old, new;
    int isRead = parseLine(before->text, before->length, &old) == 0;

    isRead &= parseLine(after->text, after->length, &new) == 0;
    if (isRead)
        addDifferences(&change, &old, &new);
    if (!change.reported && !(isRead && after->isIoc)) { /* behind what parseLine keeps, or not JSON */
        addName(after, '~', report);
        ebpfMonTextReportAdd(report, "    %s\n",
                             isRead ? "a very long text" : "the line is not JSON in one of the files");
        change.reported++;
    }
    freeLine(&old);
    freeLine(&new);
    return change.reported != 0;
}

static int isSame(const inventoryLine *before, const inventoryLine *after)
{
    return before->length == after->length && memcmp(before->text, after->text, before->length) == 0;
}

static void compareLines(const inventoryLines *before, const inventoryLines *after, ebpfMonTextReport *report,
                         ebpfMonInventoryDifference *difference)
{
    size_t i = 0, k = 0;

    while (i < before->count || k < after->count) {
        const inventoryLine *old = i < before->count ? &before->line[i] : NULL;
        const inventoryLine *new = k < after->count ? &after->line[k] : NULL;
        int order = !old ? 1 : !new ? -1 : compareKeys(old, new);
        const inventoryLine *first = order < 0 ? old : new;
        ebpfMonInventoryDifferenceCount *count = first->isIoc ? &difference->iocs : &difference->records;

        if (order < 0) {
            addName(old, '-', report);
            count->removed++;
        } else if (order > 0) {
            addName(new, '+', report);
            count->added++;
        } else if (!isSame(old, new) && addChange(old, new, report))
            count->changed++;
        else
            count->same++;
        i += order <= 0;
        k += order >= 0;
    }
}

int ebpfMonInventoryDiffTexts(const char *before, size_t beforeLength, const char *after, size_t afterLength,
                              const char *iocPattern, ebpfMonTextReport *report, ebpfMonInventoryDifference *difference)
{
    inventoryLines old = {0}, new = {0};
    int status;

    memset(difference, 0, sizeof(*difference));
    status = collectLines(before, beforeLength, iocPattern, &old, difference) ||
             collectLines(after, afterLength, iocPattern, &new, difference) ? -1 : 0;
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

int ebpfMonInventoryDiffFiles(const char *before, const char *after, const char *iocPattern,
                              ebpfMonTextReport *report, ebpfMonInventoryDifference *difference, char *why,
                              size_t size)
{
    size_t oldLength, newLength;
    char *old = readFile(before, &oldLength, why, size);
    char *new = old ? readFile(after, &newLength, why, size) : NULL;
    int status = -1;

    if (new) {
        status = ebpfMonInventoryDiffTexts(old, oldLength, new, newLength, iocPattern, report, difference);
        if (status)
            snprintf(why, size, "out of memory");
    }
    free(old);
    free(new);
    return status;
}
