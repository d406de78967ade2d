// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Requests to ports of asyn (asynDriver/asynManager.c). queueRequest() puts a user of a port into the port's queue. The
 * thread of the port takes the user out and calls the user's function, in which the driver does its work. If a port
 * cannot block, queueRequest() calls that function itself. The monitor finds these functions when requests come, and
 * sets probes on them.
 *
 * This is a separate object file, which is loaded when somebody asks for it. It shares the table "threads" of
 * maps.bpf.h.
 */
#include "common/core.bpf.h"
#include "common/timing.bpf.h"
#include "device/ebpfMonDevice.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 hasCookies; /* probes have cookies; the helper came with 5.15. The user part sets it */

TABLE(deviceIocs, HASH, EBPFMON_TARGETS_MAX, __u32, struct ebpfMonDeviceConf);

/* A table of the kernel part. These programs use the first part of its values only. */
TABLE(threads, HASH, EBPFMON_THREADS_MAX, __u32, struct ebpfMonThread);

TABLE(deviceUsers, HASH, EBPFMON_DEVICE_USERS, struct ebpfMonDeviceKey, struct ebpfMonDeviceStat);

TABLE(deviceFunctions, HASH, EBPFMON_DEVICE_FUNCTIONS, struct ebpfMonDeviceFunction, __u32);

TABLE(devicePorts, LRU_HASH, EBPFMON_DEVICE_PORTS, struct ebpfMonDevicePortKey, struct ebpfMonDevicePort);

struct waitKey {
    __u64 user; /* address of the asynUser, which can be in one queue at a time */
    __u64 tgid;
};

struct waiting {
    __u64 since;
    __u64 root;
};

TABLE(deviceWaits, LRU_HASH, EBPFMON_DEVICE_REQUESTS, struct waitKey, struct waiting);

/* The function that serves a request may make another request, which the same thread serves. The stack pointer tells
 * the two calls apart. */
struct serveKey {
    __u64 id;
    __u64 sp;
};

struct serving {
    struct ebpfMonDeviceKey who;
    __u64 begin;
};

TABLE(deviceServes, LRU_HASH, EBPFMON_DEVICE_REQUESTS, struct serveKey, struct serving);

TABLE(deviceCounts, PERCPU_ARRAY, 1, __u32, struct ebpfMonDeviceCounts);

static __always_inline __u64 readPtr(__u64 at)
{
    __u64 p = 0;

    bpf_probe_read_user(&p, sizeof(p), (void *)at);
    return p;
}

static __always_inline void countLost(void)
{
    __u32 zero = 0;
    struct ebpfMonDeviceCounts *n = bpf_map_lookup_elem(&deviceCounts, &zero);

    if (n)
        __sync_fetch_and_add(&n->lost, 1);
}

/* The IOC of the current thread. NULL: nobody asks about it; or this probe was taken away, and the kernel has not
 * removed it yet (as isTakenAway of probe.bpf.h). */
static __always_inline struct ebpfMonDeviceConf *findIoc(void *ctx, __u32 *tgid)
{
    struct ebpfMonDeviceConf *conf;

    *tgid = bpf_get_current_pid_tgid() >> 32;
    conf = bpf_map_lookup_elem(&deviceIocs, tgid);
    if (conf && hasCookies && bpf_get_attach_cookie(ctx) != conf->number)
        return 0;
    return conf;
}

/* The body of a program. "see" may use "conf" and "tgid"; "traps" is the member of conf that counts its runs. */
#define RUN(traps, see)                                       \
    struct ebpfMonDeviceConf *conf;                           \
    struct timing timing;                                     \
    __u32 tgid;                                               \
                                                              \
    KEEP_THREAD_STACK(ctx);                                   \
    beginTimingOnly(&timing);                                 \
    if (!(conf = findIoc(ctx, &tgid)))                        \
        return 0;                                             \
    __sync_fetch_and_add(&conf->traps, 1);                    \
    see;                                                      \
    __sync_fetch_and_add(&conf->ns, takeTiming(&timing));     \
    return 0

static __always_inline void noteFunction(__u32 tgid, __u64 address, __u32 isTimeout)
{
    struct ebpfMonDeviceFunction f = { address, tgid, isTimeout };
    __u32 one = 1;

    if (address && !bpf_map_lookup_elem(&deviceFunctions, &f) &&
        bpf_map_update_elem(&deviceFunctions, &f, &one, BPF_ANY))
        countLost();
}

/* The root of the chain that this thread is in. Known from level chains on. */
static __always_inline __u64 findRoot(__u32 tgid)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid(), n;
    struct ebpfMonThread *th = bpf_map_lookup_elem(&threads, &tid);

    n = th && th->tgid == tgid ? th->heldCount : 0;
    if (!n || n > EBPFMON_NESTED)
        return 0;
    n--;
    barrier_var(n);
    return th->held[n & (EBPFMON_NESTED - 1)].root;
}

/* queueRequest(asynUser *, asynQueuePriority, double) */
static __always_inline void seeQueue(const struct ebpfMonDeviceConf *conf, __u32 tgid, __u64 user)
{
    struct waitKey key = { .user = user };
    struct waiting w = {};

    key.tgid = tgid;
    noteFunction(tgid, readPtr(user + conf->process), 0);
    noteFunction(tgid, readPtr(user + conf->timeout), 1);
    w.root = findRoot(tgid);
    w.since = bpf_ktime_get_ns();
    bpf_map_update_elem(&deviceWaits, &key, &w, BPF_ANY);
}

SEC("uprobe")
int BPF_UPROBE(ebpfmon_device_queue, __u64 user)
{
    RUN(entries, seeQueue(conf, tgid, user));
}

static __always_inline void fillKey(const struct ebpfMonDeviceConf *conf, __u32 tgid, __u64 user,
                                    struct ebpfMonDeviceKey *key)
{
    key->port = readPtr(user + conf->port);
    key->pvt = readPtr(user + conf->pvt);
    key->tgid = tgid;
    bpf_probe_read_user(&key->reason, sizeof(key->reason), (void *)(user + conf->reason));
}

static __always_inline struct ebpfMonDeviceStat *getStat(const struct ebpfMonDeviceKey *key)
{
    static const struct ebpfMonDeviceStat none;
    struct ebpfMonDeviceStat *s = bpf_map_lookup_elem(&deviceUsers, key);

    if (s)
        return s;
    bpf_map_update_elem(&deviceUsers, key, &none, BPF_NOEXIST);
    s = bpf_map_lookup_elem(&deviceUsers, key);
    if (!s)
        countLost();
    return s;
}

static __always_inline struct ebpfMonDevicePort *getPort(const struct ebpfMonDeviceKey *who)
{
    static const struct ebpfMonDevicePort none;
    struct ebpfMonDevicePortKey key = { who->port, who->tgid };
    struct ebpfMonDevicePort *p = bpf_map_lookup_elem(&devicePorts, &key);

    if (p)
        return p;
    bpf_map_update_elem(&devicePorts, &key, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&devicePorts, &key);
}

/* Finds who had the port for the longest time since "since", among those that it served last. */
static __always_inline void findBehind(struct ebpfMonDeviceStat *s, const struct ebpfMonDeviceKey *who, __u64 since)
{
    struct ebpfMonDevicePort *p = getPort(who);

    s->behind = s->behindNs = 0;
    if (!p)
        return;
#pragma unroll
    for (int i = 0; i < EBPFMON_DEVICE_SERVED; i++) {
        __u64 begin = p->last[i].begin > since ? p->last[i].begin : since, end = p->last[i].end;

        if (end > begin && end - begin > s->behindNs) {
            s->behindNs = end - begin;
            s->behind = p->last[i].pvt;
        }
    }
}

static __always_inline void addPortWait(struct ebpfMonDeviceStat *s, const struct ebpfMonDeviceKey *who, __u64 since,
                                        __u64 now)
{
    __u64 wait = now > since ? now - since : 0;

    s->waits++;
    s->waitSum += wait;
    s->waitHist[ebpfMonBucket(wait) & (EBPFMON_BUCKETS - 1)]++;
    if (wait <= s->waitMax)
        return;
    s->waitMax = wait;
    findBehind(s, who, since);
}

/* The function of a user, void (*)(asynUser *), begins to serve the request. */
static __always_inline void seeBegin(struct pt_regs *ctx, const struct ebpfMonDeviceConf *conf, __u32 tgid)
{
    __u64 user = PT_REGS_PARM1(ctx);
    struct waitKey key = { .user = user };
    struct serveKey at = { bpf_get_current_pid_tgid(), PT_REGS_SP(ctx) };
    struct serving call = {};
    struct ebpfMonDeviceStat *s;
    struct waiting *w;

    key.tgid = tgid;
    fillKey(conf, tgid, user, &call.who);
    call.begin = bpf_ktime_get_ns();
    w = bpf_map_lookup_elem(&deviceWaits, &key);
    s = getStat(&call.who);
    if (w && s) {
        s->device = readPtr(user + conf->device);
        s->root = w->root;
        addPortWait(s, &call.who, w->since, call.begin);
    }
    if (w)
        bpf_map_delete_elem(&deviceWaits, &key);
    bpf_map_update_elem(&deviceServes, &at, &call, BPF_ANY);
}

SEC("uprobe")
int ebpfmon_device_begin(struct pt_regs *ctx)
{
    RUN(entries, seeBegin(ctx, conf, tgid));
}

/* The function has served the request. A return probe that is a perf event may come twice for one return; the second
 * time there is no call. */
static __always_inline void seeEnd(struct pt_regs *ctx)
{
    struct serveKey at = { bpf_get_current_pid_tgid(), PT_REGS_SP(ctx) - RETURN_BYTES };
    struct serving *call;
    struct ebpfMonDeviceStat *s;
    struct ebpfMonDevicePort *p;
    __u64 now = bpf_ktime_get_ns(), took;
    __u32 n;

    if (!(call = bpf_map_lookup_elem(&deviceServes, &at)))
        return;
    took = now - call->begin;
    s = bpf_map_lookup_elem(&deviceUsers, &call->who);
    if (s) {
        s->count++;
        s->serveSum += took;
        if (took > s->serveMax)
            s->serveMax = took;
    }
    p = getPort(&call->who);
    if (p) {
        n = p->served++;
        n &= EBPFMON_DEVICE_SERVED - 1;
        barrier_var(n);
        n &= EBPFMON_DEVICE_SERVED - 1;
        p->last[n].pvt = call->who.pvt;
        p->last[n].begin = call->begin;
        p->last[n].end = now;
    }
    bpf_map_delete_elem(&deviceServes, &at);
}

SEC("uprobe")
int ebpfmon_device_end(struct pt_regs *ctx)
{
    RUN(returns, seeEnd(ctx));
}

/* The function of a user for a time-out, void (*)(asynUser *): the request has left the queue. */
static __always_inline void seeTimeout(const struct ebpfMonDeviceConf *conf, __u32 tgid, __u64 user)
{
    struct waitKey key = { .user = user };
    struct ebpfMonDeviceKey who = {};
    struct ebpfMonDeviceStat *s;

    key.tgid = tgid;
    fillKey(conf, tgid, user, &who);
    s = getStat(&who);
    if (s)
        __sync_fetch_and_add(&s->timeouts, 1);
    bpf_map_delete_elem(&deviceWaits, &key);
}

SEC("uprobe")
int BPF_UPROBE(ebpfmon_device_timeout, __u64 user)
{
    RUN(entries, seeTimeout(conf, tgid, user));
}
