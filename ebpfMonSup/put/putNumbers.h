/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds puts that were missed: each thread of an IOC numbers its puts, so a gap in the numbers is a put that was not
 * seen. Event thread only. */
#ifndef EBPFMON_PUTNUMBERS_H
#define EBPFMON_PUTNUMBERS_H

#include <stdint.h>

typedef struct ebpfMonPutNumbers ebpfMonPutNumbers;

/* "countLost": number of events that were lost so far; their numbers are missing for this reason. NULL without
 * memory. */
ebpfMonPutNumbers *ebpfMonPutNumbersNew(uint64_t (*countLost)(void *arg), void *arg);
void ebpfMonPutNumbersFree(ebpfMonPutNumbers *numbers); /* NULL does no harm */

/* The put with this number has come; "at": monotonic ns when it was made. Returns how many before it are missing for no
 * known reason. */
uint64_t ebpfMonPutNumbersAdd(ebpfMonPutNumbers *numbers, uint32_t iocId, uint32_t tid, uint64_t number, uint64_t at);

#endif
