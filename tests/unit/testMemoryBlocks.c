/* SPDX-License-Identifier: BSD-3-Clause */
/* host/memory.h: the cache of blocks, tried with the memory of this program. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "host/memory.h"

#define BYTES (8u << 20)    /* of the memory that is read: more blocks than are kept for the next read */
#define KEPT  (4u << 20)    /* bytes that are kept */
#define SLACK (256u << 10)  /* bytes that anything else may take meanwhile */

static unsigned char memory[BYTES], copy[BYTES];

/* Reads all of it. Nonzero: each byte is as in the memory. */
static int isReadRight(ebpfMonMem *mem)
{
    return ebpfMonMemRead(mem, (uintptr_t)memory, copy, BYTES) == 0 && memcmp(copy, memory, BYTES) == 0;
}

/* Bytes that are mapped into this program. */
static long countMapped(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = -1;

    if (!f || fscanf(f, "%ld", &pages) != 1)
        pages = -1;
    if (f)
        fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

MAIN(testMemoryBlocks)
{
    ebpfMonMem *mem, *other;
    long before, after;
    int isRight = 1;

    testPlan(6);
    for (size_t i = 0; i < BYTES; i++)
        memory[i] = (unsigned char)(i * 7 >> 3);
    mem = ebpfMonMemNew(getpid());
    other = ebpfMonMemNew(getpid());
    isReadRight(mem); /* the thread that reads has its stack now */
    ebpfMonMemFlush(mem);
    before = countMapped();
    for (int i = 0; i < 10; i++) {
        isRight &= isReadRight(mem);
        ebpfMonMemFlush(mem);
    }
    after = countMapped();
    testOk(isRight, "all bytes are right each time");
    testOk(after <= before + SLACK, "no memory is kept from flush to flush but some blocks: %ld bytes more",
           after - before);
    memory[100] ^= 0xff;
    memory[BYTES - 100] ^= 0xff;
    testOk(isReadRight(mem), "after a flush new values are read");
    memory[100] ^= 0xff;
    testOk(!isReadRight(mem), "before a flush the values are those of the first read");
    testOk(isReadRight(other), "another reader has blocks of its own");
    before = countMapped();
    ebpfMonMemFree(mem);
    ebpfMonMemFree(other);
    after = countMapped();
    testOk(before - after + SLACK >= 2 * BYTES - KEPT, "their memory is given back at the end: %ld bytes",
           before - after);
    return testDone();
}
