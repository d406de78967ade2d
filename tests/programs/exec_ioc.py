# SPDX-License-Identifier: BSD-3-Clause
"""A pythonSoftIOC: exec_ioc.py PREFIX. When it reads the line "exec" on its stdin, its process executes /bin/cat, and
is no IOC any more."""
import os
import sys

from softioc import asyncio_dispatcher, builder, softioc

builder.SetDeviceName(sys.argv[1].rstrip(":"))
builder.aOut("AO", initial_value=0)
builder.aIn("AI", initial_value=5)
builder.mbbOut("MODE", "Off", "Slow", "Fast")
builder.LoadDatabase()
softioc.iocInit(asyncio_dispatcher.AsyncioDispatcher())
for line in sys.stdin:
    if line.strip() == "exec":
        os.execv("/bin/cat", ["cat"])
