/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>

#include "shared/functionSite.h"
#include "device/asynLayout.h"
#include "host/memory.h"

#define QUEUE_REQUEST 12  /* index of queueRequest in struct asynManager */
#define PORT_NAME     16  /* offset of the name in struct port, behind its ELLNODE */
#define DEVICE_BYTES  512 /* bytes of struct device that are searched for the address: the struct dpCommon before it has
                           * different sizes */

uint64_t ebpfMonAsynFindQueueRequest(pid_t pid)
{
    uint64_t variable = ebpfMonVariableFind(pid, "pasynManager"), manager, function;

    if (!variable || ebpfMonMemReadNow(pid, variable, &manager, sizeof(manager)) ||
        ebpfMonMemReadNow(pid, manager + QUEUE_REQUEST * sizeof(function), &function, sizeof(function)))
        return 0;
    return function;
}

void ebpfMonAsynFillConf(struct ebpfMonDeviceConf *conf, uint32_t iocId)
{
    /* struct userPvt of asynManager.c: node, timer, callbackDone, processUser, timeoutUser, timeout, state, three
     * counters, pport, pdevice, pexceptionUser, two flags, user. "user" is at offset 104, and offsets are counted
     * from it */
    *conf = (struct ebpfMonDeviceConf){
        .iocId = iocId, .process = 32 - 104, .timeout = 40 - 104, .port = 72 - 104, .device = 80 - 104, .pvt = 24,
        .reason = 48,
    };
}

/* Finds the address of a device. struct dpCommon ends with pointers to the port and to this device; the address is
 * the next member. 0, or -1: not found. */
static int findAddress(pid_t pid, uint64_t port, uint64_t device, int *address)
{
    uint64_t word[DEVICE_BYTES / 8];

    if (!device || ebpfMonMemReadNow(pid, device, word, sizeof(word)))
        return -1;
    for (unsigned i = 2; i + 2 < DEVICE_BYTES / 8; i++)
        if (word[i] == port && word[i + 1] == device) {
            *address = (int)(int32_t)word[i + 2];
            return 0;
        }
    return -1;
}

int ebpfMonAsynNamePort(pid_t pid, uint64_t port, uint64_t device, char *name, size_t size)
{
    char text[48];
    uint64_t at;
    int address;

    if (ebpfMonMemReadNow(pid, port + PORT_NAME, &at, sizeof(at)) ||
        ebpfMonMemTextNow(pid, at, text, sizeof(text)) <= 0)
        return -1;
    for (const char *p = text; *p; p++)
        if (!isprint((unsigned char)*p))
            return -1;
    if (findAddress(pid, port, device, &address) || address < 0)
        snprintf(name, size, "%s", text);
    else
        snprintf(name, size, "%s %d", text, address);
    return 0;
}
