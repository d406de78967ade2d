# SPDX-License-Identifier: BSD-3-Clause
"""A program in a terminal: it runs on a pty, and pyte keeps the screen as a terminal would show it."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios

import pyte

from .wait import until


class Terminal:
    """pyte understands the console of Linux, so TERM tells the program that it is one."""

    def __init__(self, argv, environ, lines=40, columns=160, term="linux"):
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        environ = {k: v for k, v in environ.items() if k not in ("LINES", "COLUMNS")}  # size of our terminal
        self.pid, self._fd = pty.fork()
        if self.pid == 0:  # set the size before the program reads it
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.execvpe(argv[0], [str(a) for a in argv], {**environ, "TERM": term, "LANG": "C.UTF-8"})
        self.status = None

    def resize(self, lines, columns):
        self._screen.resize(lines, columns)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self):
        while select.select([self._fd], [], [], 0)[0]:
            try:
                data = os.read(self._fd, 65536)
            except OSError:  # EIO: the program has ended
                return
            if not data:
                return
            self._stream.feed(data)

    @property
    def lines(self):
        self._read()
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self):
        return "\n".join(self.lines)

    def cells(self):
        """All lines: of each character (character, colour, bold, reversed, underlined)."""
        self._read()
        return [[(c.data, c.fg, c.bold, c.reverse, c.underscore) for c in (self._screen.buffer[y][x] for x in range(self._screen.columns))]
                for y in range(self._screen.lines)]

    def colour(self, word):
        """The colour of the first character of this word on the screen."""
        for y, line in enumerate(self.lines):
            if word in line:
                return self._screen.buffer[y][line.index(word)].fg
        raise AssertionError(f"{word!r} is not on the screen:\n{self.text}")

    def reversed(self):
        """The text of the line with the cursor, which is shown reversed."""
        self._read()
        for y, line in enumerate(self._screen.display):
            if self._screen.buffer[y][4].reverse:
                return line.rstrip()
        return ""

    def type(self, keys):
        os.write(self._fd, keys.encode())

    def wait(self, condition, what, seconds=15):
        return until(lambda: condition(self.text), seconds, lambda: f"{what}, in\n{self.text}")

    def ended(self):
        """The exit code once it has ended, else None."""
        self._read()
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status

    def close(self):
        if self.ended() is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)
