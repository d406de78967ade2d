/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of a Channel Access message (caProto.h), and checks of its contents. */
#ifndef EBPFMON_CAMESSAGE_H
#define EBPFMON_CAMESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/caType.h"

enum {
    EBPFMON_CA_VERSION = 0,
    EBPFMON_CA_EVENT_ADD = 1,
    EBPFMON_CA_EVENT_CANCEL = 2,
    EBPFMON_CA_READ = 3,
    EBPFMON_CA_WRITE = 4,
    EBPFMON_CA_SEARCH = 6,
    EBPFMON_CA_EVENTS_OFF = 8,
    EBPFMON_CA_EVENTS_ON = 9,
    EBPFMON_CA_READ_SYNC = 10,
    EBPFMON_CA_ERROR = 11,
    EBPFMON_CA_CLEAR_CHANNEL = 12,
    EBPFMON_CA_RSRV_IS_UP = 13,
    EBPFMON_CA_NOT_FOUND = 14,
    EBPFMON_CA_READ_NOTIFY = 15,
    EBPFMON_CA_REPEATER_CONFIRM = 17,
    EBPFMON_CA_CREATE_CHAN = 18,
    EBPFMON_CA_WRITE_NOTIFY = 19,
    EBPFMON_CA_CLIENT_NAME = 20,
    EBPFMON_CA_HOST_NAME = 21,
    EBPFMON_CA_ACCESS_RIGHTS = 22,
    EBPFMON_CA_ECHO = 23,
    EBPFMON_CA_REPEATER_REGISTER = 24,
    EBPFMON_CA_CREATE_CH_FAIL = 26,
    EBPFMON_CA_SERVER_DISCONN = 27
};

#define EBPFMON_CA_HEADER     16
#define EBPFMON_CA_HEADER_MAX 24  /* the longer header, with sizes of 32 bits */
#define EBPFMON_CA_NAME_MAX   1000
#define EBPFMON_CA_NORMAL     1   /* caerr.h: ECA_NORMAL */
#define EBPFMON_CA_NOWTACCESS 376 /* caerr.h: ECA_NOWTACCESS */

typedef struct {
    unsigned cmd, type;
    uint32_t size;   /* bytes of the payload */
    uint32_t count;
    uint32_t cid;    /* m_cid */
    uint32_t extra;  /* m_available */
    size_t   head;   /* bytes of the header; the payload follows */
} ebpfMonCaHeader;

/* Reads a header from "have" bytes. 1: done; 0: it needs more bytes; -1: this is no header. */
int ebpfMonCaHeaderParse(ebpfMonCaHeader *header, const uint8_t *p, size_t have);
/* Nonzero: a TCP peer can send this header. "strict": we do not know if this is a message at all; else it follows
 * another message. */
int ebpfMonCaHeaderPlausible(const ebpfMonCaHeader *header, int fromServer, int strict);
/* Copies the text at "p" (at most "n" bytes, without its padding) to "text". -1: it contains control characters. */
int ebpfMonCaText(char *text, size_t size, const uint8_t *p, size_t n);

#endif
