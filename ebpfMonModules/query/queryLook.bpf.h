/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * What a query does with an event: it reads keys and values, tests the conditions, and counts. The plan is known when
 * the programs are loaded. So nothing is interpreted: the loops are unrolled, and the verifier removes all branches
 * that this plan does not take.
 */
#ifndef EBPFMON_QUERYLOOK_BPF_H
#define EBPFMON_QUERYLOOK_BPF_H

#include "query/queryFile.bpf.h"

/* The processes about which the query asks, by tgid. The user part writes it. */
TABLE(chosen, HASH, EBPFMON_TARGETS_MAX, __u32, struct ebpfMonQueryChosen);

/* The results. The user part sets the number of elements and the sizes of keys and values. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 1);
    __uint(key_size, EBPFMON_QUERY_KEY_SIZE);
    __uint(value_size, sizeof(struct ebpfMonQueryCell));
} cells SEC(".maps");

/* The first state of a cell, which is too large for the stack. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct ebpfMonQueryCell));
} noCell SEC(".maps");

TABLE(counts, PERCPU_ARRAY, EBPFMON_QUERY_PAYERS, __u32, struct ebpfMonQueryCounts);

TABLE(inHand, HASH, EBPFMON_QUERY_THREADS, __u32, struct ebpfMonQueryInHand);

/* The first state of a thread, which is too large for the stack. */
TABLE(nothingInHand, ARRAY, 1, __u32, struct ebpfMonQueryInHand);

/* The word of a key that is the number of the put, if each put has a cell. */
#define PUT_NUMBER_AT (plan.keySize / 8 - 1)

/* When fields are known: at the begin of a call its arguments; at its end its return value and its duration; or all at
 * once. */
enum queryMoment { BEGIN = 1, END = 2, AT_ONCE = 3 };

static __always_inline int isKnownAt(const volatile struct ebpfMonQueryField *f, enum queryMoment when)
{
    int late = f->what == EBPFMON_QUERY_RETURN || f->what == EBPFMON_QUERY_DURATION ||
               (plan.lateOrigin && (f->what == EBPFMON_QUERY_PUT || f->what == EBPFMON_QUERY_AUTHOR));

    return when & (late ? END : BEGIN);
}

/* Extends a number of this type to 64 bits. */
static __always_inline __u64 widenNumber(__u64 n, __u32 type)
{
    switch (type) {
    case EBPFMON_QUERY_U8:  return (__u8)n;
    case EBPFMON_QUERY_U16: return (__u16)n;
    case EBPFMON_QUERY_U32: return (__u32)n;
    case EBPFMON_QUERY_S8:  return (__u64)(__s64)(__s8)n;
    case EBPFMON_QUERY_S16: return (__u64)(__s64)(__s16)n;
    case EBPFMON_QUERY_S32: return (__u64)(__s64)(__s32)n;
    case EBPFMON_QUERY_F32: return ebpfMonQueryWidenFloat((__u32)n);
    default: return n;
    }
}

static __always_inline int readNumberAt(__u64 at, __u32 type, __u64 *n)
{
    switch (type) {
    case EBPFMON_QUERY_U8: case EBPFMON_QUERY_S8:   return bpf_probe_read_user(n, 1, (void *)at);
    case EBPFMON_QUERY_U16: case EBPFMON_QUERY_S16: return bpf_probe_read_user(n, 2, (void *)at);
    case EBPFMON_QUERY_U32:
    case EBPFMON_QUERY_S32:
    case EBPFMON_QUERY_F32:
        return bpf_probe_read_user(n, 4, (void *)at);
    default: return bpf_probe_read_user(n, 8, (void *)at);
    }
}

/* Reads an argument, or the value to which it leads. 0, or nonzero: it cannot be read. */
static __always_inline int readArg(const volatile struct ebpfMonQueryField *f, const struct queryEvent *e, __u64 *to)
{
    __u64 p = e->arg[f->arg < EBPFMON_QUERY_ARGS ? f->arg : 0], n = 0;

    if (e->unread >> f->arg & 1)
        return -1;
#pragma unroll
    for (int i = 0; i < EBPFMON_QUERY_STEPS; i++) {
        if (i >= f->steps)
            break;
        p += (__s64)f->offset[i];
        if (i + 1 < f->steps && bpf_probe_read_user(&p, sizeof(p), (void *)p))
            return -1;
    }
    if (f->type == EBPFMON_QUERY_SOCKET) {
        readSocket((struct sock *)p, (struct ebpfMonQueryFile *)to, 1);
        return 0;
    }
    if (f->type == EBPFMON_QUERY_CA_CLIENT)
        return readCaClient(e, p, (struct ebpfMonQueryWho *)to);
    if (f->type == EBPFMON_QUERY_CHARS)
        return bpf_probe_read_user_str(to, EBPFMON_QUERY_TEXT, (void *)p) < 0;
    if (!f->steps)
        n = p;
    else if (readNumberAt(p, f->type, &n))
        return -1;
    n = widenNumber(n, f->type);
    if (f->form == EBPFMON_QUERY_FIXED && ebpfMonQueryDoubleIsNan(n))
        return -1;
    if (f->form == EBPFMON_QUERY_ORDER_OF)
        n = (__u64)ebpfMonQueryDoubleOrder(n);
    else if (f->form == EBPFMON_QUERY_FIXED)
        n = (__u64)ebpfMonQueryDoubleFixed(n);
    if (f->type == EBPFMON_QUERY_RECORD || f->type == EBPFMON_QUERY_LOCK) {
        to[0] = e->iocId;
        to[1] = n;
    } else {
        to[0] = n;
    }
    return 0;
}

/* Finds the record of the innermost call of dbProcess(). A record that completes asynchronously processes without
 * dbProcess(); then it is the root of its chain. */
static __always_inline __u64 findInHand(const struct queryEvent *e)
{
    __u32 tid = e->tid, n;
    struct ebpfMonQueryInHand *in = bpf_map_lookup_elem(&inHand, &tid);

    if (in && in->tgid == e->tgid && in->below)
        return 0;
    n = in && in->tgid == e->tgid ? in->depth : 0;
    if (!n)
        return findRoot(e);
    n--;
    barrier_var(n);
    return in->at[n & (EBPFMON_QUERY_DEPTH - 1)].record;
}

/* Reads a field to "to": f->size bytes, which were 0. 0, or nonzero: it cannot be read. */
static __always_inline int readQueryField(const volatile struct ebpfMonQueryField *f, const struct queryEvent *e,
                                          __u64 *to)
{
    switch (f->what) {
    case EBPFMON_QUERY_ARG:       return readArg(f, e, to);
    case EBPFMON_QUERY_RETURN:    to[0] = widenNumber(e->returned, f->type); break;
    case EBPFMON_QUERY_DURATION:  to[0] = e->duration; break;
    case EBPFMON_QUERY_IOC:       to[0] = e->iocId; break;
    case EBPFMON_QUERY_THREAD:    readThreadName(e->task, to); break;
    case EBPFMON_QUERY_ROOT:      to[0] = e->iocId; to[1] = findRoot(e); break;
    case EBPFMON_QUERY_IN_HAND:   to[0] = e->iocId; to[1] = findInHand(e); break;
    case EBPFMON_QUERY_SYSCALL:   to[0] = e->syscall; break;
    case EBPFMON_QUERY_CPU:       to[0] = bpf_get_smp_processor_id(); break;
    case EBPFMON_QUERY_PREEMPTED: to[0] = e->preempted; break;
    case EBPFMON_QUERY_BEFORE:    readThreadName(e->before, to); break;
    case EBPFMON_QUERY_PUT:       readPut(e, to); break;
    case EBPFMON_QUERY_AUTHOR:    readAuthor(e, (struct ebpfMonQueryWho *)to); break;
    case EBPFMON_QUERY_PID:       to[0] = e->tgid; break;
    case EBPFMON_QUERY_TID:       to[0] = e->tid; break;
    case EBPFMON_QUERY_FUNCTION:  to[0] = e->iocId; to[1] = e->ip; break;
    case EBPFMON_QUERY_FILE:      readSyscallFile(e, (struct ebpfMonQueryFile *)to); break;
    case EBPFMON_QUERY_CLIENT:    readClient(e, (struct ebpfMonQueryWho *)to); break;
    }
    return 0;
}

static __always_inline int compareTerm(const volatile struct ebpfMonQueryTerm *t, const __u64 *is)
{
    __u64 flip = t->isSigned ? 1ull << 63 : 0, a = is[0] ^ flip, b = t->number ^ flip, differs = 0;

    switch (t->compare) {
    case EBPFMON_QUERY_EQUAL:      return a == b;
    case EBPFMON_QUERY_UNEQUAL:    return a != b;
    case EBPFMON_QUERY_LESS:       return a < b;
    case EBPFMON_QUERY_LESS_EQUAL: return a <= b;
    case EBPFMON_QUERY_MORE:       return a > b;
    case EBPFMON_QUERY_MORE_EQUAL: return a >= b;
    }
#pragma unroll
    for (int i = 0; i < EBPFMON_QUERY_WORDS; i++)
        differs |= (is[i] ^ t->text[i]) & t->mask[i];
    return t->compare == EBPFMON_QUERY_TEXT_EQUAL ? !differs : differs != 0;
}

/* What happens with an event. */
enum verdict { GOES_ON, IS_NOT_MEANT, IS_UNREADABLE };

/* Tests the conditions that are known by now. Stops at the first clause that is not true, because the values of an
 * event that the query does not want may not be readable. */
static __always_inline enum verdict testConditions(const struct queryEvent *e, enum queryMoment when, __u32 *met)
{
    __u64 is[EBPFMON_QUERY_WORDS];

#pragma unroll
    for (__u32 i = 0; i < EBPFMON_QUERY_TERMS; i++) {
        const volatile struct ebpfMonQueryTerm *t = &plan.term[i];
        __u32 bit = 1u << (t->clause & 31);

        if (i >= plan.terms || !isKnownAt(&t->field, when))
            continue;
        if (!(*met & bit)) {
            __builtin_memset(is, 0, sizeof(is));
            if (readQueryField(&t->field, e, is))
                return IS_UNREADABLE;
            if (compareTerm(t, is))
                *met |= bit;
            else if (t->isLast)
                return IS_NOT_MEANT;
        }
    }
    return GOES_ON;
}

/* Reads those parts of the key that are known by now. */
static __always_inline enum verdict takeKey(const struct queryEvent *e, enum queryMoment when, __u64 *key)
{
#pragma unroll
    for (__u32 i = 0; i < EBPFMON_QUERY_KEYS; i++)
        if (i < plan.keys && isKnownAt(&plan.key[i], when) &&
            readQueryField(&plan.key[i], e, key + plan.key[i].at / 8))
            return IS_UNREADABLE;
    if (plan.perPut && (when & (plan.lateOrigin ? END : BEGIN)))
        key[PUT_NUMBER_AT] = findPutNumber(e);
    return GOES_ON;
}

/* Nonzero: the event belongs to no put, and the query asks about puts. */
static __always_inline int isOutsidePuts(const __u64 *key)
{
    return plan.perPut && !key[PUT_NUMBER_AT];
}

/* Adds atomically, because a program of this CPU can be preempted by another one, and both may use the same cell. */
static __always_inline void sumValue(struct ebpfMonQueryCell *c, __s64 value, __u64 now)
{
    __u64 order = EBPFMON_QUERY_ORDER(value);
    __u32 bucket;

    __sync_fetch_and_add(&c->sum, value);
    /* these members are not atomic: of two values at the same moment, one may be missing here */
    if (order > c->high)
        c->high = order;
    if (~order > c->low)
        c->low = ~order;
    c->last = value;
    c->lastAt = now ? now : bpf_ktime_get_ns();
    if (plan.hist == EBPFMON_QUERY_NO_HIST || plan.perPut)
        return;
    if (plan.hist == EBPFMON_QUERY_LOG2)
        bucket = ebpfMonQueryBucket(value);
    else if (value < plan.from)
        bucket = 0;
    else {
        __u64 n = (__u64)(value - plan.from) / (__u64)plan.step;

        bucket = n < plan.steps ? (__u32)n + 1 : plan.steps + 1;
    }
    barrier_var(bucket);
    if (bucket < EBPFMON_QUERY_BUCKETS)
        __sync_fetch_and_add(&c->hist[bucket], 1);
}

static __always_inline struct ebpfMonQueryCell *getCell(const __u64 *key)
{
    struct ebpfMonQueryCell *c = bpf_map_lookup_elem(&cells, key);
    __u32 zero = 0;
    void *none;

    if (c)
        return c;
    none = bpf_map_lookup_elem(&noCell, &zero);
    if (!none)
        return 0;
    bpf_map_update_elem(&cells, key, none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&cells, key);
}

static __always_inline int isSampled(void)
{
    return plan.sample <= 1 || bpf_get_prandom_u32() % plan.sample == 0;
}

static __always_inline enum verdict takeValue(const struct queryEvent *e, enum queryMoment when, __s64 *value)
{
    return isKnownAt(&plan.value, when) && readQueryField(&plan.value, e, (__u64 *)value) ? IS_UNREADABLE : GOES_ON;
}

/* Counts an event that met all conditions, and is complete. */
static __always_inline void countEvent(const struct queryEvent *e, const __u64 *key, __s64 value)
{
    struct ebpfMonQueryCell *c;

    if (isOutsidePuts(key))
        return;
    __sync_fetch_and_add(&e->counts->passed, 1);
    c = getCell(key);
    if (!c) {
        __sync_fetch_and_add(&e->counts->full, 1);
        return;
    }
    __sync_fetch_and_add(&c->count, 1);
    if (plan.value.what != EBPFMON_QUERY_NOTHING)
        sumValue(c, value, e->now);
    else if (plan.perPut)
        c->lastAt = bpf_ktime_get_ns();
    if (plan.sends)
        sendEvent(e, key, value);
}

#endif
