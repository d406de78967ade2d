/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <string.h>

#include <asLib.h>

#include "shared/functionSite.h"
#include "common/text.h"
#include "ioc/baseLayout.h"
#include "subscriptions/accessRules.h"

#define GROUPS_MAX 10000
#define RULES_MAX  100
#define INPUTS_MAX 26 /* INPA to INPZ; Base has fewer */
#define SHOWN_MAX  2 /* rules, and names of groups, that are shown */

/* asLib.h: ASG, ASGRULE, ASGINP, ASGUAG and ASGHAG, UAG and HAG. */
struct group {
    struct layoutNode node;
    uint64_t name;
    struct layoutList inputs, rules, members;
    uint64_t values, bad; /* bad: a bit for each input that is not connected or INVALID (asCa.c) */
};
struct rule {
    struct layoutNode node;
    int32_t  access, level;
    uint64_t inputs; /* a bit for each that "calc" uses */
    int32_t  result, pad;
    uint64_t calc, compiled;
    struct layoutList uags, hags;
};
struct input {
    struct layoutNode node;
    uint64_t name, channel, group;
    int32_t  index;
};
struct member {
    struct layoutNode node;
    uint64_t group;
};

static void readName(ebpfMonMem *mem, uint64_t at, char *text, size_t size)
{
    char raw[80];

    text[0] = 0;
    if (at && ebpfMonMemStr(mem, at, raw, sizeof(raw)) >= 0)
        ebpfMonTextCopy(text, size, raw);
}

/* 0, or -1. */
static int findGroup(ebpfMonMem *mem, pid_t pid, const char *name, struct group *g, uint64_t *at)
{
    uint64_t variable = ebpfMonVariableFind(pid, "pasbase"), base = variable ? ebpfMonMemPtr(mem, variable) : 0;
    struct { struct layoutList uags, hags, groups; } lists;
    char found[80];

    if (!base || ebpfMonMemRead(mem, base, &lists, sizeof(lists)) || lists.groups.count > GROUPS_MAX)
        return -1;
    *at = lists.groups.first;
    for (int i = 0; *at && i < lists.groups.count; i++, *at = g->node.next) {
        if (ebpfMonMemRead(mem, *at, g, sizeof(*g)))
            return -1;
        readName(mem, g->name, found, sizeof(found));
        if (strcmp(found, name) == 0)
            return g->inputs.count > INPUTS_MAX || g->rules.count > RULES_MAX ? -1 : 0;
    }
    return -1;
}

/* The inputs that this rule uses, and that are bad. */
static void addBadInputs(ebpfMonMem *mem, const struct group *g, uint64_t group, const struct rule *r, char *text,
                         size_t size)
{
    uint64_t at = g->inputs.first;
    const char *between = ": ";
    struct input in;
    char name[80];

    for (int i = 0; at && i < g->inputs.count; i++, at = in.node.next) {
        if (ebpfMonMemRead(mem, at, &in, sizeof(in)) || in.group != group || in.index < 0 || in.index >= INPUTS_MAX)
            return;
        if (!(r->inputs & g->bad & 1ul << in.index))
            continue;
        readName(mem, in.name, name, sizeof(name));
        ebpfMonTextAdd(text, size, "%sINP%c (%s) is not connected or INVALID", between, 'A' + in.index, name);
        between = ", ";
    }
}

static void addMembers(ebpfMonMem *mem, const struct layoutList *list, const char *kind, char *text, size_t size)
{
    uint64_t at = list->first;
    struct member m;
    char name[80];

    for (int i = 0; at && i < list->count && i < SHOWN_MAX; i++, at = m.node.next) {
        if (ebpfMonMemRead(mem, at, &m, sizeof(m)))
            return;
        readName(mem, ebpfMonMemPtr(mem, m.group + sizeof(struct layoutNode)), name, sizeof(name));
        ebpfMonTextAdd(text, size, " %s(%s)", kind, name);
    }
    if (list->count > SHOWN_MAX)
        ebpfMonTextAdd(text, size, " …");
}

/* One rule that allows to write, and what it wants. */
static void addRule(ebpfMonMem *mem, const struct group *g, uint64_t group, const struct rule *r, char *text,
                    size_t size)
{
    char calc[80];

    readName(mem, r->calc, calc, sizeof(calc));
    ebpfMonTextAdd(text, size, "RULE(%d,WRITE)", r->level);
    if (calc[0] && !r->result) {
        ebpfMonTextAdd(text, size, " wants %s, which is not so", calc);
        addBadInputs(mem, g, group, r, text, size);
    } else if (r->uags.count || r->hags.count) {
        ebpfMonTextAdd(text, size, " is for");
        addMembers(mem, &r->uags, "UAG", text, size);
        addMembers(mem, &r->hags, "HAG", text, size);
    } else {
        ebpfMonTextAdd(text, size, " allows it now: rights have changed since, or the field has a higher level");
    }
}

int ebpfMonAccessRulesDescribe(ebpfMonMem *mem, pid_t pid, const char *asg, char *text, size_t size)
{
    struct group g;
    struct rule r;
    uint64_t group, at;
    int rules = 0;

    if (!asg[0] || findGroup(mem, pid, asg, &g, &group)) {
        asg = "DEFAULT"; /* asLib: a group that no file has is this one */
        if (findGroup(mem, pid, asg, &g, &group))
            return -1;
    }
    text[0] = 0;
    ebpfMonTextAdd(text, size, "ASG %s", asg);
    at = g.rules.first;
    for (int i = 0; at && i < g.rules.count; i++, at = r.node.next) {
        if (ebpfMonMemRead(mem, at, &r, sizeof(r)))
            return -1;
        if (r.access != asWRITE || rules++ >= SHOWN_MAX)
            continue;
        ebpfMonTextAdd(text, size, "%s", rules == 1 ? ": " : "; ");
        addRule(mem, &g, group, &r, text, size);
    }
    if (!rules)
        ebpfMonTextAdd(text, size, " has no rule that allows to write");
    return 0;
}
