/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the compiler calls with -fsanitize=thread before each access to memory (llvm, ThreadSanitizer.cpp). The run-time
 * library of that sanitizer is not linked: this is ours. It is compiled without that option.
 */
#include <stddef.h>
#include <stdint.h>

void exploreSee(const void *at, size_t size, int isWrite, const void *pc);

void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}

#define SEE(at, size, isWrite) exploreSee(at, size, isWrite, __builtin_return_address(0))

#define ACCESS(size)                                                         \
    void __tsan_read##size(void *at) { SEE(at, size, 0); }                   \
    void __tsan_write##size(void *at) { SEE(at, size, 1); }                  \
    void __tsan_unaligned_read##size(void *at) { SEE(at, size, 0); }         \
    void __tsan_unaligned_write##size(void *at) { SEE(at, size, 1); }        \
    void __tsan_read_write##size(void *at) { SEE(at, size, 1); }             \
    void __tsan_unaligned_read_write##size(void *at) { SEE(at, size, 1); }

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

/* One point before the whole operation. What it writes is what it has read, so it counts as a write. */
#define CHANGE(bits, name, new)                                                                          \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at, uint##bits##_t v, int order) \
    {                                                                                                    \
        uint##bits##_t was;                                                                              \
                                                                                                         \
        (void)order;                                                                                     \
        SEE((const void *)at, bits / 8, 1);                                                              \
        was = *at;                                                                                       \
        *at = (uint##bits##_t)(new);                                                                     \
        return was;                                                                                      \
    }

#define ATOMIC(bits)                                                                                      \
    CHANGE(bits, exchange, v)                                                                             \
    CHANGE(bits, fetch_add, was + v)                                                                      \
    CHANGE(bits, fetch_sub, was - v)                                                                      \
    CHANGE(bits, fetch_and, was & v)                                                                      \
    CHANGE(bits, fetch_or, was | v)                                                                       \
    CHANGE(bits, fetch_xor, was ^ v)                                                                      \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)               \
    {                                                                                                     \
        (void)order;                                                                                      \
        SEE((const void *)at, bits / 8, 0);                                                               \
        return *at;                                                                                       \
    }                                                                                                     \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t v, int order)            \
    {                                                                                                     \
        (void)order;                                                                                      \
        SEE((const void *)at, bits / 8, 1);                                                               \
        *at = v;                                                                                          \
    }                                                                                                     \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile uint##bits##_t *at, uint##bits##_t is, \
                                                              uint##bits##_t v, int order, int failed)    \
    {                                                                                                     \
        uint##bits##_t was;                                                                               \
                                                                                                          \
        (void)order;                                                                                      \
        (void)failed;                                                                                     \
        SEE((const void *)at, bits / 8, 1);                                                               \
        was = *at;                                                                                        \
        if (was == is)                                                                                    \
            *at = v;                                                                                      \
        return was;                                                                                       \
    }

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void __tsan_atomic_thread_fence(int order) { (void)order; }
void __tsan_atomic_signal_fence(int order) { (void)order; }

/* The compiler leaves calls of these as they are; the linker brings them here (--wrap). They go word by word, as the
 * kernel's. */
#define WORD 8

void *__real_memset(void *to, int value, size_t size);
void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);

static size_t takeWord(const char *at, size_t left)
{
    size_t n = WORD - (uintptr_t)at % WORD;

    return n < left ? n : left;
}

void *__wrap_memset(void *to, int value, size_t size)
{
    for (size_t done = 0, n; done < size; done += n) {
        char *at = (char *)to + done;

        n = takeWord(at, size - done);
        SEE(at, n, 1);
        __real_memset(at, value, n);
    }
    return to;
}

/* "from" and "to" have the same place in their words, or one of both is a thread's own. */
void *__wrap_memcpy(void *to, const void *from, size_t size)
{
    for (size_t done = 0, n; done < size; done += n) {
        char *at = (char *)to + done;
        const char *source = (const char *)from + done;
        char word[WORD];

        n = takeWord(source, size - done);
        SEE(source, n, 0);
        __real_memcpy(word, source, n);
        SEE(at, n, 1);
        __real_memcpy(at, word, n);
    }
    return to;
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
    SEE(from, size, 0);
    SEE(to, size, 1);
    return __real_memmove(to, from, size);
}

/* Later releases of clang call these instead. */
void *__tsan_memset(void *to, int value, size_t size) { return __wrap_memset(to, value, size); }
void *__tsan_memcpy(void *to, const void *from, size_t size) { return __wrap_memcpy(to, from, size); }
void *__tsan_memmove(void *to, const void *from, size_t size) { return __wrap_memmove(to, from, size); }
