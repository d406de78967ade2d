/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loadPrograms FILE: loads the eBPF programs that the libraries have: those of the monitor, of each query of the file,
 * of devices and of packets. Prints a line "yes NAME" or "no NAME: WHY" for each. The exit code is the number of "no".
 * clangs.py runs it with libraries whose programs other compilers made (LD_LIBRARY_PATH).
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/devicePrograms.h"
#include "probe/kernelLoad.h"
#include "probe/packets.h"
#include "query/queryPrograms.h"
#include "query/querySpec.h"

static int refused;
static char why[400];

static int say(const char *name, int isLoaded)
{
    if (isLoaded)
        printf("yes %s\n", name);
    else
        printf("no %s: %s\n", name, why);
    refused += !isLoaded;
    return isLoaded;
}

int main(int argc, char **argv)
{
    const ebpfMonLoadSizes sizes = { .maxRecords = 1024, .maxRoots = 64, .ringBytes = 65536 };
    char path[PATH_MAX];
    ebpfMonQuerySet *queries = argc == 2 ? ebpfMonQueryFileRead(argv[1], path, why, sizeof(why)) : NULL;
    ebpfMonDevicePrograms *devices;
    ebpfMonPackets *packets;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!queries) {
        fprintf(stderr, "loadPrograms FILE: %s\n", why);
        return 100;
    }
    if (!say("monitor", ebpfMonKernelLoad(&sizes, why, sizeof(why)) == 0))
        return refused; /* the others share its tables */
    for (unsigned i = 0; i < queries->count; i++) {
        ebpfMonQueryPrograms *query = ebpfMonQueryProgramsLoad(&queries->spec[i].order, why, sizeof(why));

        say(queries->spec[i].name, query != NULL);
        ebpfMonQueryProgramsFree(query);
    }
    devices = ebpfMonDeviceProgramsLoad(why, sizeof(why));
    say("devices", devices != NULL);
    ebpfMonDeviceProgramsFree(devices);
    packets = ebpfMonPacketsOpen(0, 65536, why, sizeof(why));
    if (say("packets", packets != NULL))
        ebpfMonPacketsClose(packets);
    ebpfMonKernelUnload();
    free(queries);
    return refused;
}
