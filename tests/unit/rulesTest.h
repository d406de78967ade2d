/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of the rules: a put, a set of rules from a text. */
#ifndef EBPFMON_RULESTEST_H
#define EBPFMON_RULESTEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "rules/ruleSet.h"

static ebpfMonPut put;

/* A put by alice from opi1 over CA, at noon (UTC) of Wednesday, 18 November 2026. */
static inline ebpfMonPut *begin(const char *pv, const char *val)
{
    memset(&put, 0, sizeof(put));
    strcpy(put.ioc, "psc1");
    strcpy(put.pv, pv);
    strcpy(put.val, val);
    strcpy(put.user, "alice");
    strcpy(put.host, "opi1");
    strcpy(put.peer, "10.1.2.3:50123");
    put.count = 1;
    put.isNumber = sscanf(val, "%lf", &put.number) == 1;
    put.through = ebpfMonByCa;
    put.time.secPastEpoch = 1163851200u;
    return &put;
}

static inline ebpfMonRuleSet *parse(const char *text)
{
    char why[512] = "";
    ebpfMonRuleSet *set = ebpfMonRulesParse("t", text, strlen(text), why, sizeof(why));

    if (!set)
        testAbort("%s", why);
    return set;
}

#endif
