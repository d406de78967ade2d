/* SPDX-License-Identifier: BSD-3-Clause */
/* wire/tls.h: handshakes of OpenSSL 3.0 (ssl of Python): which have failed, and what packets show of the cause. */
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "wire/tls.h"

/* Each record: who has sent it, its head and its first two bytes. The rest of its content does not matter. */
static const struct {
    const char *name, *cause; /* cause NULL: it has succeeded */
    const char *records;
} sessions[] = {
    {"1.3 no client certificate", NULL,
     "C16030100dc0100 S160303007a0200 S14030300010100 S17030300170c1a S17030302c79419 S17030301190824 "
     "S1703030045fcd1 C14030300010100 C17030300451b8d S17030300faf3f2 S17030300fa8f81 S170303007537c4"},
    {"1.3 both certificates", NULL,
     "C16030100dc0100 S160303007a0200 S14030300010100 S17030300179af2 S170303003eed9c S17030305cbbc6f "
     "S17030301191aa3 S1703030045ed2c C14030300010100 C17030305cbebf1 C1703030119e0af C1703030045c72a "
     "S17030303aab500 S17030303aa2043 S170303007525d4"},
    {"1.3 client lacks a certificate",
     "the server has sent an encrypted alert: perhaps it does not accept the client's certificate",
     "C16030100dc0100 S160303007a0200 S14030300010100 S17030300176134 S170303003e83e5 S17030305cb54b7 "
     "S1703030119b323 S17030300455477 C14030300010100 C1703030019bb22 C1703030045cfc4 S170303001300b5"},
    {"1.3 client's certificate by another root",
     "the server has sent an encrypted alert: perhaps it does not accept the client's certificate",
     "C16030100dc0100 S160303007a0200 S14030300010100 S1703030017d3be S170303003e06a3 S17030305cb2613 "
     "S17030301196ec2 S1703030045f73a C14030300010100 C1703030323ccfb C1703030119c832 C17030300458163 "
     "S1703030013f920"},
    {"1.3 client does not trust the server", "the client says: unknown CA (alert 48)",
     "C16030100dc0100 S160303007a0200 S14030300010100 S17030300175466 S17030302c74835 S17030301194ce2 "
     "S1703030045e7df C15030300020230"},
    {"1.2 no client certificate", NULL,
     "C160301009d0100 S16030300410200 S16030302b30b00 S160303012c0c00 S16030300040e00 C16030300251000 "
     "C14030300010100 C160303002830ce S16030300ba0400 S14030300010100 S160303002879cf S170303007c79cf"},
    {"1.2 both certificates", NULL,
     "C160301009d0100 S16030300410200 S16030305b50b00 S160303012c0c00 S16030300340d00 S16030300040e00 "
     "C16030305b50b00 C16030300251000 C16030301080f00 C14030300010100 C1603030028694f S160303036a0400 "
     "S14030300010100 S1603030028f868 S170303007cf868"},
    {"1.2 client lacks a certificate", "the server says: handshake failure (alert 40)",
     "C160301009d0100 S16030300410200 S16030305b50b00 S160303012c0c00 S16030300340d00 S16030300040e00 "
     "C16030300070b00 C16030300251000 C14030300010100 C1603030028f724 S15030300020228"},
    {"1.2 client's certificate by another root", "the server says: unknown CA (alert 48)",
     "C160301009d0100 S16030300410200 S16030305b50b00 S160303012c0c00 S16030300340d00 S16030300040e00 "
     "C160303030f0b00 C16030300251000 C16030301080f00 C14030300010100 C160303002812ab S15030300020230"},
    {"1.2 client does not trust the server", "the client says: unknown CA (alert 48)",
     "C160301009d0100 S16030300410200 S16030302b30b00 S160303012c0c00 S16030300040e00 C15030300020230"},
    {"versions", "the server says: protocol version (alert 70)",
     "C160301009d0100 S15030300020246"},
    {"hello retry", NULL,
     "C16030102000100 S16030300580200 S14030300010100 C14030300010100 C16030302000100 S16030300df0200 "
     "S170303001745b7 S17030302c78365 S17030301191a00 S1703030045d6ba C17030300450492 S17030300fa9e7e "
     "S17030300fae7f7 S1703030075cf35"}
};

static char text[160];
static int isTls; /* ebpfMonTlsIs of the last session */

/* Plays the records in pieces of so many bytes, or up to this record. */
static int play(const char *records, size_t piece, unsigned most)
{
    ebpfMonTlsSide side[2];
    unsigned n = 0;

    memset(side, 0, sizeof(side));
    for (const char *at = records; *at && n < most; at += strspn(at, " "), n++) {
        int from = *at++ == 'S';
        uint8_t bytes[20000] = { 0 };
        size_t size;

        for (int i = 0; i < 7; i++, at += 2) {
            unsigned byte;

            sscanf(at, "%2x", &byte);
            bytes[i] = (uint8_t)byte;
        }
        size = 5 + ((size_t)bytes[3] << 8 | bytes[4]);
        for (size_t done = 0; done < size; done += piece)
            ebpfMonTlsAdd(side, from, 1, bytes + done, size - done < piece ? size - done : piece);
    }
    isTls = ebpfMonTlsIs(side, 1);
    return ebpfMonTlsHasFailed(side, 1, 0, text, sizeof(text));
}

MAIN(testTls)
{
    static const uint8_t other[] = { 0xca, 2, 0, 1, 0, 0, 0, 0 };
    ebpfMonTlsSide side[2];
    const unsigned count = sizeof(sessions) / sizeof(sessions[0]);

    testPlan(2 * (int)count + 5);
    for (unsigned i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            int failed = play(sessions[i].records, k ? 1 : 20000, 1000);

            testOk(isTls && (sessions[i].cause ? failed && strcmp(text, sessions[i].cause) == 0 : !failed), "%s%s: %s",
                   sessions[i].name, k ? ", byte by byte" : "", failed ? text : "done");
        }
    testOk(play(sessions[0].records, 20000, 1) && strcmp(text, "the client ended the connection before the server "
           "answered") == 0, "%s", text);
    testOk(play(sessions[0].records, 20000, 4) && strcmp(text, "the client ended the connection before the handshake "
           "was done") == 0, "%s", text);
    memset(side, 0, sizeof(side));
    testOk(!ebpfMonTlsHasFailed(side, 1, 0, text, sizeof(text)), "nothing was sent");
    ebpfMonTlsAdd(side, 0, 1, other, sizeof(other));
    ebpfMonTlsAdd(side, 1, 1, other, sizeof(other));
    testOk(!ebpfMonTlsHasFailed(side, 1, 0, text, sizeof(text)) && !ebpfMonTlsIs(side, 1), "another protocol");
    memset(side, 0, sizeof(side));
    ebpfMonTlsAdd(side, 0, 1, (const uint8_t[]){ 0x16, 3, 1, 0, 2, 1, 0 }, 7);
    ebpfMonTlsLose(&side[1]);
    testOk(!ebpfMonTlsHasFailed(side, 1, 0, text, sizeof(text)), "bytes of the server are missing: not known");
    return testDone();
}
