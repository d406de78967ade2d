/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/typeTrial.h: the counters of the kernel part are plain memory here. */
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "model/audits.h"
#include "watch/followed.h"
#include "watch/typeTrial.h"

enum { aiRecord, fair0, fair1, quiet0, RECORDS };

static ebpfMonRecType type[3];
static ebpfMonRecord rec[RECORDS];
static ebpfMonCatalogue cat = {.count = RECORDS, .rec = rec, .rtypes = 3, .rtype = type};
static volatile struct ebpfMonRecState state[RECORDS];
static uint8_t how[RECORDS];
static ebpfMonFollowed followed;
static ebpfMonTarget target = {.cat = &cat, .recState = state, .how = how, .name = "ioc", .followed = &followed};
static ebpfMonTypeTrial *trial;
static ebpfMonAudits *audits;
static uint64_t now = 1000 * EBPFMON_SECOND_NS;

static void begin(int standStill)
{
    memset((void *)state, 0, sizeof(state));
    memset(how, 0, sizeof(how));
    strcpy(type[0].name, "ai");
    strcpy(type[1].name, "fair");
    strcpy(type[2].name, "quiet");
    for (unsigned i = 0; i < RECORDS; i++)
        rec[i].rtype = i == aiRecord ? 0 : i == quiet0 ? 2 : 1;
    state[fair1].trapped = 7; /* from before */
    ebpfMonTypeTrialSetTypes(&cat, NULL);
    ebpfMonTypeTrialFree(trial);
    trial = ebpfMonTypeTrialNew(&cat, audits);
    if (!trial)
        testAbort("no trial");
    ebpfMonTypeTrialBegin(trial, &target, standStill);
}

static void process(unsigned index, unsigned n, unsigned unseen)
{
    state[index].trapped += n;
    state[index].count += n - unseen;
}

/* A second later. */
static ebpfMonTrialResult look(int trapOn)
{
    now += EBPFMON_SECOND_NS;
    return ebpfMonTypeTrialLook(trial, &target, trapOn, now);
}

static void testTypes(void)
{
    testDiag("which types are tried");
    begin(1);
    testOk1(type[0].stamps == EBPFMON_STAMPS_BASE && type[1].stamps == EBPFMON_STAMPS_UNKNOWN &&
            type[2].stamps == EBPFMON_STAMPS_UNKNOWN);
    cat.count = 1;
    testOk(!ebpfMonTypeTrialNew(&cat, audits), "types of Base need no trial");
    cat.count = RECORDS;
    strcpy(type[1].name, "motor");
    ebpfMonTypeTrialSetTypes(&cat, NULL);
    testOk(type[1].stamps == EBPFMON_STAMPS_NOT, "a motor that stands still would pass the trial");
    strcpy(type[1].name, "fair");
    testOk1(ebpfMonTypeTrialLook(NULL, &target, 1, now) == ebpfMonTrialNothing && !ebpfMonTypeTrialWantsTrap(NULL));
}

static void testVerdicts(void)
{
    testDiag("verdicts");
    begin(1);
    process(fair0, EBPFMON_TRIAL_ENOUGH - 1, 0);
    testOk(look(1) == ebpfMonTrialNothing && type[1].stamps == EBPFMON_STAMPS_UNKNOWN,
           "too few processings give no verdict");
    process(fair1, 1, 0);
    testOk(look(1) == ebpfMonTrialLinks && type[1].stamps == EBPFMON_STAMPS_SEEN,
           "enough processings of two records together give a verdict");
    testOk1(ebpfMonTypeTrialAgrees(trial, &target, fair1) && ebpfMonTypeTrialGetAhead(trial, fair1) == 7);
    state[fair1].trapped++;
    testOk(!ebpfMonTypeTrialAgrees(trial, &target, fair1), "counts do not agree while a chain is under way");
    testOk(look(1) == ebpfMonTrialNothing, "… which is no difference");
    state[fair1].count++;
    testOk1(look(1) == ebpfMonTrialNothing && ebpfMonTypeTrialAgrees(trial, &target, fair1));
    testOk1(!ebpfMonTypeTrialAgrees(trial, &target, aiRecord));
    process(quiet0, 4, 1);
    testOk(look(1) == ebpfMonTrialNothing, "a difference may be a chain under way");
    testOk(look(1) == ebpfMonTrialLinks && type[2].stamps == EBPFMON_STAMPS_NOT,
           "… but not when nothing moves any more");
    testOk1(type[1].stamps == EBPFMON_STAMPS_SEEN && look(1) == ebpfMonTrialNothing);
    begin(1);
    process(quiet0, 40, 10);
    testOk(look(1) == ebpfMonTrialLinks && type[2].stamps == EBPFMON_STAMPS_NOT,
           "so many differences are never chains under way");
    begin(1);
    process(fair0, 1, 0);
    state[fair0].count++;
    look(1);
    testOk(look(1) == ebpfMonTrialLinks && type[1].stamps == EBPFMON_STAMPS_NOT,
           "a time stamp that moves without processing is a verdict");
    begin(1);
    process(fair0, EBPFMON_TRIAL_ENOUGH, 1);
    for (unsigned i = 0; i < 20; i++) {
        process(fair0, 1, 0);
        look(1);
    }
    testOk(type[1].stamps == EBPFMON_STAMPS_UNKNOWN, "one difference gives no verdict");
    process(fair0, EBPFMON_TRIAL_ENOUGH, 0);
    testOk(look(1) == ebpfMonTrialLinks && type[1].stamps == EBPFMON_STAMPS_SEEN,
           "… and if it stays alone, it was of the moment when the probes were attached");
    begin(1);
    how[fair0] = EBPFMON_TWICE;
    process(fair0, 40, 20);
    process(fair1, 40, 0);
    testOk(look(1) == ebpfMonTrialLinks && type[1].stamps == EBPFMON_STAMPS_SEEN,
           "a record that a chain processes twice says nothing about its type");
    begin(1);
    rec[fair0].flags = EBPFMON_REC_TIMED;
    process(fair0, 9, 9);
    testOk(look(1) == ebpfMonTrialNothing, "a record with TSE says nothing about its type");
    rec[fair0].flags = 0;
    testOk(look(1) == ebpfMonTrialNothing, "… also of that time, when TSE is 0 again");
    process(fair0, 9, 9);
    ebpfMonTypeTrialExcuse(trial, &target, fair0);
    testOk(look(1) == ebpfMonTrialNothing, "nor one that a new link made process unseen");
    process(fair0, 9, 9);
    testOk(look(1) == ebpfMonTrialLinks && type[1].stamps == EBPFMON_STAMPS_NOT, "… but from then on it does");
}

static void testBeginsLate(void)
{
    testDiag("the trap comes while the IOC is counted");
    begin(0);
    state[fair0].count++; /* of a chain that was running */
    look(1);
    testOk(look(1) == ebpfMonTrialNothing, "one difference at the begin is forgiven");
    state[fair0].count++;
    look(1);
    testOk(look(1) == ebpfMonTrialLinks && type[1].stamps == EBPFMON_STAMPS_NOT, "two differences are not");
    begin(1);
    look(0);
    process(fair0, 40, 40);
    state[fair0].count += 40; /* the trap was off */
    state[fair0].trapped -= 40;
    look(1);
    testOk(look(1) == ebpfMonTrialNothing && type[1].stamps == EBPFMON_STAMPS_UNKNOWN,
           "what the trap did not see gives no verdict");
}

static void testChecks(void)
{
    ebpfMonAuditResults results;
    ebpfMonTrialResult result = ebpfMonTrialNothing;
    unsigned seconds;

    testDiag("checks now and then");
    begin(1);
    process(fair0, 40, 0);
    process(quiet0, 40, 0);
    look(1);
    testOk1(type[1].stamps == EBPFMON_STAMPS_SEEN && type[2].stamps == EBPFMON_STAMPS_SEEN);
    for (seconds = 0; seconds < 700 && result == ebpfMonTrialNothing; seconds++)
        result = look(0);
    testOk(result == ebpfMonTrialProbes && seconds >= 598 && seconds <= 601 && ebpfMonTypeTrialWantsTrap(trial),
           "the trap is wanted after %u s", seconds);
    look(1);
    for (seconds = 0, result = ebpfMonTrialNothing; seconds < 20 && result == ebpfMonTrialNothing; seconds++) {
        process(fair0, 10, 0);
        result = look(1);
    }
    testOk(result == ebpfMonTrialProbes && seconds < 7 && !ebpfMonTypeTrialWantsTrap(trial),
           "the trap is not wanted any more %u s later", seconds);
    testOk1(type[1].stamps == EBPFMON_STAMPS_SEEN && type[2].stamps == EBPFMON_STAMPS_SEEN);
    now += EBPFMON_TRIAL_EVERY_NS;
    look(0);
    look(1);
    process(quiet0, 8, 6);
    ebpfMonAuditsReset(audits);
    testOk(look(1) == ebpfMonTrialLinks && type[2].stamps == EBPFMON_STAMPS_NOT, "a type that does so later is found");
    ebpfMonAuditsGet(audits, &results);
    testOk(results.count[ebpfMonAuditProcessings] == 1, "… and the operator is told: %s", results.last);
    testOk1(type[1].stamps == EBPFMON_STAMPS_SEEN);
}

/* The first record has device support that is not of Base, of two that its type has. */
static void beginDevices(ebpfMonDevSup dev[2])
{
    begin(1);
    memset(dev, 0, 2 * sizeof(*dev));
    strcpy(dev[0].name, "Soft Channel");
    strcpy(dev[1].name, "driver");
    dev[1].stamps = EBPFMON_STAMPS_UNKNOWN;
    type[0].dev = dev;
    type[0].devs = 2;
    rec[aiRecord].dev = 2;
    rec[aiRecord].flags = 0;
    ebpfMonTypeTrialFree(trial);
    trial = ebpfMonTypeTrialNew(&cat, audits);
    ebpfMonTypeTrialBegin(trial, &target, 1);
}

static void testDevices(void)
{
    ebpfMonDevSup dev[2];

    testDiag("device support that is not of Base");
    beginDevices(dev);
    process(aiRecord, EBPFMON_TRIAL_ENOUGH, 0);
    testOk(look(1) == ebpfMonTrialLinks && dev[1].stamps == EBPFMON_STAMPS_SEEN &&
               type[0].stamps == EBPFMON_STAMPS_BASE && type[1].stamps == EBPFMON_STAMPS_UNKNOWN,
           "enough processings are a verdict on the device support alone");
    process(aiRecord, 4, 1);
    look(1);
    ebpfMonAuditsReset(audits);
    look(1);
    testOk1(dev[1].stamps == EBPFMON_STAMPS_NOT);
    beginDevices(dev);
    process(aiRecord, EBPFMON_TRIAL_ENOUGH, 0);
    state[aiRecord].strange++;
    testOk(look(1) == ebpfMonTrialLinks && dev[1].stamps == EBPFMON_STAMPS_NOT,
           "one time stamp without a completion is a verdict, too");
    beginDevices(dev);
    rec[aiRecord].flags = EBPFMON_REC_TSE;
    process(aiRecord, EBPFMON_TRIAL_ENOUGH, EBPFMON_TRIAL_ENOUGH);
    look(1);
    testOk(look(1) == ebpfMonTrialNothing && dev[1].stamps == EBPFMON_STAMPS_UNKNOWN, "a record with TSE says nothing");
    beginDevices(dev);
    dev[0].stamps = EBPFMON_STAMPS_UNKNOWN;
    rec[quiet0].rtype = 0;
    rec[quiet0].dev = 1;
    ebpfMonTypeTrialFree(trial);
    trial = ebpfMonTypeTrialNew(&cat, audits);
    ebpfMonTypeTrialBegin(trial, &target, 1);
    process(aiRecord, EBPFMON_TRIAL_ENOUGH, 0);
    look(1);
    testOk(dev[1].stamps == EBPFMON_STAMPS_SEEN && dev[0].stamps == EBPFMON_STAMPS_UNKNOWN,
           "a verdict is on one device support of a type, not on another one");
    rec[quiet0].dev = 0;
    rec[aiRecord].dev = 0;
    type[0].dev = NULL;
    type[0].devs = 0;
}

static int follow(int trapOn)
{
    now += EBPFMON_SECOND_NS;
    return ebpfMonTypeTrialFollowSleep(trial, &target, trapOn, now);
}

/* Seconds until something changes; "seconds": it does not. */
static unsigned waitForChange(int trapOn, unsigned seconds)
{
    unsigned passed = 1;

    while (passed < seconds && !follow(trapOn))
        passed++;
    return passed;
}

static void testSleep(void)
{
    ebpfMonDevSup dev[2];
    unsigned seconds;

    testDiag("device support whose driver requests no scan");
    beginDevices(dev);
    how[aiRecord] = EBPFMON_BY_TRAP;
    testOk(waitForChange(1, 300) == 300 && dev[1].stamps == EBPFMON_STAMPS_UNKNOWN,
           "a record that needs the trap for another reason does not sleep");
    how[aiRecord] = EBPFMON_BY_TRAP | EBPFMON_MAY_SLEEP;
    testOk(waitForChange(0, 300) == 300 && dev[1].stamps == EBPFMON_STAMPS_UNKNOWN,
           "it does not fall asleep while the trap is not attached");
    waitForChange(1, 40);
    process(aiRecord, 2, 0);
    seconds = waitForChange(1, 300);
    testOk(seconds >= 60 && seconds <= 62 && dev[1].stamps == EBPFMON_STAMPS_ASLEEP,
           "it sleeps %u s after the last processing", seconds);
    testOk1(waitForChange(0, 100) == 100 && !(how[aiRecord] & EBPFMON_MISSED) && look(0) == ebpfMonTrialNothing);
    state[aiRecord].strange++;
    testOk(!follow(0) && how[aiRecord] & EBPFMON_MISSED && dev[1].stamps == EBPFMON_STAMPS_ASLEEP,
           "a time stamp that is seen without the trap marks the record");
    testOk(look(0) == ebpfMonTrialProbes && ebpfMonTypeTrialWantsTrap(trial), "… and the trap is wanted");
    how[aiRecord] &= (uint8_t)~EBPFMON_MISSED;
    process(aiRecord, 1, 0);
    testOk(!follow(1) && how[aiRecord] & EBPFMON_MISSED, "what was under way when the trap came is marked, too");
    how[aiRecord] &= (uint8_t)~EBPFMON_MISSED;
    testOk1(!follow(1) && follow(1) && dev[1].stamps == EBPFMON_STAMPS_UNKNOWN);
    process(aiRecord, 1, 0);
    seconds = waitForChange(1, 300);
    testOk(seconds >= 120 && seconds <= 122 && !(how[aiRecord] & EBPFMON_MISSED),
           "it must be quiet twice as long then: %u s, and nothing is marked that the trap saw", seconds);
    process(aiRecord, 1, 0);
    testOk(follow(1) && dev[1].stamps == EBPFMON_STAMPS_UNKNOWN && !(how[aiRecord] & EBPFMON_MISSED),
           "if others need the trap, it wakes without a mark");
    dev[1].stamps = EBPFMON_STAMPS_ASLEEP;
    look(0);
    look(1);
    process(aiRecord, EBPFMON_TRIAL_ENOUGH, EBPFMON_TRIAL_ENOUGH);
    testOk(look(1) == ebpfMonTrialNothing && dev[1].stamps == EBPFMON_STAMPS_ASLEEP,
           "what differs while it sleeps is no verdict");
    rec[aiRecord].dev = 0;
    type[0].dev = NULL;
    type[0].devs = 0;
}

/* Passes count by time stamps alone, so the counts of the trap and theirs are not compared. */
static void testSleepBesidePasses(void)
{
    ebpfMonDevSup dev[2];

    testDiag("the trap comes while passes are watched");
    beginDevices(dev);
    how[aiRecord] = EBPFMON_BY_TRAP | EBPFMON_MAY_SLEEP;
    target.followed->sweep.number = 1;
    process(aiRecord, EBPFMON_TRIAL_ENOUGH, EBPFMON_TRIAL_ENOUGH / 2);
    look(1);
    target.followed->sweep.number = 0;
    process(aiRecord, 5, 2);
    testOk(look(1) == ebpfMonTrialNothing && look(1) == ebpfMonTrialNothing && dev[1].stamps == EBPFMON_STAMPS_UNKNOWN,
           "what both counted then is no verdict");
    process(aiRecord, EBPFMON_TRIAL_ENOUGH, 0);
    testOk(look(1) == ebpfMonTrialLinks && dev[1].stamps == EBPFMON_STAMPS_SEEN, "… what they count afterwards is");
    rec[aiRecord].dev = 0;
    type[0].dev = NULL;
    type[0].devs = 0;
}

static void testUnlocked(void)
{
    uint32_t to[2] = { aiRecord, 0 };
    ebpfMonAuditResults results;
    uint8_t *behind;

    testDiag("a type that completes without its lock set");
    rec[fair0].to = to;
    rec[fair0].toCount = 1;
    begin(1);
    behind = ebpfMonTypeTrialFindBehind(&cat);
    testOk(behind && behind[aiRecord] && !behind[fair1], "what an unknown type makes process is counted by the trap");
    free(behind);
    testOk1(ebpfMonTypeTrialAgrees(trial, &target, aiRecord));
    process(fair0, 3, 0);
    state[fair0].unlocked = 1;
    testOk(look(1) == ebpfMonTrialLinks && type[1].stamps == EBPFMON_STAMPS_UNLOCKED, "it was seen");
    process(fair0, 40, 0);
    testOk(look(1) == ebpfMonTrialNothing && type[1].stamps == EBPFMON_STAMPS_UNLOCKED, "… and stays so");
    type[1].stamps = EBPFMON_STAMPS_SEEN;
    type[2].stamps = EBPFMON_STAMPS_SEEN;
    behind = ebpfMonTypeTrialFindBehind(&cat);
    testOk1(behind && !behind[aiRecord]);
    free(behind);
    testDiag("a record that such a type makes process");
    to[0] = quiet0;
    begin(1);
    process(quiet0, EBPFMON_TRIAL_ENOUGH, 0);
    state[quiet0].unlocked = 1;
    testOk(look(1) == ebpfMonTrialNothing && type[2].stamps == EBPFMON_STAMPS_UNKNOWN,
           "as long as that one is not known, it has no verdict");
    state[fair0].unlocked = 1;
    testOk(look(1) == ebpfMonTrialLinks && type[1].stamps == EBPFMON_STAMPS_UNLOCKED &&
           type[2].stamps == EBPFMON_STAMPS_UNKNOWN, "the first one is the cause");
    type[2].stamps = EBPFMON_STAMPS_SEEN;
    process(quiet0, 8, 6);
    ebpfMonAuditsReset(audits);
    testOk(look(1) == ebpfMonTrialNothing && type[2].stamps == EBPFMON_STAMPS_SEEN, "what it misses is not its type's");
    ebpfMonAuditsGet(audits, &results);
    testOk(!results.count[ebpfMonAuditProcessings], "… and no disagreement");
    rec[fair0].toCount = 0;
    testOk(look(1) == ebpfMonTrialNothing && type[2].stamps == EBPFMON_STAMPS_SEEN, "nor when no link leads to it");
    state[quiet0].unlocked = 1;
    ebpfMonTypeTrialExcuse(trial, &target, quiet0);
    testOk(look(1) == ebpfMonTrialNothing && type[2].stamps == EBPFMON_STAMPS_SEEN, "nor after a link not known");
    rec[fair0].to = NULL;
    rec[fair0].toCount = 0;
}

MAIN(testTypeTrial)
{
    testPlan(0);
    audits = ebpfMonAuditsNew();
    testTypes();
    testVerdicts();
    testBeginsLate();
    testChecks();
    testDevices();
    testSleep();
    testSleepBesidePasses();
    testUnlocked();
    ebpfMonTypeTrialFree(trial);
    ebpfMonTypeTrialFree(NULL);
    ebpfMonAuditsFree(audits);
    return testDone();
}
