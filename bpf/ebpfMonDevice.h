/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Requests to ports of asyn: the tables that device.bpf.c and the user part share. */
#ifndef EBPFMON_DEVICE_H
#define EBPFMON_DEVICE_H

#include "ebpfMonTable.h"

#define EBPFMON_DEVICE_USERS     4096 /* rows: users of ports */
#define EBPFMON_DEVICE_REQUESTS  8192 /* requests that wait, or are served */
#define EBPFMON_DEVICE_PORTS     1024
#define EBPFMON_DEVICE_FUNCTIONS 512  /* functions that serve requests, or that are told of a time-out */
#define EBPFMON_DEVICE_SERVED    8    /* the last ones of a port that are remembered; a power of two */

/* Map "deviceIocs", by tgid. Offsets from an asynUser: it is the last member of asynManager's struct userPvt. */
struct ebpfMonDeviceConf {
    __u32 iocId;
    __s32 process, timeout; /* pointers to the functions */
    __s32 port, device;     /* pointers to struct port and struct device */
    __u32 pvt, reason;      /* members of struct asynUser (asynDriver.h), which is public */
    __u32 pad;
};

/* Map "deviceUsers", by who asks for what of a port: "pvt" is asynUser.userPvt, which belongs to one record. */
struct ebpfMonDeviceKey {
    __u64 port; /* address of its struct port */
    __u64 pvt;
    __u32 tgid;
    __s32 reason;
};

/* Only one thread at a time serves a port: it writes this while it is read. */
struct ebpfMonDeviceStat {
    __u64 count;         /* requests that were served */
    __u64 waits;         /* of which the begin was seen: the sum of waitHist */
    __u64 waitSum, waitMax;    /* ns, from queueRequest until they were served */
    __u64 serveSum, serveMax;  /* ns, until the function came back */
    __u64 timeouts;      /* requests that left the queue because they had waited for too long */
    __u64 device;        /* struct device; 0: none */
    __u64 root;          /* root of the chain that asked last; 0: none, or not known */
    __u64 behind;        /* "pvt" of who had the port for longest, in the longest wait */
    __u64 behindNs;      /* … and for how long */
    __u32 waitHist[EBPFMON_BUCKETS];
};

/* Map "deviceFunctions", by address in a process: the user part sets probes there. */
struct ebpfMonDeviceFunction {
    __u64 address;
    __u32 tgid;
    __u32 isTimeout;
};

/* Map "devicePorts": who was served last, by address. */
struct ebpfMonDevicePortKey {
    __u64 port;
    __u64 tgid;
};

struct ebpfMonDevicePort {
    __u64 served; /* so many */
    struct {
        __u64 pvt, begin, end;
    } last[EBPFMON_DEVICE_SERVED];
};

/* Map "deviceCounts", one element for each CPU. */
struct ebpfMonDeviceCounts {
    __u64 runs; /* of programs */
    __u64 lost; /* requests, functions, users and ports for which there was no room */
};

_Static_assert(sizeof(struct ebpfMonDeviceConf) == 32 && sizeof(struct ebpfMonDeviceKey) == 24 &&
               sizeof(struct ebpfMonDeviceFunction) == 16 && sizeof(struct ebpfMonDevicePortKey) == 16, "keys have no holes");
_Static_assert(sizeof(struct ebpfMonDeviceStat) == 88 + 4 * EBPFMON_BUCKETS, "ebpfMonDeviceStat");

#endif
