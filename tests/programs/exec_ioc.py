# SPDX-License-Identifier: BSD-3-Clause
"""A pythonSoftIOC: exec_ioc.py PREFIX. When it reads the line "exec" on its stdin, its process executes /bin/cat, and
is no IOC any more. When it reads "fork", it forks a child, and a daemon, which has no parent any more; it prints their
pids. Both end after a minute."""
import os
import signal
import sys

from softioc import asyncio_dispatcher, builder, softioc


def fork():
    """A process that does nothing."""
    if pid := os.fork():
        return pid
    signal.alarm(60)
    while True:
        signal.pause()


builder.SetDeviceName(sys.argv[1].rstrip(":"))
builder.aOut("AO", initial_value=0)
builder.aIn("AI", initial_value=5)
builder.mbbOut("MODE", "Off", "Slow", "Fast")
builder.LoadDatabase()
softioc.iocInit(asyncio_dispatcher.AsyncioDispatcher())
for line in sys.stdin:
    if line.strip() == "exec":
        os.execv("/bin/cat", ["cat"])
    if line.strip() == "fork":
        child = fork()
        ends = os.pipe()
        if not (parent := os.fork()):
            os.write(ends[1], str(fork()).encode())
            os._exit(0)
        os.waitpid(parent, 0)
        print("forked", child, os.read(ends[0], 20).decode(), flush=True)
