/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into an IOC, it counts the calls of recGblFwdLink for each record: each processing of a record that
 * completes. The table is the file that the variable COUNT_CALLS names; another program reads it at any time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORDS 4096 /* more than the records of the IOC */

typedef struct {
    char     name[64];  /* of the record, which its struct begins with */
    uint64_t record;    /* its address; 0: the element is free */
    uint64_t count;
} Element;

static Element *table;
static void (*forward)(void *);

__attribute__((constructor)) static void openTable(void)
{
    const char *path = getenv("COUNT_CALLS");
    int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

    *(void **)&forward = dlsym(RTLD_NEXT, "recGblFwdLink");
    if (file < 0 || ftruncate(file, RECORDS * sizeof(Element)))
        return;
    table = mmap(NULL, RECORDS * sizeof(Element), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (table == MAP_FAILED)
        table = NULL;
    close(file);
}

static void countCall(void *record)
{
    uint64_t key = (uint64_t)(uintptr_t)record;

    for (uint64_t i = 0; i < RECORDS; i++) {
        Element *e = &table[(key / 64 + i) % RECORDS];
        uint64_t is = __atomic_load_n(&e->record, __ATOMIC_ACQUIRE);

        if (!is && __atomic_compare_exchange_n(&e->record, &is, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            memcpy(e->name, record, sizeof(e->name) - 1);
            is = key;
        }
        if (is == key) {
            __atomic_fetch_add(&e->count, 1, __ATOMIC_RELAXED);
            return;
        }
    }
}

void recGblFwdLink(void *record)
{
    if (table)
        countCall(record);
    forward(record);
}
