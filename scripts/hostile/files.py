"""Images and PDBs, laid out by hand ("PE Format", learn.microsoft.com; microsoft-pdb). No cases of its own."""

import struct

BASE = 0x180000000
TEXT = 0x1000


def u16(value): return struct.pack("<H", value & 0xFFFF)
def u32(value): return struct.pack("<I", value & 0xFFFFFFFF)
def u64(value): return struct.pack("<Q", value)
def up(value, unit): return -(-value // unit) * unit


def uleb(value):
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def image(sections, directories=None, symbols=(), strings=b""):
    """A PE32+ DLL: `sections` are (name, bytes) or (name, function of the RVA); the first is code at TEXT. `symbols` are
    COFF symbols (offset in the strings, value) of functions in section 1."""
    table, placed, rva = b"", [], TEXT
    names = bytearray(4) + strings
    headers = up(0x40 + 4 + 20 + 240 + 40 * len(sections), 0x200)
    offset = headers
    for name, data in sections:
        data = data(rva) if callable(data) else data
        field = name.encode()
        if len(field) > 8:
            field, at = f"/{len(names)}".encode(), field
            names += at + b"\0"
        flags = 0x60000020 if not placed else 0x42000040
        table += field.ljust(8, b"\0") + u32(len(data)) + u32(rva) + u32(up(len(data), 0x200)) + u32(offset)
        table += bytes(12) + u32(flags)
        placed.append(data.ljust(up(len(data), 0x200), b"\0"))
        rva += max(up(len(data), 0x1000), 0x1000)
        offset += len(placed[-1])
    names[:4] = u32(len(names))
    coff = b"".join(u32(0) + u32(at) + u32(value) + u16(1) + u16(0x20) + b"\x02\0" for at, value in symbols)
    optional = bytearray(240)
    optional[0:2] = u16(0x20B)
    optional[24:32] = u64(BASE)
    for at, value in ((32, 0x1000), (36, 0x200), (56, rva), (60, headers), (108, 16)):
        optional[at:at + 4] = u32(value)
    for index, (start, size) in (directories or {}).items():
        optional[112 + 8 * index:120 + 8 * index] = u32(start) + u32(size)
    dos = b"MZ" + bytes(0x3A) + u32(0x40)
    header = b"PE\0\0" + u16(0x8664) + u16(len(sections)) + u32(1) + u32(offset) + u32(len(symbols))
    out = dos + header + u16(240) + u16(0x2022) + bytes(optional) + table
    return out.ljust(headers, b"\0") + b"".join(placed) + coff + bytes(names)


def section_rvas(sections):
    """Where `image` puts sections of these sizes."""
    rva, out = TEXT, []
    for size in sections:
        out.append(rva)
        rva += max(up(size, 0x1000), 0x1000)
    return out


def msf(streams, page=4096):
    """A PDB of these streams; an int stands for the pages of that earlier stream."""
    pages, lists, sizes = [b"", b"\xff" * page, b"\xff" * page], [], []
    for data in streams:
        if isinstance(data, int):
            lists.append(lists[data])
            sizes.append(sizes[data])
            continue
        own = [data[at:at + page].ljust(page, b"\0") for at in range(0, len(data), page)]
        lists.append(list(range(len(pages), len(pages) + len(own))))
        sizes.append(len(data))
        pages += own
    directory = u32(len(lists)) + b"".join(map(u32, sizes)) + b"".join(u32(n) for own in lists for n in own)
    first = len(pages)
    own = [directory[at:at + page].ljust(page, b"\0") for at in range(0, len(directory), page)]
    pages += own
    map_page = len(pages)
    pages.append(b"".join(u32(first + n) for n in range(len(own))).ljust(page, b"\0"))
    pages[0] = (b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0" + u32(page) + u32(1) + u32(len(pages))
                + u32(len(directory)) + u32(0) + u32(map_page)).ljust(page, b"\0")
    return b"".join(pages)


def record(kind, body):
    body += bytes(-(len(body) + 4) % 4)
    return u16(len(body) + 2) + u16(kind) + body


def types(records):
    body = b"".join(records)
    return (u32(20040203) + u32(56) + u32(0x1000) + u32(0x1000 + len(records)) + u32(len(body))
            + u16(0xFFFF) * 2 + bytes(32)) + body


def pdb(modules, ids=(), publics=b"", code_size=0x1000):
    """`modules` are (symbols, (offset, size) of the code) or the number of an earlier module, to share its stream."""
    infos, contributions, own = b"", u32(0xF12EBA2D), []
    for number, (symbols, (at, size)) in enumerate(modules):
        if isinstance(symbols, int):
            stream, length = 7 + symbols, len(own[symbols])
        else:
            stream, length = 7 + len(own), len(symbols)
            own.append(symbols)
        piece = u16(1) + u16(0) + u32(at) + u32(size) + u32(0x60000020) + u16(number) + u16(0) + bytes(8)
        contributions += piece
        info = u32(0) + piece + u16(0) + u16(stream) + u32(length) + u32(0) + u32(0) + u16(0) * 2 + bytes(12)
        info += f"m{number}".encode() + b"\0\0"
        infos += info + bytes(-len(info) % 4)
    optional = u16(0xFFFF) * 5 + u16(5) + u16(0xFFFF) * 5
    debug = (u32(-1) + u32(19990903) + u32(1) + u16(0xFFFF) + u16(0) + u16(0xFFFF) + u16(0) + u16(6) + u16(0)
             + u32(len(infos)) + u32(len(contributions)) + u32(0) * 4 + u32(len(optional)) + u32(0)
             + u16(0) + u16(0x8664) + u32(0)) + infos + contributions + optional
    information = u32(20000404) + u32(1) + u32(1) + b"g" * 16 + u32(0) + u32(0) + u32(1) + u32(0) + u32(0) + u32(0)
    text = b".text\0\0\0" + u32(code_size) + u32(TEXT) + u32(code_size) + u32(0x400) + bytes(12) + u32(0x60000020)
    return msf([b"\0", information, types([]), debug, types(list(ids)), text, publics or b"\0\0\0\0", *own])


def procedure(name, at, size, inside=b"", start=4):
    """A procedure's records; `start` is where they begin in the stream."""
    head = 4 + 35 + len(name) + 1
    end = start + head + -head % 4 + len(inside)
    body = u32(0) + u32(end) + u32(0) + u32(size) + bytes(12) + u32(at) + u16(1) + b"\0" + name + b"\0"
    return record(0x1110, body) + inside + record(6, b"")
