/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake of TLS (RFC 8446, RFC 5246), as far as packets show it: the heads of its records, and alerts before the
 * keys are agreed on. For a connection whose protocol is not known yet. No memory of its own.
 */
#ifndef EBPFMON_TLS_H
#define EBPFMON_TLS_H

#include <stddef.h>
#include <stdint.h>

/* One direction. Zeros at first. */
typedef struct {
    uint8_t  isLost;      /* it is no TLS, or bytes are missing */
    uint8_t  have;        /* bytes of "head" */
    uint8_t  head[7];     /* of the last record: type, version, length, and the first two bytes of its content */
    uint32_t left;        /* bytes of the record that are to come after the head */
    unsigned records;
    uint8_t  hasAnswered; /* of a client: it has answered the server's hello */
    uint8_t  isDone;      /* of a server: it has gone on after that, so it has accepted the client */
} ebpfMonTlsSide;

/* "side": both directions; "from": the one that has sent the bytes; "server": that of the server. */
void ebpfMonTlsAdd(ebpfMonTlsSide side[2], int from, int server, const uint8_t *p, size_t n);
/* The next bytes of this direction are missing. */
void ebpfMonTlsLose(ebpfMonTlsSide *side);

/* Nonzero: both ends have sent records of TLS, and nothing else. */
int ebpfMonTlsIs(const ebpfMonTlsSide side[2], int server);

/* When the connection has ended. Nonzero: a handshake has failed, and "text" says what is known of the cause.
 * "closer": who has ended it first; -1: nobody, or not seen. */
int ebpfMonTlsHasFailed(const ebpfMonTlsSide side[2], int server, int closer, char *text, size_t size);

#endif
