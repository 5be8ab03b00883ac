"""Symbol files that multiply: what is shared, nested or repeated in them."""

import zlib

from files import *

SIZES = (10, 100, 1_000, 5_000, 20_000)
ASK = ("symbolize", "--offline", "x.dll", "1004")
ASK_PDB = ("symbolize", "--offline", "x.pdb", "1004")

ABBREVIATIONS = bytes([
    1, 0x11, 1, 0x11, 1, 0x12, 6, 0x10, 0x17, 0, 0,             # unit: low, high, lines
    2, 0x2E, 1, 3, 8, 0x11, 1, 0x12, 6, 0, 0,                   # function: name, low, high
    3, 0x1D, 1, 0x31, 0x13, 0x11, 1, 0x12, 6, 0x59, 0x0F, 0, 0,  # inlined: origin, low, high, line
    4, 0x1D, 1, 0x31, 0x13, 0x55, 0x17, 0, 0,                   # inlined: origin, list of ranges
    5, 0x0B, 1, 0, 0,                                           # block
    6, 0x2E, 0, 3, 0x0E, 0x31, 0x13, 0, 0,                      # declaration: name in .debug_str, origin
    7, 0x2E, 0, 3, 8, 0x55, 0x17, 0, 0,                         # function: name, list of ranges
    8, 0x11, 1, 0x55, 0x17, 0, 0,                               # unit: list of ranges
    9, 0x2E, 0, 0x31, 0x13, 0, 0,                               # declaration: origin
    0,
])
CODE = 0x1000
RANGE = u64(BASE + TEXT) + u32(CODE)


def unit(entries, root=b"\x01" + RANGE + u32(0), abbreviations=0):
    body = u16(4) + u32(abbreviations) + b"\x08" + root + entries + b"\0"
    return u32(len(body)) + body


def line_program(files=(b"a.c",), program=b"", folders=(), header_extra=b""):
    header = bytes([1, 1, 1, 0xFB, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1])
    header += b"".join(folder + b"\0" for folder in folders) + b"\0"
    header += b"".join(name + bytes([0, 1 if folders else 0, 0, 0]) for name in files) + b"\0" + header_extra
    body = u16(4) + u32(len(header)) + header + program
    return u32(len(body)) + body


def rows(count):
    return b"\0\x09\x02" + u64(BASE + TEXT) + bytes([0x20]) * count + b"\x02" + uleb(CODE) + b"\0\x01\x01"


def dwarf(info, abbreviations=ABBREVIATIONS, line=line_program(), ranges=b"", strings=b"s\0"):
    sections = [(".text", b"\x90" * CODE), (".debug_info", info), (".debug_abbrev", abbreviations),
                (".debug_line", line), (".debug_ranges", ranges or bytes(16)), (".debug_str", strings)]
    return {"x.dll": image(sections)}


def function(inside, name=b"f"):
    return b"\x02" + name + b"\0" + RANGE + inside + b"\0"


def range_list(count):
    return (u64(0) + u64(CODE)) * count + bytes(16)


def dwarf_cases():
    # The first entry of the first unit behind its root: header 11, root 1 + 12 + 4.
    first = 28
    declared = b"\x06" + u32(0) + u32(first)
    for n in SIZES:
        call = b"\x03" + u32(first) + RANGE
        yield f"nested/{n}", dwarf(unit(declared + function((call + b"\x05") * n + b"\0" * n)))
        yield f"nested-blocks/{n}", dwarf(unit(declared + function((call + b"\x05\x05\x05" + b"\x05") * n + b"\0" * 4 * n)))
        yield f"siblings/{n}", dwarf(unit(declared + function((call + b"\x05\0") * n)))
        yield f"blocks/{n}", dwarf(unit(function(b"\x05" * 10 * n + b"\0" * 10 * n)))
        yield f"lines/{n}", dwarf(unit(function(b"")), line=line_program(program=rows(50 * n)))
        yield f"line-files/{n}", dwarf(unit(function(b"")), line=line_program(files=[b"a"] * 10 * n, program=rows(9)))
        yield f"line-programs-shared/{n}", dwarf(unit(function(b"")) * n, line=line_program(program=rows(n)))
        yield f"functions/{n}", dwarf(unit(function(b"") * n))
        yield f"units/{n}", dwarf(unit(function(b"")) * n)
        yield f"origins-in-a-ring/{n}", dwarf(unit(b"\x09" + u32(first) + function((b"\x03" + u32(first) + RANGE + b"\x05\0") * n)))
        chain = b"".join(b"\x09" + u32(first + 5 * at + 5) for at in range(n))
        yield f"origins-in-a-chain/{n}", dwarf(unit(chain + declared + function(b"\x03" + u32(first) + RANGE + b"\x05\0")))
        table = ABBREVIATIONS[:-1] + b"".join(uleb(10 + at) + b"\x0b\0\0\0" for at in range(20 * n)) + b"\0"
        yield f"abbreviations/{n}", dwarf(unit(function(b"")) * (n // 10), abbreviations=table)
        pieces = b"".join(unit(b"", root=uleb(10 + at), abbreviations=0) for at in range(n // 10))
        yield f"abbreviations-shared/{n}", dwarf(pieces + unit(function(b"")), abbreviations=table)
        places, place = b"", len(ABBREVIATIONS) - 1
        for at in range(n // 10):
            places += unit(b"", root=uleb(10 + at), abbreviations=place)
            place += len(uleb(10 + at)) + 4
        yield f"abbreviations-in-each-other/{n}", dwarf(places + unit(function(b"")), abbreviations=table)
        for m in (10, 1_000, 20_000):
            if n * m > 100_000_000 or n < 100:
                continue
            lists = range_list(m)
            in_list = b"\x04" + u32(first) + u32(0) + b"\0"
            yield f"ranges-of-calls/{n}x{m}", dwarf(unit(declared + function(in_list * n)), ranges=lists)
            nested = b"\x04" + u32(first) + u32(0)
            yield f"ranges-of-nested-calls/{n}x{m}", dwarf(unit(declared + function(nested * n + b"\0" * n)), ranges=lists)
            yield f"ranges-of-functions/{n}x{m}", dwarf(unit((b"\x07g\0" + u32(0)) * n), ranges=lists)
            whole = unit(function(b""), root=b"\x08" + u32(0))
            yield f"ranges-of-units/{n}x{m}", dwarf(whole * (n // 2), ranges=lists)
            bases = (b"\xff" * 8 + u64(BASE + TEXT)) * m + range_list(1)
            yield f"bases-in-ranges/{n}x{m}", dwarf(unit(declared + function(in_list * n)), ranges=bases)
            names = b"".join(b"\x06" + u32(at % m) + u32(first) for at in range(n))
            called = b"".join(b"\x03" + u32(first + 9 * at) + RANGE + b"\x01" for at in range(n)) + b"\0" * n
            yield f"names-in-each-other/{n}x{m}", dwarf(unit(names + function(called)), strings=b"n" * m + b"\0")
            folders = [b"d" * m]
            yield f"folder-of-files/{n}x{m}", dwarf(unit(function(b"")), line=line_program([b"a"] * n, rows(n), folders))


def export_cases():
    for n in SIZES:
        for m in (10, 1_000, 20_000):
            if n * m > 400_000_000:
                continue

            def exports(rva, n=n, m=m, name=None, spread=True):
                addresses, pointers = rva + 40, rva + 40 + 4 * n
                ordinals = pointers + 4 * n
                text = ordinals + 2 * n
                directory = bytes(12) + u32(text) + u32(1) + u32(n) * 2 + u32(addresses) + u32(pointers) + u32(ordinals)
                points = b"".join(u32(text + (at % m if spread else 0)) for at in range(n))
                at = b"".join(u32(TEXT + number % CODE) for number in range(n))
                return directory + at + points + b"".join(u16(number) for number in range(n)) + (name or b"e" * m) + b"\0"

            size = 40 + 10 * n + m + 1
            where = section_rvas([CODE, size])[1]
            sections = [(".text", b"\x90" * CODE), (".edata", exports)]
            yield f"exports/{n}x{m}", {"x.dll": image(sections, {0: (where, 40)})}
            bad = [(".text", b"\x90" * CODE), (".edata", lambda rva: exports(rva, name=b"\xff" * m))]
            yield f"exports-not-text/{n}x{m}", {"x.dll": image(bad, {0: (where, 40)})}
            symbols = [(4 + at % m, at % CODE) for at in range(n)]
            code = [(".text", b"\x90" * CODE)]
            yield f"symbols/{n}x{m}", {"x.dll": image(code, symbols=symbols, strings=b"s" * m + b"\0")}


def exported(name):
    where = section_rvas([CODE, 40 + 10 + len(name) + 1])[1]

    def section(rva):
        text = rva + 50
        return (bytes(12) + u32(text) + u32(1) + u32(1) * 2 + u32(rva + 40) + u32(rva + 44) + u32(rva + 48)
                + u32(TEXT) + u32(text) + u16(0) + name + b"\0")

    return {"x.dll": image([(".text", b"\x90" * CODE), (".edata", section)], {0: (where, 40)})}


def name_cases():
    for n in (2, 5, 10, 15, 20, 40, 60, 200, 500):
        for repeat in (b"0", b"000000000", b"V0@", b"0@0", b"V0@V0@V0@", b"PAV0@"):
            name = b"?x@@3" + b"V?$A@" * n + b"H" + (b"@@" + repeat) * n + b"@@A"
            yield f"msvc-{repeat.decode()}/{n}", exported(name)
            short = b"?x@@3" + b"V?$A@" * n + b"H" + (b"@" + repeat + b"@") * n + b"@A"
            yield f"msvc-names-{repeat.decode()}/{n}", exported(short)
        yield f"msvc-pointers/{n}", exported(b"?x@@3" + b"PA" * n + b"HA")
        yield f"msvc-functions/{n}", exported(b"?x@@3" + b"P6A" * n + b"H" + b"XZ" * n + b"A")
        yield f"msvc-local/{n}", exported(b"?x@" + b"?1?" * n + b"f@@YAXXZ" * n + b"@3HA")
        itanium = b"_Z1fIJ" + b"".join(b"St4pairI" + b"S%d_" % (at % 9) * 2 + b"E" for at in range(n)) + b"EEvv"
        yield f"itanium-pairs/{n}", exported(itanium)
        yield f"itanium-nested/{n}", exported(b"_Z1f" + b"P" * n + b"F" * n + b"v" * n + b"E" * n)
        yield f"itanium-packs/{n}", exported(b"_Z1fI" + b"J" * n + b"i" + b"E" * n + b"EvT_T_T_")
        yield f"rust/{n}", exported(b"_RIN" + b"INvC1a1b" * n + b"E" * n)
        yield f"rust-tuples/{n}", exported(b"_RINvC1a1b" + b"T" * n + b"".join(b"B%x_" % (at + 8) for at in range(n)) + b"E" * n)


def pdb_cases():
    site = lambda inlinee: record(0x114D, u32(0) + u32(0) + u32(inlinee) + b"\x0c\x7f\0")
    end = record(0x114E, b"")
    function_id = lambda scope, name: record(0x1601, u32(scope) + u32(0) + name + b"\0")
    for n in SIZES:
        ids = [function_id(0, b"g")]
        sites = site(0x1000) * n + end * n
        yield f"inlined/{n}", {"x.pdb": pdb([(u32(4) + procedure(b"f", 0, 0x100, sites), (0, 0x1000))], ids)}
        flat = (site(0x1000) + end) * n
        yield f"inlined-siblings/{n}", {"x.pdb": pdb([(u32(4) + procedure(b"f", 0, 0x100, flat), (0, 0x1000))], ids)}
        for m in (10, 1_000, 60_000):
            scope = [record(0x1605, u32(0) + b"s" * m + b"\0")]
            named = scope + [function_id(0x1000, b"g%d" % at) for at in range(n)]
            sites = b"".join(site(0x1001 + at) for at in range(n)) + end * n
            yield f"scopes/{n}x{m}", {"x.pdb": pdb([(u32(4) + procedure(b"f", 0, 0x100, sites), (0, 0x1000))], named)}
        chain = [function_id(0x1000 + (at + 1) % n, b"c" * 1000) for at in range(n)]
        yield f"scopes-in-a-ring/{n}", {"x.pdb": pdb([(u32(4) + procedure(b"f", 0, 0x100, site(0x1000) + end), (0, 0x1000))], chain)}
        many = u32(4) + procedure(b"f", 0, 0x1000) * n
        yield f"procedures/{n}", {"x.pdb": pdb([(many, (0, 0x1000))])}
        modules = [(many, (0, 4))] + [(0, (4 * at, 4)) for at in range(1, min(n, 1000))]
        addresses = [f"{TEXT + 4 * at:x}" for at in range(min(n, 1000))]
        yield f"modules-with-one-stream/{n}", {"x.pdb": pdb(modules, code_size=0x10000)}, (*ASK_PDB, *addresses)
        empty = [(u32(4), (4 * at, 4)) for at in range(min(n, 5000))]
        yield f"modules/{n}", {"x.pdb": pdb(empty, code_size=0x10000)}


def embedded_cases():
    for size in (1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 255 << 20):
        for fill in (b"\0", b"ab" * 50, bytes(range(256))):
            packer = zlib.compressobj(9, zlib.DEFLATED, -15)
            plain = (b"BSJB" + fill * (size // len(fill) + 1))[:size]
            data = packer.compress(plain) + packer.flush()
            for stated in (size, size // 2, 0xFFFFFFFF):
                pdb_data = b"MPDB" + u32(stated) + data
                names = b"RSDS" + b"g" * 16 + u32(1) + b"x.pdb\0"
                rva = section_rvas([CODE, 0])[1]
                # Debug records: CodeView of a portable PDB, and the PDB itself. `image` puts the section's bytes here:
                start = up(0x40 + 4 + 20 + 240 + 80, 0x200) + CODE
                head = 56 + 72
                debug = u32(0) + u32(0) + u16(0x100) + u16(0x504D) + u32(2) + u32(len(names)) + u32(0) + u32(start + head)
                debug += u32(0) + u32(0) + u16(0x100) + u16(0x100) + u32(17) + u32(len(pdb_data)) + u32(0)
                debug += u32(start + head + len(names))
                clr = u32(72) + bytes(68)
                section = debug + clr + names + pdb_data
                directories = {6: (rva, 56), 14: (rva + 56, 72)}
                name = f"embedded-{len(fill)}/{size}-as-{stated}"
                yield name, {"x.dll": image([(".text", b"\x90" * CODE), (".rdata", section)], directories)}


def native(value):
    """A number of ReadyToRun's "native format", in its form of four bytes."""
    return u32(value << 4 | 7)


def r2r(methods, entry_points, signature=b"\0\0\x01", name=b"m", components=0, functions=1):
    """A precompiled image; each method has the same name and signature."""
    strings = b"\0" + name + b"\0"
    blobs = b"\0" + bytes([0x80 | len(signature) >> 8, len(signature) & 0xFF]) + signature
    tables = u32(0) + bytes([2, 0, 0, 1]) + u64(1 << 0 | 1 << 2 | 1 << 6 | 1 << 0x20) + u64(0)
    tables += u32(1) + u32(1) + u32(methods) + u32(1)
    tables += u16(0) + u16(1) + u16(0) * 3
    tables += u32(0) + u16(1) + u16(0) * 2 + u16(1) + u16(1)
    tables += (u32(0) + u16(0) * 2 + u16(1) + u16(1) + u16(1)) * methods
    tables += u32(0) + u16(0) * 4 + u32(0) + u16(0) + u16(1) + u16(0)
    heads, at, body = b"", 20 + 12 + 8 + 8 + 12 + 12, b""
    for stream, data in ((b"#~\0\0", tables), (b"#Strings\0\0\0\0", strings), (b"#Blob\0\0\0", blobs)):
        data += bytes(-len(data) % 4)
        heads += u32(at + len(body)) + u32(len(data)) + stream
        body += data
    root = b"BSJB" + u16(1) * 2 + u32(0) + u32(4) + b"v4\0\0" + u16(0) + u16(3) + heads
    at_root = 72
    metadata = root.ljust(at, b"\0") + body

    def section(rva):
        rows = b"".join(u32(TEXT + 16 * n) + u32(TEXT + 16 * n + 16) + u32(0) for n in range(functions))
        own = [(102, rows), (103, entry_points)]
        out = u32(72) + u16(2) + u16(5) + u32(rva + at_root) + u32(len(metadata))
        out = out.ljust(64, b"\0") + u32(0) * 2 + metadata
        placed = []
        for kind, data in own:
            placed.append(u32(kind) + u32(rva + len(out)) + u32(len(data)))
            out += data + bytes(-len(data) % 4)
        core = rva + len(out)
        out += u32(0) + u32(1) + placed[1]
        if components:
            placed = [placed[0], u32(115) + u32(rva + len(out)) + u32(16 * components)]
            out += (u32(rva) + u32(72) + u32(core) + u32(20)) * components
        header = b"RTR\0" + u16(6) + u16(2) + u32(0) + u32(len(placed)) + b"".join(placed)
        return out[:64] + u32(rva + len(out)) + u32(len(header)) + out[72:] + header

    rva = section_rvas([CODE, 0])[1]
    return {"x.dll": image([(".text", b"\x90" * CODE), (".rdata", section)], {14: (rva, 72)})}


def entry_points(blocks, shared=True):
    """A sparse array: 16 methods a block, all blocks one and the same unless said otherwise."""
    # A full tree of four levels, each node with both children: left follows, right at a distance.
    def tree(levels):
        if levels == 0:
            return native(0)
        left = tree(levels - 1)
        return u32((3 | (4 + len(left)) << 2) << 4 | 7) + left + tree(levels - 1)

    block = tree(4)
    index = b"".join(u32(4 * blocks + (0 if shared else len(block) * at)) for at in range(blocks))
    return native(16 * blocks << 2 | 2) + index + block * (1 if shared else blocks)


def r2r_cases():
    # A method of many parameters; each is a generic type of generic types.
    deep = b"\0\x01\x01" + b"\x1d" * 30 + b"\x08"
    wide = b"\0\x81\x00\x01" + b"\x12\x04" * 256
    for n in SIZES:
        asked = ("symbolize", "--offline", "x.dll", *(f"{TEXT + 16 * at:x}" for at in range(min(n, 200))))
        yield f"entry-points/{n}", r2r(min(16 * n, 60_000), entry_points(n)), asked
        yield f"components/{n}", r2r(16, entry_points(1), components=n), asked
        yield f"components-of-many/{n}", r2r(16, entry_points(1000), components=n), asked
        for kind, signature in (("deep", deep), ("wide", wide)):
            for length in (10, 1_000, 4_000):
                count = min(n, 250)
                image = r2r(max(count, 16), entry_points(-(-count // 16), False), signature, b"n" * length, functions=count)
                yield f"signatures-{kind}/{n}x{length}", image, asked


def cases():
    for group, default in ((dwarf_cases, ASK), (export_cases, ASK), (name_cases, ASK), (pdb_cases, ASK_PDB), (embedded_cases, ASK), (r2r_cases, ASK)):
        for name, files, *asked in group():
            yield name, asked[0] if asked else default, files
