// SPDX-License-Identifier: BSD-3-Clause
// The installed header by itself, from C++, as another module uses it; no IOC and no monitor are here.
#include <ebpfMon.h>

#include <cmath>
#include <cstring>
#include <string>

#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

MAIN(testApi)
{
    ebpfMonHostStatus host;
    ebpfMonRecordStatus record;
    char text[256] = "";

    testPlan(15);
    ebpfMonHostGet(&host);
    testOk(host.state == 0 && host.message[0], "state %d: %s", host.state, host.message);
    testOk1(host.iocs == 0 && host.puts == 0 && host.lost == 0);

    testOk1(ebpfMonRecordGet("REC:A", &record) == -1);
    testOk1(ebpfMonRecordWatch("REC:A") == 0 && ebpfMonRecordWatch("REC:A") == 0);
    testOk1(ebpfMonRecordWatch("") == -1 && ebpfMonRecordWatch(std::string(61, 'X').c_str()) == -1);
    testOk1(ebpfMonRecordGet("REC:A", &record) == 0 && !record.found && record.putTime.secPastEpoch == 0);
    testOk(std::isnan(record.latencyMean) && std::strcmp(record.putLine, "no put yet") == 0, "%s",
           record.putLine);
    testOk1(ebpfMonPutGet(0, text, sizeof(text)) == -1);

    testOk(ebpfMonFilterSet("nonsense", "1", text, sizeof(text)) == -1, "%s", text);
    testOk(ebpfMonFilterSet("level", "nonsense", text, sizeof(text)) == -1, "%s", text);
    testOk(ebpfMonFilterSet("ioc", "vac*", text, sizeof(text)) == -1, "%s", text);
    eltc(0);
    testOk1(ebpfMonLevelSet("vac*", "nonsense") == -1);
    testOk1(ebpfMonLevelSet("vac*", "trace") == -1);
    testOk(ebpfMonRulesLoad("nosuch.json", text, sizeof(text)) == -1, "%s", text);
    testOk1(ebpfMonUnexpectedGet(0, text, sizeof(text)) == -1 && ebpfMonUnexpectedAck() == 0);
    eltc(1);
    return testDone();
}
