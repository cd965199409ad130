#!/usr/bin/env python3
"""The schema of pack manifests and the C++ reader agree: check_pack_schema.py SCHEMA PACK_MAKER ATTN_ORACLE

`PACK_MAKER DIR` makes a pack. Its manifest must fit the schema. Then it is spoiled in many ways, one place at a time, sealed
again, and given to `ATTN_ORACLE golden verify`:

    the schema rejects  =>  exit 1, and the first damage is that of the reader: manifest.json, "manifest..."
    the schema accepts  =>  no such damage, unless BEYOND says why the reader rejects it all the same

Exit 0: both agree everywhere; 1: they differ somewhere; 77: python3-jsonschema is not installed.
"""
import copy
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

# What a JSON schema takes and the format does not: an integer written as a float, or larger than 2^53.
BEYOND = ("expected an integer >= ", "expected an integer <= 2^53")

# In place of any value; what fits somewhere is a test too.
VALUES = (
    None, True, 0, 1, 2, -1, 1.0, 1.5, 2**60, "", "x", "a-b", "a--b", "A", "1", "0.1.0", "0.01.0", "1.2", "1.2.3.4", "1.2.3 ",
    "core", "extended", "mpfr", "nearest_even", "window", "https://a", "http://a", "../x", "a_b", [], ["https://a"],
    ["https://a", "https://a"], [1], {}, {"a": 1}, {"a": 0}, {"valid": 8, "invalid": 1}, {"valid": 8, "acceptable": 1},
    {"kind": "window", "description": "d", "effect": "e"}, [{"id": "x", "since": "01.0.0", "reason": "r"}], [{"id": "x"}],
)  # fmt: skip
KEYS = ("more", "", "A", "a_b", "1a", "a-b", "valid", "links", "superseded_by")


def places(node, path=()):
    """Paths of all values below the root."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


def all_spoiled(manifest):
    """(label, manifest) of every spoiled one."""
    yield "as it is", manifest
    yield from ((f"root = {value!r}", value) for value in VALUES)
    for path in [(), *places(manifest)]:
        label = "/".join(map(str, path))
        if isinstance(at(manifest, path), dict):
            for key in KEYS:
                for value in (1, "https://a", manifest["notes"]["rejects"]):
                    spoiled = copy.deepcopy(manifest)
                    at(spoiled, path).setdefault(key, value)
                    yield f"{label}: {key!r} added = {value!r}", spoiled
        if not path:
            continue
        spoiled = copy.deepcopy(manifest)
        del at(spoiled, path[:-1])[path[-1]]
        yield f"{label} dropped", spoiled
        for value in VALUES:
            spoiled = copy.deepcopy(manifest)
            at(spoiled, path[:-1])[path[-1]] = value
            yield f"{label} = {value!r}", spoiled


def seal(pack, text):
    (pack / "manifest.json").write_text(text, encoding="utf-8")
    sums = [(p.name, hashlib.sha256(p.read_bytes()).hexdigest()) for p in sorted(pack.iterdir()) if p.name != "SHA256SUMS"]
    (pack / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums))


def rejected_by_reader(program, pack):
    """Why the reader does not take the manifest; empty when it does."""
    done = subprocess.run([program, "golden", "verify", pack, "--json"], capture_output=True, text=True)
    document = json.loads(done.stdout)
    damage = document["damage"]
    if done.returncode != document["exit"] or (done.returncode == 0) != (not damage) or done.returncode not in (0, 1):
        sys.exit(f"golden verify ended with {done.returncode}: {done.stdout}{done.stderr}")
    first = damage[0] if damage else {"file": "", "reason": ""}
    return first["reason"] if first["file"] == "manifest.json" and first["reason"].startswith("manifest") else ""


def thinned(labelled):
    """Every third of what is alike: notes are all of one form."""
    seen = {}
    for label, manifest in labelled:
        alike = "/".join(label.split("/")[:1] + label.split("/")[2:]) if label.startswith("notes/") else label
        seen[alike] = seen.get(alike, 0) + 1
        if seen[alike] == 1:
            yield label, manifest


def main():
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is not installed; nothing was checked")
        return 77
    schema = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    wrong, counts = [], {"rejected by both": 0, "taken by both": 0, "beyond the schema": 0}
    with tempfile.TemporaryDirectory() as folder:
        pack = Path(folder) / "pack"
        subprocess.run([sys.argv[2], pack], check=True)
        manifest = json.loads((pack / "manifest.json").read_text(encoding="utf-8"))
        wrong += [f"the manifest itself: {e.message}" for e in validator.iter_errors(manifest)]
        for label, spoiled in thinned(all_spoiled(manifest)):
            seal(pack, json.dumps(spoiled))
            reason, fits = rejected_by_reader(sys.argv[3], pack), validator.is_valid(spoiled)
            beyond = fits and any(text in reason for text in BEYOND)
            counts["beyond the schema" if beyond else "taken by both" if fits else "rejected by both"] += 1
            if fits == bool(reason) and not beyond:
                wrong.append(f"{label}: the schema {'takes' if fits else 'rejects'} it, the reader says {reason!r}")
    print("\n".join([*wrong, *(f"{number} manifests {what}" for what, number in counts.items())]))
    return 1 if wrong or not all(counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
