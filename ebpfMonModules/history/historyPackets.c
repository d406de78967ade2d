/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <epicsMutex.h>

#include "common/files.h"
#include "common/hash.h"
#include "history/historyPackets.h"
#include "history/packetNotes.h"
#include "wire/packet.h"

/* --- ring --- */

int ebpfMonHistoryRingInit(ebpfMonHistoryRing *r, size_t size)
{
    *r = (ebpfMonHistoryRing){ .bytes = malloc(size), .size = size };
    return r->bytes ? 0 : -1;
}

static void copyIn(ebpfMonHistoryRing *r, const void *from, size_t length)
{
    size_t at = r->end % r->size, first = length < r->size - at ? length : r->size - at;

    memcpy(r->bytes + at, from, first);
    memcpy(r->bytes, (const char *)from + first, length - first);
    r->end += length;
}

static void copyOut(const ebpfMonHistoryRing *r, uint64_t from, void *to, size_t length)
{
    size_t at = from % r->size, first = length < r->size - at ? length : r->size - at;

    memcpy(to, r->bytes + at, first);
    memcpy((char *)to + first, r->bytes, length - first);
}

static uint32_t getLength(const ebpfMonHistoryRing *r, uint64_t at)
{
    uint32_t length;

    copyOut(r, at, &length, sizeof(length));
    return length;
}

void ebpfMonHistoryRingAdd(ebpfMonHistoryRing *r, const struct iovec *part, int parts)
{
    uint32_t length = 0;

    for (int i = 0; i < parts; i++)
        length += (uint32_t)part[i].iov_len;
    if (sizeof(length) + length > r->size)
        return;
    while (r->end - r->first + sizeof(length) + length > r->size)
        r->first += sizeof(length) + getLength(r, r->first);
    copyIn(r, &length, sizeof(length));
    for (int i = 0; i < parts; i++)
        copyIn(r, part[i].iov_base, part[i].iov_len);
}

size_t ebpfMonHistoryRingRead(const ebpfMonHistoryRing *r, uint64_t *at, uint64_t end, void *buf, size_t size)
{
    uint32_t length;

    if (*at < r->first)
        *at = r->first;
    if (*at >= end)
        return 0;
    length = getLength(r, *at);
    if (length > size)
        return 0;
    copyOut(r, *at + sizeof(length), buf, length);
    *at += sizeof(length) + length;
    return length;
}

/* --- packets --- */

#define IP_BYTES   65600 /* the longest packet */
#define NOTE_BYTES 2100
#define COMMENT_BYTES 12000 /* a note, and what is known of its puts */
#define LINE_BYTES 300
#define CIRCUITS   4096  /* whose lines are remembered while a file is written */
#define NAMESPACES 64    /* that are told apart in a file */
#define SIGN_PACKETS 5000 /* written between two signs of the thread */

/* An entry of the ring: this, the bytes that are kept, and the note without its 0. */
typedef struct {
    uint64_t time;
    uint32_t netns, sent, kept, note;
} entryHead;

struct ebpfMonHistoryPackets {
    epicsMutexId lock;     /* guards the ring */
    ebpfMonHistoryRing ring;
    size_t payload;        /* fixed */
};

/* A file while it is written. */
typedef struct {
    FILE    *out;
    uint8_t  entry[sizeof(entryHead) + IP_BYTES + NOTE_BYTES];
    uint8_t  block[IP_BYTES + COMMENT_BYTES + 100];
    char     comment[COMMENT_BYTES];
    ebpfMonPacketChains *chains; /* NULL: not known */
    size_t   used;         /* bytes of the block */
    uint32_t netns[NAMESPACES];
    unsigned namespaces;
    struct {
        uint64_t key;
        char     line[LINE_BYTES]; /* the first line of the last note of this connection */
    } circuit[CIRCUITS];
} packetFile;

ebpfMonHistoryPackets *ebpfMonHistoryPacketsNew(size_t bytes, size_t payload)
{
    ebpfMonHistoryPackets *p = calloc(1, sizeof(*p));

    if (!p || ebpfMonHistoryRingInit(&p->ring, bytes)) {
        free(p);
        return NULL;
    }
    p->payload = payload;
    p->lock = epicsMutexMustCreate();
    return p;
}

void ebpfMonHistoryPacketsAdd(ebpfMonHistoryPackets *p, const ebpfMonModulePacket *packet, const char *note)
{
    entryHead head = { .time = packet->time, .netns = packet->netns, .sent = (uint32_t)packet->sent,
                       .note = (uint32_t)strlen(note) };
    struct iovec part[] = { { &head, sizeof(head) }, { (void *)packet->ip, 0 }, { (void *)note, head.note } };
    ebpfMonSegment segment;
    ebpfMonPacketKind kind = ebpfMonPacketParse(packet->ip, packet->length, packet->sent, &segment);

    if (kind != ebpfMonPacketTcp && kind != ebpfMonPacketUdp)
        return;
    head.kept = (uint32_t)packet->length; /* no payload */
    if (segment.have)
        head.kept = (uint32_t)(segment.data - packet->ip) +
                    (uint32_t)(segment.have < p->payload ? segment.have : p->payload);
    if (head.kept > IP_BYTES || head.note > NOTE_BYTES)
        return;
    part[1].iov_len = head.kept;
    epicsMutexMustLock(p->lock);
    ebpfMonHistoryRingAdd(&p->ring, part, 3);
    epicsMutexUnlock(p->lock);
}

/* --- blocks of pcapng --- */

enum { blockSection = 0x0a0d0d0a, blockInterface = 1, blockPacket = 6 };
enum { optionEnd = 0, optionComment = 1, optionName = 2, optionProgram = 4, optionResolution = 9 };
#define LINK_RAW 101 /* LINKTYPE_RAW: begins with the header of IPv4 or IPv6 */

static void addBytes(packetFile *f, const void *bytes, size_t length)
{
    memcpy(f->block + f->used, bytes, length);
    f->used += length;
    while (f->used % 4)
        f->block[f->used++] = 0;
}

static void addWord(packetFile *f, uint32_t word)
{
    addBytes(f, &word, sizeof(word));
}

static void addOption(packetFile *f, uint16_t code, const void *value, size_t length)
{
    uint16_t head[2] = { code, (uint16_t)length };

    addBytes(f, head, sizeof(head));
    addBytes(f, value, length);
}

static void beginBlock(packetFile *f, uint32_t type)
{
    f->used = 0;
    addWord(f, type);
    addWord(f, 0); /* its length, which the end sets */
}

static void endBlock(packetFile *f)
{
    uint32_t length = (uint32_t)f->used + sizeof(length);

    memcpy(f->block + 4, &length, sizeof(length));
    addWord(f, length);
    fwrite(f->block, 1, f->used, f->out);
}

static void writeSection(packetFile *f, const char *note)
{
    static const uint16_t version[2] = { 1, 0 };
    static const uint64_t unknown = UINT64_MAX;
    static const char program[] = "ebpfMon";

    beginBlock(f, blockSection);
    addWord(f, 0x1a2b3c4d); /* tells the order of bytes */
    addBytes(f, version, sizeof(version));
    addBytes(f, &unknown, sizeof(unknown)); /* length of the section */
    addOption(f, optionComment, note, strlen(note));
    addOption(f, optionProgram, program, strlen(program));
    addWord(f, optionEnd);
    endBlock(f);
}

/* The interface of a packet is its network namespace. Those beyond the room share the last one. */
static uint32_t findInterface(packetFile *f, uint32_t netns)
{
    static const uint8_t nanoseconds = 9;
    char name[40];

    for (unsigned i = 0; i < f->namespaces; i++)
        if (f->netns[i] == netns)
            return i;
    if (f->namespaces == NAMESPACES)
        return NAMESPACES - 1;
    snprintf(name, sizeof(name), f->namespaces == NAMESPACES - 1 ? "other namespaces" : "net:[%u]", netns);
    beginBlock(f, blockInterface);
    addWord(f, LINK_RAW);
    addWord(f, 0); /* no limit of length */
    addOption(f, optionName, name, strlen(name));
    addOption(f, optionResolution, &nanoseconds, 1);
    addWord(f, optionEnd);
    endBlock(f);
    f->netns[f->namespaces] = netns;
    return f->namespaces++;
}

/* --- the file --- */

static uint64_t hashEnd(uint32_t addr, const uint32_t addr6[4], uint16_t port)
{
    uint64_t hash = ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, &addr, sizeof(addr));

    hash = ebpfMonHashFnv64(hash, addr6, 4 * sizeof(addr6[0]));
    return ebpfMonHashMix(ebpfMonHashFnv64(hash, &port, sizeof(port)));
}

/* The same in both directions. */
static uint64_t hashCircuit(const entryHead *head, const uint8_t *ip)
{
    ebpfMonSegment s;

    if (ebpfMonPacketParse(ip, head->kept, head->sent, &s) != ebpfMonPacketTcp)
        return 0;
    return ebpfMonHashMix(hashEnd(s.from, s.from6, s.fromPort) + hashEnd(s.to, s.to6, s.toPort) + head->netns);
}

/* The note of a packet; of one without, whose connection had one before, that one's first line. *length: of it. */
static const char *findNote(packetFile *f, const entryHead *head, const uint8_t *ip, size_t *length)
{
    const char *note = (const char *)ip + head->kept;
    uint64_t key = hashCircuit(head, ip);
    const char *end = memchr(note, '\n', head->note);
    size_t first = end ? (size_t)(end - note) : head->note;
    char *line = f->circuit[key % CIRCUITS].line;

    *length = head->note;
    if (key && head->note) {
        f->circuit[key % CIRCUITS].key = key;
        snprintf(line, LINE_BYTES, "%.*s", (int)first, note);
    } else if (key && f->circuit[key % CIRCUITS].key == key) {
        *length = strlen(line);
        return line;
    }
    return note;
}

/* The note, and after the trace of a put what is known of it. Returns the length. */
static size_t makeComment(packetFile *f, const char *note, size_t length)
{
    static const char trace[] = EBPFMON_PACKET_TRACE;
    const size_t name = sizeof(trace) - 1;
    size_t used = 0;

    for (const char *line = note, *end = note + length; line < end;) {
        const char *feed = memchr(line, '\n', (size_t)(end - line));
        size_t bytes = feed ? (size_t)(feed - line) : (size_t)(end - line), left = (size_t)(end - line);
        char id[40];

        if (used + left + 2 > sizeof(f->comment)) /* the lines of the note come first */
            break;
        memcpy(f->comment + used, line, bytes);
        used += bytes;
        f->comment[used++] = '\n';
        if (f->chains && bytes > name && memcmp(line, trace, name) == 0) {
            snprintf(id, sizeof(id), "%.*s", (int)(bytes - name), line + name);
            used += ebpfMonPacketChainsDescribe(f->chains, id, f->comment + used, sizeof(f->comment) - used - left);
        }
        line += bytes + (feed != NULL);
    }
    return used ? used - 1 : 0; /* without the last line feed */
}

static void writePacket(packetFile *f)
{
    entryHead head;
    const uint8_t *ip = f->entry + sizeof(head);
    const char *note;
    uint32_t interface;
    size_t length;

    memcpy(&head, f->entry, sizeof(head));
    interface = findInterface(f, head.netns);
    note = findNote(f, &head, ip, &length);
    length = makeComment(f, note, length);
    beginBlock(f, blockPacket);
    addWord(f, interface);
    addWord(f, (uint32_t)(head.time >> 32));
    addWord(f, (uint32_t)head.time);
    addWord(f, head.kept);
    addWord(f, head.sent);
    addBytes(f, ip, head.kept);
    if (length) {
        addOption(f, optionComment, f->comment, length);
        addWord(f, optionEnd);
    }
    endBlock(f);
}

static size_t readEntry(ebpfMonHistoryPackets *p, uint64_t *at, uint64_t end, packetFile *f)
{
    size_t length;

    epicsMutexMustLock(p->lock);
    length = ebpfMonHistoryRingRead(&p->ring, at, end, f->entry, sizeof(f->entry));
    epicsMutexUnlock(p->lock);
    return length;
}

int ebpfMonHistoryPacketsWrite(ebpfMonHistoryPackets *p, const char *file, const char *note,
                               ebpfMonPacketChains *chains, ebpfMonWorker *worker, char *why, size_t size)
{
    packetFile *f = calloc(1, sizeof(*f));
    uint64_t at = 0, end;
    unsigned packets = 0;
    int failed;

    if (!f || !(f->out = ebpfMonNewFileMake(file))) {
        snprintf(why, size, "%s: %s", file, f ? strerror(errno) : "no memory");
        free(f);
        return -1;
    }
    f->chains = chains;
    epicsMutexMustLock(p->lock);
    end = p->ring.end;
    epicsMutexUnlock(p->lock);
    writeSection(f, note);
    while (!ferror(f->out) && readEntry(p, &at, end, f)) {
        writePacket(f);
        if (++packets % SIGN_PACKETS == 0)
            ebpfMonWorkerGiveSign(worker);
    }
    failed = ferror(f->out);
    failed |= fclose(f->out);
    free(f);
    if (!failed)
        return 0;
    snprintf(why, size, "%s cannot be written: is the disk full?", file);
    unlink(file);
    return -1;
}
