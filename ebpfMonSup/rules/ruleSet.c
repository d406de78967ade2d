/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "rules/ruleCache.h"
#include "rules/ruleSet.h"

#define FIRST_ROOM 64 /* elements */

ebpfMonRuleSet *ebpfMonRuleSetNew(void)
{
    ebpfMonRuleSet *set = calloc(1, sizeof(*set));

    if (set && !(set->cache = calloc(1, sizeof(*set->cache)))) { /* large, but takes memory only as it is used */
        free(set);
        set = NULL;
    }
    return set;
}

void ebpfMonRuleSetFree(ebpfMonRuleSet *set)
{
    if (!set)
        return;
    free(set->rule);
    free(set->glob);
    free(set->time);
    free(set->chars);
    free(set->cache);
    free(set);
}

int ebpfMonRuleSetAddRule(ebpfMonRuleSet *set, const ebpfMonPutRule *rule)
{
    if (ebpfMonArrayGrow(&set->rule, &set->ruleRoom, set->ruleCount + 1, FIRST_ROOM, sizeof(*rule)))
        return -1;
    set->rule[set->ruleCount++] = *rule;
    return 0;
}

int ebpfMonRuleSetAddTime(ebpfMonRuleSet *set, ebpfMonRuleList *list, const ebpfMonRuleTime *time)
{
    if (ebpfMonArrayGrow(&set->time, &set->timeRoom, set->timeCount + 1, FIRST_ROOM, sizeof(*time)))
        return -1;
    if (!list->count)
        list->first = set->timeCount;
    list->count++;
    set->time[set->timeCount++] = *time;
    return 0;
}

int ebpfMonRuleSetAddGlob(ebpfMonRuleSet *set, ebpfMonRuleList *list, const char *text, size_t length)
{
    ebpfMonRuleGlob *glob;
    char *at;

    if (ebpfMonArrayGrow(&set->glob, &set->globRoom, set->globCount + 1, FIRST_ROOM, sizeof(*glob)) ||
        ebpfMonArrayGrow(&set->chars, &set->charRoom, set->charCount + length + 1, EBPFMON_RULE_PATTERN, 1))
        return -1;
    at = set->chars + set->charCount;
    memcpy(at, text, length);
    at[length] = 0;
    if (!list->count)
        list->first = set->globCount;
    list->count++;
    glob = &set->glob[set->globCount++];
    glob->text = (uint32_t)set->charCount;
    glob->length = (uint16_t)length;
    glob->literal = (uint16_t)strcspn(at, "*?");
    set->charCount += length + 1;
    return 0;
}
