# SPDX-License-Identifier: BSD-3-Clause
"""Puts as other users of this host (tests/programs/put_as.py)."""
import json
import os
import subprocess
import sys

from . import paths


class Putter:
    """"wrap": words in front of the program, for example to run it in another network namespace."""

    def __init__(self, wrap=lambda argv: argv):
        self._process = subprocess.Popen(wrap([sys.executable, "-m", "tests.programs.put_as"]), cwd=paths.TOP,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))

    def put(self, kind, uid, claim, port, name, value, address="127.0.0.1"):
        """Makes a put. Returns the answer of the server."""
        self._process.stdin.write(json.dumps([kind, int(uid), str(claim), int(port), name, str(value), address]) + "\n")
        self._process.stdin.flush()
        status, said = json.loads(self._process.stdout.readline() or '[1, "put_as ended"]')
        assert status == 0, said
        return said

    def discard(self):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
