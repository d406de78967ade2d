/* SPDX-License-Identifier: BSD-3-Clause */
/* Values and names as packets carry them, as texts. No state. */
#ifndef EBPFMON_PACKETTEXT_H
#define EBPFMON_PACKETTEXT_H

#include <stddef.h>
#include <stdint.h>

/* Formats "have" bytes of the elements of a CA message, of a plain type (DBR_STRING 0 … DBR_DOUBLE 6). *isNumber: the
 * value is a single number, and *number has it; the index of an enum does not count as a number. Nonzero: it is a text,
 * or an array of texts. */
int ebpfMonPacketTextFormatCa(const uint8_t *data, uint32_t have, int baseType, uint32_t count, char *buf, size_t size,
                              int *isNumber, double *number);

/* Nonzero: the text is a number and nothing else. The texts "true" and "2 (Fast)" of PVA are no numbers here. */
int ebpfMonPacketTextIsNumber(const char *text);

/* Length of a channel's name without ".VAL", without an empty field, and without modifiers and filters of Base
 * (dbChannelCreate): all these names lead to the same field. */
size_t ebpfMonPacketTextGetNameLength(const char *channel);

#endif
