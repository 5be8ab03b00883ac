"""Security descriptors, by a writer and a reader that share nothing with etwprof."""


def sid_bytes(text):
    parts = [int(part) for part in text.split("-")[2:]]
    return bytes([1, len(parts) - 1]) + parts[0].to_bytes(6, "big") + b"".join(p.to_bytes(4, "little") for p in parts[1:])


def ace(kind, rights, sid, flags=0, part=b""):
    body = rights.to_bytes(4, "little") + part + sid_bytes(sid)
    return bytes([kind, flags]) + (4 + len(body)).to_bytes(2, "little") + body


def acl(entries, revision=2, spare=0):
    body = b"".join(entries) + bytes(spare)
    return bytes([revision, 0]) + (8 + len(body)).to_bytes(2, "little") + len(entries).to_bytes(2, "little") + bytes(2) + body


def descriptor(dacl, owner="S-1-5-32-544", group="S-1-5-32-544", sacl=None, control=0x8004, spare=0):
    """Owner and group first, then the lists, as Windows lays them out; a part that is None is not there."""
    parts = [sid_bytes(owner) if owner else None, sid_bytes(group) if group else None, sacl, dacl]
    offsets, body = b"", b""
    for part in parts:
        offsets += (20 + len(body) if part is not None else 0).to_bytes(4, "little")
        body += part or b""
    control |= 0x10 if sacl is not None else 0
    return bytes([1, 0]) + control.to_bytes(2, "little") + offsets + body + bytes(spare)


def aces(hexadecimal):
    """The entries of the list of rights: type, flags, rights, SID; of others than plain ones the bytes."""
    data = bytes.fromhex(hexadecimal)
    at = int.from_bytes(data[16:20], "little")
    count, found = int.from_bytes(data[at + 4:at + 6], "little"), []
    at += 8
    for _ in range(count):
        size = int.from_bytes(data[at + 2:at + 4], "little")
        body = data[at + 4:at + size]
        if data[at] > 1:
            found.append((data[at], data[at + 1], body.hex()))
        else:
            subs = [int.from_bytes(body[i:i + 4], "little") for i in range(12, 12 + 4 * body[5], 4)]
            sid = "-".join(map(str, ["S-1", body[11], *subs]))
            found.append((data[at], data[at + 1], int.from_bytes(body[:4], "little"), sid))
        at += size
    return found


def is_canonical(entries):
    ranks = [(2 if flags & 0x10 else 0) + (kind not in (1, 6, 10, 12)) for kind, flags, *_ in entries]
    return ranks == sorted(ranks)
