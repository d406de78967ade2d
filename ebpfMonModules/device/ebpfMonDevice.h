/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The tables about requests to ports of asyn, which device.bpf.c and the user part share. */
#ifndef EBPFMON_DEVICE_H
#define EBPFMON_DEVICE_H

#include "ebpfMonTable.h"

#define EBPFMON_DEVICE_USERS     4096 /* users of ports; one row for each */
#define EBPFMON_DEVICE_REQUESTS  8192 /* requests that wait, or that are being served */
#define EBPFMON_DEVICE_PORTS     1024
#define EBPFMON_DEVICE_FUNCTIONS 512  /* functions that serve requests or handle time-outs */
#define EBPFMON_DEVICE_SERVED    8    /* requests of a port that are remembered, the last ones; a power of two */

/* Map "deviceIocs", by tgid. Offsets (bytes) from an asynUser. Some are negative: the asynUser is the last member of
 * asynManager's struct userPvt. */
struct ebpfMonDeviceConf {
    __u32 iocId;
    __s32 process, timeout; /* pointers to the functions */
    __s32 port, device;     /* pointers to struct port and struct device */
    __u32 pvt, reason;      /* members of struct asynUser (asynDriver.h), which is public */
    __u32 number;           /* the cookie of its probes; those with another one were taken away */
    /* what the IOC pays; only the programs write it. ns: time of the programs; one run in 16 is timed, and counts 16
     * times */
    __u64 entries, returns, ns;
};

/* Map "deviceUsers": a user of a port, with the reason of its requests. "pvt" is asynUser.userPvt, which belongs to one
 * record. */
struct ebpfMonDeviceKey {
    __u64 port; /* address of its struct port */
    __u64 pvt;
    __u32 tgid;
    __s32 reason;
};

/* A port is served by one thread at a time. That thread writes this while the user part reads it. */
struct ebpfMonDeviceStat {
    __u64 count;         /* requests that were served */
    __u64 waits;         /* requests that were seen in the queue; the sum of waitHist */
    __u64 waitSum, waitMax;    /* ns, from queueRequest() to the begin of the service */
    __u64 serveSum, serveMax;  /* ns, from the begin of the function to its return */
    __u64 timeouts;      /* requests that left the queue by a time-out */
    __u64 device;        /* address of its struct device; 0: none */
    __u64 root;          /* root of the chain that made the last request; 0: there was none, or it is not known */
    __u64 behind;        /* in the longest wait: "pvt" of the user that had the port for the longest time … */
    __u64 behindNs;      /* … and the ns for which it had the port */
    __u32 waitHist[EBPFMON_BUCKETS];
};

/* Map "deviceFunctions", by address in a process. The user part sets probes on these functions. */
struct ebpfMonDeviceFunction {
    __u64 address;
    __u32 tgid;
    __u32 isTimeout;
};

/* Map "devicePorts", by address of struct port: the users that were served last. */
struct ebpfMonDevicePortKey {
    __u64 port;
    __u64 tgid;
};

struct ebpfMonDevicePort {
    __u64 served; /* number of requests served */
    struct {
        __u64 pvt, begin, end;
    } last[EBPFMON_DEVICE_SERVED];
};

/* Map "deviceCounts", one element for each CPU. */
struct ebpfMonDeviceCounts {
    __u64 lost; /* requests, functions, users and ports for which there was no room */
};

_Static_assert(sizeof(struct ebpfMonDeviceConf) == 56 && sizeof(struct ebpfMonDeviceKey) == 24 &&
                   sizeof(struct ebpfMonDeviceFunction) == 16 && sizeof(struct ebpfMonDevicePortKey) == 16,
               "keys have no holes");
_Static_assert(sizeof(struct ebpfMonDeviceStat) == 88 + 4 * EBPFMON_BUCKETS, "ebpfMonDeviceStat");

#endif
