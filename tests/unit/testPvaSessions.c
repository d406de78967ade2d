/* SPDX-License-Identifier: BSD-3-Clause */
/* The pvAccess decoder with recorded sessions, whole, byte by byte, and damaged. */
#include "pvaSessions.h"

static void testSessions(void)
{
    unsigned i, k;

    for (i = 0; i < SESSIONS; i++) {
        begin();
        driverPlay(&circuit, recorded[i].p, recorded[i].size);
        int bad = circuit.foreign + circuit.stats.malformed + circuit.stats.noMemory;
        expect(sessions[i].events, sessions[i].name);
        testOk(!bad, "… and no message of it is malformed or lost");
    }
    /* Bytes one by one. */
    for (k = 0; k < 2; k++) {
        i = findSession(k ? "qsrv" : "p4p");
        begin();
        const uint8_t *p = recorded[i].p;
        while (p < recorded[i].p + recorded[i].size) {
            size_t length = p[1] | p[2] << 8, at;

            for (at = 0; at < length; at++) {
                driverBytes(&circuit, p[0] & 1, p + 3 + at, 1);
            }
            p += 3 + length;
        }
        expect(sessions[i].events, k ? "a recording of QSRV gives the same events byte by byte" :
                                       "a recording of p4p gives the same events byte by byte");
    }
}

/* Sessions that are cut at any place, or with changed bytes: the decoder reads nothing outside, and frees all
 * memory. */
static void testBroken(void)
{
    uint64_t random = 88172645463325252u;
    unsigned i, k, n, leaks = 0;
    unsigned long events = 0;

    for (i = 0; i < SESSIONS; i++) {
        for (k = 0; k < 300; k++) {
            size_t size = recorded[i].size;
            uint8_t *copy = malloc(size);

            memcpy(copy, recorded[i].p, size);
            for (n = 0; n < k % 8; n++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                copy[random % size] ^= k % 3 ? 1u << (random >> 40 & 7) : (unsigned)(random >> 32);
            }
            driverOpen(&circuit, NULL);
            driverPlay(&circuit, copy, k % 8 ? size : size * k / 300);
            driverClose(&circuit);
            leaks += circuit.stats.memory || circuit.stats.channels;
            events += circuit.events;
            free(copy);
        }
    }
    testOk(!leaks, "broken recordings leave no memory behind: %lu events", events);
}

MAIN(testPvaSessions)
{
    testPlan(0);
    loadSessions();
    testSessions();
    testBroken();
    freeSessions();
    return testDone();
}
