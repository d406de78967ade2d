/* SPDX-License-Identifier: BSD-3-Clause */
/* wire/: Channel Access messages with each type of value, and of each kind, compared with db_access.h. */
#include <db_access.h>
#include "wireTest.h"

static eventLog seen;
static ebpfMonWire *wire;
static talk k;
static uint8_t lastData[200000];
static char lastName[1100], lastMessage[600];

static void keep(void *arg, const ebpfMonWireEvent *e)
{
    logEvent(arg, e);
    if (e->kind == ebpfMonWirePut || e->kind == ebpfMonWireValue)
        memcpy(lastData, e->data, e->have);
    snprintf(lastName, sizeof lastName, "%s", e->name);
    snprintf(lastMessage, sizeof lastMessage, "%s", e->message);
}

static void start(const ebpfMonWireLimits *limits)
{
    wire = ebpfMonWireNew(limits, keep, &seen);
    k = talkNew(40000, 5064);
    shake(wire, &k);
}

static void stop(void)
{
    ebpfMonWireTick(wire, UINT64_MAX);
    if (ebpfMonWireStat(wire)->memory || ebpfMonWireStat(wire)->channels)
        testAbort("%zu bytes, %u channels are left", ebpfMonWireStat(wire)->memory, ebpfMonWireStat(wire)->channels);
    ebpfMonWireFree(wire);
    logClear(&seen);
}

static void header(bytes *b, unsigned cmd, size_t size, unsigned type, uint32_t count, uint32_t cid, uint32_t extra)
{
    int large = size >= 0xffff || count >= 0xffff;

    add16(b, cmd);
    add16(b, large ? 0xffff : (unsigned)size);
    add16(b, type);
    add16(b, large ? 0 : count);
    add32(b, cid);
    add32(b, extra);
    if (large) {
        add32(b, (uint32_t)size);
        add32(b, count);
    }
}

static void tell(int dir, unsigned cmd, const void *p, size_t n, unsigned type, uint32_t count, uint32_t cid,
    uint32_t extra)
{
    static const uint8_t zeros[8];
    bytes b = { 0 };
    size_t size = (n + 7) / 8 * 8;

    header(&b, cmd, size, type, count, cid, extra);
    add(&b, p, n);
    add(&b, zeros, size - n);
    say(wire, &k, dir, b.p, b.len);
    bytesFree(&b);
}

static void channel(const char *name, uint32_t cid, uint32_t sid)
{
    tell(0, 18, name, strlen(name) + 1, 0, 0, cid, 13);
    tell(1, 22, NULL, 0, 0, 0, cid, 3);
    tell(1, 18, NULL, 0, 6, 1, cid, sid);
}

static void begin(void)
{
    start(NULL);
    tell(0, 0, NULL, 0, 0, 13, 0, 0);
    channel("DEMO:A", 1, 71);
}

/* Not each reply has the value: a client may ask for fewer elements, or for the record type. */
static void testPartialValues(void)
{
    static const struct { unsigned type; uint32_t count; int isPartial; } asked[] = {
        { DBR_DOUBLE, 1, 1 }, { DBR_TIME_DOUBLE, 6, 1 }, { DBR_DOUBLE, 7, 0 }, { DBR_DOUBLE, 0, 0 },
        { DBR_CLASS_NAME, 1, 1 }, { DBR_CLASS_NAME, 7, 1 },
    };
    uint8_t buf[400] = "ao";
    unsigned wrong = 0;

    begin();
    tell(0, 18, "WAVE", 5, 0, 0, 2, 13);
    tell(1, 18, NULL, 0, DBR_DOUBLE, 7, 2, 72);
    for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        for (unsigned cmd = 1; cmd <= 15; cmd += 14) {
            uint32_t count = asked[i].count ? asked[i].count : 3; /* elements that it has now */

            tell(0, cmd, buf, cmd == 1 ? 16 : 0, asked[i].type, asked[i].count, 72, i + 1);
            tell(1, cmd, buf, dbr_size_n(asked[i].type, (int)count), asked[i].type, count, 1, i + 1);
            wrong += seen.last[ebpfMonWireValue].isPartial != asked[i].isPartial;
        }
    tell(0, 15, NULL, 0, DBR_DOUBLE, 1, 900, 99);
    tell(1, 15, buf, 8, DBR_DOUBLE, 1, 1, 99);
    wrong += seen.last[ebpfMonWireValue].isPartial || seen.count[ebpfMonWireValue] != 13;
    testOk(wrong == 0, "%u values are wrong: partial ones, and of a channel whose length is not known", wrong);
    stop();
}

/* Each type, as a scalar, an array, and without an element; both kinds of write, a read and a monitor. */
static void testTypes(void)
{
    static const int counts[] = { 1, 3, 100, 0 };
    uint8_t buf[40 * 100 + 500];
    unsigned wrong = 0, puts = 0, values = 0;
    uint32_t id = 0;

    begin();
    for (unsigned i = 0; i < sizeof buf; i++)
        buf[i] = (uint8_t)(i * 7 + 1);
    for (unsigned type = 0; type <= LAST_BUFFER_TYPE; type++) {
        for (unsigned c = 0; c < 4; c++) {
            uint32_t count = (uint32_t)counts[c];
            size_t size = dbr_size_n(type, counts[c]), data = count * dbr_value_size[type];

            for (unsigned cmd = 4; cmd <= 19; cmd += 15) {
                const ebpfMonWireEvent *e = &seen.last[ebpfMonWirePut];

                tell(0, cmd, buf, size, type, count, 71, cmd == 4 ? 1 : ++id);
                puts++;
                wrong += seen.count[ebpfMonWirePut] != puts || e->dbrType != (int)type || e->count != count
                    || e->elementSize != dbr_value_size[type] || e->have != data || e->replyAsked != (cmd == 19)
                    || e->id != puts || e->sid != 71 || e->cid != 1 || strcmp(lastName, "DEMO:A") != 0
                    || memcmp(lastData, buf + dbr_value_offset[type], data) != 0
                    || (type <= 34 && e->baseType != (int)type % 7);
                if (cmd == 4)
                    continue;
                tell(1, 19, NULL, 0, type, count, 1, id);
                e = &seen.last[ebpfMonWireReply];
                wrong += seen.count[ebpfMonWireReply] != puts / 2 || e->id != puts || !e->ok || e->denied
                    || strcmp(lastName, "DEMO:A") != 0;
            }
            for (unsigned cmd = 1; cmd <= 15; cmd += 14) {
                const ebpfMonWireEvent *e = &seen.last[ebpfMonWireValue];

                tell(0, cmd, "\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0", cmd == 1 ? 16 : 0, type, count, 71, ++id);
                tell(1, cmd, buf, size, type, count, 1, id);
                values += size != 0;
                wrong += seen.count[ebpfMonWireValue] != values;
                if (size)
                    wrong += e->dbrType != (int)type || e->count != count || e->have != data || e->sid != 71
                        || strcmp(lastName, "DEMO:A") != 0 || memcmp(lastData, buf + dbr_value_offset[type], data) != 0;
            }
        }
    }
    testOk(wrong == 0, "%u of %u puts and %u values are wrong", wrong, puts, values);
    testOk(ebpfMonWireStat(wire)->malformed == 0, "none is malformed");
    stop();
}

static void testLarge(void)
{
    ebpfMonWireLimits small = { .keep = 1000 };
    size_t n = 150000;
    uint8_t *big = malloc(n);
    uint64_t hash = 14695981039346656037ull;
    int whole, cut;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (big[i] = (uint8_t)(i * 31 >> 3))) * 1099511628211ull;
    begin();
    tell(0, 19, big, n, DBR_CHAR, (uint32_t)n, 71, 5);
    whole = seen.count[ebpfMonWirePut] == 1 && seen.last[ebpfMonWirePut].count == n
        && seen.last[ebpfMonWirePut].have == 65536 - 24 && seen.last[ebpfMonWirePut].hash == hash;
    testOk(whole && memcmp(lastData, big, 65536 - 24) == 0, "an extended header, more than is kept, hashed to its end");
    tell(1, 19, NULL, 0, DBR_CHAR, (uint32_t)n, 1, 5);
    testOk(seen.count[ebpfMonWireReply] == 1 && seen.last[ebpfMonWireReply].id == 1, "... and so is its reply");
    /* rsrv shortens a reply, but keeps the extended header of the longest one */
    {
        bytes b = { 0 };

        header(&b, 15, 0, DBR_DOUBLE, 100000, 71, 6);
        add16(&b, 4);
        add16(&b, 0xffff);
        add16(&b, DBR_DOUBLE);
        add16(&b, 0);
        add32(&b, 71);
        add32(&b, 1);
        add32(&b, 16);
        add32(&b, 2);
        add(&b, big, 16);
        say(wire, &k, 0, b.p, b.len);
        bytesFree(&b);
    }
    testOk(seen.count[ebpfMonWirePut] == 2 && seen.last[ebpfMonWirePut].count == 2
        && seen.last[ebpfMonWirePut].have == 16,
        "an extended header for a short message");
    stop();
    start(&small);
    tell(0, 4, big, 5000, DBR_SHORT, 2500, 3, 4);
    cut = seen.last[ebpfMonWirePut].have == 1000 - 16 && seen.last[ebpfMonWirePut].count == 2500;
    hash = 14695981039346656037ull;
    for (size_t i = 0; i < 5000; i++)
        hash = (hash ^ big[i]) * 1099511628211ull;
    testOk(cut && seen.last[ebpfMonWirePut].hash == hash && strcmp(lastName, "") == 0
        && seen.last[ebpfMonWirePut].sid == 3 && seen.last[ebpfMonWirePut].cid == 4,
        "limits.keep holds for a message that lies in one segment, too");
    stop();
    free(big);
}

static void testWrong(void)
{
    uint8_t eight[8] = { 0 };

    begin();
    tell(0, 4, eight, 8, DBR_DOUBLE, 1000, 71, 1); /* the header says more than the message has */
    testOk(seen.count[ebpfMonWirePut] == 1 && seen.last[ebpfMonWirePut].count == 1000
        && seen.last[ebpfMonWirePut].have == 8
        && ebpfMonWireStat(wire)->malformed == 1, "a put that contradicts itself is reported as it was sent");
    tell(0, 4, eight, 8, 39, 1, 71, 1);
    testOk(seen.count[ebpfMonWirePut] == 2 && seen.last[ebpfMonWirePut].baseType == -1
        && !seen.last[ebpfMonWirePut].have && ebpfMonWireStat(wire)->malformed == 2, "a data type that does not exist");
    tell(0, 4, "12.5", 5, DBR_STRING, 1, 71, 1);
    testOk(seen.count[ebpfMonWirePut] == 3 && seen.last[ebpfMonWirePut].have == 8
        && strcmp((char *)lastData, "12.5") == 0
        && ebpfMonWireStat(wire)->malformed == 2, "a string ends at its NUL");
    tell(0, 18, "BAD\nNAME", 9, 0, 0, 2, 13);
    tell(1, 18, NULL, 0, 6, 1, 2, 72);
    testOk(seen.count[ebpfMonWireChannel] == 2 && strcmp(lastName, "") == 0 && ebpfMonWireStat(wire)->malformed == 3,
        "a name with a control character is rejected");
    stop();
}

/* A plain write is answered only if it fails; the answer contains the header of the write. */
static void testRefused(void)
{
    uint8_t eight[8] = { 0 };
    bytes b = { 0 };
    const ebpfMonWireEvent *e = &seen.last[ebpfMonWireReply];

    begin();
    channel("DEMO:B", 2, 72);
    tell(0, 4, eight, 8, DBR_DOUBLE, 1, 72, 2);
    k.time += 5000 * MS;
    tell(0, 4, eight, 8, DBR_DOUBLE, 1, 71, 1);
    tell(0, 4, eight, 8, DBR_DOUBLE, 1, 72, 2);
    tell(0, 4, eight, 8, DBR_DOUBLE, 1, 72, 2);
    header(&b, 4, 8, DBR_DOUBLE, 1, 72, 2);
    add(&b, "no", 3);
    tell(1, 11, b.p, b.len, 0, 0, 2, 376);
    testOk(e->id == 3 && !e->ok && e->denied && e->status == 376 && !e->replyAsked && strcmp(lastName, "DEMO:B") == 0
        && strcmp(lastMessage, "no") == 0, "an error belongs to the oldest put of the last second");
    tell(1, 11, b.p, b.len, 0, 0, 2, 160);
    testOk(e->id == 4 && !e->denied && e->status == 160, "... the next error to the next put");
    tell(1, 11, b.p, b.len, 0, 0, 2, 160);
    testOk(e->id == 0 && seen.count[ebpfMonWireReply] == 3, "... and one more error to no put");
    b.len = 0;
    header(&b, 15, 0, DBR_DOUBLE, 1, 72, 2);
    tell(1, 11, b.p, b.len, 0, 0, 2, 160);
    testOk(seen.count[ebpfMonWireReply] == 3, "an error of a read belongs to no put");
    tell(0, 19, eight, 8, DBR_DOUBLE, 1, 72, 9);
    tell(1, 19, NULL, 0, DBR_DOUBLE, 1, 376, 9);
    testOk(e->id == 5 && e->denied && !e->ok && e->replyAsked, "a write-notify is refused");
    tell(1, 19, NULL, 0, DBR_DOUBLE, 1, 1, 9);
    testOk(e->id == 0 && e->ok && seen.count[ebpfMonWireReply] == 5, "a reply without a request");
    for (int i = 0; i < 2; i++)
        tell(0, 19, eight, 8, DBR_DOUBLE, 1, 72, 9);
    tell(1, 19, NULL, 0, DBR_DOUBLE, 1, 376, 9);
    testOk(e->id == 0 && e->denied, "one of two requests with the same number");
    b.len = 0;
    header(&b, 4, 8, DBR_DOUBLE, 1, 72, 2);
    add(&b, "no", 3);
    for (int i = 0; i < 2; i++, k.time += 200 * MS)
        tell(0, 4, eight, 8, DBR_DOUBLE, 1, 72, 2);
    tell(0, 4, eight, 8, DBR_DOUBLE, 1, 72, 2);
    tell(1, 11, b.p, b.len, 0, 0, 2, 160);
    testOk(e->id == 10 && e->isUnsure && strcmp(lastMessage, "this or another one: no") == 0,
           "an error that is not about rights: of the first that is not published yet, or of another one like it");
    k.time += 2000 * MS;
    tell(0, 4, eight, 8, DBR_DOUBLE, 1, 72, 2);
    tell(1, 11, b.p, b.len, 0, 0, 2, 160);
    testOk(e->id == 11 && !e->isUnsure, "... and there is no other one");
    bytesFree(&b);
    stop();
}

static void testChannels(void)
{
    ebpfMonWireLimits few = { .channels = 10 };
    uint8_t eight[8] = { 0 };
    char name[2000];

    begin();
    channel("DEMO:B", 2, 72);
    tell(0, 12, NULL, 0, 0, 0, 71, 1);
    tell(1, 12, NULL, 0, 0, 0, 71, 1);
    testOk(seen.count[ebpfMonWireChannelGone] == 1 && strcmp(lastName, "DEMO:A") == 0
        && ebpfMonWireStat(wire)->channels == 1, "a channel is cleared by the client");
    tell(1, 27, NULL, 0, 0, 0, 2, 0);
    testOk(seen.count[ebpfMonWireChannelGone] == 2 && seen.last[ebpfMonWireChannelGone].sid == 72
        && ebpfMonWireStat(wire)->channels == 0, "a channel is closed by the server");
    tell(0, 18, "NONE", 5, 0, 0, 3, 13);
    tell(1, 26, NULL, 0, 0, 0, 3, 0);
    testOk(ebpfMonWireStat(wire)->channels == 0 && seen.count[ebpfMonWireChannelGone] == 2,
           "a channel that could not be created");
    testOk(seen.count[ebpfMonWireRefused] == 1 && strcmp(lastName, "NONE") == 0
        && seen.last[ebpfMonWireRefused].cid == 3,
           "... the server has refused it");
    tell(1, 26, NULL, 0, 0, 0, 3, 0);
    tell(0, 18, "SOON", 5, 0, 0, 3, 13);
    testOk(seen.count[ebpfMonWireRefused] == 2 && strcmp(lastName, "SOON") == 0 && ebpfMonWireStat(wire)->channels == 0,
           "... also if the reply is seen before the request");
    memset(name, 'x', sizeof name);
    name[1000] = 0;
    channel(name, 4, 74);
    testOk(strcmp(lastName, name) == 0, "a name of 1000 bytes");
    channel("DEMO:\xc3\xa9\xff", 5, 75);
    testOk(strcmp(lastName, "DEMO:\xc3\xa9\xff") == 0, "bytes that are no ASCII, or no UTF-8");
    tell(1, 18, NULL, 0, 1, 7, 6, 76);
    testOk(strcmp(lastName, "") == 0, "the request for a channel was not seen");
    tell(0, 18, "LATE", 5, 0, 0, 6, 13);
    testOk(strcmp(lastName, "LATE") == 0 && seen.last[ebpfMonWireChannel].sid == 76 &&
               seen.last[ebpfMonWireChannel].baseType == 1 && seen.last[ebpfMonWireChannel].count == 7,
           "... its name is learnt later");
    tell(0, 4, eight, 8, DBR_DOUBLE, 1, 900, 90);
    testOk(strcmp(lastName, "") == 0, "a channel that was created before we watched");
    stop();
    start(&few);
    for (uint32_t i = 0; i < 100; i++)
        channel("MANY", i, 1000 + i);
    testOk(ebpfMonWireStat(wire)->channels == 10 && ebpfMonWireStat(wire)->noMemory >= 90,
        "there are no more channels than limits.channels");
    stop();
}

static void testUser(void)
{
    start(NULL);
    tell(0, 0, NULL, 0, 0, 13, 0, 0);
    tell(0, 20, "alice", 6, 0, 0, 0, 0);
    tell(0, 21, "desk7", 6, 0, 0, 0, 0);
    testOk(seen.count[ebpfMonWireUser] == 2, "the client says its user and host");
    tell(0, 20, "alice", 6, 0, 0, 0, 0);
    testOk(seen.count[ebpfMonWireUser] == 2, "the same names again are not reported");
    tell(0, 20, "bob", 4, 0, 0, 0, 0);
    testOk(seen.count[ebpfMonWireUser] == 3 && strstr(seen.text, "'bob'@'desk7'"), "another name is reported");
    stop();
}

static void testUdp(void)
{
    talk u = talkNew(50000, 5064), other = talkNew(50001, 33000);
    bytes b = { 0 }, r = { 0 };
    const ebpfMonWireEvent *found = &seen.last[ebpfMonWireFound], *beacon = &seen.last[ebpfMonWireBeacon];

    start(NULL);
    header(&b, 0, 0, 1, 13, 77, 0);
    header(&b, 6, 8, 5, 13, 21, 21);
    add(&b, "DEMO:A\0\0", 8);
    header(&b, 6, 16, 5, 13, 22, 22);
    add(&b, "DEMO:LONG:B\0\0\0\0\0", 16);
    udp(wire, &u, 0, b.p, b.len);
    testOk(seen.count[ebpfMonWireSearch] == 2 && strcmp(lastName, "DEMO:LONG:B") == 0
        && seen.last[ebpfMonWireSearch].cid == 22 && seen.last[ebpfMonWireSearch].peer.port == htons(50000),
        "searches");
    header(&r, 0, 0, 1, 13, 77, 0);
    header(&r, 6, 8, 6000, 0, 0xffffffff, 21);
    add(&r, "\0\15\0\0\0\0\0\0", 8);
    udp(wire, &u, 1, r.p, r.len);
    testOk(seen.count[ebpfMonWireFound] == 1 && found->peer.saddr == htonl(u.addr[1]) &&
               found->peer.sport == htons(6000) && found->peer.addr == htonl(u.addr[0]) &&
               found->peer.port == htons(50000) && found->cid == 21,
           "an answer to a search");
    udp(wire, &other, 1, r.p, r.len);
    testOk(seen.count[ebpfMonWireFound] == 2 && found->peer.port == htons(50001), "... on any port");
    r.len = 0;
    header(&r, 6, 8, 6001, 0, 0x0a0000fe, 22);
    add(&r, "\0\15\0\0\0\0\0\0", 8);
    udp(wire, &u, 1, r.p, r.len);
    testOk(found->peer.saddr == htonl(0x0a0000fe) && found->peer.sport == htons(6001), "... that names another server");
    b.len = 0;
    header(&b, 13, 0, 13, 5066, 9, 0);
    udp(wire, &u, 1, b.p, b.len);
    testOk(seen.count[ebpfMonWireBeacon] == 1 && beacon->peer.saddr == htonl(u.addr[1])
        && beacon->peer.sport == htons(5066),
        "a beacon");
    b.len = 0;
    header(&b, 13, 0, 13, 5066, 9, 0x0a000009);
    udp(wire, &u, 1, b.p, b.len);
    testOk(beacon->peer.saddr == htonl(0x0a000009), "... by a repeater");
    for (size_t n = 0; n < r.len; n++)
        udp(wire, &u, 1, r.p, n);
    for (int i = 0; i < 20000; i++) {
        bytes m = { 0 };

        add(&m, r.p, r.len);
        for (int j = 0; j < 3; j++)
            m.p[random32() % m.len] = (uint8_t)random32();
        udp(wire, random32() % 2 ? &u : &other, 1, m.p, m.len);
        bytesFree(&m);
    }
    testOk(ebpfMonWireStat(wire)->circuits == 1, "datagrams that are too short or wrong");
    bytesFree(&b);
    bytesFree(&r);
    stop();
}

/* Searches and answers by TCP. */
static void testNameServer(void)
{
    const ebpfMonWireEvent *found = &seen.last[ebpfMonWireFound];

    start(NULL);
    tell(0, 0, NULL, 0, 0, 13, 0, 0);
    tell(0, 6, "DEMO:A", 7, 10, 13, 5, 5);
    tell(1, 6, NULL, 0, 6002, 0, 0xffffffff, 5);
    testOk(seen.count[ebpfMonWireSearch] == 1 && found->peer.sport == htons(6002)
        && found->peer.saddr == htonl(k.addr[1])
        && found->circuit == seen.last[ebpfMonWireSearch].circuit, "a name server answers a search");
    tell(1, 6, NULL, 0, 6003, 0, 0x0a0000fe, 5);
    testOk(found->peer.saddr == htonl(0x0a0000fe) && found->peer.sport == htons(6003)
        && found->peer.addr == htonl(k.addr[0]), "... and names another server");
    stop();
}

/* Replies that never come: the memory for their requests is bounded. */
static void testForgotten(void)
{
    uint8_t eight[8] = { 0 };
    size_t memory;

    begin();
    for (uint32_t i = 0; i < 20000; i++)
        tell(0, 19, eight, 8, DBR_DOUBLE, 1, 71, i);
    memory = ebpfMonWireStat(wire)->memory;
    for (uint32_t i = 20000; i < 100000; i++)
        tell(0, 19, eight, 8, DBR_DOUBLE, 1, 71, i);
    testOk(ebpfMonWireStat(wire)->memory <= memory && memory < 1 << 20, "%zu bytes for requests without a reply",
        memory);
    tell(1, 19, NULL, 0, DBR_DOUBLE, 1, 1, 99999);
    testOk(seen.last[ebpfMonWireReply].id == 100000, "the newest request is still known");
    stop();
}

MAIN(testCa)
{
    testPlan(0);
    seen.quiet = 0;
    testTypes();
    testPartialValues();
    testLarge();
    testWrong();
    testRefused();
    testChannels();
    testUser();
    testUdp();
    testNameServer();
    testForgotten();
    return testDone();
}
