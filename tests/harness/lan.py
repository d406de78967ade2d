# SPDX-License-Identifier: BSD-3-Clause
"""Three hosts: network namespaces at one bridge, which loses no frames. The bridge is in the namespace of the tests."""
import os
import subprocess

from .badlink import PREFIX, BadLink, ip, remove_left


class Lan:
    ends = "abc"

    def __init__(self):
        self.base = f"{PREFIX}-{os.getpid()}-{next(BadLink.numbers)}"
        self.bridge = f"lan{next(BadLink.numbers)}"
        self.hosts = [f"{self.base}-{end}" for end in self.ends]
        self.made = []

    def __enter__(self):
        remove_left()
        try:
            ip("link", "add", self.bridge, "type", "bridge")
            ip("link", "set", self.bridge, "up")
            for name in self.hosts:
                ip("netns", "add", name)
                self.made.append(name)
                ip("-n", name, "link", "set", "lo", "up")
                near = f"{self.bridge}{name[-1]}"
                ip("link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", name)
                ip("link", "set", near, "master", self.bridge, "up")
                ip("-n", name, "addr", "add", f"{self.address(name)}/24", "brd", "+", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", self.bridge], check=False, capture_output=True)
        self.made.clear()

    def address(self, end):
        return f"192.0.2.{11 + self.hosts.index(end)}"  # RFC 5737: for documentation, no real host has it
