/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of rules and unexpected puts. */
#include <stdlib.h>

#include <epicsStdio.h>
#include <errlog.h>

#include "common/textReport.h"
#include "model/ops.h"
#include "model/published.h"
#include "rules/rules.h"
#include "record/shellCommand.h"

static void loadRulesByCommand(const iocshArgBuf *args)
{
    char text[512];
    int status = ebpfMonRulesFileLoad(ebpfMonOpsGet()->rules, args[0].sval, text, sizeof(text));

    if (status)
        errlogSevPrintf(errlogMajor, "ebpfMonRules: %s\n", text);
    else
        printf("%s\n", text);
    ebpfMonShellSetStatus(status);
}

static void addRules(ebpfMonTextReport *report)
{
    static const ebpfMonReportColumn columns[] = {{"rule", -40}, {"puts", 12}, {"unexpected", 12}};
    ebpfMonRuleCount *counts = malloc((EBPFMON_RULE_SET_MAX + 1) * sizeof(*counts));
    ebpfMonRules *rules = ebpfMonOpsGet()->rules;
    unsigned n = counts && rules ? ebpfMonRulesGetCounts(rules, counts, EBPFMON_RULE_SET_MAX + 1) : 0;

    if (n)
        ebpfMonTextReportBeginTable(report, columns, 3);
    for (unsigned i = 0; i < n; i++) {
        ebpfMonTextReportAddCell(report, "%s", counts[i].name[0] ? counts[i].name : "(no rule: default)");
        ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)counts[i].judged);
        ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)counts[i].bad);
    }
    free(counts);
}

static void printRules(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    ebpfMonPut *puts = malloc(EBPFMON_UNEXPECTED_MAX * sizeof(*puts));
    char line[EBPFMON_LINE_SIZE];
    const ebpfMonPublished *published;
    unsigned kept = 0, open;
    uint64_t newest;

    (void)args;
    if (!puts) {
        errlogSevPrintf(errlogMajor, "ebpfMonRulesShow: out of memory: free memory on this host, then try again\n");
        ebpfMonTextReportFree(report);
        ebpfMonShellSetStatus(-1);
        return;
    }
    published = ebpfMonPublishedLock();
    ebpfMonTextReportAdd(report, "%s%s%s\n", published->rules.file, published->rules.file[0] ? ": " : "",
                         published->rules.message);
    open = (unsigned)published->unexpected.open;
    newest = published->unexpected.count;
    for (; ebpfMonPublishedGetUnexpected(published, kept); kept++)
        puts[kept] = *ebpfMonPublishedGetUnexpected(published, kept);
    ebpfMonPublishedUnlock();
    addRules(report);
    ebpfMonTextReportAdd(report, "unexpected puts: %llu, open %u%s\n", (unsigned long long)newest, open,
                         kept < open ? ", the newest of them:" : "");
    while (kept--) {
        ebpfMonPutLine(&puts[kept], line, sizeof(line));
        ebpfMonTextReportAdd(report, "%s: %s\n", line, puts[kept].rule);
    }
    ebpfMonTextReportPrint(report);
    ebpfMonPublishedSetUnexpectedShown(ebpfMonShownByShell, newest);
    free(puts);
}

static void acknowledgeByCommand(const iocshArgBuf *args)
{
    (void)args;
    printf("unexpected puts open: %u\n", ebpfMonPublishedAcknowledge(ebpfMonShownByShell));
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonRules", loadRulesByCommand, {{"file", iocshArgStringPath}},
     "Puts the rules of a file in force. Rules say which puts are expected. Without a file: reads the last\n"
     "file again. A file with a mistake is refused as a whole, and the old rules stay in force.\n"
     "Example: ebpfMonRules \"rules.json\"\n"},
    {"ebpfMonRulesShow", printRules, EBPFMON_NO_ARGS,
     "Prints the rules in force, how often each decided, and the unexpected puts that are open, the newest\n"
     "last. ebpfMonPutAck then acknowledges these puts.\n"},
    {"ebpfMonPutAck", acknowledgeByCommand, EBPFMON_NO_ARGS,
     "Acknowledges the unexpected puts that the PVs or ebpfMonRulesShow have shown, but no later ones.\n"
     "The same as the PV PUT_BAD_ACK.\n"}
};

void ebpfMonRulesShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
