/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pvAccess sessions that were recorded between real programs, and their events. Clients: pvput, pvget, pvinfo of
 * EPICS Base 7.0.8.1, p4p 4.3. Servers: softIocPVA, pvxs 1.5.3, p4p.
 */
#ifndef EBPFMON_PVASESSIONS_H
#define EBPFMON_PVASESSIONS_H

#include "pvaTest.h"

/* The same puts to two servers. Their answers to a put to a disabled record differ. */
#define IOC_SESSION(disabled) \
    "user root@ws1\n" \
    "channel T:AO\n" \
    "put 1 T:AO field(): 3.14 = 3.1400000000000001\n" \
    "reply 1 T:AO ok 0\n" \
    "channel T:LO\n" \
    "put 2 T:LO record[block=true,process=true]field() process: 42 = 42\n" \
    "reply 2 T:LO ok 0\n" \
    "channel T:MBBO\n" \
    "put 3 T:MBBO field(): 2 (Very fast) = 2\n" \
    "reply 3 T:MBBO ok 0\n" \
    "put 4 T:MBBO field(): 1 (Fast) = 1\n" \
    "reply 4 T:MBBO ok 0\n" \
    "channel T:SO\n" \
    "put 5 T:SO field(): hi\n" \
    "reply 5 T:SO ok 0\n" \
    "channel T:LSO\n" \
    "put 6 T:LSO field(): " Y509 "...\n" \
    "reply 6 T:LSO ok 0\n" \
    "channel T:WD\n" \
    "put 7 T:WD field(): [1000] 0 1.5 3 4.5 6 7.5 9 10.5 ... x1000\n" \
    "reply 7 T:WD ok 0\n" \
    "channel T:DENY\n" \
    "put 8 T:DENY field(): 1 = 1\n" \
    "reply 8 T:DENY denied 2 Put not permitted\n" \
    "channel T:DISP\n" \
    "put 9 T:DISP field(): 1 = 1\n" \
    "reply 9 T:DISP failed 2 " disabled "\n" \
    "channel T:WC\n" \
    "put 10 T:WC field(): [3] 1 2 3 x3\n" \
    "reply 10 T:WC ok 0\n" \
    "channel T:GRP\n" \
    "put 11 T:GRP field(): {\"a\": {\"value\": 2.5}, \"b\": \"gb\"}\n" \
    "reply 11 T:GRP ok 0\n" \
    "put 12 T:AO record[block=false,process=false]field(): 1 = 1\n" \
    "reply 12 T:AO ok 0\n" \
    "channel T:I64\n" \
    "put 13 T:I64 field(): 4611686018427387904 = 4.6116860184273879e+18\n" \
    "reply 13 T:I64 ok 0\n"

static const struct { const char *name, *events;
} sessions[] = {
    {"baseArray", "user root@ws1\n"
                  "channel T:WD\n"
                  "read T:WD\n"
                  "put 1 T:WD : [10] 1 2.5 -3e+100 4 5 6 7 8 ... x10\n"
                  "reply 1 T:WD ok 0\n"
                  "read T:WD\n"},
    {"baseBlock", "user root@ws1\n"
                  "channel T:LO\n"
                  "read T:LO\n"
                  "put 1 T:LO record[process=true,block=true]field(value) process: 42 = 42\n"
                  "reply 1 T:LO ok 0\n"
                  "read T:LO\n"},
    {"baseDatagrams", "search T:AO 270544961 10.0.0.1:51424\n"
                      "found 270544961 127.0.0.1:30825 by 10.0.0.255:5076\n"
                      "beacon 127.0.0.1:26988\n"
                      "search T:LO 270544961 10.0.0.1:53402\n"
                      "found 270544961 127.0.0.1:30825 by 10.0.0.255:5076\n"
                      "search T:I64 270544961 10.0.0.1:33035\n"},
    {"baseDenied", "user root@ws1\n"
                   "channel T:DENY\n"
                   "read T:DENY\n"
                   "put 1 T:DENY : 1 = 1\n"
                   "reply 1 T:DENY denied 2 Put not permitted\n"
                   "read T:DENY\n"},
    {"baseDisabled", "user root@ws1\n"
                     "channel T:DISP\n"
                     "read T:DISP\n"
                     "put 1 T:DISP : 1 = 1\n"
                     "reply 1 T:DISP failed 2 Put Disabled\n"
                     "read T:DISP\n"},
    {"baseEnum", "user root@ws1\n"
                 "channel T:MBBO\n"
                 "read T:MBBO\n"
                 "put 1 T:MBBO : 2 (Very fast) = 2\n"
                 "reply 1 T:MBBO ok 0\n"
                 "read T:MBBO\n"},
    {"baseGet", "user root@ws1\n"
                "channel T:AO\n"
                "read T:AO\n"
                "channel T:MBBO\n"
                "read T:MBBO\n"},
    {"baseGroup", "user root@ws1\n"
                  "channel T:GRP\n"
                  "read T:GRP\n"
                  "put 1 T:GRP : {\"a\": {\"value\": 1.5}, \"b\": \"hello\"}\n"
                  "reply 1 T:GRP ok 0\n"
                  "read T:GRP\n"},
    {"baseInfo", "user root@ws1\n"
                 "channel T:GRP\n"},
    {"baseLong",
     "user root@ws1\n"
     "channel T:LSO\n"
     "read T:LSO\n"
     "put 1 T:LSO : "
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\n"
     "reply 1 T:LSO ok 0\n"
     "read T:LSO\n"},
    {"baseRefused", "user root@ws1\n"
                    "channel P:FAIL\n"},
    {"baseRequest", "user root@ws1\n"
                    "channel T:AO\n"
                    "read T:AO\n"
                    "put 1 T:AO field(value,alarm{severity}): 7 = 7\n"
                    "reply 1 T:AO ok 0\n"
                    "read T:AO\n"},
    {"baseScalar", "user root@ws1\n"
                   "channel T:AO\n"
                   "read T:AO\n"
                   "put 1 T:AO : 3.14 = 3.1400000000000001\n"
                   "reply 1 T:AO ok 0\n"
                   "read T:AO\n"},
    {"baseStrings", "user root@ws1\n"
                    "channel T:WS\n"
                    "read T:WS\n"
                    "put 1 T:WS : [2] \"a\" \"b c\" x2\n"
                    "reply 1 T:WS ok 0\n"
                    "read T:WS\n"},
    {"baseStruct", "user root@ws1\n"
                   "channel P:X\n"
                   "read P:X\n"
                   "put 1 P:X : {\"value\": 3, \"inner\": {\"s\": \"q\"}}\n"
                   "reply 1 P:X ok 0\n"
                   "read P:X\n"},
    {"baseTable", "user root@ws1\n"
                  "channel T:TAB\n"
                  "read T:TAB\n"
                  "put 1 T:TAB : {\"value\": {\"A\": [1, 2], \"B\": [\"p\", \"q\"]}}\n"
                  "reply 1 T:TAB ok 0\n"
                  "read T:TAB\n"},
    {"p4p", "user root@ws1\n"
            "channel P:D\n"
            "put 1 P:D field(): 1.25 = 1.25\n"
            "reply 1 P:D ok 0\n"
            "put 2 P:D field(): -0.1 = -0.10000000000000001\n"
            "reply 2 P:D ok 0\n"
            "put 3 P:D record[block=true,process=true]field() process: 5e-324 = 4.9406564584124654e-324\n"
            "reply 3 P:D ok 0\n"
            "channel P:S\n"
            "put 4 P:S field(): grüße \"x\"\n"
            "\n"
            "reply 4 P:S ok 0\n"
            "channel P:AI\n"
            "put 5 P:AI field(): [20] 0 1 2 3 4 5 6 7 ... x20\n"
            "reply 5 P:AI ok 0\n"
            "put 6 P:AI field(): [0] x0\n"
            "reply 6 P:AI ok 0\n"
            "channel P:E\n"
            "put 7 P:E field(): 1 (one) = 1\n"
            "reply 7 P:E ok 0\n"
            "put 8 P:E field(): 1 (one) = 1\n"
            "reply 8 P:E ok 0\n"
            "put 9 P:E field(): 1 = 1\n"
            "reply 9 P:E ok 0\n"
            "channel P:FAIL\n"
            "put 10 P:FAIL field(): 3 = 3\n"
            "reply 10 P:FAIL denied 2 Permission denied for root\n"
            "channel P:B\n"
            "put 11 P:B field(): true = 1\n"
            "reply 11 P:B ok 0\n"
            "channel P:F\n"
            "put 12 P:F field(): 0.1 = 0.10000000149011612\n"
            "reply 12 P:F ok 0\n"
            "channel P:RO\n"
            "put 13 P:RO field(): 2 = 2\n"
            "reply 13 P:RO failed 2 Put not supported\n"
            "channel P:T\n"
            "channel P:IMG\n"
            "put 14 P:IMG field(): {\"value\": [0, 1, 2, 3, 4, 5, 6, 7, \"... 12\"], \"compressedSize\": 24, \"un"
            "compressedSize\": 24, \"uniqueId\": 0, \"dimension\": [{\"size\": 4, \"offset\": 0, \"fullSize\": 4,"
            " \"binning\": 1, \"reverse\": false}, {\"size\": 3, \"offset\": 0, \"fullSize\": 3, \"binning\": 1, "
            "\"reverse\": false}], \"attribute\": [{\"name\": \"ColorMode\", \"value\": 0, \"tags\": [], \"descri"
            "ptor\": \"\", \"alarm\": {\"severity\": 0, \"status\": 0, \"message\": \"\"}, \"timeStamp\": {\"seco"
            "ndsPastEpoch\": 0, \"nanoseconds\": 0, \"userTag\": 0}, \"sourceType\": 0, \"source\": \"\"}]}\n"
            "reply 14 P:IMG ok 0\n"
            "channel P:X\n"
            "put 15 P:X field(): 2.5 = 2.5\n"
            "reply 15 P:X ok 0\n"
            "put 16 P:X field(): {\"inner\": {\"a\": -3, \"b\": true, \"s\": \"a\\\"b\", \"l\": -9223372036854775"
            "808, \"ul\": 18446744073709551615, \"sarr\": [\"x\", \"y\"]}}\n"
            "reply 16 P:X ok 0\n"
            "put 17 P:X field(): {\"u\": \"in union\"}\n"
            "reply 17 P:X ok 0\n"
            "put 18 P:X field(): {\"u\": {\"x\": 1.5}}\n"
            "reply 18 P:X ok 0\n"
            "put 19 P:X field(): {\"any\": {\"q\": 7}}\n"
            "reply 19 P:X ok 0\n"
            "put 20 P:X field(): {\"value\": 1, \"any\": 3.5}\n"
            "reply 20 P:X ok 0\n"
            "put 21 P:X field(): {\"st\": [{\"x\": 1, \"y\": 2}, {\"x\": 3, \"y\": 4}]}\n"
            "reply 21 P:X ok 0\n"
            "put 22 P:X field(): {\"anys\": [1, \"two\"]}\n"
            "reply 22 P:X ok 0\n"
            "put 23 P:X field(): {\"inner\": {\"arr\": [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, \"... 30\"]}}\n"
            "reply 23 P:X ok 0\n"
            "subscribe P:X\n"
            "flow 268443673 P:X 1 0\n"
            "update 268443673 P:X\n"
            "put 24 P:X field(): 9 = 9\n"
            "update 268443673 P:X\n"
            "reply 24 P:X ok 0\n"
            "flow 268443673 P:X 3 0\n"
            "put 25 P:D field(): nan = nan\n"
            "reply 25 P:D ok 0\n"
            "put 26 P:D field(): 1e+22 = 1e+22\n"
            "reply 26 P:D ok 0\n"},
    {"pvxs", IOC_SESSION("Unable to put value: Field Disabled: S_db_putDisabled")},
    {"pvxsDatagrams", "search T:AO 305419896 10.0.0.1:35907\n"
                      "found 305419896 10.0.0.1:38630 by 10.0.0.255:5076\n"
                      "found 305419896 10.0.0.1:38630 by 10.0.0.255:5076\n"
                      "search T:LO 305419897 10.0.0.1:35907\n"
                      "found 305419897 10.0.0.1:38630 by 10.0.0.255:5076\n"
                      "found 305419897 10.0.0.1:38630 by 10.0.0.255:5076\n"},
    {"qsrv", IOC_SESSION("Put Disabled")},
};
#define SESSIONS (sizeof(sessions) / sizeof(sessions[0]))

static struct { uint8_t *p; size_t size; } recorded[SESSIONS];

static inline void loadSession(unsigned i)
{
    static const char *const where[] = { "../../fuzz/corpus/pva", "../fuzz/corpus/pva", "tests/fuzz/corpus/pva" };
    char path[200];
    unsigned k;

    for (k = 0; k < 3; k++) {
        snprintf(path, sizeof(path), "%s/%s.pva", where[k], sessions[i].name);
        FILE *f = fopen(path, "rb");
        if (f) {
            recorded[i].p = malloc(65536);
            recorded[i].size = fread(recorded[i].p, 1, 65536, f);
            fclose(f);
            return;
        }
    }
    testAbort("%s: no such recording", sessions[i].name);
}

static inline unsigned findSession(const char *name)
{
    unsigned i;

    for (i = 0; i < SESSIONS; i++) {
        if (!strcmp(sessions[i].name, name)) {
            return i;
        }
    }
    testAbort("%s is not in the list", name);
    return 0;
}

static inline void loadSessions(void)
{
    for (unsigned i = 0; i < SESSIONS; i++) {
        loadSession(i);
    }
}

static inline void freeSessions(void)
{
    for (unsigned i = 0; i < SESSIONS; i++) {
        free(recorded[i].p);
    }
}

#endif
