/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/levelChoice.h: the level and the probes that are possible, and the text for the operator about the rest;
 * watch/target.h. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "watch/followed.h"
#include "watch/levelChoice.h"

static ebpfMonCatalogue cat;
static ebpfMonBinary core;
static ebpfMonFollowed followed;
static ebpfMonFilter filter;

/* EPICS 3.14, without dbScanLockMany. */
static const ebpfMonBaseRelease *getOldest(void)
{
    unsigned i = 0;

    while (ebpfMonBaseReleaseGet(i + 1))
        i++;
    return ebpfMonBaseReleaseGet(i);
}

/* An IOC that runs, has all symbols, and may be watched at any level. */
static ebpfMonTarget makeTarget(ebpfMonLevel asked)
{
    ebpfMonTarget t = { .cat = &cat, .wantedLevel = asked, .level = asked, .image.core = &core, .followed = &followed };

    memset(&cat, 0, sizeof(cat));
    memset(&followed, 0, sizeof(followed));
    memset(&core, 0, sizeof(core));
    cat.base = ebpfMonBaseReleaseGet(0);
    for (int fn = 0; fn < ebpfMonFnCount; fn++)
        core.site[fn].cls = ebpfMonSiteFast;
    filter = ebpfMonFilterDefault;
    ebpfMonBudgetInit(&t.followed->budget);
    return t;
}

static void testLevels(void)
{
    ebpfMonTarget t = makeTarget(ebpfMonLevelTrace);

    testDiag("the level");
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelTrace, "the level is the one that was asked for");
    t.followed->budget.ceiling = ebpfMonLevelCounts;
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelCounts, "it is no higher than the budget allows");
    t.wantedLevel = ebpfMonLevelPuts;
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelPuts, "... and no higher than asked for");
    t = makeTarget(ebpfMonLevelChains);
    t.slot = UINT32_MAX;
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelPuts, "puts only, while the records of the IOC have no slots");
    t = makeTarget(ebpfMonLevelChains);
    t.followed->odd.links = 1;
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelPuts, "… or if its links are as in no known release");
    t = makeTarget(ebpfMonLevelChains);
    t.followed->odd.locks = 1;
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelPuts, "… or its lock sets");
    t = makeTarget(ebpfMonLevelChains);
    core.isRecognised = 1;
    core.site[ebpfMonFnScanUnlockMany].cls = ebpfMonSiteNone;
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelPuts, "… or if the end of some chains was not recognised");
    cat.base = getOldest();
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelChains, "… but not if its release does not have this function");
    t = makeTarget(ebpfMonLevelOff);
    t.followed->odd.links = 1;
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelOff, "never more than was asked for");
    t = makeTarget(ebpfMonLevelChains);
    t.cat = NULL;
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelOff, "off without a database");
    t = makeTarget(ebpfMonLevelChains);
    t.gone = 1;
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelOff, "off after the end of the IOC");
    t = makeTarget(ebpfMonLevelChains);
    t.followed->functions.verdict = ebpfMonFunctionsWrong;
    testOk(ebpfMonLevelChoiceFind(&t) == ebpfMonLevelOff, "off if its functions are not what they seemed");
}

static int has(const ebpfMonTarget *t, ebpfMonLevel level, ebpfMonProg prog)
{
    return !!(ebpfMonLevelChoiceFindProbes(t, level, ebpfMonAttachEntries) & EBPFMON_BIT(prog));
}

static void testProbes(void)
{
    ebpfMonTarget t = makeTarget(ebpfMonLevelChains);

    testDiag("the probes");
    testOk(ebpfMonLevelChoiceFindProbes(&t, ebpfMonLevelOff, ebpfMonAttachEntries) == 0, "none at level off");
    testOk(has(&t, ebpfMonLevelPuts, ebpfMonProgPut) && !has(&t, ebpfMonLevelPuts, ebpfMonProgUnlock),
           "no chain at level puts");
    testOk(!has(&t, ebpfMonLevelChains, ebpfMonProgCompleted), "no trap if a time stamp shows each processing");
    t.followed->trapped = 1;
    testOk(has(&t, ebpfMonLevelChains, ebpfMonProgCompleted), "a trap if a record needs it");
    testOk(!has(&t, ebpfMonLevelPuts, ebpfMonProgCompleted), "… at level counts and above");
    t.followed->budget.noTrap = 1;
    testOk(!has(&t, ebpfMonLevelChains, ebpfMonProgCompleted), "… unless its budget forbids it");
    testOk(!has(&t, ebpfMonLevelChains, ebpfMonProgProcess), "no trap on dbProcess");
    t.followed->probes.reference = 1;
    testOk(has(&t, ebpfMonLevelChains, ebpfMonProgProcess), "… except to compare");
    t.followed->odd.server = EBPFMON_ODD_SERVER;
    testOk(has(&t, ebpfMonLevelChains, ebpfMonProgPut) && !has(&t, ebpfMonLevelChains, ebpfMonProgCamessage) &&
           !has(&t, ebpfMonLevelChains, ebpfMonProgCheckPut) && !has(&t, ebpfMonLevelChains, ebpfMonProgNotify),
           "the clients of a CA server as in no known release are not read");
    testOk1(has(&t, ebpfMonLevelChains, ebpfMonProgUnlockMany));
    cat.base = getOldest();
    testOk(!has(&t, ebpfMonLevelChains, ebpfMonProgUnlockMany),
           "no probe at a function that its release does not have");
}

static void testTimed(void)
{
    ebpfMonTarget t = makeTarget(ebpfMonLevelChains);

    testDiag("how often chains of scan lists are timed");
    filter.timed = 5;
    testOk1(ebpfMonLevelChoiceFindPercent(&t, &filter) == 5);
    t.followed->timing.all = 1;
    testOk(ebpfMonLevelChoiceFindPercent(&t, &filter) == 100, "always, if a command asks for all");
    t.followed->budget.timed = 2;
    testOk(ebpfMonLevelChoiceFindPercent(&t, &filter) == 2, "… as far as its budget allows");
    testOk(ebpfMonLevelChoiceFindSweepProbes(&t, ebpfMonLevelCounts, ebpfMonAttachCalls, 0) == 0,
           "passes are not watched where the ends of chains are not seen in scanList");
}

static void testNote(const ebpfMonTarget *t, const char *attached, int isRemark, const char *text)
{
    char note[EBPFMON_NOTE_SIZE];
    int remark;

    strcpy(note, attached);
    remark = ebpfMonLevelChoiceWriteNote(t, &filter, note);
    if (!testOk(remark == isRemark && (text[0] ? strstr(note, text) != NULL : !note[0]), "\"%s\"", text))
        testDiag("%d: \"%s\"", remark, note);
}

static void testNotes(void)
{
    ebpfMonTarget t = makeTarget(ebpfMonLevelChains);

    testDiag("what the operator reads");
    testNote(&t, "", 0, "");
    testNote(&t, "dbPut: no such file", 0, "dbPut: no such file");
    t.followed->att.stepped = 1;
    testNote(&t, "", 1, "no cheap place");
    core.isCheckCopied = 1;
    testNote(&t, "", 1, "copied rsrvCheckPut");
    core.isRecognised = 1;
    core.site[ebpfMonFnCaPutLink].cls = ebpfMonSiteNone;
    testNote(&t, "", 1, "recognised without symbols, no record seen yet, but for dbCaPutLinkCallback");
    t.followed->functions.verdict = ebpfMonFunctionsRight;
    testNote(&t, "", 1, "recognised without symbols, but for dbCaPutLinkCallback");
    t.followed->probes.nameDenied = 1;
    testNote(&t, "", 0, "CAP_DAC_READ_SEARCH");
    t.followed->trapped = 3;
    t.followed->budget.noTrap = 1;
    testNote(&t, "", 0, "the counts of 3 records may be too low");
    t.followed->budget.timed = 2;
    t.sweeps = 1;
    testNote(&t, "", 0, "measured in 2 % of the time");
    t.followed->budget.noTrap = t.followed->probes.nameDenied = 0;
    t.followed->budget.timed = 53;
    testNote(&t, "", 1, "latencies are measured in 5 % of the time, also after slow scans");
    t.followed->timing.all = 1;
    testNote(&t, "", 0, "measured in 53 % of the time");
    t.followed->timing.all = 0;
    t.followed->budget.ceiling = ebpfMonLevelPuts;
    testNote(&t, "", 0, "watched at level puts");
    t.followed->life.silent = 1;
    testNote(&t, "", 0, EBPFMON_NOTE_SILENT);
    t.followed->odd.links = 7;
    testNote(&t, "", 0, "7 of its links");
    t.followed->odd.locks = 1;
    testNote(&t, "", 0, "its lock sets");
    t = makeTarget(ebpfMonLevelPuts);
    t.followed->odd.locks = 1;
    testNote(&t, "", 0, "");
    t = makeTarget(ebpfMonLevelChains);
    t.followed->probes.noFiles = 1;
    testNote(&t, "", 0, "ulimit -n");
    t.followed->functions.verdict = ebpfMonFunctionsWrong;
    testNote(&t, "", 0, "the symbols are not those of its program. dbScanUnlock does not get records");
    core.isRecognised = 1;
    testNote(&t, "", 0, "its functions were recognised wrongly");
}

static void testFunctions(void)
{
    ebpfMonFunctionTrial trial = { 0 };

    testDiag("the functions of a stripped program are tried");
    testOk(!ebpfMonFunctionTrialLook(&trial, 0, 0) && trial.verdict == ebpfMonFunctionsOpen,
           "nothing is known without a trap");
    testOk(!ebpfMonFunctionTrialLook(&trial, 2, 0) && trial.verdict == ebpfMonFunctionsOpen,
           "two strange traps may be chance");
    testOk(ebpfMonFunctionTrialLook(&trial, 1, 0) && trial.verdict == ebpfMonFunctionsWrong, "three are not");
    testOk(!ebpfMonFunctionTrialLook(&trial, 0, 9) && trial.verdict == ebpfMonFunctionsWrong, "it stays wrong");
    trial = (ebpfMonFunctionTrial){ 0 };
    testOk(ebpfMonFunctionTrialLook(&trial, 0, 1) && trial.verdict == ebpfMonFunctionsRight,
           "a record that processed: right");
    testOk(!ebpfMonFunctionTrialLook(&trial, 99, 1) && trial.verdict == ebpfMonFunctionsRight, "it stays right");
    trial = (ebpfMonFunctionTrial){ 0 };
    testOk(ebpfMonFunctionTrialLook(&trial, 3, 40) && trial.verdict == ebpfMonFunctionsRight,
           "some strange ones among many records");
    trial = (ebpfMonFunctionTrial){ 0 };
    testOk(ebpfMonFunctionTrialLook(&trial, 40, 3) && trial.verdict == ebpfMonFunctionsWrong,
           "some records among many strange ones");
}

MAIN(testLevelChoice)
{
    testPlan(12 + 11 + 4 + 19 + 8);
    testLevels();
    testProbes();
    testTimed();
    testNotes();
    testFunctions();
    return testDone();
}
