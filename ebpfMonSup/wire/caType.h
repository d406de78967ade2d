/* SPDX-License-Identifier: BSD-3-Clause */
/* The types of Channel Access as they are sent (db_access.h). */
#ifndef EBPFMON_CATYPE_H
#define EBPFMON_CATYPE_H

#include <stdint.h>

#define EBPFMON_CA_TYPES 39 /* DBR_STRING 0 … DBR_CLASS_NAME 38 */

enum { EBPFMON_CA_PUT_ACKT = 35, EBPFMON_CA_PUT_ACKS, EBPFMON_CA_STSACK_STRING, EBPFMON_CA_CLASS_NAME };

typedef struct {
    uint8_t  base;  /* DBR_STRING 0 … DBR_DOUBLE 6 */
    uint8_t  size;  /* bytes of an element */
    uint16_t meta;  /* bytes before the first element: status, time stamp, units, limits, … */
} ebpfMonCaType;

/* Nonzero: a put of this type acknowledges an alarm. */
static inline int ebpfMonCaTypeIsAcknowledge(int type)
{
    return type == EBPFMON_CA_PUT_ACKT || type == EBPFMON_CA_PUT_ACKS;
}

extern const ebpfMonCaType ebpfMonCaTypes[EBPFMON_CA_TYPES];

#endif
