/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is a file of rules, which ends at the first NUL, and then the texts of a put, which the rules judge. */
#include "common/text.h"
#include "fuzz.h"
#include "rules/ruleSet.h"

static void fillText(char *to, size_t size, const uint8_t **data, size_t *left)
{
    size_t n = strnlen((const char *)*data, *left), take = n < size - 1 ? n : size - 1;

    memcpy(to, *data, take);
    to[take] = 0;
    n += n < *left;
    *data += n;
    *left -= n;
}

static void judge(ebpfMonRuleSet *set, const uint8_t *data, size_t size)
{
    static ebpfMonPut put;

    memset(&put, 0, sizeof(put));
    put.count = 1;
    put.time.secPastEpoch = 1163851200u;
    put.through = size ? data[0] % ebpfMonByCount : ebpfMonByCa;
    fillText(put.pv, sizeof(put.pv), &data, &size);
    fillText(put.val, sizeof(put.val), &data, &size);
    fillText(put.channel, sizeof(put.channel), &data, &size);
    fillText(put.user, sizeof(put.user), &data, &size);
    fillText(put.realUser, sizeof(put.realUser), &data, &size);
    fillText(put.host, sizeof(put.host), &data, &size);
    fillText(put.peer, sizeof(put.peer), &data, &size);
    fillText(put.ioc, sizeof(put.ioc), &data, &size);
    for (int i = 0; i < 2; i++) { /* twice, because the rule set remembers the rule of the first time */
        ebpfMonRuleSetJudge(set, &put);
        FUZZ_CHECK(put.unexpected == (put.rule[0] != 0) && strlen(put.rule) < sizeof(put.rule) &&
                   ebpfMonTextIsClean(put.rule));
    }
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    size_t length = strnlen((const char *)data, size);
    char why[512] = "", *text = malloc(length ? length : 1);
    ebpfMonRuleSet *set;

    memcpy(text, data, length); /* a file has no NUL at its end */
    set = ebpfMonRulesParse("rules.json", text, length, why, sizeof(why));
    FUZZ_CHECK((set != NULL) == (why[0] == 0));
    FUZZ_CHECK(ebpfMonTextIsClean(why)); /* because it is shown on a terminal */
    if (set)
        judge(set, data + length + (length < size), size - length - (length < size));
    ebpfMonRuleSetFree(set);
    free(text);
}
