/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the smallest parts of a query file: keys, numbers, texts, words. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "query/queryHint.h"
#include "query/queryParser.h"

int ebpfMonQueryRefuse(ebpfMonQueryParser *p, size_t at, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->why, sizeof(p->why), format, args);
    va_end(args);
    p->at = at;
    return -1;
}

/* Nonzero: the word is in a list such as "one, two, three". */
static int isInList(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = strstr(list, word); at && length; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[length] == ',' || !at[length]))
            return 1;
    return 0;
}

int ebpfMonQueryCheckKeys(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *value, const char *what,
                          const char *known)
{
    char hint[EBPFMON_QUERY_HINT];

    if (value->kind != ebpfMonQueryJsonMap)
        return ebpfMonQueryRefuse(p, value->at, "%s is a map { ... } of these: %s", what, known);
    for (const ebpfMonQueryJsonValue *v = value->first; v; v = v->next)
        if (!isInList(known, v->key))
            return ebpfMonQueryRefuse(p, v->keyAt, "%s cannot have \"%.40s\".%s Known are: %s", what, v->key,
                                      ebpfMonQueryHint(v->key, known, hint), known);
    return 0;
}

int ebpfMonQueryReadNumber(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, double min,
                           double max, double *to)
{
    const ebpfMonQueryJsonValue *v = ebpfMonQueryJsonFind(map, key);

    if (!v)
        return 0;
    if (v->kind != ebpfMonQueryJsonNumber || v->number < min || v->number > max)
        return ebpfMonQueryRefuse(p, v->at, "\"%s\" is a number from %.10g to %.10g", key, min, max);
    *to = v->number;
    return 0;
}

int ebpfMonQueryReadWhole(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, int64_t min,
                          int64_t max, int64_t *to)
{
    const ebpfMonQueryJsonValue *v = ebpfMonQueryJsonFind(map, key);

    if (!v)
        return 0;
    if (v->kind != ebpfMonQueryJsonNumber || !v->isInteger || v->integer < min || v->integer > max)
        return ebpfMonQueryRefuse(p, v->at, "\"%s\" is a whole number from %lld to %lld", key, (long long)min,
                                  (long long)max);
    *to = v->integer;
    return 0;
}

int ebpfMonQueryReadText(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, char *to,
                         size_t size)
{
    const ebpfMonQueryJsonValue *v = ebpfMonQueryJsonFind(map, key);

    if (!v)
        return 0;
    if (v->kind != ebpfMonQueryJsonText || !v->length || v->length >= size)
        return ebpfMonQueryRefuse(p, v->at, "\"%s\" is a text of 1 to %u bytes", key, (unsigned)size - 1);
    if (strlen(v->text) != v->length || !ebpfMonTextIsClean(v->text))
        return ebpfMonQueryRefuse(p, v->at, "\"%s\" has a character that cannot be shown. Take it out", key);
    memcpy(to, v->text, v->length + 1);
    return 0;
}

int ebpfMonQueryReadBool(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *map, const char *key, int *to)
{
    const ebpfMonQueryJsonValue *v = ebpfMonQueryJsonFind(map, key);

    if (!v)
        return 0;
    if (v->kind != ebpfMonQueryJsonBool)
        return ebpfMonQueryRefuse(p, v->at, "\"%s\" is true or false", key);
    *to = v->number != 0;
    return 0;
}

int ebpfMonQueryReadWord(ebpfMonQueryParser *p, const ebpfMonQueryJsonValue *value, const char *what,
                         const char *const *words, int *number)
{
    char list[200] = "", hint[EBPFMON_QUERY_HINT] = "";

    for (*number = 0; words[*number]; (*number)++) {
        size_t used = strlen(list);

        if (value->kind == ebpfMonQueryJsonText && strcmp(value->text, words[*number]) == 0)
            return 0;
        snprintf(list + used, sizeof(list) - used, "%s\"%s\"", used ? ", " : "", words[*number]);
    }
    if (value->kind == ebpfMonQueryJsonText)
        ebpfMonQueryHint(value->text, list, hint);
    return ebpfMonQueryRefuse(p, value->at, "%s is one of %s%s%s", what, list, hint[0] ? "." : "", hint);
}
