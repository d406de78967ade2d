/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/jsonPlace.h"
#include "rules/rulesParse.h"
#include "rules/rulesParser.h"

static int compareNames(const void *a, const void *b)
{
    const ebpfMonPutRule *one = *(const ebpfMonPutRule *const *)a, *other = *(const ebpfMonPutRule *const *)b;
    int order = strcmp(one->name, other->name);

    return order ? order : (one->at > other->at) - (one->at < other->at);
}

/* Refuses the file if two rules have the same name. The message shows the first rule with a name that another rule
 * has used before. */
static void checkNames(ebpfMonRulesParser *p)
{
    unsigned count = p->set->ruleCount;
    const ebpfMonPutRule **sorted = malloc((count + 1) * sizeof(*sorted)), *second = NULL;

    if (!sorted) {
        ebpfMonRulesRefuseMemory(p);
        return;
    }
    for (unsigned i = 0; i < count; i++)
        sorted[i] = &p->set->rule[i];
    qsort(sorted, count, sizeof(*sorted), compareNames);
    for (unsigned i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0 && (!second || sorted[i]->at < second->at))
            second = sorted[i];
    free(sorted);
    if (second)
        ebpfMonRulesRefuse(p, second->at, "there are two rules \"%s\". Give each its own name", second->name);
}

static void refuseSyntax(ebpfMonRulesParser *p, int complete)
{
    char why[256];
    size_t at = ebpfMonJsonDescribeMistake(p->yajl, p->text, p->length, complete, why, sizeof(why));

    ebpfMonRulesRefuse(p, at, "%s", why);
}

/* Reads all of the text. If it is wrong, p->why says why. */
static void readText(ebpfMonRulesParser *p)
{
    int complete = yajl_parse(p->yajl, (const unsigned char *)p->text, p->length) == yajl_status_ok;
    int ok = complete && yajl_complete_parse(p->yajl) == yajl_status_ok;

    if (ok)
        checkNames(p);
    else if (!p->why[0]) /* else a callback has refused */
        refuseSyntax(p, complete);
}

ebpfMonRuleSet *ebpfMonRulesParse(const char *file, const char *text, size_t length, char *why, size_t size)
{
    ebpfMonRulesParser *p = calloc(1, sizeof(*p));
    ebpfMonRuleSet *set = NULL;

    if (!p || !(p->set = ebpfMonRuleSetNew()) || !(p->yajl = yajl_alloc(&ebpfMonRulesCallbacks, NULL, p))) {
        snprintf(why, size, "%s: out of memory", file);
    } else {
        p->text = text;
        p->length = length;
        readText(p);
        if (p->why[0]) {
            ebpfMonJsonFormatPlace(file, text, length, p->whyAt, p->why, why, size);
        } else {
            set = p->set;
            p->set = NULL;
        }
    }
    if (p) {
        if (p->yajl)
            yajl_free(p->yajl);
        ebpfMonRuleSetFree(p->set);
        free(p);
    }
    return set;
}
