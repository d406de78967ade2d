/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsStdlib.h>
#include <yajl_parse.h>

#include "common/jsonPlace.h"
#include "query/queryJson.h"

#define KEYS_MAX 64 /* keys of a map; few, because each key is compared with all keys before it */

/* Memory for values and texts, which are freed with the tree. */
typedef struct Block {
    struct Block *next;
    char bytes[];
} Block;

struct ebpfMonQueryJson {
    const char *text;
    size_t length;
    yajl_handle yajl;
    Block *blocks;
    ebpfMonQueryJsonValue *top;
    ebpfMonQueryJsonValue *group[EBPFMON_QUERYJSON_DEPTH_MAX]; /* the lists and maps that are not complete yet */
    ebpfMonQueryJsonValue *last[EBPFMON_QUERYJSON_DEPTH_MAX];  /* the last value in each of them */
    unsigned depth, count; /* groups; values in all */
    const char *key;   /* the key of the next value */
    size_t keyAt;      /* its offset in the text */
    char *why;
    size_t size, at;   /* size of "why"; offset in the text of what is wrong */
};

static void *allocateBlock(ebpfMonQueryJson *j, size_t size)
{
    Block *block = calloc(1, sizeof(*block) + size);

    if (!block)
        return NULL;
    block->next = j->blocks;
    j->blocks = block;
    return block->bytes;
}

static size_t getTokenPlace(const ebpfMonQueryJson *j)
{
    return ebpfMonJsonFindToken(j->text, j->length, yajl_get_bytes_consumed(j->yajl));
}

/* Refuses the text. Returns 0: a callback returns 0 to stop yajl. */
static int refuseText(ebpfMonQueryJson *j, size_t at, const char *why)
{
    snprintf(j->why, j->size, "%s", why);
    j->at = at;
    return 0;
}

/* Adds a value at the place where the parser is. NULL: the text is refused. */
static ebpfMonQueryJsonValue *addValue(ebpfMonQueryJson *j, ebpfMonQueryJsonKind kind)
{
    ebpfMonQueryJsonValue *v;
    size_t at = getTokenPlace(j);

    if (j->count++ == EBPFMON_QUERYJSON_VALUES_MAX) {
        refuseText(j, at, "there are more than 20000 values. Use several files");
        return NULL;
    }
    v = allocateBlock(j, sizeof(*v));
    if (!v) {
        refuseText(j, at, "out of memory");
        return NULL;
    }
    v->kind = kind;
    v->at = at;
    v->key = j->key;
    v->keyAt = j->keyAt;
    j->key = NULL;
    if (!j->depth) {
        j->top = v;
        return v;
    }
    if (j->last[j->depth - 1])
        j->last[j->depth - 1]->next = v;
    else
        j->group[j->depth - 1]->first = v;
    j->last[j->depth - 1] = v;
    j->group[j->depth - 1]->count++;
    return v;
}

static int onNull(void *context)
{
    return addValue(context, ebpfMonQueryJsonNull) != NULL;
}

static int onBool(void *context, int value)
{
    ebpfMonQueryJsonValue *v = addValue(context, ebpfMonQueryJsonBool);

    if (v)
        v->number = value;
    return v != NULL;
}

static int onNumber(void *context, const char *text, size_t length)
{
    ebpfMonQueryJsonValue *v = addValue(context, ebpfMonQueryJsonNumber);
    char copy[64], *end;

    if (!v)
        return 0;
    if (length >= sizeof(copy))
        return refuseText(context, v->at, "a number with more than 63 characters. Write a shorter one");
    memcpy(copy, text, length);
    copy[length] = 0;
    if (epicsParseDouble(copy, &v->number, NULL) || !isfinite(v->number))
        return refuseText(context, v->at, "a number that is too large, or none: NaN. The largest is 1.79e308");
    errno = 0;
    v->integer = strtoll(copy, &end, 0);
    v->isInteger = !*end && !errno;
    if (!v->isInteger && v->number == floor(v->number) && fabs(v->number) < 9e15) { /* such as 1e6 */
        v->integer = (int64_t)v->number;
        v->isInteger = 1;
    }
    return 1;
}

static const char *copyText(ebpfMonQueryJson *j, const unsigned char *text, size_t length)
{
    char *copy = allocateBlock(j, length + 1);

    if (copy)
        memcpy(copy, text, length);
    else
        refuseText(j, getTokenPlace(j), "out of memory");
    return copy;
}

static int onText(void *context, const unsigned char *text, size_t length)
{
    ebpfMonQueryJsonValue *v = addValue(context, ebpfMonQueryJsonText);

    if (!v)
        return 0;
    v->text = copyText(context, text, length);
    v->length = length;
    return v->text != NULL;
}

static int beginGroup(ebpfMonQueryJson *j, ebpfMonQueryJsonKind kind)
{
    ebpfMonQueryJsonValue *v = addValue(j, kind);

    if (!v)
        return 0;
    if (j->depth == EBPFMON_QUERYJSON_DEPTH_MAX)
        return refuseText(j, v->at, "lists and maps are nested more than 16 times. No query needs that");
    j->group[j->depth] = v;
    j->last[j->depth++] = NULL;
    return 1;
}

static int onMap(void *context)
{
    return beginGroup(context, ebpfMonQueryJsonMap);
}

static int onList(void *context)
{
    return beginGroup(context, ebpfMonQueryJsonList);
}

static int onGroupEnd(void *context)
{
    ebpfMonQueryJson *j = context;

    j->depth--;
    return 1;
}

static int onKey(void *context, const unsigned char *text, size_t length)
{
    ebpfMonQueryJson *j = context;

    j->keyAt = getTokenPlace(j);
    j->key = copyText(j, text, length);
    if (j->group[j->depth - 1]->count >= KEYS_MAX)
        return refuseText(j, j->keyAt, "a map with more than 64 keys. No query needs that");
    if (j->key && ebpfMonQueryJsonFind(j->group[j->depth - 1], j->key))
        return refuseText(j, j->keyAt, "a key that is there twice. Take one out");
    return j->key != NULL;
}

static const yajl_callbacks callbacks = {
    onNull, onBool, NULL, NULL, onNumber, onText, onMap, onKey, onGroupEnd, onList, onGroupEnd
};

static void refuseSyntax(ebpfMonQueryJson *j, int complete)
{
    j->at = ebpfMonJsonDescribeMistake(j->yajl, j->text, j->length, complete, j->why, j->size);
}

ebpfMonQueryJson *ebpfMonQueryJsonRead(const char *text, size_t length, char *why, size_t size, size_t *at)
{
    ebpfMonQueryJson *j = calloc(1, sizeof(*j));
    int complete, ok = 0;

    why[0] = 0;
    *at = 0;
    if (!j || !(j->yajl = yajl_alloc(&callbacks, NULL, j))) {
        snprintf(why, size, "out of memory");
        free(j);
        return NULL;
    }
    j->text = text;
    j->length = length;
    j->why = why;
    j->size = size;
    complete = yajl_parse(j->yajl, (const unsigned char *)text, length) == yajl_status_ok;
    ok = complete && yajl_complete_parse(j->yajl) == yajl_status_ok;
    if (!ok && !why[0]) /* else a callback has refused */
        refuseSyntax(j, complete);
    yajl_free(j->yajl);
    j->yajl = NULL;
    *at = j->at;
    if (ok && j->top)
        return j;
    if (ok)
        snprintf(why, size, "it is empty. Write {\"queries\": [ ... ]}");
    ebpfMonQueryJsonFree(j);
    return NULL;
}

void ebpfMonQueryJsonFree(ebpfMonQueryJson *j)
{
    if (!j)
        return;
    while (j->blocks) {
        Block *block = j->blocks;

        j->blocks = block->next;
        free(block);
    }
    free(j);
}

const ebpfMonQueryJsonValue *ebpfMonQueryJsonGetTop(const ebpfMonQueryJson *j)
{
    return j->top;
}

const ebpfMonQueryJsonValue *ebpfMonQueryJsonFind(const ebpfMonQueryJsonValue *map, const char *key)
{
    if (map->kind != ebpfMonQueryJsonMap)
        return NULL;
    for (const ebpfMonQueryJsonValue *v = map->first; v; v = v->next)
        if (strcmp(v->key, key) == 0)
            return v;
    return NULL;
}
