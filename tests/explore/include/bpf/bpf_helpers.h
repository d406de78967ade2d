/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for libbpf's header of this name: so the programs of bpf/ are compiled for user space as they are. The
 * helpers of the kernel are functions of helpers.c. A table is declared as always; it is only the key by which
 * helpers.c finds its elements.
 */
#ifndef __BPF_HELPERS__ /* as there, because libbpf 1.5 includes its own beside this one */
#define __BPF_HELPERS__

#include <stddef.h>
#include <stdint.h>
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <linux/types.h>

#define __uint(name, value) int (*name)[value]
#define __type(name, what)  what *name
#define __array(name, what) what *name[]
#define SEC(name)
#undef __always_inline
#define __always_inline     inline __attribute__((always_inline))
#define barrier_var(x)      __asm__("" : "+r"(x))

/* The only statements that are written in the machine language of BPF are "__asm__ volatile(...)". They change no
 * result that counts (core.bpf.h and timing.bpf.h say what for), so here they are empty. */
#define volatile(...) ("")

/* Each variable of the programs is memory that threads share. */
#pragma clang section bss = "exploreShared"

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
long bpf_map_pop_elem(void *map, void *value);
long bpf_map_push_elem(void *map, const void *value, __u64 flags);
long bpf_probe_read_user(void *to, __u32 size, const void *from);
long bpf_probe_read_user_str(void *to, __u32 size, const void *from);
long bpf_loop(__u32 count, void *step, void *walk, __u64 flags);
__u64 bpf_ktime_get_ns(void);
__u64 bpf_get_current_pid_tgid(void);
long bpf_get_current_comm(void *to, __u32 size);

void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags);
long bpf_seq_write(void *seq, const void *from, __u32 size);
int bpf_get_smp_processor_id(void);

/* What has no part in counting. No random number: then no run is timed (beginTiming in timing.bpf.h). */
static inline __u32 bpf_get_prandom_u32(void) { return 1; }
static inline __u64 bpf_get_current_task(void) { return 0; }
static inline __u64 bpf_get_attach_cookie(void *ctx) { return 0; }
static inline void *bpf_get_current_task_btf(void) { return 0; }
static inline void *bpf_task_pt_regs(void *task) { return task; }
static inline __u64 bpf_get_current_uid_gid(void) { return 0; }
static inline long bpf_probe_read_kernel(void *to, __u32 size, const void *from) { return -1; }
static inline long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from) { return -1; }
static inline void bpf_ringbuf_submit(void *event, __u64 flags) {}
static inline void bpf_ringbuf_discard(void *event, __u64 flags) {}
static inline long bpf_ringbuf_output(void *ring, void *event, __u64 size, __u64 flags) { return 0; }
static inline __u64 bpf_ringbuf_query(void *ring, __u64 what) { return 1 << 20; }
static inline void bpf_tail_call(void *ctx, void *map, __u32 at) {}

#endif
