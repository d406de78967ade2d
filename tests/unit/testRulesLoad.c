/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules from a file: checked, loaded, loaded again, refused. */
#include <sys/stat.h>
#include <unistd.h>

#include <errlog.h>

#include "model/published.h"
#include "rules/rules.h"
#include "rulesTest.h"

#define FILE_NAME "testRulesLoad.json"
#define OTHER_NAME "testRulesOther.json"

static ebpfMonRules *rulesInForce;

static void writeFileOf(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    if (!f || fputs(text, f) < 0 || fclose(f))
        testAbort("cannot write %s", name);
}

static void writeFile(const char *text)
{
    writeFileOf(FILE_NAME, text);
}

static void judged(const char *pv, int unexpected)
{
    ebpfMonRulesJudge(rulesInForce, begin(pv, "1"));
    testOk(put.unexpected == unexpected, "%s: %s", pv, put.unexpected ? put.rule : "expected");
}

static void testNoFile(void)
{
    char text[512];
    ebpfMonRuleCount counts[4];

    testDiag("no file, no rules");
    begin("A", "1")->unexpected = 7;
    ebpfMonRulesJudge(rulesInForce, &put);
    testOk1(put.unexpected == 0 && ebpfMonRulesGetCounts(rulesInForce, counts, 4) == 0);
    testOk(ebpfMonRulesFileLoad(rulesInForce, NULL, text, sizeof(text)) &&
           strstr(text, "not loaded: no rules file was named"), "%s", text);
    testOk(ebpfMonPublishedLock()->rules.refused == 0, "to load again without a file leaves no alarm");
    ebpfMonPublishedUnlock();
    testOk(ebpfMonRulesFileLoad(rulesInForce, "nosuch.json", text, sizeof(text)) &&
           strstr(text, "nosuch.json: No such file or directory"), "%s", text);
    testOk1(ebpfMonPublishedLock()->rules.refused == 1 && !ebpfMonPublishedLock()->rules.file[0]);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedUnlock();
    testOk(ebpfMonRulesFileLoad(rulesInForce, NULL, text, sizeof(text)) && strstr(text, "nosuch.json: No such file"),
           "while no rules are in force, the last name is tried again: %s", text);
    testOk(ebpfMonRulesFileLoad(rulesInForce, "/dev/zero", text, sizeof(text)) && strstr(text, "not a regular file"),
           "%s", text);
    unlink("testRulesLoad.fifo");
    if (mkfifo("testRulesLoad.fifo", 0600) == 0)
        testOk(ebpfMonRulesFileLoad(rulesInForce, "testRulesLoad.fifo", text, sizeof(text)) &&
                   strstr(text, "not a regular file"),
               "%s", text);
    unlink("testRulesLoad.fifo");
    testOk1(ebpfMonRulesFileLoad(rulesInForce, ".", text, sizeof(text)) == -1);
    memset(text, 'x', 400);
    text[400] = 0;
    testOk(ebpfMonRulesFileLoad(rulesInForce, text, text, sizeof(text)) && strstr(text, "more than 255 characters"),
           "%s", text);
}

/* The rule B of FILE_NAME is in force. */
static void testLastFile(void)
{
    char text[512];

    testOk(ebpfMonRulesFileLoad(rulesInForce, "mistyped.json", text, sizeof(text)) &&
               strstr(text, "the 1 rules before stay in force"), "%s", text);
    testOk(ebpfMonRulesFileLoad(rulesInForce, NULL, text, sizeof(text)) == 0, "a mistyped name is not kept: %s", text);
    judged("B", 1);
    testOk(ebpfMonRulesFileLoad(rulesInForce, ".", text, sizeof(text)) &&
               ebpfMonRulesFileLoad(rulesInForce, NULL, text, sizeof(text)) == 0,
           "nor is that of a folder: %s", text);
    writeFileOf(OTHER_NAME, "{\"rules\": [");
    testOk(ebpfMonRulesFileLoad(rulesInForce, OTHER_NAME, text, sizeof(text)), "a file with a mistake: %s", text);
    writeFileOf(OTHER_NAME, "{\"rules\": [{\"name\": \"c\", \"pv\": \"C\", \"allow\": false}]}");
    testOk(ebpfMonRulesFileLoad(rulesInForce, "", text, sizeof(text)) == 0, "… is read again: %s", text);
    judged("C", 1);
    unlink(OTHER_NAME);
    testOk(ebpfMonRulesFileLoad(rulesInForce, FILE_NAME, text, sizeof(text)) == 0, "%s", text);
}

static void testLoad(void)
{
    char text[512];
    unsigned rules = 0;
    ebpfMonRuleCount counts[4];
    FILE *f;
    int i;

    testDiag("load, reload, refuse");
    writeFile("{\"rules\": [{\"name\": \"a\", \"pv\": \"A\", \"allow\": false}]}");
    testOk(ebpfMonRulesFileCheck(FILE_NAME, &rules, text, sizeof(text)) == 0 && rules == 1, "%s", text);
    judged("A", 0); /* a check changes nothing */
    testOk(ebpfMonRulesFileLoad(rulesInForce, FILE_NAME, text, sizeof(text)) == 0 &&
               strstr(text, "1 rules in force since"),
           "%s", text);
    testOk(ebpfMonPublishedLock()->rules.refused == 0 && ebpfMonPublishedLock()->rules.file[0] == '/',
           "%s", ebpfMonPublishedLock()->rules.file);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedUnlock();
    ebpfMonPublishedUnlock();
    judged("A", 1);
    judged("B", 0);
    testOk1(ebpfMonRulesGetCounts(rulesInForce, counts, 4) == 2 && counts[0].judged == 1 && counts[0].bad == 1 &&
            counts[1].judged == 1 && !counts[1].name[0]);

    writeFile("{\"rules\": [{\"name\": \"b\", \"pv\": \"B\", \"allow\": false},\n {\"nam\"");
    testOk(ebpfMonRulesFileLoad(rulesInForce, NULL, text, sizeof(text)) &&
               strstr(text, "the 1 rules before stay in force") && strstr(text, FILE_NAME ":2:"),
           "%s", text);
    testOk1(ebpfMonPublishedLock()->rules.refused == 1 && ebpfMonPublishedLock()->rules.count == 1);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedUnlock();
    judged("A", 1);
    judged("B", 0);
    writeFile("{\"rules\": [{\"name\": \"b\", \"pv\": \"B\", \"allow\": false}]}");
    testOk(ebpfMonRulesFileLoad(rulesInForce, "", text, sizeof(text)) == 0, "%s", text);
    judged("A", 0); /* nothing of the earlier rules is used */
    judged("B", 1);

    testLastFile();

    f = fopen(FILE_NAME, "w");
    for (i = 0; f && i < 1024 * 1024 + 1; i++)
        putc(' ', f);
    if (f)
        fclose(f);
    testOk(ebpfMonRulesFileLoad(rulesInForce, NULL, text, sizeof(text)) && strstr(text, "more than 1048576 bytes"),
           "%s", text);
    judged("B", 1);
    unlink(FILE_NAME);
    ebpfMonRulesSet(rulesInForce, NULL);
}

/* What is in force in one is not in another; and there may be no monitor. */
static void testTwo(void)
{
    ebpfMonRules *other = ebpfMonRulesNew();
    char text[512];

    testDiag("two of them, and none");
    writeFile("{\"rules\": [{\"name\": \"b\", \"pv\": \"B\", \"allow\": false}]}");
    testOk(ebpfMonRulesFileLoad(other, FILE_NAME, text, sizeof(text)) == 0, "%s", text);
    judged("B", 0);
    ebpfMonRulesJudge(other, begin("B", "1"));
    testOk(put.unexpected && strstr(put.rule, "\"b\""), "the other set of rules judges by its own rule: %s", put.rule);
    testOk(ebpfMonRulesFileLoad(NULL, FILE_NAME, text, sizeof(text)) == -1 && strstr(text, "not loaded") == text, "%s",
           text);
    unlink(FILE_NAME);
    ebpfMonRulesFree(other);
}

MAIN(testRulesLoad)
{
    testPlan(0);
    eltc(0);
    rulesInForce = ebpfMonRulesNew();
    testNoFile();
    testLoad();
    testTwo();
    ebpfMonRulesFree(rulesInForce);
    return testDone();
}
