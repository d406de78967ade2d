/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A module of a site: how often each person writes, and how often in vain. Begin your own with a copy of this folder:
 * exampleModule.c, exampleModule.dbd, exampleModule.substitutions, Makefile (documentation/develop/modules.md).
 */
#include <stdio.h>
#include <string.h>

#include <dbDefs.h>
#include <epicsExport.h>

#include "ebpfMonModule.h"

#define WRITERS 20

typedef struct {
    char     name[40];
    uint64_t puts, failed;
} writer;

/* Under the lock of the values. One per process, because Base calls registrars without a context. */
static struct {
    uint64_t puts;     /* of people, not of IOCs */
    uint64_t traces;
    char     event[200];
    unsigned writers;
    writer   writer[WRITERS];
} values;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : &values;
}

static const void *getWriter(const struct ebpfMonPublished *published, unsigned index)
{
    return index < values.writers ? &values.writer[index] : NULL;
}

#define VALUE(member) offsetof(__typeof__(values), member)

static ebpfMonPv pvs[] = {
    {"EXAMPLE_PUT_CNT", 0, getValues, ebpfMonCellCount, VALUE(puts)},
    {"EXAMPLE_TRACE_CNT", 0, getValues, ebpfMonCellCount, VALUE(traces)},
    {"EXAMPLE_EVENT", 0, getValues, ebpfMonCellText, VALUE(event)},
    {"EXAMPLE_WRITERS", 0, getWriter, ebpfMonCellText, offsetof(writer, name)},
    {"EXAMPLE_CNTS", 0, getWriter, ebpfMonCellCount, offsetof(writer, puts)},
    {"EXAMPLE_FAILED_CNTS", 0, getWriter, ebpfMonCellCount, offsetof(writer, failed)},
};

static void addPut(void *arg, const ebpfMonModulePut *put)
{
    unsigned i = 0;

    if (put->isAutomatic)
        return;
    ebpfMonModuleLock();
    values.puts++;
    while (i < values.writers && strcmp(values.writer[i].name, put->user) != 0)
        i++;
    if (i < WRITERS) { /* further people are not in the table */
        if (i == values.writers)
            snprintf(values.writer[values.writers++].name, sizeof(values.writer[0].name), "%s", put->user);
        values.writer[i].puts++;
        values.writer[i].failed += put->hasFailed != 0;
    }
    ebpfMonModuleUnlock();
}

static void addTrace(void *arg, const ebpfMonModuleTrace *trace)
{
    values.traces++; /* only the event thread writes it */
}

static void addEvent(void *arg, const epicsTimeStamp *time, const char *text)
{
    ebpfMonModuleLock();
    snprintf(values.event, sizeof(values.event), "%s", text);
    ebpfMonModuleUnlock();
}

static void showValues(void *arg); /* each second */

static void reportValues(void *arg, int level)
{
    printf("  %u people have written\n", values.writers);
}

static ebpfMonModule module = {
    .name = "example", .pvs = pvs, .pvCount = NELEMENTS(pvs),
    .put = addPut, .trace = addTrace, .event = addEvent, .second = showValues, .report = reportValues,
};

static void showValues(void *arg)
{
    ebpfMonModuleShow(&module);
}

static void exampleRegistrar(void)
{
    ebpfMonModuleAdd(&module);
}

epicsExportRegistrar(exampleRegistrar);
