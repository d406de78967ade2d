/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * How a program goes through many things: step by step, until a step returns nonzero. The steps share one struct.
 *
 * Since kernel 5.17, bpf_loop() does that, and the struct is on the stack. For older kernels (EBPFMON_OLD_KERNEL) it is
 * a loop, and the verifier checks each round of it. It can check 16384 rounds if each is short.
 *
 * A step is a global function. The verifier checks it only once, for any contents of the struct. It would check a step
 * that is no global function, or is inlined, once for each state in which an earlier step may leave the struct. Before
 * 5.12 (e5069b9c23b3) such a function takes only numbers. So for old kernels the struct is in a table with one element
 * for each CPU. No other program uses it meanwhile, because before 6.0 (8c7dcb84e3b7) the program of a uprobe cannot be
 * preempted.
 *
 * WALK_ROOM(room, struct type) defines the table.
 * DEFINE_WALK(step, struct type, room) stands after "static __always_inline long step(__u32 i, struct type *walk)".
 * DEFINE_WALK_INLINE is the same for a struct with pointers, which a global function may not use: only for old kernels,
 * where the struct has none, the step is one.
 * BEGIN_WALK(room, struct type, walk) declares "walk"; its contents are undefined. With old kernels it may be NULL.
 * WALK(step, n, walk) makes n steps, at most 16384. With old kernels, the step itself must find the end.
 */
#ifndef EBPFMON_WALK_BPF_H
#define EBPFMON_WALK_BPF_H

#include "common/core.bpf.h"

#ifdef EBPFMON_OLD_KERNEL

#define WALK_ROUNDS 128 /* rounds of one loop; two loops are nested */

#define WALK_ROOM(room, what)                     \
    TABLE(room##Room, PERCPU_ARRAY, 1, __u32, what); \
                                                  \
    static __always_inline what *room##FindRoom(void) \
    {                                             \
        __u32 zero = 0;                           \
                                                  \
        return bpf_map_lookup_elem(&room##Room, &zero); \
    }

#define DEFINE_WALK(step, what, room)                            \
    __attribute__((noinline)) int ebpfmon_##step(__u32 i)        \
    {                                                            \
        what *walk = room##FindRoom();                           \
                                                                 \
        return !walk || step(i, walk);                           \
    }                                                            \
                                                                 \
    __attribute__((noinline)) int ebpfmon_some_##step(__u32 from) \
    {                                                            \
        _Pragma("clang loop unroll(disable)")                    \
        for (__u32 k = 0; k < WALK_ROUNDS; k++)                   \
            if (ebpfmon_##step(from + k))                        \
                return 1;                                        \
        return 0;                                                \
    }

#define DEFINE_WALK_INLINE DEFINE_WALK

#define BEGIN_WALK(room, what, walk) what *walk = room##FindRoom()

#define WALK(step, n, walk)                                         \
    do {                                                            \
        _Pragma("clang loop unroll(disable)")                       \
        for (__u32 round_ = 0; round_ < WALK_ROUNDS; round_++)          \
            if (ebpfmon_some_##step(round_ * WALK_ROUNDS))            \
                break;                                              \
    } while (0)

#else

#define WALK_ROOM(room, what)

/* What a function that bpf_loop() calls returns: the verifier takes 0 and 1 only. The compiler may know that a step
 * returns nothing else, and leave the comparison out; clang does since 17. The verifier knows nothing of what a global
 * function returns, so the compiler must not know it, either. */
static __always_inline long endsLoop(long result)
{
    barrier_var(result);
    return result != 0;
}

#define DEFINE_WALK(step, what, room)                                 \
    __attribute__((noinline)) int ebpfmon_##step(__u32 i, what *walk) \
    {                                                                 \
        return !walk || step(i, walk);                                \
    }                                                                 \
                                                                      \
    static long step##InLoop(__u32 i, what *walk)                     \
    {                                                                 \
        return endsLoop(ebpfmon_##step(i, walk));                     \
    }

#define DEFINE_WALK_INLINE(step, what, room)      \
    static long step##InLoop(__u32 i, what *walk) \
    {                                             \
        return endsLoop(step(i, walk));           \
    }

#define BEGIN_WALK(room, what, walk) what walk##Own, *walk = &walk##Own
#define WALK(step, n, walk)          bpf_loop(n, step##InLoop, walk, 0)

#endif

#endif
