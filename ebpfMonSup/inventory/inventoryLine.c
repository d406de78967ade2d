/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl_parse.h>

#include "common/text.h"
#include "inventory/inventoryLine.h"

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

int ebpfMonLineParse(const char *text, size_t length, ebpfMonLine *line)
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

void ebpfMonLineFree(ebpfMonLine *line)
{
    for (unsigned i = 0; i < line->count; i++) {
        free(line->pair[i].name);
        free(line->pair[i].value);
    }
    line->count = 0;
}

const char *ebpfMonLineGet(const ebpfMonLine *line, const char *name)
{
    for (unsigned i = 0; i < line->count; i++)
        if (strcmp(line->pair[i].name, name) == 0)
            return line->pair[i].value;
    return "";
}
