/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * How a program goes through many things: step by step, until a step returns nonzero. What the steps share is a struct of
 * the walk.
 *
 * From kernel 5.17 on bpf_loop does that, and the struct is on the stack. Before (EBPFMON_OLD_KERNEL) it is a loop, and the
 * verifier goes through it turn by turn: 16384 of them are few enough if a turn is short for it. So a step is a global
 * function, through which it goes only once. Before 5.12 (e5069b9c23b3) such a function takes numbers alone. So the struct
 * is in a table, one for each CPU. No other program uses it meanwhile: before 6.0 (8c7dcb84e3b7) the program of a uprobe
 * cannot be preempted.
 *
 *   WALK_ROOM(room, struct type)        the table
 *   DEFINE_WALK(step, struct type, room)   behind "static long step(__u32 i, struct type *walk)"
 *   BEGIN_WALK(room, struct type, walk)    declares "walk"; what is in it is not known. Old kernels: NULL is possible
 *   WALK(step, n, walk)                 n steps, at most 16384; with old kernels a step must know the end itself
 */
#ifndef EBPFMON_WALK_BPF_H
#define EBPFMON_WALK_BPF_H

#include "core.bpf.h"

#ifdef EBPFMON_OLD_KERNEL

#define WALK_TURNS 128 /* of one loop; two are in each other */

#define WALK_ROOM(room, what)                     \
    struct {                                      \
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);  \
        __uint(max_entries, 1);                   \
        __type(key, __u32);                       \
        __type(value, what);                      \
    } room##Room SEC(".maps");                    \
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
        for (__u32 k = 0; k < WALK_TURNS; k++)                   \
            if (ebpfmon_##step(from + k))                        \
                return 1;                                        \
        return 0;                                                \
    }

#define BEGIN_WALK(room, what, walk) what *walk = room##FindRoom()

#define WALK(step, n, walk)                                         \
    do {                                                            \
        _Pragma("clang loop unroll(disable)")                       \
        for (__u32 turn_ = 0; turn_ < WALK_TURNS; turn_++)          \
            if (ebpfmon_some_##step(turn_ * WALK_TURNS))            \
                break;                                              \
    } while (0)

#else

#define WALK_ROOM(room, what)
#define DEFINE_WALK(step, what, room)
#define BEGIN_WALK(room, what, walk) what walk##Own, *walk = &walk##Own
#define WALK(step, n, walk)          bpf_loop(n, step, walk, 0)

#endif

#endif
