/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of rules and unexpected puts. */
#include <stdlib.h>
#include <string.h>

#include <epicsExport.h>
#include <epicsStdio.h>
#include <errlog.h>

#include "model/published.h"
#include "rules/rules.h"
#include "rules/rulesFile.h"
#include "record/shellDef.h"

static const iocshArg fileArg = {"file", iocshArgStringPath};
static const iocshArg * const rulesArgs[] = {&fileArg};
static const iocshFuncDef rulesDef = {
    "ebpfMonRules", 1, rulesArgs
    USAGE("Puts the rules of a file in force: which puts are expected. Without a file: reads the one that\n"
          "was named last again. A file with a mistake is refused as a whole, the rules before stay.\n"
          "Example: ebpfMonRules \"rules.json\"\n")
};

static void rulesCall(const iocshArgBuf *args)
{
    char text[512];
    int status = ebpfMonRulesFileLoad(args[0].sval, text, sizeof(text));

    if (status)
        errlogSevPrintf(errlogMajor, "ebpfMonRules: %s\n", text);
    else
        printf("%s\n", text);
    iocshSetError(status);
}

static const iocshFuncDef showDef = {
    "ebpfMonRulesShow", 0, NULL
    USAGE("Prints the rules in force with how often each decided, and the unexpected puts that are open,\n"
          "the newest last. ebpfMonPutAck then acknowledges those.\n")
};

static void showRules(void)
{
    ebpfMonRuleCount *counts = malloc((EBPFMON_RULE_SET_MAX + 1) * sizeof(*counts));
    unsigned n = counts ? ebpfMonRulesGetCounts(counts, EBPFMON_RULE_SET_MAX + 1) : 0;

    if (n)
        printf("%-40s %12s %12s\n", "rule", "puts", "unexpected");
    for (unsigned i = 0; i < n; i++)
        printf("%-40s %12llu %12llu\n", counts[i].name[0] ? counts[i].name : "(no rule: default)",
               (unsigned long long)counts[i].judged, (unsigned long long)counts[i].bad);
    free(counts);
}

static void showCall(const iocshArgBuf *args)
{
    ebpfMonPut *puts = malloc(EBPFMON_BAD_MAX * sizeof(*puts));
    char file[sizeof(((ebpfMonPublished *)0)->rulesFile)], message[sizeof(((ebpfMonPublished *)0)->rulesMsg)];
    char line[EBPFMON_LINE_SIZE];
    const ebpfMonPublished *published;
    unsigned kept = 0, open;
    uint64_t newest;

    (void)args;
    if (!puts) {
        errlogSevPrintf(errlogMajor, "ebpfMonRulesShow: out of memory\n");
        iocshSetError(-1);
        return;
    }
    published = ebpfMonPublishedLock(); /* copy, and print without the lock: a terminal may be slow */
    strcpy(file, published->rulesFile);
    strcpy(message, published->rulesMsg);
    open = (unsigned)published->badOpen;
    newest = published->badCount;
    for (; ebpfMonPublishedGetBad(published, kept); kept++)
        puts[kept] = *ebpfMonPublishedGetBad(published, kept);
    ebpfMonPublishedUnlock();
    printf("%s%s%s\n", file, file[0] ? ": " : "", message);
    showRules();
    printf("unexpected puts: %llu, open %u%s\n", (unsigned long long)newest, open,
           kept < open ? ", the newest of them:" : "");
    while (kept--) {
        ebpfMonPutLine(&puts[kept], line, sizeof(line));
        printf("%s: %s\n", line, puts[kept].rule);
    }
    ebpfMonPublishedSetBadShown(ebpfMonShownByShell, newest);
    free(puts);
}

static const iocshFuncDef ackDef = {
    "ebpfMonPutAck", 0, NULL
    USAGE("Acknowledges the unexpected puts that the PVs or ebpfMonRulesShow have shown, none that came\n"
          "later. The same as the PV PUT_BAD_ACK.\n")
};

static void ackCall(const iocshArgBuf *args)
{
    (void)args;
    printf("unexpected puts open: %u\n", ebpfMonPublishedAckBad(ebpfMonShownByShell));
}

static void ebpfMonRulesRegistrar(void)
{
    iocshRegister(&rulesDef, rulesCall);
    iocshRegister(&showDef, showCall);
    iocshRegister(&ackDef, ackCall);
}
epicsExportRegistrar(ebpfMonRulesRegistrar);
