/* SPDX-License-Identifier: BSD-3-Clause */
#include <cantProceed.h>

#include "record/shellCommand.h"

void ebpfMonShellRegisterCommands(const ebpfMonShellCommand *commands, unsigned count)
{
    /* iocsh keeps the pointers: this memory is never freed */
    iocshFuncDef *defs = callocMustSucceed(count, sizeof(*defs), "ebpfMonShellRegisterCommands");
    const iocshArg **args = callocMustSucceed(count * EBPFMON_COMMAND_ARGS, sizeof(*args),
                                              "ebpfMonShellRegisterCommands");

    for (unsigned i = 0; i < count; i++, args += EBPFMON_COMMAND_ARGS) {
        const ebpfMonShellCommand *command = &commands[i];
        int n = 0;

        for (; n < EBPFMON_COMMAND_ARGS && command->args[n].name; n++)
            args[n] = &command->args[n];
        defs[i].name = command->name;
        defs[i].nargs = n;
        defs[i].arg = args;
#ifdef IOCSHFUNCDEF_HAS_USAGE /* Base before 7.0.3 has no place for it */
        defs[i].usage = command->usage;
#endif
        iocshRegister(&defs[i], command->run);
    }
}

int ebpfMonShellHasText(const char *argument)
{
    return argument && argument[0];
}

const char *ebpfMonShellGetText(const char *argument, const char *otherwise)
{
    return ebpfMonShellHasText(argument) ? argument : otherwise;
}

void ebpfMonShellSetStatus(long status)
{
    iocshSetError(status ? -1 : 0);
}
