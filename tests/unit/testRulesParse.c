/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules file as a text: refused files with place and reason; many rules; damaged files. */
#include <epicsTime.h>

#include "rulesTest.h"

#define RULE(text) "{\"rules\": [{\"name\": \"r\", \"pv\": \"A\", " text "}]}"
#define LONG40 "1234567890123456789012345678901234567890"
#define LONG128 LONG40 LONG40 LONG40 "12345678"

static const struct { const char *text, *where, *why; } bad[] = {
    {"", ":1:1:", "premature EOF"},
    {"\n\n", ":3:1:", "premature EOF"},
    {"{\"rules\": [\n{\"name\": \"r\"", ":2:13:", "premature EOF"},
    {"{\"rules\": []}\nx", ":2:1:", "no JSON"},
    {"{\"rules\": []} {}", ":1:15:", "trailing garbage"},
    {"{\"rules\": [}", ":1:12:", "unallowed token"},
    {"{\n \"rules\" []}", ":2:10:", "colon"},
    {"{\"rules\": [\"\xff\"]}", ":1:13:", "UTF8"},
    {"[]", ":1:1:", "not an object"},
    {"12", ":1:1:", "not an object"},
    {"null", ":1:1:", "not an object"},
    {"{}", ":1:2:", "no \"rules\""},
    {"{\"rules\": [], \"rulez\": 1}", ":1:15:", "the file cannot have \"rulez\""},
    {"{\"rules\": [],\n  \"rules\": []}", ":2:3:", "twice"},
    {"{\"rules\": {}}", ":1:11:", "\"rules\" must be a list"},
    {"{\"rules\": \"x\"}", ":1:11:", "\"rules\" must be a list"},
    {"{\"default\": \"maybe\", \"rules\": []}", ":1:13:", "\"default\" cannot be \"maybe\""},
    {"{\"default\": true, \"rules\": []}", ":1:13:", "\"allow\" or \"deny\""},
    {"{\"default\": [], \"rules\": []}", ":1:13:", "\"allow\" or \"deny\""},
    {"{\"rules\": [1]}", ":1:12:", "a rule must be an object"},
    {"{\"rules\": [[]]}", ":1:12:", "a rule must be an object"},
    {"{\"rules\": [\n {\"pv\": \"A\"}]}", ":2:2:", "no \"name\""},
    {"{\"rules\": [\n {\"name\": \"r\"}]}", ":2:2:", "rule \"r\" has no \"pv\""},
    {"{\"rules\": [{\"name\": \"\", \"pv\": \"A\"}]}", ":1:21:", "the name is empty"},
    {"{\"rules\": [{\"name\": \"" LONG40 "x\", \"pv\": \"A\"}]}", ":1:21:", "more than 40 characters"},
    {"{\"rules\": [{\"name\": \"a\\nb\", \"pv\": \"A\"}]}", ":1:21:", "control character (code 10)"},
    {"{\"rules\": [{\"name\": \"a\\u0000b\", \"pv\": \"A\"}]}", ":1:21:", "control character (code 0)"},
    {"{\"rules\": [{\"name\": 7, \"pv\": \"A\"}]}", ":1:21:", "\"name\" must be a text"},
    {"{\"rules\": [{\"name\": \"r\", \"pv\": []}]}", ":1:33:", "\"pv\" is an empty list"},
    {"{\"rules\": [{\"name\": \"r\", \"pv\": \"\"}]}", ":1:32:", "is empty. Write *"},
    {"{\"rules\": [{\"name\": \"r\", \"pv\": [\"A\", 1]}]}", ":1:38:", "an element of \"pv\" must be a text"},
    {"{\"rules\": [{\"name\": \"r\", \"pv\": [[\"A\"]]}]}", ":1:33:", "an element of \"pv\" must be a text"},
    {"{\"rules\": [{\"name\": \"r\", \"pv\": \"A[12]\"}]}", ":1:32:", "sets are not supported"},
    {"{\"rules\": [{\"name\": \"r\", \"pv\": \"" LONG128 "\"}]}", ":1:32:", "more than 127 characters"},
    {RULE("\"users\": []"), ":1:47:", "\"users\" is an empty list"},
    {RULE("\"users\": {}"), ":1:46:", "\"users\" must be a pattern or a list"},
    {RULE("\"user\": \"a\""), ":1:37:", "a rule cannot have \"user\". Known are: name, pv,"},
    {RULE("\"min\": \"3\""), ":1:44:", "\"min\" must be a number"},
    {RULE("\"min\": 1e999"), ":1:44:", "\"min\" is no finite number"},
    {RULE("\"max\": Infinity"), ":1:44:", "\"max\" is no finite number"},
    {RULE("\"min\": 2, \"max\": 1"), ":1:12:", "min 2 is above max 1"},
    {RULE("\"allow\": \"no\""), ":1:46:", "\"allow\" must be true or false"},
    {RULE("\"allow\": null"), ":1:46:", "\"allow\" must be true or false"},
    {RULE("\"origins\": [\"CA\", \"fax\"]"), ":1:55:", "there is no origin \"fax\""},
    {RULE("\"origins\": true"), ":1:48:", "\"origins\" must be one of"},
    {RULE("\"times\": \"night\""), ":1:46:", "\"times\" must be a window"},
    {RULE("\"times\": {}"), ":1:46:", "an empty window"},
    {RULE("\"times\": []"), ":1:47:", "\"times\" is an empty list"},
    {RULE("\"times\": [\"x\"]"), ":1:47:", "must be an object"},
    {RULE("\"times\": {\"days\": \"Mon-Fry\"}"), ":1:55:", "\"Mon-Fry\" are no days"},
    {RULE("\"times\": {\"days\": \"Monday\"}"), ":1:55:", "no days"},
    {RULE("\"times\": {\"days\": \"\"}"), ":1:55:", "no days"},
    {RULE("\"times\": {\"days\": \"" LONG40 "\"}"), ":1:55:", "more than 39 characters"},
    {RULE("\"times\": {\"from\": \"8:00\", \"to\": \"18:00\"}"), ":1:55:", "\"8:00\" is no time of day"},
    {RULE("\"times\": {\"from\": \"8\\\"00\", \"to\": \"18:00\"}"), ":1:55:", "\"8\"00\" is no time of day"},
    {RULE("\"times\": {\"from\": \"08:60\", \"to\": \"18:00\"}"), ":1:55:", "no time of day"},
    {RULE("\"times\": {\"from\": \"08:00\", \"to\": \"24:01\"}"), ":1:70:", "no time of day"},
    {RULE("\"times\": {\"from\": 8, \"to\": \"18:00\"}"), ":1:55:", "\"from\" must be a text"},
    {RULE("\"times\": [{\"from\": \"08:00\"}]"), ":1:47:", "has \"from\" only"},
    {RULE("\"times\": {\"from\": \"08:00\", \"to\": \"08:00\"}"), ":1:46:", "no length"},
    {RULE("\"times\": {\"hours\": \"8\"}"), ":1:47:", "cannot have \"hours\""},
    {RULE("// a comment\n \"x\": 1"), ":2:2:", "cannot have \"x\""},
    {"{\"rules\": [{\"name\": \"a\", \"pv\": \"A\"}, {\"name\": \"b\", \"pv\": \"A\"},\n"
     "{\"name\": \"b\", \"pv\": \"B\"}, {\"name\": \"a\", \"pv\": \"B\"}]}", ":2:10:", "two rules \"b\""},
};

static void testBadFiles(void)
{
    char why[512];

    testDiag("files that are refused");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        why[0] = 0;
        testOk(!ebpfMonRulesParse("f.json", bad[i].text, strlen(bad[i].text), why, sizeof(why)) &&
               strncmp(why, "f.json", 6) == 0 && strncmp(why + 6, bad[i].where, strlen(bad[i].where)) == 0 &&
               strstr(why, bad[i].why), "%s", why);
        if (!strstr(why, bad[i].why) || strncmp(why + 6, bad[i].where, strlen(bad[i].where)) != 0)
            testDiag("    expected %s %s in %s", bad[i].where, bad[i].why, bad[i].text);
    }
    testOk1(!ebpfMonRulesParse("0123456789", "[", 1, why, 40) && strlen(why) < 40 && strncmp(why, "...:1:1:", 8) == 0);
}

static void testManyRules(void)
{
    char *text = malloc(64 * (EBPFMON_RULE_SET_MAX + 2)), why[256] = "";
    size_t n;

    testDiag("ten thousand rules, and one more");
    for (unsigned more = 0; more < 2; more++) {
        epicsTimeStamp start, end;
        ebpfMonRuleSet *set;

        n = (size_t)sprintf(text, "{\"rules\": [");
        for (unsigned i = 0; i < EBPFMON_RULE_SET_MAX + more; i++)
            n += (size_t)sprintf(text + n, "%s{\"name\": \"%u\", \"pv\": \"P%u\"}", i ? ",\n" : "", i, i);
        n += (size_t)sprintf(text + n, "]}");
        epicsTimeGetCurrent(&start);
        set = ebpfMonRulesParse("f", text, n, why, sizeof(why));
        epicsTimeGetCurrent(&end);
        testOk(more ? !set : set && set->ruleCount == EBPFMON_RULE_SET_MAX, "%u rules, %u bytes, %.1f ms: %s",
               EBPFMON_RULE_SET_MAX + more, (unsigned)n, epicsTimeDiffInSeconds(&end, &start) * 1e3, why);
        ebpfMonRuleSetFree(set);
    }
    testOk1(strstr(why, "f:10001:1: there are more than 10000 rules") != NULL);
    free(text);
}

/* Files that are cut, or with single changed bytes: the parser must not read beyond the end, and must not loop. */
static void testTorn(void)
{
    static const char good[] = "{ // comment\n\"default\": \"deny\", /* c */ \"rules\": [{\"name\": 'a\\\"b', \"pv\": "
        "[\"A*\", \"B?\"], users: \"\", \"min\": -1.5e3, \"times\": [{\"days\": \"Sat\"}], },]}";
    char why[256], *copy;
    unsigned ok = 0;

    testDiag("torn and changed files");
    for (size_t n = 0; n <= strlen(good); n++) {
        ebpfMonRuleSet *set;

        copy = malloc(n + !n); /* memory of exactly this size: a sanitizer sees a read beyond it */
        memcpy(copy, good, n);
        set = ebpfMonRulesParse("f", copy, n, why, sizeof(why));
        ok += set != NULL;
        ebpfMonRuleSetFree(set);
        free(copy);
    }
    testOk(ok == 1, "of all beginnings of a file one is right: %u", ok);
    for (size_t n = 0; n < strlen(good); n++) {
        for (int c = 0; c < 256; c += 3) {
            copy = malloc(strlen(good));
            memcpy(copy, good, strlen(good));
            copy[n] = (char)c;
            ebpfMonRuleSetFree(ebpfMonRulesParse("f", copy, strlen(good), why, sizeof(why)));
            free(copy);
        }
    }
    testPass("single bytes changed");
}

MAIN(testRulesParse)
{
    testPlan(0);
    testBadFiles();
    testManyRules();
    testTorn();
    return testDone();
}
