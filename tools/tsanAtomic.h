/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tools/tsan.sh, included first in every file. Base reads and sets an atomic by a plain access beside a memory
 * barrier (epicsAtomicDefault.h). ThreadSanitizer knows no barriers, and would report each of them. These do the same
 * by the compiler's atomics, which it knows, so a plain access to the same member is still reported.
 */
#ifndef EBPFMON_TSANATOMIC_H
#define EBPFMON_TSANATOMIC_H

#include <stddef.h>

#define EPICS_ATOMIC_SET_INTT
static inline void epicsAtomicSetIntT(int *target, int value)
{
    __atomic_store_n(target, value, __ATOMIC_SEQ_CST);
}

#define EPICS_ATOMIC_GET_INTT
static inline int epicsAtomicGetIntT(const int *target)
{
    return __atomic_load_n(target, __ATOMIC_SEQ_CST);
}

#define EPICS_ATOMIC_SET_SIZET
static inline void epicsAtomicSetSizeT(size_t *target, size_t value)
{
    __atomic_store_n(target, value, __ATOMIC_SEQ_CST);
}

#define EPICS_ATOMIC_GET_SIZET
static inline size_t epicsAtomicGetSizeT(const size_t *target)
{
    return __atomic_load_n(target, __ATOMIC_SEQ_CST);
}

#define EPICS_ATOMIC_SET_PTRT
static inline void epicsAtomicSetPtrT(void **target, void *value)
{
    __atomic_store_n(target, value, __ATOMIC_SEQ_CST);
}

#define EPICS_ATOMIC_GET_PTRT
static inline void *epicsAtomicGetPtrT(void *const *target)
{
    return __atomic_load_n(target, __ATOMIC_SEQ_CST);
}

#endif
