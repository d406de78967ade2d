/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "inventory/fieldText.h"
#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"

#define CHOICES_MAX 10000 /* of a menu, or of the device supports of a type */
#define STRING_MAX  256

#define LINK_INST_IO 12 /* types of links, of Base's link.h */
#define LINK_JSON    8

typedef union {
    int8_t i8; uint8_t u8; int16_t i16; uint16_t u16; int32_t i32; uint32_t u32; int64_t i64; uint64_t u64;
    float f; double d;
} number;

static int readString(ebpfMonMem *mem, uint64_t at, const ebpfMonField *field, char *text, size_t size)
{
    char raw[STRING_MAX];
    size_t n = field->size < sizeof(raw) ? field->size : sizeof(raw);

    if (ebpfMonMemRead(mem, at, raw, n))
        return -1;
    ebpfMonTextCopyBytes(text, size, raw, strnlen(raw, n));
    return 0;
}

static int readChoice(ebpfMonMem *mem, const ebpfMonField *field, unsigned index, char *text, size_t size)
{
    struct layoutMenu menu = {{0}};
    struct layoutDeviceMenu device = {0};
    uint64_t names;
    char raw[STRING_MAX];

    if (!field->ftPvt)
        return -1;
    if (field->type == ebpfMonDbfDevice ? ebpfMonMemRead(mem, field->ftPvt, &device, sizeof(device))
                                        : ebpfMonMemRead(mem, field->ftPvt, &menu, sizeof(menu)))
        return -1;
    names = field->type == ebpfMonDbfDevice ? device.papChoice : menu.papChoiceValue;
    if (index >= (unsigned)(field->type == ebpfMonDbfDevice ? device.nChoice : menu.nChoice) || index >= CHOICES_MAX)
        return -1;
    if (ebpfMonMemStr(mem, ebpfMonMemPtr(mem, names + 8u * index), raw, sizeof(raw)))
        return -1;
    ebpfMonTextCopy(text, size, raw);
    return 0;
}

static void formatReal(double value, int isFloat, char *text, size_t size)
{
    /* the shortest text that reads back as the same number */
    for (int digits = isFloat ? 6 : 15; digits <= 17; digits++) {
        double back = 0;

        snprintf(text, size, "%.*g", digits, value);
        sscanf(text, "%lf", &back);
        if (isFloat ? (float)back == (float)value : back == value)
            return;
    }
}

static int readNumber(ebpfMonMem *mem, uint64_t at, const ebpfMonField *field, char *text, size_t size)
{
    number n = {0};

    if (field->size > sizeof(n) || ebpfMonMemRead(mem, at, &n, field->size))
        return -1;
    switch (field->type) {
    case ebpfMonDbfChar:   snprintf(text, size, "%d", n.i8); return 0;
    case ebpfMonDbfUchar:  snprintf(text, size, "%u", n.u8); return 0;
    case ebpfMonDbfShort:  snprintf(text, size, "%d", n.i16); return 0;
    case ebpfMonDbfEnum:
    case ebpfMonDbfUshort: snprintf(text, size, "%u", n.u16); return 0;
    case ebpfMonDbfLong:   snprintf(text, size, "%" PRId32, n.i32); return 0;
    case ebpfMonDbfUlong:  snprintf(text, size, "%" PRIu32, n.u32); return 0;
    case ebpfMonDbfInt64:  snprintf(text, size, "%" PRId64, n.i64); return 0;
    case ebpfMonDbfUint64: snprintf(text, size, "%" PRIu64, n.u64); return 0;
    case ebpfMonDbfFloat:  formatReal(n.f, 1, text, size); return 0;
    case ebpfMonDbfDouble: formatReal(n.d, 0, text, size); return 0;
    default:               return readChoice(mem, field, n.u16, text, size); /* menu, device */
    }
}

/* Adds the modifiers behind the PV name, in the form of a database file (dbGetString in dbStaticLib.c). */
static void addModifiers(char *text, size_t size, int type, int mask)
{
    static const char *const severity[] = {"", " MS", " MSI", " MSS"};
    size_t length = strlen(text);
    const char *process = mask & EBPFMON_PVL_PP ? " PP" :
                          mask & EBPFMON_PVL_CP ? " CP" : mask & EBPFMON_PVL_CPP ? " CPP" :
                          mask & EBPFMON_PVL_CA ? " CA" : type == ebpfMonDbfFwdlink ? "" : " NPP";

    snprintf(text + length, size - length, "%s%s", process,
             type == ebpfMonDbfFwdlink ? "" : mask & EBPFMON_PVL_MSMODE ? severity[mask & EBPFMON_PVL_MSMODE] : " NMS");
}

/* A constant, a JSON link, and the parameters of a driver ("@…") have their text as the first member of the link's
 * value. */
static int readLink(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t at, const ebpfMonField *field, char *text,
                    size_t size)
{
    char raw[EBPFMON_FIELD_TEXT];
    ebpfMonLink link;
    int isPv;

    if (ebpfMonLinkRead(mem, cat->base, at, &link))
        return -1;
    isPv = link.type == EBPFMON_LINK_PV || link.type == EBPFMON_LINK_PN || link.type == EBPFMON_LINK_DB ||
           link.type == EBPFMON_LINK_CA;
    text[0] = 0;
    if (!isPv && link.type != EBPFMON_LINK_CONSTANT && link.type != LINK_JSON && link.type != LINK_INST_IO)
        return -1; /* an address of VME, CAMAC or such a bus: numbers, not a text */
    if (!isPv && !link.value)
        return 0;
    at = isPv ? link.pvname : link.value;
    if (ebpfMonMemStr(mem, at, raw, sizeof(raw)) && ebpfMonMemRead(mem, at, raw, sizeof(raw)))
        return -1; /* a text that is only longer than "raw" is cut */
    snprintf(text, size, "%s", link.type == LINK_INST_IO ? "@" : "");
    ebpfMonTextCopyBytes(text + strlen(text), size - strlen(text), raw, sizeof(raw));
    if (isPv)
        addModifiers(text, size, field->type, link.pvlMask);
    return 0;
}

int ebpfMonFieldTextRead(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t precord, const ebpfMonField *field,
                         char *text, size_t size)
{
    uint64_t at = precord + field->offset;

    if (field->type == ebpfMonDbfString)
        return readString(mem, at, field, text, size);
    if (field->type == ebpfMonDbfInlink || field->type == ebpfMonDbfOutlink || field->type == ebpfMonDbfFwdlink)
        return readLink(mem, cat, at, field, text, size);
    if (field->type == ebpfMonDbfNoaccess)
        return -1;
    return readNumber(mem, at, field, text, size);
}
