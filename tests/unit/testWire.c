/* SPDX-License-Identifier: BSD-3-Clause */
/* wire/: which connections are CA or PVA, their ends, limits, and messages that only a hostile peer sends.
 * testWireStream.c tests how TCP streams are reassembled. */
#include "wireRecorded.h"

#define SEEDS   3000
#define HOSTILE 3000

/* The decoder sees a connection from a random byte of a random message, on any port. The end of a message may look
 * like a header. The decoder must notice this, and loses some messages. */
static void testMiddle(const part *t, unsigned n)
{
    unsigned made = 0, opened = 0, wrong = 0;
    size_t left = 0;

    for (int i = 0; i < SEEDS; i++) {
        eventLog log = { 0 };
        ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
        talk k = talkNew((uint16_t)(40000 + random32() % 2 * 10000), (uint16_t)(random32() % 2 ? 5064 : 45000));
        unsigned from = random32() % (n - 8);
        size_t cut = random32() % 2 ? 0 : random32() % t[from].len;

        log.base[0] = k.seq[0];
        log.base[1] = k.seq[1];
        for (unsigned j = 0; j < n; j++) {
            if (j > from)
                say(w, &k, t[j].dir, t[j].p, t[j].len);
            else if (j == from) {
                k.seq[t[j].dir] += (uint32_t)cut;
                say(w, &k, t[j].dir, t[j].p + cut, t[j].len - cut);
            } else
                k.seq[t[j].dir] += (uint32_t)t[j].len;
        }
        made++;
        opened += log.count[ebpfMonWireOpened] && ntohs(log.last[ebpfMonWireOpened].peer.sport) == k.port[1]
            && log.count[ebpfMonWirePut] + log.count[ebpfMonWireSearch] > 0;
        wrong += log.count[ebpfMonWireForeign] || log.count[ebpfMonWireGap] || log.count[ebpfMonWireOpened] > 1;
        ebpfMonWireTick(w, UINT64_MAX);
        left += ebpfMonWireStat(w)->memory + ebpfMonWireStat(w)->waiting;
        ebpfMonWireFree(w);
        logClear(&log);
    }
    testOk(opened == made, "%u of %u circuits met in the middle were found, server and all", opened, made);
    testOk(wrong < made / 100 && left == 0, "few of them began with a wrong guess: %u", wrong);
}

/* When the decoder makes its first guess, bytes of both sides wait. If the guess was wrong, the bytes of the other
 * side are dropped. */
static void testWrongGuess(void)
{
    static const uint8_t junk[5] = { 0xff, 0xff, 0xff, 0xff, 0xff };
    eventLog log = { 0 };
    ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
    talk k = talkNew(45000, 40000);
    bytes b = { 0 };

    add(&b, junk, sizeof junk);
    for (int i = 0; i < 3; i++) { /* echoes: either side may send them */
        add32(&b, 23 << 16);
        for (int j = 0; j < 3; j++)
            add32(&b, 0);
    }
    say(w, &k, 1, b.p, b.len);
    b.len = 0;
    for (int i = 0; i < 16; i++)
        put(&b, 7, (uint32_t)i, i);
    for (uint32_t i = 0; i < 3; i++) { /* access rights, which a server sends */
        add32(&b, 22 << 16);
        add32(&b, 0);
        add32(&b, i);
        add32(&b, 3);
    }
    say(w, &k, 0, b.p, b.len);
    testOk(log.count[ebpfMonWireOpened] == 2 && log.count[ebpfMonWireClosed] == 1 && log.count[ebpfMonWirePut] == 16
        && log.last[ebpfMonWireOpened].peer.sport == htons(45000), "a guess that turns out wrong is made again");
    ebpfMonWireTick(w, UINT64_MAX);
    testOk(ebpfMonWireStat(w)->memory == 0 && !ebpfMonWireStat(w)->waiting, "nothing is left");
    ebpfMonWireFree(w);
    logClear(&log);
    bytesFree(&b);
}

static void session(ebpfMonWire *w, talk *k, unsigned puts, int byReset)
{
    bytes b = { 0 };

    shake(w, k);
    add32(&b, 0); /* VERSION */
    add32(&b, 13);
    add32(&b, 0);
    add32(&b, 0);
    for (unsigned i = 0; i < puts; i++)
        put(&b, 7, i, i);
    say(w, k, 0, b.p, b.len);
    if (byReset)
        sendAt(w, k, 0, k->seq[0], RST | ACK, NULL, 0, 0);
    else
        bye(w, k);
    bytesFree(&b);
}

/* The copies of a connection in the other namespace come after its end. */
static void testEnded(void)
{
    eventLog log = { 0 };
    ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
    talk k = talkNew(45000, 5064), copy, later;

    for (int byReset = 0; byReset < 2; byReset++) {
        copy = k;
        session(w, &k, 5, byReset);
        session(w, &copy, 5, byReset);
        testOk(log.count[ebpfMonWirePut] == 5 * (1u + (unsigned)byReset) &&
                   log.count[ebpfMonWireOpened] == 1u + (unsigned)byReset,
               "copies of a circuit that ended by %s are not heard", byReset ? "RST" : "FIN");
        k.seq[0] += 100000;
        k.seq[1] += 100000;
        k.time += MS;
    }
    copy = k;
    session(w, &k, 3, 1);
    later = k;
    later.seq[0] = copy.seq[0] - 1000; /* a new connection may begin with lower numbers */
    shake(w, &later);
    session(w, &copy, 3, 1);
    testOk(log.count[ebpfMonWirePut] == 13 && log.count[ebpfMonWireClosed] == 3,
           "copies are not heard while there is the next circuit");
    later.seq[0]--;
    later.seq[1]--;
    session(w, &later, 4, 0);
    testOk(log.count[ebpfMonWirePut] == 17 && log.count[ebpfMonWireGap] == 0, "the next circuit is heard");
    copy.seq[0] = k.seq[0] - 3 * 24 - 17;
    copy.seq[1] = k.seq[1] - 1;
    copy.time = later.time + 2000 * MS;
    session(w, &copy, 3, 0);
    testOk(log.count[ebpfMonWirePut] == 20, "later on any circuit is heard");
    ebpfMonWireTick(w, UINT64_MAX);
    testOk(ebpfMonWireStat(w)->memory == 0 && !ebpfMonWireStat(w)->waiting, "nothing is left");
    ebpfMonWireFree(w);
    logClear(&log);
}

/* Anybody can send packets of a connection again, whenever he likes. Its numbers wrap. "isOver": it ended; else there
 * was no room for it. */
static void testRepeated(int isOver)
{
    ebpfMonWireLimits limits = { .circuits = 3 };
    eventLog log = { .quiet = 1 };
    ebpfMonWire *w = ebpfMonWireNew(&limits, logEvent, &log);
    talk k = talkNew(45000, 5064), begun;
    bytes b = { 0 };

    k.seq[0] = 0u - 100;
    shake(w, &k);
    begun = k;
    for (unsigned i = 0; i < 8; i++)
        put(&b, 7, i, i);
    say(w, &k, 0, b.p, b.len);
    say(w, &k, 1, "", 1); /* one that was answered is no single packet with any addresses */
    if (isOver)
        bye(w, &k);
    for (uint16_t i = 0; i < 6 && !isOver; i++) {
        talk other = talkNew((uint16_t)(45001 + i), 5064);

        shake(w, &other);
        say(w, &other, 1, b.p, 8);
        say(w, &other, 0, b.p, b.len);
    }
    testOk1(log.count[ebpfMonWireCrowded] == (isOver ? 0 : 4));
    log.count[ebpfMonWirePut] = 0;
    begun.time += 60000 * MS;
    k.time = begun.time;
    for (unsigned i = 0; i < 5; i++) {
        talk again = begun;

        again.time += i * 5000 * MS;
        say(w, &again, 0, b.p, b.len);
    }
    testOk(log.count[ebpfMonWirePut] == 0, "packets of a connection that %s come again",
           isOver ? "has ended" : "was given up");
    if (!isOver) {
        say(w, &k, 0, b.p, b.len);
        testOk(log.count[ebpfMonWirePut] == 8 && log.last[ebpfMonWirePut].first.seq[0] == begun.seq[0],
               "it is followed where it goes on");
    }
    bytesFree(&b);
    ebpfMonWireFree(w);
    logClear(&log);
}

static void testNameServer(void)
{
    static const uint8_t request[] = { 0xca, 2, 0x80, 3, 0, 0, 0, 40,
        0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 1, 0, 0, 0, 9, 1, 'A', 0, 0, 0, 0, 0 };
    uint8_t answer[] = { 0xca, 2, 0xc0, 4, 0, 0, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0xfe, 0x17, 0x71, 3, 't', 'c', 'p', 1, 0, 1,
        0, 0, 0, 9 };
    eventLog log = { 0 };
    ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
    const ebpfMonWireEvent *found = &log.last[ebpfMonWireFound];
    talk k = talkNew(40000, 5075);

    shake(w, &k);
    say(w, &k, 0, request, sizeof request);
    say(w, &k, 1, answer, sizeof answer);
    testOk(log.count[ebpfMonWireFound] == 1 && found->cid == 9 && found->peer.saddr == htonl(0x0a0000fe) &&
               found->peer.sport == htons(6001) && found->peer.addr == htonl(k.addr[0]),
           "the answer of a name server is heard");
    memset(answer + 24, 0, 16);
    say(w, &k, 1, answer, sizeof answer);
    testOk(log.count[ebpfMonWireFound] == 2 && found->peer.saddr == htonl(k.addr[1])
        && found->peer.sport == htons(6001), "… and its answer for itself");
    ebpfMonWireTick(w, UINT64_MAX);
    testOk(ebpfMonWireStat(w)->memory == 0 && !ebpfMonWireStat(w)->waiting, "nothing is left");
    ebpfMonWireFree(w);
    logClear(&log);
}

static void testForeign(void)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: example.org\r\nAccept: text/html\r\n\r\n";
    eventLog log = { 0 };
    ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
    talk k = talkNew(40000, 80);
    uint8_t junk[700];
    unsigned sent = 0;

    shake(w, &k);
    while (!log.count[ebpfMonWireForeign] && sent++ < 100)
        say(w, &k, sent & 1, http, sizeof http - 1);
    testOk(sent == 8 && log.last[ebpfMonWireForeign].peer.sport == htons(80), 
        "HTTP is foreign after %u segments", sent);
    for (int i = 0; i < 100; i++)
        say(w, &k, 0, http, sizeof http - 1);
    testOk(log.count[ebpfMonWireForeign] == 1 && log.count[ebpfMonWireOpened] == 0,
           "a foreign connection is reported once");
    for (int i = 0; i < 400; i++) { /* 400 connections of noise, also on ports of EPICS */
        k = talkNew((uint16_t)(30000 + i), i % 8 == 1 ? 5064 : (uint16_t)(6000 + i));
        if (i % 3)
            shake(w, &k);
        for (int j = 0; j < 80; j++) {
            for (size_t b = 0; b < sizeof junk; b++) /* zeros, noise, small numbers of 16 and 32 bits */
                junk[b] = (uint8_t)(i % 4 == 1 ? random32() : i % 4 == 2 && b % 2 ? random32() % 50
                    : i % 4 == 3 && b % 4 == 3 ? random32() % 50 : 0);
            say(w, &k, j & 1, junk, sizeof junk);
        }
    }
    testOk(log.count[ebpfMonWireOpened] <= 8 && log.count[ebpfMonWireForeign] >= 393,
        "noise: %u of 400 taken for ours at first, %u for foreign", log.count[ebpfMonWireOpened],
        log.count[ebpfMonWireForeign]);
    ebpfMonWireTick(w, UINT64_MAX);
    testOk(ebpfMonWireStat(w)->memory == 0 && !ebpfMonWireStat(w)->waiting, "nothing is left");
    ebpfMonWireFree(w);
    logClear(&log);
}

static void testPacket(void)
{
    eventLog log = { 0 };
    ebpfMonWire *w = ebpfMonWireNew(NULL, logEvent, &log);
    talk k = talkNew(40000, 5064);
    uint8_t p[200] = { 0 };
    bytes b = { 0 };

    put(&b, 3, 1, 1.0);
    ipHeader(p, &k, 0, 20 + 24, 6);
    p[0] = 0x46; /* options in both headers, and padding behind */
    p[3] = 24 + 24 + 24;
    p[24 + 0] = 40000 >> 8;
    p[24 + 1] = 40000 & 0xff;
    p[24 + 2] = 5064 >> 8;
    p[24 + 3] = 5064 & 0xff;
    p[24 + 12] = 6 << 4;
    p[24 + 13] = ACK;
    memcpy(p + 48, b.p, 24);
    ebpfMonWirePacket(w, 1, 0, p, 80, 80);
    testOk(log.count[ebpfMonWirePut] == 1, "options and padding of headers are passed over");
    p[6] = 0x20; /* more fragments */
    ebpfMonWirePacket(w, 2, 0, p, 80, 80);
    testOk(log.count[ebpfMonWirePut] == 1 && ebpfMonWireStat(w)->fragments == 1, "a fragment is counted");
    p[6] = 0;
    for (size_t len = 0; len < 72; len++) { /* each length, in a block of that length */
        uint8_t *q = malloc(len ? len : 1);

        memcpy(q, p, len);
        ebpfMonWirePacket(w, 3, 0, q, len, 72);
        ebpfMonWirePacket(w, 3, 0, q, len, len);
        free(q);
    }
    for (int i = 0; i < 256; i++) { /* wrong header lengths */
        p[0] = (uint8_t)i;
        ebpfMonWirePacket(w, 4, 0, p, 72, 72);
        p[0] = 0x46;
        p[36] = (uint8_t)i;
        ebpfMonWirePacket(w, 4, 0, p, 72, 72);
        p[36] = 6 << 4;
    }
    testOk(ebpfMonWireStat(w)->packets == 1 + 1 + 2 * 72 + 2 * 256, "short and false headers are refused");
    ebpfMonWireFree(w);
    logClear(&log);
    bytesFree(&b);
}

static void testLimits(const part *t, unsigned n)
{
    ebpfMonWireLimits limits = { .circuits = 16, .channels = 2, .keep = 256, .pending = 4096, .total = 80000 };
    eventLog log = { .quiet = 1 };
    ebpfMonWire *w = ebpfMonWireNew(&limits, logEvent, &log);
    unsigned most = 0, mostChannels = 0;
    size_t mostMemory = 0;

    for (unsigned i = 0; i < 200; i++) {
        talk k = talkNew((uint16_t)(20000 + i), 5064);

        shake(w, &k);
        for (unsigned j = 0; j < n; j++) {
            if (random32() % 20 == 0)
                k.seq[t[j].dir] += 100; /* an incomplete message */
            say(w, &k, t[j].dir, t[j].p, t[j].len);
        }
        if (ebpfMonWireStat(w)->circuits > most)
            most = ebpfMonWireStat(w)->circuits;
        if (ebpfMonWireStat(w)->memory > mostMemory)
            mostMemory = ebpfMonWireStat(w)->memory;
        if (ebpfMonWireStat(w)->channels > mostChannels)
            mostChannels = ebpfMonWireStat(w)->channels;
    }
    testOk(most == 16 && log.count[ebpfMonWireOpened] > 150, "circuits make room for new ones: %u opened",
        log.count[ebpfMonWireOpened]);
    testOk(mostMemory <= limits.total && mostMemory > 10000, "memory is limited to %zu bytes", mostMemory);
    testOk(mostChannels <= 32 && ebpfMonWireStat(w)->noMemory > 0, "channels are limited to %u, %llu did not fit",
        mostChannels,
        (unsigned long long)ebpfMonWireStat(w)->noMemory);
    ebpfMonWireTick(w, UINT64_MAX);
    testOk(ebpfMonWireStat(w)->memory == 0 && ebpfMonWireStat(w)->channels == 0
        && log.count[ebpfMonWireOpened] == log.count[ebpfMonWireClosed], "nothing is left");
    ebpfMonWireFree(w);
    logClear(&log);
}

static uint16_t sumOf(const uint8_t *p, size_t n, uint32_t sum)
{
    for (size_t i = 0; i < n; i += 2)
        sum += (uint32_t)p[i] << 8 | (i + 1 < n ? p[i + 1] : 0);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

static void testSums(void)
{
    uint8_t p[20 + 20 + 9] = { 0x45, 0, 0, sizeof p, [9] = 6, [12] = 192, 0, 2, 1, 192, 0, 2, 2, [32] = 5 << 4 };
    uint16_t pseudo, whole;

    testDiag("checksums");
    for (unsigned i = 40; i < sizeof p; i++)
        p[i] = (uint8_t)(31 * i);
    pseudo = sumOf(p + 12, 8, 6 + sizeof p - 20);
    p[36] = (uint8_t)(pseudo >> 8);
    p[37] = (uint8_t)pseudo;
    testOk(!ebpfMonPacketHasWrongSum(p, sizeof p, sizeof p), "not computed yet");
    p[36] = p[37] = 0;
    whole = (uint16_t)~sumOf(p + 20, sizeof p - 20, pseudo);
    p[36] = (uint8_t)(whole >> 8);
    p[37] = (uint8_t)whole;
    testOk(!ebpfMonPacketHasWrongSum(p, sizeof p, sizeof p), "right");
    p[44] ^= 1;
    testOk(ebpfMonPacketHasWrongSum(p, sizeof p, sizeof p), "wrong");
    testOk(!ebpfMonPacketHasWrongSum(p, sizeof p - 1, sizeof p), "cut");
    p[9] = 17;
    testOk(!ebpfMonPacketHasWrongSum(p, sizeof p, sizeof p), "no TCP");
}

static void testSums6(void)
{
    uint8_t p[40 + 20 + 9] = { 0x60, [5] = 29, [6] = 6, [8] = 0xfd, [23] = 1, [24] = 0xfd, [39] = 2, [52] = 5 << 4 };
    uint16_t whole;

    for (unsigned i = 60; i < sizeof p; i++)
        p[i] = (uint8_t)(31 * i);
    whole = (uint16_t)~sumOf(p + 40, sizeof p - 40, sumOf(p + 8, 32, 6 + sizeof p - 40));
    p[56] = (uint8_t)(whole >> 8);
    p[57] = (uint8_t)whole;
    testOk(!ebpfMonPacketHasWrongSum(p, sizeof p, sizeof p), "IPv6: right");
    p[64] ^= 1;
    testOk(ebpfMonPacketHasWrongSum(p, sizeof p, sizeof p), "IPv6: wrong");
}

/* A client port decides who pays: 20000 to 20003 one user, 20100 and more another one, 30000 and more a system user,
 * below 20000 nobody. The begin of all these connections is seen. */
static ebpfMonWirePayer findPayer(void *arg, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first)
{
    unsigned *asked = arg;

    *asked += first->seq[0] && first->seq[1];
    if (ntohs(peer->port) < 20000)
        return (ebpfMonWirePayer){ .isNobody = 1 };
    return (ebpfMonWirePayer){ .id = ntohs(peer->port) / 100, .isSystem = ntohs(peer->port) >= 30000 };
}

static void openCircuits(ebpfMonWire *w, uint16_t from, unsigned count, talk *talks, const part *t, unsigned n)
{
    for (unsigned i = 0; i < count; i++) {
        talk k = talkNew((uint16_t)(from + i), 5064);

        shake(w, &k);
        for (unsigned j = 0; j < n; j++)
            say(w, &k, t[j].dir, t[j].p, t[j].len);
        if (talks)
            talks[i] = k;
    }
}

/* One put in each of these circuits: how many are seen. A circuit that was given up is not known again by one
 * message. */
static unsigned countPuts(ebpfMonWire *w, const eventLog *log, talk *talks, unsigned count)
{
    unsigned before = log->count[ebpfMonWirePut];
    bytes b = { 0 };

    put(&b, 1, 1, 1.0);
    for (unsigned i = 0; i < count; i++)
        say(w, &talks[i], 0, b.p, b.len);
    bytesFree(&b);
    return log->count[ebpfMonWirePut] - before;
}

static void testShares(const part *t, unsigned n)
{
    ebpfMonWireLimits limits = { .circuits = 16 };
    eventLog log = { .quiet = 1 };
    ebpfMonWire *w = ebpfMonWireNew(&limits, logEvent, &log);
    talk first[4], flood[100], system[12];
    unsigned asked = 0, given;

    testDiag("shares of the table");
    ebpfMonWireSetPayer(w, findPayer, &asked);
    openCircuits(w, 20000, 4, first, t, n);
    testOk(asked == 0 && log.count[ebpfMonWireOpened] == 4, "while there is room nobody is asked who pays");
    openCircuits(w, 20100, 100, flood, t, n);
    given = log.count[ebpfMonWireCrowded];
    testOk(given >= 88 && given == ebpfMonWireStat(w)->crowded && log.count[ebpfMonWireClosed] == given,
           "what is given up is told: %u", given);
    testOk(countPuts(w, &log, first, 4) == 4 && countPuts(w, &log, flood, 8) == 8,
           "the circuits of the other one are followed, and the oldest of who has most");
    openCircuits(w, 19000, 100, NULL, t, n);
    testOk(asked && countPuts(w, &log, first, 4) == 4 && countPuts(w, &log, flood, 8) == 8,
           "connections that no socket has take no room of others");
    openCircuits(w, 30000, 12, system, t, n);
    openCircuits(w, 20100, 20, NULL, t, n);
    testOk(countPuts(w, &log, system, 12) == 12, "nobody takes from a system user");
    ebpfMonWireFree(w);
    logClear(&log);
}

/* Circuits that were given up before anything was known of them are in the table, too. */
static void testCrowdOfUrgent(void)
{
    ebpfMonWireLimits limits = { .circuits = 4 };
    eventLog log = { .quiet = 1 };
    ebpfMonWire *w = ebpfMonWireNew(&limits, logEvent, &log);

    for (unsigned i = 0; i < 20; i++) {
        talk k = talkNew((uint16_t)(26000 + i), 5064);

        shake(w, &k);
        sendAt(w, &k, 0, k.seq[0], ACK | EBPFMON_TCP_URG, (const uint8_t *)"", 1, 1);
    }
    testOk(log.count[ebpfMonWireGivenUp] == 20 && ebpfMonWireStat(w)->circuits <= 4, "20 circuits with urgent data");
    ebpfMonWireFree(w);
    logClear(&log);
}

/* Any byte may be wrong, and any segment may be at any place. */
static void testHostile(const part *t, unsigned n)
{
    ebpfMonWireLimits limits = { .circuits = 8, .channels = 8, .keep = 300, .pending = 2000, .total = 60000 };
    eventLog log = { .quiet = 1 };
    ebpfMonWire *w = ebpfMonWireNew(&limits, logEvent, &log);
    uint8_t copy[2048];
    size_t most = 0;

    for (int i = 0; i < HOSTILE; i++) {
        talk k = talkNew((uint16_t)(40000 + random32() % 12), 5064);

        if (random32() % 4)
            shake(w, &k);
        for (unsigned j = 0; j < n; j++) {
            size_t len = t[j].len < sizeof copy ? t[j].len : sizeof copy;

            memcpy(copy, t[j].p, len);
            if (random32() % 3 == 0)
                for (unsigned wrong = random32() % 4; wrong; wrong--)
                    copy[random32() % len] = (uint8_t)(random32() % 3 ? random32() % 2 ? 0xff : 0 : random32());
            if (random32() % 30 == 0)
                k.seq[t[j].dir] += random32() % 3 ? random32() % 3000 - 1000 : random32();
            sendAt(w, &k, t[j].dir, k.seq[t[j].dir], random32() % 200 ? ACK : random32() & 0x1f, copy, len,
                random32() % 20 ? len : random32() % len);
            k.seq[t[j].dir] += (uint32_t)len;
            k.time += random32() % 100 * MS;
            if (random32() % 100 == 0)
                ebpfMonWireTick(w, k.time);
        }
        if (ebpfMonWireStat(w)->memory > most)
            most = ebpfMonWireStat(w)->memory;
    }
    testOk(most <= limits.total, "%d hostile circuits take %zu bytes at most", HOSTILE, most);
    testOk(log.count[ebpfMonWirePut] > HOSTILE / 2, "%u puts were seen in spite of the hostile circuits",
           log.count[ebpfMonWirePut]);
    ebpfMonWireTick(w, UINT64_MAX);
    testOk(ebpfMonWireStat(w)->memory == 0 && ebpfMonWireStat(w)->circuits == 0,
           "nothing is left of the hostile circuits");
    ebpfMonWireFree(w);
    logClear(&log);
}

MAIN(testWire)
{
    part t[128];
    bytes store = { 0 };
    unsigned n;

    testPlan(0);
    n = parts(t, &store);
    testMiddle(t, n);
    testWrongGuess();
    testEnded();
    testRepeated(1);
    testRepeated(0);
    testNameServer();
    testForeign();
    testPacket();
    testSums();
    testSums6();
    testCrowdOfUrgent();
    testLimits(t, n);
    testShares(t, n);
    testHostile(t, n);
    bytesFree(&store);
    return testDone();
}
