#!/usr/bin/env python3
"""Golden packs hold nothing of third parties: lint_pack_origin.py PACKS CASES

Compares digests of the data tensors in every case below both folders. Hand-made cases are our own and may be in both. Exit 1
when a tensor of a pack is one of somebody else's, or when there was nothing to compare.
"""
import hashlib
import json
import sys
from pathlib import Path

DATA = ("query", "key", "value", "key_cache", "value_cache", "kv_cache", "kv_c", "k_pe", "out_parts")
OWN = "CC0-1.0"
FEWEST_BYTES = 64  # smaller tensors are alike by chance


def data_of(path):
    """Name and digest of the data tensors of a case file."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    for name, entry in json.loads(raw[8:start]).items():
        if name in DATA:
            data = raw[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]]
            if len(data) >= FEWEST_BYTES and any(data):
                yield name, hashlib.sha256(data).hexdigest()


def rows_below(folder):
    for index in sorted(Path(folder).rglob("index.jsonl")):
        for line in index.read_text(encoding="utf-8").splitlines():
            yield index.parent, json.loads(line)


def main(packs, cases):
    theirs = {}
    for folder, row in rows_below(cases):
        if row["provenance"]["license"] != OWN:
            theirs |= {digest: folder / row["file"] for _, digest in data_of(folder / row["file"])}
    compared, found = 0, []
    for folder, row in rows_below(packs):
        if row["provenance"]["license"] != OWN:
            found.append(f"{folder / row['file']}: licence {row['provenance']['license']}")
        for name, digest in data_of(folder / row["file"]):
            compared += 1
            if digest in theirs:
                found.append(f"{folder / row['file']}: {name} is that of {theirs[digest]}")
    print("\n".join(found) if found else f"{compared} tensors of packs, none of them somebody else's")
    return 1 if found or not compared or not theirs else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
