/* SPDX-License-Identifier: BSD-3-Clause */
#include <time.h>

#include <envDefs.h>
#include <epicsTime.h>

#include "rulesTest.h"

/* --- Rules --- */

/* The rule that decides about a put, its decision, and the time that this takes. */

static void expect(ebpfMonRuleSet *set, ebpfMonPut *p, const char *why)
{
    ebpfMonRuleSetJudge(set, p);
    testOk(p->unexpected == (why[0] != 0) && strcmp(p->rule, why) == 0, "%s %s by %s@%s: %s", p->pv, p->val, p->user,
           p->host, p->unexpected ? p->rule : "expected");
    if (strcmp(p->rule, why) != 0)
        testDiag("    not \"%s\"", why);
}

/* One rule "r" for all PVs, with these constraints. */
static ebpfMonRuleSet *ruled(const char *constraints)
{
    char text[512];

    snprintf(text, sizeof(text), "{\"rules\": [{\"name\": \"r\", \"pv\": \"*\", %s}]}", constraints);
    return parse(text);
}

static void testMatching(void)
{
    ebpfMonRuleSet *set = parse(
        "{\"rules\": [\n"
        "{\"name\": \"first\", \"pv\": [\"MAG:Q1:CUR\", \"MAG:Q2:CUR.VAL\"], \"users\": \"bob\"},\n"
        "{\"name\": \"high\", \"pv\": \"MAG:*.HIGH\", \"allow\": false},\n"
        "{\"name\": \"ioc\", \"pv\": \"MAG:*\", \"iocs\": [\"test*\"]},\n"
        "{\"name\": \"mags\", \"pv\": \"MAG:*:CUR\", \"users\": [\"al*\", \"carol\"]},\n"
        "{\"name\": \"alias\", \"pv\": \"ALIAS:?\", \"allow\": false},\n"
        "{\"name\": \"braces\", \"pv\": \"XF{Ax:*}SP.HIGH\", \"allow\": false},\n"
        "{\"name\": \"free\", \"pv\": \"*free*\"},\n"
        "{\"name\": \"rest\", \"pv\": \"MAG*\", \"allow\": false}]}");

    testDiag("which rule decides");
    expect(set, begin("MAG:Q1:CUR", "1"), "rule \"first\": user \"alice\" is not allowed");
    expect(set, begin("MAG:Q1:CUR", "1"), "rule \"first\": user \"alice\" is not allowed"); /* from the cache */
    expect(set, begin("MAG:Q2:CUR", "1"), "rule \"first\": user \"alice\" is not allowed"); /* .VAL is left out */
    expect(set, begin("MAG:Q3:CUR", "1"), "");
    expect(set, begin("MAG:Q1:CUR.HIGH", "1"), "rule \"high\": no put is allowed");
    expect(set, begin("MAG:Q1:CUR.LOW", "1"), "rule \"rest\": no put is allowed");
    begin("MAG:Q1:CUR.LOW", "1");
    strcpy(put.ioc, "test1");
    expect(set, &put, ""); /* the same PV in another IOC: another rule */
    begin("MAG:Q3:CUR", "1");
    strcpy(put.user, "bob");
    expect(set, &put, "rule \"mags\": user \"bob\" is not allowed");
    expect(set, begin("OTHER", "1"), ""); /* default */
    begin("REC", "1");
    strcpy(put.channel, "ALIAS:A.VAL{\"dbnd\":{\"d\":1}}");
    expect(set, &put, "rule \"alias\": no put is allowed");
    begin("REC", "1");
    strcpy(put.channel, "ALIAS:A.{\"dbnd\":{\"d\":1}}");
    expect(set, &put, "rule \"alias\": no put is allowed");
    begin("REC.HIGH", "1");
    strcpy(put.channel, "XF{Ax:X}SP.HIGH[0:1]"); /* braces in the name are no filter */
    expect(set, &put, "rule \"braces\": no put is allowed");
    begin("REC.DESC", "1");
    strcpy(put.channel, "ALIAS:A.DESC$");
    expect(set, &put, ""); /* the pattern has no field */
    begin("MAG:X", "1");
    strcpy(put.channel, "MAG:X.VAL{\"free\":1}"); /* a client cannot choose its rule by a modifier */
    expect(set, &put, "rule \"rest\": no put is allowed");
    testOk1(set->rule[0].judged == 3 && set->rule[0].bad == 3 && set->judged == 2 && set->bad == 0);
    ebpfMonRuleSetFree(set);

    set = parse("{\"default\": \"deny\", \"rules\": []}");
    expect(set, begin("A", "1"), "no rule is for this PV");
    ebpfMonRuleSetFree(set);
}

/* The IOC that starts later gets its pid behind its name, also if the first one is a program that took its name. */
static void testSecondOfName(void)
{
    ebpfMonRuleSet *set = ruled("\"iocs\": [\"psc1\"], \"allow\": false");

    testDiag("IOCs of one name");
    expect(set, begin("A", "1"), "rule \"r\": no put is allowed");
    strcpy(begin("A", "1")->ioc, "psc1#4711");
    expect(set, &put, "rule \"r\": no put is allowed");
    strcpy(begin("A", "1")->ioc, "psc1#47b");
    expect(set, &put, "");
    strcpy(begin("A", "1")->ioc, "psc12#47");
    expect(set, &put, "");
    ebpfMonRuleSetFree(set);
    set = ruled("\"iocs\": [\"psc1#4711\"], \"allow\": false");
    expect(set, begin("A", "1"), "");
    strcpy(begin("A", "1")->ioc, "psc1#4711");
    expect(set, &put, "rule \"r\": no put is allowed");
    ebpfMonRuleSetFree(set);
}

static void testUsersAndHosts(void)
{
    ebpfMonRuleSet *set;

    testDiag("who, where, through what");
    set = ruled("\"users\": [\"a*\", \"bob\"]");
    expect(set, begin("A", "1"), "");
    strcpy(begin("A", "1")->user, "mallory");
    expect(set, &put, "rule \"r\": user \"mallory\" is not allowed");
    strcpy(begin("A", "1")->user, "e\x1b[2J\nevil");
    expect(set, &put, "rule \"r\": user \"e\\x1b[2J\\x0aevil\" is not allowed");
    begin("A", "1")->user[0] = 0;
    expect(set, &put, "rule \"r\": no user is known");
    ebpfMonRuleSetFree(set);
    set = ruled("\"users\": [\"alice\", \"\"]");
    begin("A", "1")->user[0] = 0;
    expect(set, &put, "");
    ebpfMonRuleSetFree(set);
    set = ruled("\"realUsers\": \"alice\"");
    strcpy(begin("A", "1")->realUser, "bob");
    expect(set, &put, "rule \"r\": real user \"bob\" is not allowed");
    expect(set, begin("A", "1"), "rule \"r\": no real user is known");
    ebpfMonRuleSetFree(set);
    set = ruled("\"verified\": true");
    strcpy(begin("A", "1")->realUser, "bob");
    expect(set, &put, "rule \"r\": \"bob\" claims to be \"alice\"");
    strcpy(put.realUser, "alice");
    expect(set, &put, "");
    expect(set, begin("A", "1"), ""); /* of another host, so it cannot be verified */
    ebpfMonRuleSetFree(set);
    set = ruled("\"hosts\": [\"opi2\", \"10.1.2.*\"]");
    expect(set, begin("A", "1"), "");
    strcpy(begin("A", "1")->peer, "10.9.2.3:5");
    expect(set, &put, "rule \"r\": host \"opi1\" is not allowed");
    strcpy(put.host, "opi2");
    expect(set, &put, "");
    ebpfMonRuleSetFree(set);
    set = ruled("\"hosts\": [\"127.*\", \"fd00::*\"]");
    strcpy(begin("A", "1")->peer, "[fd00::17]:5");
    expect(set, &put, "");
    strcpy(put.peer, "[fe80::17]:5");
    expect(set, &put, "rule \"r\": host \"opi1\" is not allowed");
    ebpfMonRuleSetFree(set);
    set = ruled("\"hosts\": \"*\"");
    strcpy(begin("A", "1")->peer, "not known:5");
    strcpy(put.host, "not known");
    expect(set, &put, "rule \"r\": host \"not known\" is not allowed");
    ebpfMonRuleSetFree(set);
}

static void testPrograms(void)
{
    ebpfMonRuleSet *set = ruled("\"users\": \"alice\", \"automatic\": true");

    testDiag("a program");
    begin("A", "1")->through = ebpfMonByCa;
    expect(set, &put, "");
    testOk1(put.byProgram && ebpfMonPutIsAutomatic(&put));
    strcpy(begin("A", "1")->user, "bob");
    put.through = ebpfMonByCa;
    expect(set, &put, "rule \"r\": user \"bob\" is not allowed");
    testOk(!put.byProgram, "what the rule does not expect is no program's");
    ebpfMonRuleSetFree(set);
}

static void testCertificates(void)
{
    ebpfMonRuleSet *set;

    testDiag("a user with a certificate");
    set = ruled("\"users\": \"x509/*\", \"authorities\": \"labCA\"");
    strcpy(begin("A", "1")->user, "x509/anna");
    expect(set, &put, "rule \"r\": no authority is known");
    strcpy(put.authority, "otherCA");
    expect(set, &put, "rule \"r\": authority \"otherCA\" is not allowed");
    strcpy(put.authority, "labCA");
    expect(set, &put, "");
    strcpy(put.user, "ca/x509/anna"); /* claimed */
    expect(set, &put, "rule \"r\": user \"ca/x509/anna\" is not allowed");
    ebpfMonRuleSetFree(set);
    set = ruled("\"verified\": true");
    strcpy(begin("A", "1")->realUser, "bob");
    strcpy(put.user, "x509/anna");
    expect(set, &put, "");
    strcpy(put.user, "ca/x509/anna");
    expect(set, &put, "rule \"r\": \"bob\" claims to be \"ca/x509/anna\"");
    ebpfMonRuleSetFree(set);
}

static void testUnsure(void)
{
    static const char *const about[] = { "\"users\": \"*\"", "\"realUsers\": \"*\"", "\"authorities\": \"*\"",
                                         "\"hosts\": \"*\"", "\"verified\": true" };
    ebpfMonRuleSet *set;

    testDiag("a client that may not be the author");
    for (unsigned i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
        set = ruled(about[i]);
        begin("A", "1")->isUnsure = 1;
        expect(set, &put, "rule \"r\": it is not certain that \"alice\" made it");
        ebpfMonRuleSetFree(set);
    }
    set = ruled("\"max\": 5");
    begin("A", "1")->isUnsure = 1;
    expect(set, &put, "");
    ebpfMonRuleSetFree(set);
}

static void testOrigins(void)
{
    ebpfMonRuleSet *set;

    testDiag("origins");
    set = ruled("\"origins\": [\"ca\", \"CA link\", \"start-up\"]");
    expect(set, begin("A", "1"), "");
    begin("A", "1")->through = ebpfMonByPva;
    expect(set, &put, "rule \"r\": put through PVA is not allowed");
    put.through = ebpfMonByCaLink;
    expect(set, &put, "");
    put.through = ebpfMonByLink;
    expect(set, &put, "rule \"r\": put through link is not allowed");
    ebpfMonRuleSetFree(set);
}

static void testValues(void)
{
    ebpfMonRuleSet *set;

    testDiag("values");
    set = ruled("\"min\": -1, \"max\": 10");
    expect(set, begin("A", "10"), "");
    expect(set, begin("A", "-1"), "");
    expect(set, begin("A", "10.5"), "rule \"r\": 10.5 is not 10 or less");
    expect(set, begin("A", "1234567"), "rule \"r\": 1234567 is not 10 or less");
    expect(set, begin("A", "-2"), "rule \"r\": -2 is not -1 or more");
    expect(set, begin("A", "nan"), "rule \"r\": nan is not -1 or more");
    expect(set, begin("A", "Open"), "rule \"r\": \"Open\" is no number");
    begin("A", "11")->isNumber = 0; /* a string that the record will take as a number */
    expect(set, &put, "rule \"r\": 11 is not 10 or less");
    begin("A", "[2] 1 2")->count = 2;
    put.isNumber = 0;
    expect(set, &put, "rule \"r\": \"[2] 1 2\" is no number");
    begin("A", "1234567")->result = ebpfMonPutUnwritten; /* no record got this value */
    expect(set, &put, "");
    ebpfMonRuleSetFree(set);
    set = ruled("\"users\": \"bob\", \"max\": 10");
    begin("A", "1234567")->result = ebpfMonPutUnwritten; /* … but somebody tried to write it */
    expect(set, &put, "rule \"r\": user \"alice\" is not allowed");
    ebpfMonRuleSetFree(set);
    set = ruled("\"max\": 10, \"text\": [\"Op*\", \"[2] *\"]");
    expect(set, begin("A", "Open"), "");
    expect(set, begin("A", "Close"), "rule \"r\": \"Close\" is no number");
    expect(set, begin("A", "5"), "");
    expect(set, begin("A", "50"), "rule \"r\": 50 is not 10 or less");
    expect(set, begin("A", "[2] 1 2"), "");
    ebpfMonRuleSetFree(set);
    set = ruled("\"text\": \"Open\"");
    expect(set, begin("A", "Close"), "rule \"r\": value \"Close\" is not allowed");
    expect(set, begin("A", "Open"), "");
    ebpfMonRuleSetFree(set);
}

/* "day" 0 is Sunday, 15 November 2026. */
static ebpfMonPut *at(int day, int hour, int minute)
{
    begin("A", "1")->time.secPastEpoch = 1163548800u + (unsigned)(day * 86400 + hour * 3600 + minute * 60);
    return &put;
}

static void testTimes(void)
{
    ebpfMonRuleSet *set = ruled("\"times\": [{\"days\": \"Mon-Fri\", \"from\": \"08:00\", \"to\": \"18:00\"}, "
                                "{\"days\": \"Sat\"}]");

    testDiag("times of day");
    expect(set, at(1, 8, 0), "");
    expect(set, at(1, 7, 59), "rule \"r\": not at this time (Mon 07:59)");
    expect(set, at(5, 17, 59), "");
    expect(set, at(5, 18, 0), "rule \"r\": not at this time (Fri 18:00)");
    expect(set, at(6, 0, 0), "");
    expect(set, at(6, 23, 59), "");
    expect(set, at(0, 12, 0), "rule \"r\": not at this time (Sun 12:00)");
    ebpfMonRuleSetFree(set);

    testDiag("over midnight: the night belongs to the day on which it begins");
    set = ruled("\"times\": {\"days\": \"fri-sat\", \"from\": \"22:00\", \"to\": \"06:00\"}");
    expect(set, at(5, 5, 0), "rule \"r\": not at this time (Fri 05:00)");
    expect(set, at(5, 21, 59), "rule \"r\": not at this time (Fri 21:59)");
    expect(set, at(5, 22, 0), "");
    expect(set, at(6, 5, 59), "");
    expect(set, at(6, 6, 0), "rule \"r\": not at this time (Sat 06:00)");
    expect(set, at(7, 3, 0), "");
    expect(set, at(7, 22, 0), "rule \"r\": not at this time (Sun 22:00)");
    ebpfMonRuleSetFree(set);
    set = ruled("\"times\": {\"days\": \"Sat-Mon,Wed\", \"from\": \"20:00\", \"to\": \"24:00\"}");
    expect(set, at(0, 23, 59), "");
    expect(set, at(1, 0, 0), "rule \"r\": not at this time (Mon 00:00)");
    expect(set, at(2, 20, 0), "rule \"r\": not at this time (Tue 20:00)");
    expect(set, at(3, 20, 0), "");
    ebpfMonRuleSetFree(set);

    testDiag("local time, and summer");
    epicsEnvSet("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");
    tzset();
    set = ruled("\"times\": {\"from\": \"13:00\", \"to\": \"14:00\"}");
    expect(set, at(3, 12, 30), "");
    expect(set, at(3 - 120, 12, 30), "rule \"r\": not at this time (Tue 14:30)");
    ebpfMonRuleSetFree(set);
    epicsEnvSet("TZ", "UTC");
    tzset();
}

static void testSpeed(void)
{
    static char text[64 * 1024];
    enum { puts = 200000, pvs = 500 };
    static ebpfMonPut sent[pvs];
    epicsTimeStamp start, end;
    ebpfMonRuleSet *set;
    double cached, uncached;
    size_t n;
    unsigned i;

    n = (size_t)sprintf(text, "{\"rules\": [");
    for (i = 0; i < 200; i++)
        n += (size_t)sprintf(text + n, "%s{\"name\": \"%u\", \"pv\": [\"SEC%03u:MAG:*:CUR\", \"SEC%03u:VAC:*\"], "
                             "\"users\": [\"op*\", \"alice\"], \"hosts\": \"opi*\", \"min\": 0, \"max\": 200}",
                             i ? "," : "", i, i, i);
    sprintf(text + n, "]}");
    set = parse(text);
    for (i = 0; i < pvs; i++) {
        char pv[40];

        sprintf(pv, "SEC%03u:MAG:Q%u:CUR", i * 200 / pvs, i);
        sent[i] = *begin(pv, "100");
    }
    epicsTimeGetCurrent(&start);
    for (i = 0; i < puts; i++)
        ebpfMonRuleSetJudge(set, &sent[i % pvs]);
    epicsTimeGetCurrent(&end);
    cached = epicsTimeDiffInSeconds(&end, &start) / puts * 1e9;
    epicsTimeGetCurrent(&start);
    for (i = 0; i < puts; i++) {
        sprintf(sent[i % pvs].channel, "ALIAS:%u", i); /* never the same put, so the cache does not help */
        ebpfMonRuleSetJudge(set, &sent[i % pvs]);
    }
    epicsTimeGetCurrent(&end);
    uncached = epicsTimeDiffInSeconds(&end, &start) / puts * 1e9;
    testOk(sent[0].unexpected == 0 && cached < 10000,
           "200 rules are judged quickly: %.0f ns a put, %.0f ns for a PV not seen before", cached, uncached);
    ebpfMonRuleSetFree(set);
}

static void runRules(void)
{
    epicsEnvSet("TZ", "UTC");
    testMatching();
    testSecondOfName();
    testUsersAndHosts();
    testPrograms();
    testCertificates();
    testUnsure();
    testOrigins();
    testValues();
    testTimes();
    testSpeed();
}

/* --- RulesParse --- */

/* The rules file as a text: refused files with place and reason; many rules; damaged files. */

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

static void runRulesParse(void)
{
    testBadFiles();
    testManyRules();
    testTorn();
}

MAIN(testRules)
{
    testPlan(0);
    runRules();
    runRulesParse();
    return testDone();
}
