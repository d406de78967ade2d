/* SPDX-License-Identifier: BSD-3-Clause */
/* Which groups of the published values changed. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "publish/publisher.h"

static ebpfMonPublished published;
static ebpfMonGroupChanges changes;

/* All groups that changed, one bit each. "seconds": the time at which all were published. */
static unsigned find(unsigned seconds)
{
    unsigned found = 0;

    for (int g = 0; g < ebpfMonGroupCount; g++) {
        published.time[g].secPastEpoch = seconds;
        if (ebpfMonGroupChangesFind(&changes, &published, (ebpfMonGroup)g))
            found |= 1u << g;
    }
    return found;
}

static unsigned atFirst; /* groups of the publisher */

static void testEach(void)
{
    static const struct {
        const char *what;
        ebpfMonGroup group;
        void *value;
    } each[] = {
        { "state", ebpfMonGroupState, &published.state },
        { "a character of its message", ebpfMonGroupState, published.stateMessage },
        { "a loss", ebpfMonGroupState, &published.losses.by[3].count },
        { "the last cross-check", ebpfMonGroupState, published.audit.text },
        { "the monitor's CPU load", ebpfMonGroupState, &published.costs.cpu },
        { "a packet that was lost", ebpfMonGroupState, &published.packets.lost },
        { "the note of the second IOC", ebpfMonGroupIocs, published.iocs.ioc[1].note },
        { "records that match", ebpfMonGroupIocs, &published.iocs.shown },
        { "puts", ebpfMonGroupPuts, &published.puts.count },
        { "their rate", ebpfMonGroupPuts, &published.puts.rate },
        { "a processing of one record", ebpfMonGroupProc, &published.processings.busiest[1].count },
        { "the rate of all", ebpfMonGroupProc, &published.processings.rate },
        { "the p99 of a root", ebpfMonGroupChains, &published.chains.slowest[1].p99 },
        { "the histogram", ebpfMonGroupChains, &published.chains.hist[31] },
        { "an asynchronous record", ebpfMonGroupAsync, &published.asyncs.latencyMax },
        { "a record of its own", ebpfMonGroupWatch, &published.watched.row[1].latMax },
        { "a name that is searched for", ebpfMonGroupSearch, &published.searches.name[1].count },
        { "beacons", ebpfMonGroupSearch, &published.searches.beacons },
        { "files of an IOC", ebpfMonGroupHealth, &published.health.ioc[1].fds },
        { "a scan thread", ebpfMonGroupHealth, &published.health.scan[1].busy },
        { "the highest load", ebpfMonGroupHealth, &published.health.cpuMax },
        { "an event", ebpfMonGroupHealth, published.health.event[1] },
    };

    testDiag("Each value changes its group and no other group");
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        unsigned found;

        ++*(uint8_t *)each[i].value;
        found = find(100);
        testOk(found == 1u << each[i].group && !find(100), "%s: %#x", each[i].what, found);
    }
}

static void testBeyond(void)
{
    testDiag("Values that no PV shows");
    published.iocs.ioc[2].cost = 1;
    published.processings.busiest[2].count = 1;
    published.health.scan[2].busy = 1;
    published.puts.of[ebpfMonPutByClient].put[0].val[0] = 'x';
    testOk(!find(100), "rows behind the last row do not count");
    published.iocs.count = published.iocs.rows = 3;
    testOk(find(100) == 1u << ebpfMonGroupIocs, "one row more is a change");
    published.processings.busiestCount = 10000;
    testOk(find(100) == 1u << ebpfMonGroupProc, "more rows than there can be are not read");
}

static void testTime(void)
{
    const epicsTimeStamp *time = &published.time[ebpfMonGroupProc];

    testDiag("Time");
    published.processings.count++;
    testOk1(find(200) && time->secPastEpoch == 200);
    testOk(!find(201) && time->secPastEpoch == 200, "the same values again: their time stays");
    published.processings.count++;
    testOk1(find(202) && time->secPastEpoch == 202);
    published.unexpected.count++;
    published.chains.slowCount++;
    testOk(!find(203) && published.time[ebpfMonGroupUnexpected].secPastEpoch == 203,
           "groups that another thread writes are left alone");
}

static void testMeasured(void)
{
    testOk1(!find(300));
    published.isMeasured = 1;
    testOk(find(302) == atFirst, "after the first second unchanged values are valid, too: all groups process");
}

MAIN(testGroupChanges)
{
    testPlan(33);
    published.iocs.count = published.iocs.rows = published.processings.busiestCount = published.chains.slowestCount = 2;
    published.watched.count = published.searches.names = 2;
    published.health.iocs = published.health.scans = published.health.events = 2;
    atFirst = find(1);
    testOk(atFirst == (1u << ebpfMonGroupState | 1u << ebpfMonGroupIocs | 1u << ebpfMonGroupPuts |
                       1u << ebpfMonGroupProc | 1u << ebpfMonGroupChains | 1u << ebpfMonGroupAsync |
                       1u << ebpfMonGroupWatch | 1u << ebpfMonGroupSearch | 1u << ebpfMonGroupHealth),
           "at first all groups of the publisher process");
    testOk(!find(2), "the same values again: no group processes");
    testEach();
    testBeyond();
    testTime();
    testMeasured();
    return testDone();
}
