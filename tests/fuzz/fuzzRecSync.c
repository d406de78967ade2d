/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is what a RecSync server sends: an announcement, or messages, which arrive in parts of any size. */
#include "inventory/recSyncLink.h"
#include "fuzz.h"

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    ebpfMonRecSyncServer server;
    ebpfMonRecSyncIn in = {{0}};
    uint32_t nonce;
    int message = ebpfMonRecSyncNothing;

    if (ebpfMonRecSyncParseAnnouncement(data, size, &server) == 0)
        FUZZ_CHECK(server.port != 0);
    for (size_t at = 0, step = 1; at < size && message != ebpfMonRecSyncBad; step = step % 37 + 5) {
        size_t room;
        uint8_t *to = ebpfMonRecSyncInGetRoom(&in, &room);

        FUZZ_CHECK(room > 0); /* else nothing more could be received */
        room = room < step ? room : step;
        room = room < size - at ? room : size - at;
        memcpy(to, data + at, room);
        at += room;
        ebpfMonRecSyncInAdd(&in, room);
        while ((message = ebpfMonRecSyncInTake(&in, &nonce)) != ebpfMonRecSyncNothing && message != ebpfMonRecSyncBad)
            ;
    }
}
