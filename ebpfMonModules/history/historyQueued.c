/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "history/historyQueued.h"

#define TEXTS (1 + EBPFMON_HISTORY_TEXTS)

/* Followed by the texts, each with its 0. */
typedef struct {
    uint64_t time;
    int32_t  automatic, isNumber;
    double   number;
} queuedHead;

size_t ebpfMonHistoryQueuedPack(uint64_t time, int automatic, const char *const text[TEXTS],
                                uint8_t buf[EBPFMON_HISTORY_QUEUED])
{
    queuedHead head = { .time = time, .automatic = automatic };
    size_t used = sizeof(head);
    char *end;

    if (automatic && text[3] && text[3][0] && strcmp(text[0], "put") == 0) {
        head.number = strtod(text[3], &end);
        head.isNumber = !*end;
    }
    memcpy(buf, &head, sizeof(head));
    for (int i = 0; i < TEXTS; i++) {
        size_t length = text[i] ? strlen(text[i]) : 0;
        size_t room = EBPFMON_HISTORY_QUEUED - used - (size_t)(TEXTS - i);

        if (length > room)
            length = room;
        memcpy(buf + used, text[i] ? text[i] : "", length);
        buf[used + length] = 0;
        used += length + 1;
    }
    return used;
}

void ebpfMonHistoryQueuedUnpack(const uint8_t *at, ebpfMonHistoryRow *row)
{
    const char *p = (const char *)at + sizeof(queuedHead), **text[EBPFMON_HISTORY_TEXTS];
    queuedHead head;

    memcpy(&head, at, sizeof(head));
    *row = (ebpfMonHistoryRow){
        .time = head.time, .first = head.time, .kind = p, .automatic = head.automatic, .n = 1,
        .isNumber = head.isNumber, .least = head.number, .most = head.number,
    };
    ebpfMonHistoryRowList(row, text);
    for (int i = 0; i < EBPFMON_HISTORY_TEXTS; i++) {
        p += strlen(p) + 1;
        *text[i] = p;
    }
}
