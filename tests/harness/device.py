# SPDX-License-Identifier: BSD-3-Clause
"""A device at a TCP port of the loopback interface. It answers one line after the other, each after a known time."""
import socket
import threading
import time


class Device:
    """"answers": line → (seconds, answer; None: no answer). It notes how long each line took."""

    def __init__(self, answers):
        self.answers = answers
        self.took = {line: [] for line in answers}  # ms
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self._socket.close()

    def _serve(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client):
        with client, client.makefile("rwb") as stream:
            for line in stream:
                begin = time.monotonic()
                line = line.decode().strip()
                seconds, answer = self.answers[line]
                time.sleep(seconds)  # what it is to take
                if answer is not None:
                    stream.write(answer.encode() + b"\r\n")
                    self.took[line].append((time.monotonic() - begin) * 1e3)
                    stream.flush()
