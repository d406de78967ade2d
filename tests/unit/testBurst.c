/* SPDX-License-Identifier: BSD-3-Clause */
/* The burst filter of the logs. Times are invented. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "export/log/burst.h"
#include "putTest.h"

static struct {
    char pv[EBPFMON_NAME_SIZE], val[32], old[32];
    int summary;
    ebpfMonBurstInfo info;
} emitted[100];
static unsigned emits;

static void onEmit(void *arg, const ebpfMonPut *put, const ebpfMonBurstInfo *info)
{
    if (emits == 100)
        return;
    strcpy(emitted[emits].pv, put->pv);
    strcpy(emitted[emits].val, put->val);
    strcpy(emitted[emits].old, put->old);
    emitted[emits].summary = info != NULL;
    if (info)
        emitted[emits].info = *info;
    emits++;
}

static int burstPut(ebpfMonBurst *b, const char *pv, int value, int old, const char *user, double now)
{
    ebpfMonPut p = somePut(0);

    strcpy(p.pv, pv);
    p.number = value;
    sprintf(p.val, "%d", value);
    sprintf(p.old, "%d", old);
    strcpy(p.user, user);
    return ebpfMonBurstAddPut(b, &p, now);
}

static void testBursts(void)
{
    ebpfMonBurst *b = ebpfMonBurstNew(4, 5, 30, onEmit, NULL);
    char name[16];

    testDiag("bursts of two PVs, one after the other, by three writers");
    for (int i = 0; i < 10; i++) {
        burstPut(b, "A", i == 3 ? -7 : i, i == 0 ? 42 : i - 1, i % 3 ? "alice" : "bob", i * 0.1);
        burstPut(b, "B", 100 - i, 100, i == 9 ? "carol" : "bob", i * 0.1);
    }
    testOk(emits == 2 && !emitted[0].summary && strcmp(emitted[0].val, "0") == 0 && !emitted[1].summary,
           "the first put of each burst is logged at once: %u", emits);
    ebpfMonBurstTick(b, 5.8);
    testOk(emits == 2, "the burst is not over yet");
    ebpfMonBurstTick(b, 6.0);
    testOk1(emits == 4 && emitted[2].summary && strcmp(emitted[2].pv, "A") == 0 && strcmp(emitted[3].pv, "B") == 0);
    testOk(strcmp(emitted[2].val, "9") == 0 && strcmp(emitted[2].old, "42") == 0 && emitted[2].info.puts == 10 &&
           emitted[2].info.min == -7 && emitted[2].info.max == 9 && emitted[2].info.hasRange,
           "first old %s, last new %s, %lu puts, %g … %g", emitted[2].old, emitted[2].val, emitted[2].info.puts,
           emitted[2].info.min, emitted[2].info.max);
    testOk1(emitted[2].info.writers == 2 && strcmp(emitted[2].info.writer[0].user, "bob") == 0 &&
            emitted[2].info.writer[0].count == 4 && emitted[2].info.writer[1].count == 6);
    testOk1(emitted[3].info.writers == 2 && emitted[3].info.writer[0].count == 9 &&
            emitted[3].info.writer[1].count == 1);

    testDiag("a single put is a single line; bursts end after 30 s; when there are many PVs; at the end");
    emits = 0;
    burstPut(b, "A", 1, 0, "a", 10);
    ebpfMonBurstTick(b, 16);
    testOk1(emits == 1);
    emits = 0;
    for (int i = 0; i <= 31; i++)
        testOk(burstPut(b, "A", i, 0, "a", 20 + i) == (i == 0 || i == 30), "put %d", i);
    testOk1(emits == 3 && emitted[1].summary && emitted[1].info.puts == 30 && !emitted[2].summary);
    emits = 0;
    for (int i = 0; i < 4; i++) { /* A and three more fit; the fourth ends the burst of A */
        sprintf(name, "C%d", i);
        burstPut(b, name, 1, 0, "a", 52);
    }
    testOk(emits == 5 && strcmp(emitted[4].pv, "A") == 0 && emitted[4].info.puts == 2,
           "the burst with the fewest puts is ended: %u", emits);
    emits = 0;
    for (int i = 0; i < 12; i++) {
        sprintf(name, "u%d", i);
        burstPut(b, "C0", 1, 0, name, 53);
    }
    ebpfMonBurstFree(b);
    testOk(emits == 1 && emitted[0].info.puts == 13 && emitted[0].info.writers == EBPFMON_BURST_WRITERS &&
           emitted[0].info.others == 5, "many writers: %lu are counted as others", emitted[0].info.others);
}

static void burstPutThrough(ebpfMonBurst *b, ebpfMonThrough through, const char *peer)
{
    ebpfMonPut p = somePut(1);

    p.user[0] = p.host[0] = 0;
    p.through = through;
    strcpy(p.peer, peer);
    ebpfMonBurstAddPut(b, &p, 1);
}

static void testOrigins(void)
{
    ebpfMonBurst *b = ebpfMonBurstNew(4, 5, 30, onEmit, NULL);
    const ebpfMonBurstWriter *w = emitted[1].info.writer;

    testDiag("writers without a user are told apart by their origin");
    emits = 0;
    for (int i = 0; i < 5; i++)
        burstPutThrough(b, ebpfMonByLink, "");
    burstPutThrough(b, ebpfMonByThread, "");
    burstPutThrough(b, ebpfMonByCa, "10.0.0.5:40312");
    burstPutThrough(b, ebpfMonByCa, "10.0.0.5:40313");
    ebpfMonBurstFree(b);
    testOk(emits == 2 && emitted[1].info.writers == 3, "%u writers", emitted[1].info.writers);
    testOk1(w[0].through == ebpfMonByLink && w[0].count == 5 && w[1].through == ebpfMonByThread && w[1].count == 1);
    testOk1(w[2].through == ebpfMonByCa && w[2].count == 2 && strcmp(w[2].peer, "10.0.0.5:40312") == 0);
}

MAIN(testBurst)
{
    testPlan(0);
    testBursts();
    testOrigins();
    return testDone();
}
