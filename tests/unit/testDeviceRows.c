/* SPDX-License-Identifier: BSD-3-Clause */
/* device/deviceRows.h: the record of a user is found as soon as device support has set its DPVT; nothing of a process
 * stays when its IOC is left. The test is the IOC: its port and its record are variables here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "device/deviceRows.h"

static struct { uint64_t node[2]; const char *name; } port = { .name = "L0" }; /* struct port of asyn */
static uint64_t private[16];     /* what device support allocates for the record */
static struct { uint64_t dpvt; } record;
static struct ebpfMonDeviceKey key;
static ebpfMonDeviceValues values;
static ebpfMonTargets *targets;

static char names[] = "RECORD";
static ebpfMonField field = { .name = "DPVT" };
static ebpfMonRecType type = { .fieldCount = 1, .valField = -1 };
static ebpfMonRecord rec;
static ebpfMonCatalogue catalogue = { .refs = 1, .count = 1, .rec = &rec, .rtype = &type, .rtypes = 1, .field = &field,
                                      .fields = 1, .pool = names, .poolSize = sizeof(names) };

/* Instead of the table of the kernel part: one user, with one request. */
void ebpfMonDeviceProgramsEachUser(ebpfMonDevicePrograms *programs,
                                   void (*each)(void *arg, const struct ebpfMonDeviceKey *key,
                                                const struct ebpfMonDeviceStat *stat), void *arg)
{
    static const struct ebpfMonDeviceStat stat = { .count = 1, .serveSum = 1, .serveMax = 1 };

    each(arg, &key, &stat);
}

/* The name of the user in the row. */
static const char *look(ebpfMonDeviceRows *rows)
{
    unsigned nameless = ebpfMonDeviceRowsMake(rows, NULL, targets, &values);

    return nameless || values.rows != 1 ? "no row" : values.row[0].user;
}

MAIN(testDeviceRows)
{
    ebpfMonDeviceRows *rows = ebpfMonDeviceRowsNew();
    ebpfMonTarget *t = calloc(1, sizeof(*t));

    testPlan(7);
    rec.addr = (uint64_t)&record;
    key = (struct ebpfMonDeviceKey){ .port = (uint64_t)&port, .pvt = (uint64_t)private, .tgid = (uint32_t)getpid() };
    targets = ebpfMonTargetsNew();
    t->pid = getpid();
    t->iocId = 1;
    ebpfMonTargetsAdd(targets, t);

    testOk(!strncmp(look(rows), "0x", 2) && !strcmp(values.row[0].port, "L0"), "no database is known yet: %s",
           values.row[0].user);
    t->cat = &catalogue;
    testOk(!strncmp(look(rows), "0x", 2), "iocInit has not set the DPVT yet: %s", look(rows));
    record.dpvt = (uint64_t)private;
    t->running = 1;
    testOk(!strcmp(look(rows), "RECORD"), "iocInit is done: %s", look(rows));
    testOk(isnan(values.row[0].silent), "its time-outs are not counted");
    port.name = "L1";
    testOk(!strcmp(look(rows), "RECORD") && !strcmp(values.row[0].port, "L0"), "names are kept");
    ebpfMonDeviceRowsForget(rows, getpid() + 1);
    testOk(!strcmp(look(rows), "RECORD") && !strcmp(values.row[0].port, "L0"), "… when another IOC is left");
    ebpfMonDeviceRowsForget(rows, getpid());
    testOk(!strcmp(look(rows), "RECORD") && !strcmp(values.row[0].port, "L1"), "… but not when this one is");

    ebpfMonDeviceRowsFree(rows);
    ebpfMonTargetsRemove(targets, t);
    ebpfMonTargetsFree(targets);
    free(t);
    return testDone();
}
