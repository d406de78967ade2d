/* SPDX-License-Identifier: BSD-3-Clause */
/* uses/uses.h: which puts and packets are uses of a PV, and by whom. */
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "common/clock.h"
#include "uses/uses.h"

static ebpfMonUseNotes *notes;
static ebpfMonClientTable *table; /* it has no IOC */
static ebpfMonPutClients *clients;
static ebpfMonUse use[8];
static unsigned uses;

static int readUser(uid_t uid, char *buf, size_t size)
{
    snprintf(buf, size, "user%u", (unsigned)uid);
    return 0;
}

static int findNoCertificate(const struct ebpfMonPeer *peer, struct ebpfMonCertificate *certificate)
{
    return 0;
}

static uint32_t findNoOwner(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                            struct ebpfMonOwner *owner)
{
    return 0;
}

/* Takes all that was noted since the last call. Nonzero: it is one note, of this kind, by this writer. */
static int isNoted(ebpfMonUseKind kind, const char *ioc, const char *channel, const char *who)
{
    size_t cursor = 0;

    uses = ebpfMonUseNotesTake(notes, &cursor, ebpfMonClockUnixSeconds(), 1, use, 8);
    return uses == 1 && use[0].kind == kind && strcmp(use[0].ioc, ioc) == 0 && strcmp(use[0].channel, channel) == 0 &&
           strcmp(use[0].who, who) == 0;
}

static int isNothingNoted(void)
{
    size_t cursor = 0;

    return (uses = ebpfMonUseNotesTake(notes, &cursor, ebpfMonClockUnixSeconds(), 1, use, 8)) == 0;
}

static unsigned age; /* s, of the next put */

static void addPut(const char *pv, ebpfMonThrough through, ebpfMonPutResult result)
{
    static ebpfMonPut put;

    memset(&put, 0, sizeof(put));
    put.at = ebpfMonClockMonotonic() - age * EBPFMON_SECOND_NS;
    snprintf(put.ioc, sizeof(put.ioc), "vac1");
    snprintf(put.pv, sizeof(put.pv), "%s", pv);
    snprintf(put.who, sizeof(put.who), "anna@office caput[7]");
    snprintf(put.link, sizeof(put.link), "OTHER.OUT");
    put.through = through;
    put.result = result;
    ebpfMonUseSourcesAddPut(notes, &put);
}

static void testPuts(void)
{
    testDiag("puts");
    addPut("A", ebpfMonByCa, ebpfMonPutOk);
    testOk(isNoted(ebpfMonUseWrite, "vac1", "A", "anna@office caput[7]") && use[0].count == 1, "a put is a use");
    addPut("A", ebpfMonByLink, ebpfMonPutOk);
    testOk(isNoted(ebpfMonUseWrite, "vac1", "A", "link OTHER.OUT"),
           "that of a link is by the link, whoever began its chain");
    addPut("B.HIHI", ebpfMonByCa, ebpfMonPutUnknown);
    testOk(isNoted(ebpfMonUseWrite, "vac1", "B.HIHI", "anna@office caput[7]") && strcmp(use[0].record, "B") == 0,
           "one whose result is not known may have been made: it counts");
    addPut("C", ebpfMonByCa, ebpfMonPutSent);
    testOk(isNoted(ebpfMonUseWrite, "vac1", "C", "anna@office caput[7]"),
           "so does one that was sent without asking for a result");
    addPut("D", ebpfMonByCa, ebpfMonPutDenied);
    addPut("D", ebpfMonByCa, ebpfMonPutFailed);
    addPut("D", ebpfMonByPva, ebpfMonPutUnwritten);
    testOk(isNothingNoted(), "puts that were denied, failed or not written are no use");
    addPut("E", ebpfMonByCa, ebpfMonPutOk);
    age = 20;
    addPut("E", ebpfMonByLink, ebpfMonPutOk);
    age = 0;
    testOk(isNoted(ebpfMonUseWrite, "vac1", "E", "anna@office caput[7]") && use[0].count == 2 &&
               use[0].last >= use[0].first + 20, "a put that is published late counts, and is not the last use");
    addPut("sid 12", ebpfMonByCa, ebpfMonPutOk);
    testOk(isNothingNoted(), "nor is one to a channel whose name is not known");
}

static void addPacket(ebpfMonWireKind kind, ebpfMonWireProtocol protocol, const char *name, uint16_t port)
{
    static ebpfMonWireEvent ev;

    memset(&ev, 0, sizeof(ev));
    ev.kind = kind;
    ev.protocol = protocol;
    ev.peer.addr = 0x0200000a; /* 10.0.0.2 */
    ev.peer.port = port;
    ev.sid = 12;
    ev.name = name;
    ev.user = "otto";
    ev.host = "shop";
    ebpfMonUseSourcesAddPacket(notes, table, clients, NULL, &ev, 0, "gateway");
}

static void testPackets(void)
{
    testDiag("packets");
    addPacket(ebpfMonWireRead, ebpfMonWireCa, "R.DESC", 1);
    testOk(isNoted(ebpfMonUseRead, "gateway", "R.DESC", "otto@shop") && use[0].count == 1,
           "a read, by whom the client says that it is");
    addPacket(ebpfMonWireSubscribe, ebpfMonWireCa, "R", 1);
    testOk(isNoted(ebpfMonUseSubscribe, "gateway", "R", "otto@shop") && use[0].count == 0,
           "a subscription, which is not counted");
    addPacket(ebpfMonWireRead, ebpfMonWireCa, "R.DESC", 1);
    addPacket(ebpfMonWireRead, ebpfMonWireCa, "R.DESC", 2);
    testOk(isNoted(ebpfMonUseRead, "gateway", "R.DESC", "otto@shop") && use[0].count == 2,
           "reads of two clients, in one note");
    addPacket(ebpfMonWireRead, ebpfMonWireCa, "", 1);
    addPacket(ebpfMonWireRead, ebpfMonWirePva, "", 1);
    testOk(isNothingNoted(), "without its name, a channel that no server lists is not noted");
    ebpfMonUseSourcesAddLook(notes, table, NULL);
    testOk(isNothingNoted(), "nor is anything of a look that found no IOC");
}

static void testUnwanted(void)
{
    testDiag("without a file");
    ebpfMonUseNotesSetWanted(notes, 0);
    addPut("E", ebpfMonByCa, ebpfMonPutOk);
    addPacket(ebpfMonWireRead, ebpfMonWireCa, "E", 1);
    ebpfMonUseNotesSetWanted(notes, 1);
    testOk(isNothingNoted(), "nothing is noted");
}

static void testAlone(void)
{
    testDiag("a monitor without the module clients: its registrar was not called");
    eltc(0);
    testOk(!ebpfMonClientsGet("uses"), "the module uses cannot start, and a message says what is missing");
    eltc(1);
}

MAIN(testUseSources)
{
    ebpfMonTargets *targets = ebpfMonTargetsNew();
    ebpfMonUserNames *users = ebpfMonUserNamesNew(readUser, 60);

    testPlan(7 + 5 + 1 + 1);
    clients = ebpfMonPutClientsNew(users, findNoOwner, findNoCertificate);
    table = ebpfMonClientTableNew(targets, clients, ebpfMonUpdateCountsNew(), NULL, NULL);
    notes = ebpfMonUseNotesNew();
    if (!targets || !clients || !table || !notes)
        testAbort("no memory");
    ebpfMonUseNotesSetWanted(notes, 1);
    testPuts();
    testPackets();
    testUnwanted();
    testAlone();
    ebpfMonUseNotesFree(notes);
    ebpfMonClientTableFree(table);
    return testDone();
}
