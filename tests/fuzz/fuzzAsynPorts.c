/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is the memory of an IOC with asyn. It begins at the address MEMORY with the variable pasynBase. A request
 * and a port are looked for by each of its words, as if it were a futex, a record, or the DPVT of one. */
#include "otherProcess.h"
#include "fuzz.h"
#include "waits/asynPorts.h"

#define MEMORY 0x10000u
#define PAGE   64u

double ebpfMonFuzzSeconds = 1;

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    size_t whole = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
    uint8_t *memory = calloc(1, whole + 1);
    ebpfMonMem *mem = ebpfMonMemNew(1);
    ebpfMonAsynPorts ports = { .ports = 0 };
    uint64_t word[2] = { 0, 0 };

    fuzzProcessClear();
    memcpy(memory, data, size);
    fuzzProcessSetMemory(MEMORY, memory, whole);
    for (int again = 0; again < 2; again++) {
        ebpfMonAsynPortsRead(&ports, mem, MEMORY);
        FUZZ_CHECK(ports.ports <= EBPFMON_ASYN_PORTS);
        for (unsigned i = 0; i < ports.ports; i++)
            FUZZ_CHECK(ports.port[i].name[0] && memchr(ports.port[i].name, 0, sizeof(ports.port[i].name)));
        for (size_t i = 0; i < ports.requests; i++)
            FUZZ_CHECK(ports.request[i].port < ports.ports && ports.request[i].at);
    }
    for (size_t at = 0; at + sizeof(word[0]) <= size && at < 1024; at += sizeof(word[0])) {
        const ebpfMonAsynRequest *r;
        int isQueued, port;

        memcpy(&word[0], data + at, sizeof(word[0]));
        r = ebpfMonAsynPortsFindThread(&ports, mem, word[0]);
        FUZZ_CHECK(!r || (r >= ports.request && r < ports.request + ports.requests));
        port = ebpfMonAsynPortsFindRecord(&ports, mem, word[1], word[0], &isQueued);
        FUZZ_CHECK(port >= -1 && port < (int)ports.ports && (!isQueued || port >= 0));
        word[1] = word[0];
    }
    ebpfMonAsynPortsClear(&ports);
    ebpfMonMemFree(mem);
    free(memory);
}
