/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <asLib.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "ioc/baseLayout.h"
#include "shared/functionSite.h"
#include "subscriptions/accessRules.h"

#define GROUPS_MAX 10000
#define RULES_MAX  100
#define INPUTS_MAX 26 /* INPA to INPZ; Base has fewer */
#define TOLD_NS    (60 * EBPFMON_SECOND_NS)
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

/* asComputeAsgPvt (asLibRoutines.c): a rule whose input is bad is no rule, also if its calculation was so. */
static int isRefusing(const struct group *g, const struct rule *r)
{
    return r->calc && (r->result != 1 || (g->bad & r->inputs));
}

/* The list of groups. "variable": where pasbase is. 0; -1: there are no rules, or they cannot be read. */
static int readGroups(ebpfMonMem *mem, uint64_t variable, uint64_t *base, struct layoutList *groups)
{
    struct { struct layoutList uags, hags, groups; } lists;

    *base = variable ? ebpfMonMemPtr(mem, variable) : 0;
    if (!*base || ebpfMonMemRead(mem, *base, &lists, sizeof(lists)) || lists.groups.count > GROUPS_MAX)
        return -1;
    *groups = lists.groups;
    return 0;
}

/* 0, or -1. */
static int findGroup(ebpfMonMem *mem, pid_t pid, const char *name, struct group *g, uint64_t *at)
{
    struct layoutList groups;
    uint64_t base;
    char found[80];

    if (readGroups(mem, ebpfMonVariableFind(pid, "pasbase"), &base, &groups))
        return -1;
    *at = groups.first;
    for (int i = 0; *at && i < groups.count; i++, *at = g->node.next) {
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
static void addRule(ebpfMonMem *mem, const struct group *g, uint64_t group, const struct rule *r, int level, char *text,
                    size_t size)
{
    char calc[80];

    readName(mem, r->calc, calc, sizeof(calc));
    ebpfMonTextAdd(text, size, "RULE(%d,WRITE)", r->level);
    if (r->level < level) { /* asLibRoutines.c, asComputePvt */
        ebpfMonTextAdd(text, size, " is not for this field, of level %d", level);
    } else if (isRefusing(g, r)) {
        ebpfMonTextAdd(text, size, " wants %s, which is not %s", calc, r->result == 1 ? "known" : "so");
        addBadInputs(mem, g, group, r, text, size);
    } else if (r->uags.count || r->hags.count) {
        ebpfMonTextAdd(text, size, " is for");
        addMembers(mem, &r->uags, "UAG", text, size);
        addMembers(mem, &r->hags, "HAG", text, size);
    } else {
        ebpfMonTextAdd(text, size, " allows it now: rights have changed since, or it wants more (METHOD, "
                       "AUTHORITY, PROTOCOL)");
    }
}

int ebpfMonAccessRulesDescribe(ebpfMonMem *mem, pid_t pid, const char *asg, int level, char *text, size_t size)
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
        addRule(mem, &g, group, &r, level, text, size);
    }
    if (!rules)
        ebpfMonTextAdd(text, size, " has no rule that allows to write");
    return 0;
}

/* --- rights that change --- */

struct accessGroup {
    uint64_t at;            /* its ASG */
    uint64_t refusing;      /* a bit for each of its first 64 rules to write */
    uint64_t toldAt;        /* monotonic ns; 0: never */
    int      isTold;        /* the last line about it says that it refuses */
};

/* Which of its rules to write refuse now. 0, or -1: it cannot be read, or is another one. */
static int readRefusing(ebpfMonMem *mem, uint64_t at, char *name, size_t size, uint64_t *refusing)
{
    struct group g;
    struct rule r;

    *refusing = 0;
    if (ebpfMonMemRead(mem, at, &g, sizeof(g)) || g.rules.count > RULES_MAX || g.inputs.count > INPUTS_MAX)
        return -1;
    readName(mem, g.name, name, size);
    at = g.rules.first;
    for (int i = 0; at && i < g.rules.count && i < 64; i++, at = r.node.next) {
        if (ebpfMonMemRead(mem, at, &r, sizeof(r)))
            return -1;
        if (r.access == asWRITE && isRefusing(&g, &r))
            *refusing |= 1ull << i;
    }
    return 0;
}

/* Takes the groups with inputs, of new rules. */
static void takeGroups(ebpfMonAccessState *state, ebpfMonMem *mem, const struct layoutList *groups)
{
    uint64_t at = groups->first;
    struct group g;
    char name[80];

    state->groups = 0;
    for (int i = 0; at && i < groups->count && !ebpfMonMemRead(mem, at, &g, sizeof(g)); i++, at = g.node.next) {
        struct accessGroup taken = { .at = at };

        if (g.inputs.count && readRefusing(mem, at, name, sizeof(name), &taken.refusing) == 0 &&
            ebpfMonArrayGrow(&state->group, &state->room, state->groups + 1, 8, sizeof(*state->group)) == 0)
            state->group[state->groups++] = taken;
    }
}

static void lookAtGroup(const ebpfMonAccessState *state, struct accessGroup *group, ebpfMonMem *mem, pid_t pid,
                        void (*tell)(void *arg, const char *text), void *arg)
{
    uint64_t refusing, base, now = ebpfMonClockMonotonic();
    char name[80], why[240], text[320];

    if (readRefusing(mem, group->at, name, sizeof(name), &refusing) || refusing == group->refusing ||
        ebpfMonMemReadNow(pid, state->variable, &base, sizeof(base)) || base != state->base)
        return; /* the last: asInit has freed the groups meanwhile */
    if (refusing & ~group->refusing && (!group->toldAt || now - group->toldAt > TOLD_NS) &&
        ebpfMonAccessRulesDescribe(mem, pid, name, 0, why, sizeof(why)) == 0) {
        snprintf(text, sizeof(text), "rights have changed by themselves: %s", why);
        tell(arg, text);
        group->toldAt = now;
        group->isTold = 1;
    } else if (!refusing && group->isTold) {
        snprintf(text, sizeof(text), "ASG %s: its rules allow to write again", name);
        tell(arg, text);
        group->isTold = 0;
    }
    group->refusing = refusing;
}

void ebpfMonAccessStateLook(ebpfMonAccessState *state, pid_t pid, void (*tell)(void *arg, const char *text), void *arg)
{
    ebpfMonMem *mem = state->isSought && !state->variable ? NULL : ebpfMonMemNew(pid);
    struct layoutList groups;
    uint64_t base;

    if (!state->isSought)
        state->variable = ebpfMonVariableFind(pid, "pasbase");
    state->isSought = 1;
    if (mem && readGroups(mem, state->variable, &base, &groups) == 0 && base != state->base) {
        if (state->base)
            tell(arg, "the rules of access security were read again (asInit): rights may be others");
        takeGroups(state, mem, &groups);
        state->base = base;
    } else if (mem && state->base && base == state->base) {
        for (size_t i = 0; i < state->groups; i++)
            lookAtGroup(state, &state->group[i], mem, pid, tell, arg);
    }
    ebpfMonMemFree(mem);
}

void ebpfMonAccessStateClear(ebpfMonAccessState *state)
{
    free(state->group);
    *state = (ebpfMonAccessState){ .base = 0 };
}
