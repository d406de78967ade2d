/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "put/packetText.h"
#include "put/putDecode.h"
#include "put/valueText.h"

int ebpfMonPacketTextFormatCa(const uint8_t *data, uint32_t have, int baseType, uint32_t count, char *buf, size_t size,
                              int *isNumber, double *number)
{
    ebpfMonValue v = {
        .data = data, .len = have, .type = ebpfMonPutDecodeCaType(baseType), .size = 40, .count = count, .network = 1,
    };

    if (baseType < 0) {
        *isNumber = 0;
        snprintf(buf, size, "?");
        return 0;
    }
    *isNumber = v.type != ebpfMonDbfEnum && ebpfMonValueTextGetNumber(&v, number);
    ebpfMonValueTextFormat(NULL, NULL, 0, &v, buf, size);
    return ebpfMonValueTextIsText(&v);
}

int ebpfMonPacketTextIsNumber(const char *text)
{
    char *end;

    strtod(text, &end);
    return text[0] && !*end;
}

size_t ebpfMonPacketTextGetNameLength(const char *channel)
{
    const char *dot = strchr(channel, '.'), *field = dot ? dot + 1 : NULL;
    size_t n = strlen(channel);

    if (field && !memchr(field, '.', strcspn(field, "{["))) /* else it is no name of Base */
        n = (size_t)(field - channel) + strcspn(field, "{[$");
    if (n > 1 && channel[n - 1] == '.')
        return n - 1;
    return n > 4 && strncmp(channel + n - 4, ".VAL", 4) == 0 ? n - 4 : n;
}
