/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "wire/tls.h"

#define CHANGE_CIPHER 20 /* types of records */
#define ALERT         21
#define HANDSHAKE     22
#define DATA          23
#define CLIENT_HELLO  1
#define SERVER_HELLO  2
#define HEAD          5
#define LENGTH_MAX    16640
#define ALERT_LENGTH  2
#define HIDDEN_ALERT  19 /* TLS 1.3: with its type, and 16 bytes that prove it */

static unsigned lengthOf(const ebpfMonTlsSide *s)
{
    return (unsigned)s->head[3] << 8 | s->head[4];
}

/* Nonzero: the head, and what there is of the first two bytes, may be those of a record. */
static int isRecord(const ebpfMonTlsSide *s, int isServer)
{
    unsigned type = s->head[0];

    if (type < CHANGE_CIPHER || type > DATA || s->head[1] != 3 || s->head[2] > 4 || !lengthOf(s) ||
        lengthOf(s) > LENGTH_MAX)
        return 0;
    if (s->records > 1)
        return 1;
    return type == HANDSHAKE ? s->have == HEAD || s->head[HEAD] == (isServer ? SERVER_HELLO : CLIENT_HELLO)
                             : isServer && type == ALERT;
}

/* The head of a record is complete. */
static void noteRecord(ebpfMonTlsSide side[2], int from, int server)
{
    ebpfMonTlsSide *s = &side[from];

    if (from != server)
        s->hasAnswered |= s->head[0] == DATA || (s->head[0] == HANDSHAKE && s->head[HEAD] != CLIENT_HELLO);
    else if (side[!server].hasAnswered && s->head[0] == DATA && lengthOf(s) != HIDDEN_ALERT)
        s->isDone = 1;
}

void ebpfMonTlsAdd(ebpfMonTlsSide side[2], int from, int server, const uint8_t *p, size_t n)
{
    ebpfMonTlsSide *s = &side[from];

    while (n && !s->isLost && server >= 0) {
        size_t skip = s->left < n ? s->left : n;

        s->left -= (uint32_t)skip;
        p += skip;
        n -= skip;
        if (!n)
            break;
        if (s->have == HEAD + 2 || (s->have > HEAD && s->have - HEAD == (int)lengthOf(s))) { /* the next record */
            memset(s->head, 0, sizeof(s->head));
            s->have = 0;
        }
        s->head[s->have++] = *p++;
        n--;
        s->records += s->have == HEAD;
        if (s->have >= HEAD && !isRecord(s, from == server)) {
            s->isLost = 1;
        } else if (s->have > HEAD && (s->have == HEAD + 2 || lengthOf(s) == 1)) {
            s->left = lengthOf(s) > 2 ? lengthOf(s) - 2 : 0;
            noteRecord(side, from, server);
        }
    }
}

void ebpfMonTlsLose(ebpfMonTlsSide *side)
{
    side->isLost = 1;
}

int ebpfMonTlsIs(const ebpfMonTlsSide side[2], int server)
{
    return server >= 0 && side[0].records && side[1].records && !side[0].isLost && !side[1].isLost;
}

static const char *nameAlert(unsigned number)
{
    static const struct { unsigned number; const char *name; } names[] = {
        {0, "close notify"}, {10, "unexpected message"}, {40, "handshake failure"}, {42, "bad certificate"},
        {43, "unsupported certificate"}, {44, "certificate revoked"}, {45, "certificate expired"},
        {46, "certificate unknown"}, {47, "illegal parameter"}, {48, "unknown CA"}, {49, "access denied"},
        {50, "decode error"}, {51, "decrypt error"}, {70, "protocol version"}, {71, "insufficient security"},
        {80, "internal error"}, {90, "user canceled"}, {109, "missing extension"}, {112, "unrecognized name"},
        {116, "certificate required"}, {120, "no application protocol"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].number == number)
            return names[i].name;
    return "an alert";
}

/* What the last record of this side says. Nonzero: it is, or seems to be, an alert. */
static int tellAlert(const ebpfMonTlsSide *s, const char *who, const char *other, char *text, size_t size)
{
    if (!s->records || s->isLost)
        return 0;
    if (s->head[0] == ALERT && lengthOf(s) == ALERT_LENGTH && s->have == HEAD + 2)
        snprintf(text, size, "the %s says: %s (alert %u)", who, nameAlert(s->head[HEAD + 1]), s->head[HEAD + 1]);
    else if (s->head[0] == ALERT || (s->head[0] == DATA && lengthOf(s) == HIDDEN_ALERT))
        snprintf(text, size, "the %s has sent an encrypted alert: perhaps it does not accept the %s's certificate", who,
                 other);
    else
        return 0;
    return 1;
}

int ebpfMonTlsHasFailed(const ebpfMonTlsSide side[2], int server, int closer, char *text, size_t size)
{
    const ebpfMonTlsSide *s, *c;

    if (server < 0)
        return 0;
    s = &side[server];
    c = &side[!server];
    if (!c->records || c->isLost || s->isLost || s->isDone)
        return 0;
    if (tellAlert(s, "server", "client", text, size) || tellAlert(c, "client", "server", text, size))
        return 1;
    snprintf(text, size, "%s %s", closer < 0 ? "nothing more was seen of it," :
             closer == server ? "the server ended the connection" : "the client ended the connection",
             !s->records ? "before the server answered" : "before the handshake was done");
    return 1;
}
