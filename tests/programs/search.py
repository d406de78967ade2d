# SPDX-License-Identifier: BSD-3-Clause
"""Sends one Channel Access search for a name: search ADDRESS PORT NAME. It does not wait for an answer."""
import socket
import sys

from tests.harness import rawca

address, port, name = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.sendto(rawca.search(name), (address, int(port)))
