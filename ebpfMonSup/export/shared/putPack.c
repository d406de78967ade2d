/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "export/shared/putPack.h"

typedef struct {
    epicsTimeStamp time;
    uint64_t at;
    double   number, oldNumber;
    int64_t  count, oldCount, status;
    uint64_t hash;
    uint32_t pid, uid;
    uint8_t  hasOld, isNumber, oldIsNumber, isText, oldIsText, through, result, seen, unexpected, isUnsure, isPartly;
} fixedMembers;

#define TEXT(member) {offsetof(ebpfMonPut, member), sizeof(((ebpfMonPut *)0)->member)}

static const struct {
    size_t at, size;
} texts[] = {
    TEXT(ioc), TEXT(pv), TEXT(channel), TEXT(val), TEXT(old), TEXT(after), TEXT(user), TEXT(host), TEXT(peer),
    TEXT(server), TEXT(realUser), TEXT(command), TEXT(container), TEXT(thread), TEXT(link), TEXT(linkIoc),
    TEXT(root), TEXT(cause), TEXT(message), TEXT(rule), TEXT(group), TEXT(published),
};

size_t ebpfMonPutPack(const ebpfMonPut *put, uint8_t *buf)
{
    fixedMembers f = {
        .time = put->time, .at = put->at, .number = put->number, .oldNumber = put->oldNumber, .count = put->count,
        .oldCount = put->oldCount, .status = put->status, .hash = put->hash, .pid = put->peerPid,
        .uid = put->peerUid, .hasOld = !!put->hasOld, .isNumber = !!put->isNumber,
        .oldIsNumber = !!put->oldIsNumber, .isText = !!put->isText, .oldIsText = !!put->oldIsText,
        .through = (uint8_t)put->through, .result = (uint8_t)put->result,
        .seen = (uint8_t)put->seen, .unexpected = !!put->unexpected, .isUnsure = !!put->isUnsure,
        .isPartly = !!put->isPartly,
    };
    uint8_t *to = buf;

    memcpy(to, &f, sizeof(f));
    to += sizeof(f);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = (const char *)put + texts[i].at;
        size_t len = text[0] ? strnlen(text, texts[i].size - 1) : 0;

        memcpy(to, text, len);
        to += len;
        *to++ = 0;
    }
    return (size_t)(to - buf);
}

void ebpfMonPutUnpack(const uint8_t *buf, size_t len, ebpfMonPut *put)
{
    const uint8_t *from = buf + sizeof(fixedMembers), *end = buf + len;
    fixedMembers f;

    memcpy(&f, buf, sizeof(f));
    put->time = f.time;
    put->at = f.at;
    put->number = f.number;
    put->oldNumber = f.oldNumber;
    put->count = (long)f.count;
    put->oldCount = (long)f.oldCount;
    put->status = (long)f.status;
    put->hash = f.hash;
    put->peerPid = f.pid;
    put->peerUid = f.uid;
    put->hasOld = f.hasOld;
    put->isNumber = f.isNumber;
    put->oldIsNumber = f.oldIsNumber;
    put->isText = f.isText;
    put->oldIsText = f.oldIsText;
    put->through = f.through;
    put->result = f.result;
    put->seen = f.seen;
    put->unexpected = f.unexpected;
    put->isUnsure = f.isUnsure;
    put->isPartly = f.isPartly;
    put->who[0] = put->origin[0] = 0;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char *text = (char *)put + texts[i].at;
        size_t size = strnlen((const char *)from, (size_t)(end - from)) + 1;

        memcpy(text, from, size);
        from += size;
    }
}
