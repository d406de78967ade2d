# SPDX-License-Identifier: BSD-3-Clause
"""How much stack the programs of a compiled BPF object need, and which of them make a tail call. Kernels before 6.13 count the stack of a program and of the
functions that it calls together, and refuse more than LIMIT (check_max_stack_depth() of the verifier). Later kernels give
each function a stack of its own where they can (private stack), so this host may load what others refuse."""
import struct
from dataclasses import dataclass, field

LIMIT = 512
STEP = 32  # a function's stack is rounded up to this

FUNCTION, SECTION = 2, 3  # types of symbols (ELF)
LOAD_64, CALL, MOVE, ADD = 0x18, 0x85, 0xbf, 0x07  # of an instruction
TAIL_CALL = 12  # the number of this helper function (linux/bpf.h)
FRAME = 10  # the register that points to the end of the stack
INSTRUCTION = struct.Struct("<BBhi")


@dataclass
class Function:
    name: str
    section: str  # says of which kind a program is; ".text": a function that programs call
    stack: int = 0
    tail_call: bool = False
    calls: set = field(default_factory=set)


class Object:
    def __init__(self, path):
        self.data = path.read_bytes()
        start, = struct.unpack_from("<Q", self.data, 40)
        size, count, names = struct.unpack_from("<HHH", self.data, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, start + i * size) for i in range(count)]
        self.names = [self._text(names, s[0]) for s in self.sections]
        self.symbols = [s for i, s in enumerate(self.sections) if s[1] == 2]
        self.symbols = [struct.unpack_from("<IBBHQQ", self.data, at)
                        for at in range(self.symbols[0][4], self.symbols[0][4] + self.symbols[0][5], 24)]
        self.functions = self._find_functions()

    def _text(self, section, at):
        start = self.sections[section][4] + at
        return self.data[start:self.data.index(0, start)].decode()

    def _find_functions(self):
        strings = next(s[6] for s in self.sections if s[1] == 2)
        found = {}
        for name, info, _, section, value, _ in self.symbols:
            if info & 15 == FUNCTION:
                found[section, value] = Function(self._text(strings, name), self.names[section])
        for (section, value), function in found.items():
            size = next(s[5] for s in self.symbols if s[3] == section and s[4] == value and s[1] & 15 == FUNCTION)
            self._read(function, section, value, size, found)
        return found

    def _relocations(self, section):
        """Symbol of each place in a section that the loader completes."""
        made = {}
        for kind in self.sections:
            if kind[1] == 9 and kind[7] == section:
                for at in range(kind[4], kind[4] + kind[5], 16):
                    place, what = struct.unpack_from("<QQ", self.data, at)
                    made[place] = self.symbols[what >> 32]
        return made

    def _read(self, function, section, start, size, found):
        symbols = self._relocations(section)
        copies = set()  # registers that are copies of the frame register
        for at in range(start, start + size, 8):
            code, registers, offset, number = INSTRUCTION.unpack_from(self.data, self.sections[section][4] + at)
            to, source = registers & 15, registers >> 4
            place = 0
            if code & 7 in (1, 2, 3):  # reads and writes of memory
                place = offset if (source if code & 7 == 1 else to) == FRAME else 0
            elif code == MOVE and source == FRAME:
                copies.add(to)
            elif code == ADD and to in copies:
                place = number
                copies.discard(to)
            function.stack = max(function.stack, -place)
            function.tail_call |= code == CALL and source == 0 and number == TAIL_CALL
            symbol = symbols.get(at)
            if symbol and code in (CALL, LOAD_64):
                target = symbol[4] + ((number + 1) * 8 if code == CALL else number)
                if (symbol[3], target) in found:
                    function.calls.add((symbol[3], target))

    def deepest(self, place, above=()):
        """Bytes of stack, and the names, of the functions that need most."""
        function = self.functions[place]
        assert place not in above, f"{function.name} calls itself"
        most = max((self.deepest(p, above + (place,)) for p in function.calls), default=(0, []))
        return max(STEP, -(-function.stack // STEP) * STEP) + most[0], [f"{function.name} {function.stack}"] + most[1]

    def programs(self):
        return [place for place, function in self.functions.items() if function.section != ".text"]
