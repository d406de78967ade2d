/* SPDX-License-Identifier: BSD-3-Clause */
/* wire/: reassembles TCP streams of a recorded Channel Access circuit: segments in any order, repeated, lost,
 * overlapping. testCa.c tests the messages. */
#include "wireRecorded.h"

#define SEEDS  3000
#define PIECES 512

typedef struct {
    size_t from, to;
} piece;

/* Segments cut at random, some repeated, some overlapping, in another order. */
static void scatter(ebpfMonWire *w, talk *t, const part *u)
{
    piece pieces[PIECES];
    unsigned n = 0;
    size_t at = 0;
    uint32_t most = random32() % 4 ? 1 + random32() % 60 : 1 + random32() % 5;

    while (at < u->len && n < PIECES - 2) {
        size_t len = 1 + random32() % most, from = at, to = at + len < u->len ? at + len : u->len;

        at = to;
        if (random32() % 8 == 0)
            from -= random32() % (from + 1);
        if (random32() % 8 == 0)
            to += random32() % (u->len - to + 1);
        pieces[n++] = (piece){ from, to };
        if (random32() % 8 == 0 && n < PIECES - 2) {
            pieces[n] = pieces[random32() % n];
            n++;
        }
    }
    pieces[n++] = (piece){ at, u->len };
    for (unsigned i = 0; i < n; i++) {
        unsigned j = random32() % 2 ? i : i + random32() % (n - i < 6 ? n - i : 6);
        piece p = pieces[j];

        pieces[j] = pieces[i];
        pieces[i] = p;
    }
    for (unsigned i = 0; i < n; i++) {
        t->time += MS / 10;
        sendAt(w, t, u->dir, t->seq[u->dir] + (uint32_t)pieces[i].from, ACK, u->p + pieces[i].from,
            pieces[i].to - pieces[i].from, pieces[i].to - pieces[i].from);
        if (random32() % 16 == 0) /* a keep-alive */
            sendAt(w, t, u->dir, t->seq[u->dir] - 1, ACK, "x", 1, 1);
    }
    t->seq[u->dir] += (uint32_t)u->len;
}

static void testRecorded(const part *t, unsigned n, eventLog *plain)
{
    ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, plain);
    talk k = talkNew(40000, 5064);

    plain->base[0] = k.seq[0];
    plain->base[1] = k.seq[1];
    shake(w, &k);
    for (unsigned i = 0; i < n; i++)
        say(w, &k, t[i].dir, t[i].p, t[i].len);
    testOk(ebpfMonWireStat(w)->circuits == 1 && ebpfMonWireStat(w)->channels == 3,
        "one circuit is open, with its channels");
    bye(w, &k);
    testOk(plain->count[ebpfMonWireOpened] == 1 && plain->count[ebpfMonWireClosed] == 1
        && plain->count[ebpfMonWireUser] == 2 && plain->count[ebpfMonWireChannel] == 4
        && plain->count[ebpfMonWireChannelGone] == 1 && plain->count[ebpfMonWirePut] == 6
        && plain->count[ebpfMonWireReply] == 5 && plain->count[ebpfMonWireValue] == 4
        && plain->count[ebpfMonWireRead] == 3 && plain->count[ebpfMonWireSubscribe] == 1
        && plain->count[ebpfMonWireSearch] == 2 && plain->count[ebpfMonWireFound] == 1
        && plain->count[ebpfMonWireGap] == 0 && plain->count[ebpfMonWireForeign] == 0, "all messages were read");
    testOk(ebpfMonWireStat(w)->memory == 0 && !ebpfMonWireStat(w)->waiting && ebpfMonWireStat(w)->circuits == 0 &&
        ebpfMonWireStat(w)->channels == 0, "nothing is left of the circuit");
    testOk(ebpfMonWireStat(w)->malformed == 0 && ebpfMonWireStat(w)->resynced == 0, "no message was malformed or lost");
    ebpfMonWireFree(w);
}

static void testScattered(const part *t, unsigned n, const eventLog *plain)
{
    unsigned wrong = 0;
    uint64_t reordered = 0, repeated = 0;
    size_t left = 0;

    for (int i = 0; i < SEEDS; i++) {
        eventLog log = { 0 };
        ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
        talk k = talkNew(40000, 5064);

        for (int side = 0; side < 2; side++) /* half of them wrap */
            log.base[side] = k.seq[side] = random32() % 2 ? random32() : -(random32() % 1000);
        shake(w, &k);
        for (unsigned j = 0; j < n; j++)
            scatter(w, &k, &t[j]);
        bye(w, &k);
        if (strcmp(log.text ? log.text : "", plain->text) != 0 && !wrong++)
            testDiag("seed %d:\n%s", i, log.text ? log.text : "nothing");
        reordered += ebpfMonWireStat(w)->reordered;
        repeated += ebpfMonWireStat(w)->repeated;
        left += ebpfMonWireStat(w)->memory + ebpfMonWireStat(w)->waiting;
        ebpfMonWireFree(w);
        logClear(&log);
    }
    testOk(wrong == 0, "no way to send it gives other events: %u of %d", wrong, SEEDS);
    testOk(reordered > SEEDS && repeated > SEEDS && left == 0, "the ways were hard: %llu waited, %llu were repeated",
        (unsigned long long)reordered, (unsigned long long)repeated);
}

/* A gap within a long message: the end of the message is known. */
static void testHole(ebpfMonWire *w, talk *k, const eventLog *log, const bytes *b)
{
    uint64_t resynced = ebpfMonWireStat(w)->resynced;
    unsigned before = ebpfMonWireStat(w)->waiting, begun, holed;
    bytes big = { 0 };

    add16(&big, 4);
    add16(&big, 3000);
    add16(&big, 4);
    add16(&big, 3000);
    add32(&big, 3);
    add32(&big, 4);
    while (big.len < 3016)
        add(&big, b->p, 8);
    put(&big, 3, 77, 7.0);
    say(w, k, 0, big.p, 1000);
    begun = ebpfMonWireStat(w)->waiting;
    k->seq[0] += 1000;
    say(w, k, 0, big.p + 2000, big.len - 2000);
    holed = ebpfMonWireStat(w)->waiting;
    testOk(begun == before + 1 && holed == begun + 1, "the begin of a message waits, and what is behind a hole: %u, %u",
        begun, holed);
    ebpfMonWireTick(w, k->time + 2000 * MS);
    testOk(log->count[ebpfMonWirePut] == 10 && log->count[ebpfMonWireGap] == 6 && strstr(log->text, " n3000 have984 ")
        && ebpfMonWireStat(w)->resynced == resynced, "a hole in a message costs that message alone");
    bytesFree(&big);
}

/* Segments that the network has lost come again, perhaps late. Segments that the monitor has lost do not. */
static void testSentAgain(void)
{
    eventLog log = { 0 };
    ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
    talk k = talkNew(40002, 5064);
    bytes b = { 0 };

    add16(&b, 0); /* VERSION */
    add16(&b, 0);
    add16(&b, 0);
    add16(&b, 13);
    add32(&b, 0);
    add32(&b, 0);
    put(&b, 3, 77, 7.0);
    shake(w, &k);
    for (int again = 0; again < 2; again++) {
        size_t cut = again ? 0 : 16, half = cut + (b.len - cut) / 2;

        if (again)
            b.len -= 16, memmove(b.p, b.p + 16, b.len), half = b.len / 2;
        else
            say(w, &k, 0, b.p, 16);
        ebpfMonWireSetLossAt(w, again ? k.time + 1 : 0);
        sendAt(w, &k, 0, k.seq[0] + (uint32_t)(half - cut), ACK, b.p + half, b.len - half, b.len - half);
        ebpfMonWireTick(w, k.time + 2000 * MS);
        testOk(log.count[ebpfMonWireGap] == (unsigned)again,
               again ? "lost on the way to us: not waited for" : "waited for");
        sendAt(w, &k, 0, k.seq[0], ACK, b.p + cut, half - cut, half - cut);
        testOk(log.count[ebpfMonWirePut] == 1, again ? "it is too late" : "sent again: the put is whole");
        k.seq[0] += (uint32_t)(b.len - cut);
        k.time += 3000 * MS;
    }
    ebpfMonWireFree(w);
    bytesFree(&b);
    logClear(&log);
}

/* The same in a connection whose SYN was not seen. What is missing soon after its first packet may have been sent
 * before. */
static void testJoinedLate(void)
{
    for (int late = 0; late < 2; late++) {
        eventLog log = { 0 };
        ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
        talk k = talkNew((uint16_t)(40003 + late), 5064);
        bytes b = { 0 };
        size_t half;

        put(&b, 3, 77, 7.0);
        half = b.len / 2;
        ebpfMonWireSetLossAt(w, 0);
        say(w, &k, 0, b.p, b.len);
        k.time += late ? 100 * MS : 20 * MS;
        sendAt(w, &k, 0, k.seq[0] + (uint32_t)half, ACK, b.p + half, b.len - half, b.len - half);
        ebpfMonWireTick(w, k.time + 2000 * MS);
        testOk(log.count[ebpfMonWireGap] == (unsigned)!late, late ? "followed for a while: waited for" :
                                                                    "just begun: given up after a second");
        sendAt(w, &k, 0, k.seq[0], ACK, b.p, half, half);
        testOk(log.count[ebpfMonWirePut] == 1 + (unsigned)late, "%u puts", log.count[ebpfMonWirePut]);
        ebpfMonWireFree(w);
        bytesFree(&b);
        logClear(&log);
    }
}

static void testGap(void)
{
    eventLog log = { 0 };
    ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
    talk k = talkNew(40000, 5064);
    bytes b = { 0 };

    for (unsigned i = 0; i < 6; i++)
        put(&b, 3, i, i);
    shake(w, &k);
    say(w, &k, 0, b.p, 24);
    k.seq[0] += 24; /* never seen */
    say(w, &k, 0, b.p + 48, 24);
    testOk(log.count[ebpfMonWirePut] == 1 && log.count[ebpfMonWireGap] == 0, "a missing segment is waited for");
    ebpfMonWireTick(w, k.time + 500 * MS);
    testOk(log.count[ebpfMonWirePut] == 1 && log.count[ebpfMonWireGap] == 0, "… for a while");
    ebpfMonWireTick(w, k.time + 1100 * MS);
    testOk(log.count[ebpfMonWirePut] == 2 && log.count[ebpfMonWireGap] == 1 && log.last[ebpfMonWireGap].bytes == 24
        && log.last[ebpfMonWirePut].seq == k.seq[0] - 24, "… and then given up");
    k.seq[0] += 12; /* the next begins in the middle of a message */
    say(w, &k, 0, b.p + 60, 60);
    k.time += 2000 * MS;
    say(w, &k, 0, b.p + 120, 24);
    testOk(log.count[ebpfMonWirePut] == 5 && log.count[ebpfMonWireGap] == 3,
        "a header is found again: %u puts, %u gaps", log.count[ebpfMonWirePut], log.count[ebpfMonWireGap]);
    testOk(ebpfMonWireStat(w)->gaps == 2 && ebpfMonWireStat(w)->gapBytes == 24 + 12 + 12
        && ebpfMonWireStat(w)->resynced == 2, "the gap is counted");
    /* The last segment is lost. No segment follows it, but the server has acknowledged it. */
    say(w, &k, 0, b.p, 12);
    k.seq[0] += 12;
    sendAt(w, &k, 1, k.seq[1], ACK, NULL, 0, 0);
    ebpfMonWireTick(w, k.time + 2000 * MS);
    testOk(log.count[ebpfMonWireGap] == 4 && log.last[ebpfMonWireGap].bytes == 12,
        "an acknowledgement shows that a segment was lost");
    /* A captured packet was cut: the end of the message is known, its value is not. */
    say(w, &k, 0, b.p, 24);
    sendAt(w, &k, 0, k.seq[0], ACK, b.p + 24, 24, 20);
    k.seq[0] += 24;
    say(w, &k, 0, b.p + 48, 24);
    testOk(log.count[ebpfMonWirePut] == 8 && log.count[ebpfMonWireGap] == 5
        && strstr(log.text, "have4 sum00202851 hash0 "), "a packet that was cut is a gap behind what is there");
    testHole(w, &k, &log, &b);
    ebpfMonWireTick(w, UINT64_MAX);
    testOk(ebpfMonWireStat(w)->memory == 0 && !ebpfMonWireStat(w)->waiting, "nothing is left");
    ebpfMonWireFree(w);
    logClear(&log);
    bytesFree(&b);
}

static void testOverlap(void)
{
    eventLog log = { 0 };
    ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
    talk k = talkNew(40000, 5064);
    bytes first = { 0 }, second = { 0 };

    put(&first, 3, 1, 1.0);
    put(&first, 3, 2, 2.0);
    put(&second, 3, 1, 9.0);
    put(&second, 3, 2, 9.0);
    shake(w, &k);
    sendAt(w, &k, 0, k.seq[0] + 24, ACK, first.p + 24, 24, 24);
    sendAt(w, &k, 0, k.seq[0] + 20, ACK, second.p + 20, 28, 28);
    sendAt(w, &k, 0, k.seq[0], ACK, first.p, 20, 20);
    sendAt(w, &k, 0, k.seq[0], ACK, second.p, 48, 48);
    testOk(log.count[ebpfMonWirePut] == 2 && strstr(log.text, "sum4003e000") == NULL
        && ebpfMonWireStat(w)->repeated == 1, "the first copy of a byte counts");
    testOk(log.last[ebpfMonWirePut].hash != 0 && log.last[ebpfMonWirePut].have == 8, "… and the rest is dropped");
    ebpfMonWireFree(w);
    logClear(&log);
    bytesFree(&first);
    bytesFree(&second);
}

/* A server never reads an urgent byte, so all behind it is somewhere else for us. "before": messages before it. */
static void testUrgent(unsigned before)
{
    eventLog log = { 0 };
    ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
    talk k = talkNew((uint16_t)(41000 + before), 5064);
    bytes b = { 0 };
    uint64_t gaps;

    testDiag("Urgent data after %u messages", before);
    for (unsigned i = 0; i < 6; i++)
        put(&b, 3, i, i);
    shake(w, &k);
    say(w, &k, 0, b.p, 24 * before);
    gaps = ebpfMonWireStat(w)->gaps;
    sendAt(w, &k, 0, k.seq[0] + (32 << 20), ACK | URG, "", 1, 1);
    testOk(!log.count[ebpfMonWireGivenUp], "a segment that cannot be one of this connection");
    sendAt(w, &k, 0, k.seq[0], ACK | URG, NULL, 0, 0); /* it may only announce the urgent byte */
    say(w, &k, 0, b.p, b.len);
    say(w, &k, 1, b.p, b.len);
    testOk(log.count[ebpfMonWireGivenUp] == 1 && log.last[ebpfMonWireGivenUp].peer.sport == htons(5064) &&
               ebpfMonWireStat(w)->gaps == gaps + 1 && log.count[ebpfMonWirePut] == before,
           "nothing is read any more: %u puts", log.count[ebpfMonWirePut]);
    k.time += 7200000 * MS;
    ebpfMonWireTick(w, k.time);
    say(w, &k, 0, b.p, b.len);
    testOk(log.count[ebpfMonWirePut] == before && ebpfMonWireStat(w)->circuits == 1, "not after two hours either");
    bye(w, &k);
    testOk(ebpfMonWireStat(w)->circuits == 0 && ebpfMonWireStat(w)->memory == 0, "it ends");
    k.time += 2000 * MS;
    shake(w, &k);
    say(w, &k, 0, b.p, b.len);
    testOk(log.count[ebpfMonWirePut] == before + 6, "the next connection from this port is read");
    ebpfMonWireFree(w);
    logClear(&log);
    bytesFree(&b);
}

MAIN(testWireStream)
{
    part t[128];
    bytes store = { 0 };
    eventLog plain = { 0 };
    unsigned n;

    testPlan(0);
    n = parts(t, &store);
    testRecorded(t, n, &plain);
    testScattered(t, n, &plain);
    testGap();
    testSentAgain();
    testJoinedLate();
    testOverlap();
    testUrgent(0);
    testUrgent(3);
    logClear(&plain);
    bytesFree(&store);
    return testDone();
}
