/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <yajl_parse.h>

#include "common/hash.h"
#include "ioc/pvaLink.h"

#define JSON_LINK 8 /* link.h, from 3.16 on; before, no link has this type */

/* Where the parser is: in the outer map, and in that of "pva". */
typedef struct {
    ebpfMonPvaLink *pva;
    unsigned depth;
    int isPva;   /* the last key of the outer map is "pva" */
    char key[8]; /* the last key within its map; "": another one */
} linkParser;

static int onKey(void *arg, const unsigned char *text, size_t length)
{
    linkParser *p = arg;

    if (p->depth == 1)
        p->isPva = length == 3 && memcmp(text, "pva", 3) == 0;
    memset(p->key, 0, sizeof(p->key));
    if (p->depth == 2 && p->isPva && length < sizeof(p->key))
        memcpy(p->key, text, length);
    return 1;
}

static int onString(void *arg, const unsigned char *text, size_t length)
{
    linkParser *p = arg;

    if (p->isPva && (p->depth == 1 || strcmp(p->key, "pv") == 0) && p->depth <= 2) {
        if (length >= sizeof(p->pva->pv))
            return 0;
        memcpy(p->pva->pv, text, length);
        p->pva->pv[length] = 0;
    } else if (p->depth == 2 && strcmp(p->key, "proc") == 0) {
        p->pva->isCp = (length == 2 && memcmp(text, "CP", 2) == 0) || (length == 3 && memcmp(text, "CPP", 3) == 0);
    }
    return 1;
}

static int onMap(void *arg)
{
    ((linkParser *)arg)->depth++;
    return 1;
}

static int onMapEnd(void *arg)
{
    ((linkParser *)arg)->depth--;
    return 1;
}

int ebpfMonPvaLinkParse(const char *text, ebpfMonPvaLink *pva)
{
    /* lists count as maps: what is in them is no part of the link itself */
    static const yajl_callbacks callbacks = {
        .yajl_string = onString, .yajl_start_map = onMap, .yajl_map_key = onKey, .yajl_end_map = onMapEnd,
        .yajl_start_array = onMap, .yajl_end_array = onMapEnd,
    };
    linkParser p = { .pva = pva };
    yajl_handle yajl = yajl_alloc(&callbacks, NULL, &p);
    int isGood;

    memset(pva, 0, sizeof(*pva));
    if (!yajl)
        return -1;
    yajl_config(yajl, yajl_allow_json5, 1); /* as dbJLink.c */
    isGood = yajl_parse(yajl, (const unsigned char *)text, strlen(text)) == yajl_status_ok &&
             yajl_complete_parse(yajl) == yajl_status_ok;
    yajl_free(yajl);
    return isGood && pva->pv[0] ? 0 : -1;
}

int ebpfMonPvaLinkIsJson(const ebpfMonLink *link)
{
    return link->type == JSON_LINK && link->value;
}

uint64_t ebpfMonPvaLinkKey(const char *pv)
{
    return ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, pv, strlen(pv)) | 1ull << 63;
}
