#!/usr/bin/env python3
"""The schema of case objects and the C++ reader agree: check_case_schema.py SCHEMA CASES_DIR ATTN_ORACLE

Every case object below CASES_DIR must fit the schema. Then some of them are spoiled in every way a schema can see, one
place at a time, put back into their files beside the untouched tensors, and given to `ATTN_ORACLE run` as one folder:

    the schema rejects  =>  exit 2, one line that names the file and the place, no answer
    the schema accepts  =>  answered (0) or not supported (3), unless BEYOND says why the reader rejects it all the same

Exit 0: both agree everywhere; 1: they differ somewhere; 77: python3-jsonschema is not installed.
"""
import hashlib
import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from spoiled_cases import all_spoiled

# One case of every operation, of every layout of attention, and of what has rules of its own.
BASES = (
    "H10a-splits2-with",  # paged, exec, sinks
    "torch_flex-rswa-w4",  # R-SWA
    "H18-paged_packed",
    "H18-varlen",
    "hf-diffllama2",  # differential
    "vllm_triton-mla-decode0",
    "flashmla-sparse-prefill1",
    "flashinfer-indexer0-1",
    "H13-2",  # merge_states
    "vllm_triton-cache-int8_per_token_head",
)

NO_OPERATION = " does not belong to operation "

# What a schema of one object cannot see, and the reader does: (label of the spoiled object, the reader's message).
BEYOND = (
    # To a JSON schema 2.0 is an integer; the format wants one that is written as one, and that a double holds.
    ("= a float$", "expected an integer >="),
    (r"= 2\^60$", "expected an integer <= 2^53"),
    ("attrs.scale = (too large|too fine)$", "expected a double as hex float string"),
    # The tables against the tensors of the file.
    (r"^case\.(inputs|outputs|truth).* dropped$", "is not described in the case object"),
    ("= a tensor of the format$|= a conditioning tensor of f(32|64)$", "in the file"),
    ("= a tensor of (the format|logical type bool)$", " is described as "),
    ("_after = a tensor of logical type bool$", "in the file"),
    ("(inputs.query|outputs.out) = of type ", " is described as "),
    ("inputs.query = stored as ", "case.inputs.query.storage is "),
    ("shape = twice$", " is described as "),
    ("_after.shape = twice$", "has 8 axes, expected 1 to 6"),
    ("_after.shape = twice$", "case.outputs.kv_cache_after is f32 [1,1,24,1,1,24], kv_cache is f32 [1,1,24]"),
    ("shape = nothing$", "has 0 axes, expected 1 to 6"),
    ("axes.* = [01]$", ", the tensors say "),
    ("attrs.block_size = 1$", "case.attrs.block_size is 1, but the blocks of key_cache hold 4"),
    ("attrs.kv_cache_layout = HND$", "case.attrs.block_size is 4, but the blocks of key_cache hold 1"),
    ("attrs.kv_cache_dtype = ", ", but key_cache is f32"),
    ("attrs.kv_cache_dtype = (fp8_e4m3|fp8_ds_mla)$", ", but kv_cache is f32"),
    # What belongs to which operation.
    ("axes.num_(parts|keys) = [01]$", NO_OPERATION),
    ("attrs.(mla_form|kv_lora_rank|qk_rope_head_dim|qk_nope_head_dim) = ", NO_OPERATION),
    ("attrs.(topk_index_space|lse_base|diff_lambda|diff_lambda_init|diff_eps) = ", NO_OPERATION),
    ("op = (attention instead of differential|mla instead of mla_sparse)$", NO_OPERATION),
    # One part of an object against another.
    ("attrs.scale = not a number$", "scale is nan, must be finite"),
    ("attrs.alibi_form = ", "alibi_slopes"),
    ("attrs.kv_cache_dtype = fp8_ds_mla$", "fp8_ds_mla is no cache of attention"),
    ("exec = an interleave alone$|exec.dcp_size dropped$", " without dcp_size"),
    ("rswa_window dropped$", "rswa_prefix_lens is given, but rswa_window is not"),
)


def read(path):
    """Header, and the bytes behind it."""
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def write(path, header, data, case):
    text = json.dumps(dict(header, __metadata__={"format": "attn-case/1", "case": json.dumps(case)})).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def case_of(header):
    return json.loads(header["__metadata__"]["case"])


def mla_cache_write():
    """Header and data of a case of the one operation that no third party answers."""
    shapes = {"slot_mapping": ("i64", [1]), "k_pe": ("f32", [1, 8]), "kv_c": ("f32", [1, 16]), "kv_cache": ("f32", [1, 1, 24])}
    ends = {"slot_mapping": (0, 8), "k_pe": (8, 40), "kv_c": (40, 104), "kv_cache": (104, 200)}
    inputs = {name: {"dtype": dtype, "storage": dtype.upper(), "shape": shape} for name, (dtype, shape) in shapes.items()}
    texts = {"id": "mla-cache-write", "op": "mla_cache_write", "variant": "cache_write", "name": "", "scenario": ""}
    attrs = {"block_size": 1, "kv_cache_dtype": "auto", "kv_lora_rank": 16, "qk_rope_head_dim": 8}
    tables = {"axes": {"num_tokens": 1}, "attrs": attrs, "inputs": inputs, "outputs": {"kv_cache_after": inputs["kv_cache"]}}
    case = {"spec_version": 1, "flags": [], "result": "valid", **texts, **tables}
    header = {n: {"dtype": dtype.upper(), "shape": shape, "data_offsets": ends[n]} for n, (dtype, shape) in shapes.items()}
    return dict(header, __metadata__={"case": json.dumps(case)}), bytes(200)


class Spoiled:
    """A folder of spoiled cases, and what is expected of each."""

    def __init__(self, folder, schema):
        self.folder, self.schema = folder, schema
        self.seen, self.index, self.expected = set(), [], []

    def add(self, name, header, data):
        for label, place, case in all_spoiled(case_of(header), self.schema):
            # Types of the common fields do not depend on the operation; attributes and what is required do.
            own = label.startswith("case.attrs") or label.endswith((" dropped", "as it is"))
            once = f"{name}: {label}" if own else label
            if once in self.seen:
                continue
            self.seen.add(once)
            path = self.folder / f"{len(self.index)}.safetensors"
            write(path, header, data, case)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            row = {"id": path.stem, "file": path.name, "sha256": digest, "op": "attention", "variant": "spoiled"}
            row.update(result="valid", tolerance={}, vmax=0, precision="exact", provenance={"source": name})
            self.index.append(row)
            self.expected.append((f"{name}: {label}", label, place, case, path))

    def answers(self, program):
        """(exit, reasons, whether there is an answer) of every case, by one run of the folder."""
        out = self.folder / "out"
        lines = "".join(json.dumps(row) + "\n" for row in self.index)
        (self.folder / "index.jsonl").write_text(lines, encoding="utf-8")
        command = [program, "run", "--cases", self.folder, "--backend", "REFERENCE", "--out", out, "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1, 3):
            sys.exit(f"{program} run --cases ended with {done.returncode}: {done.stderr}")
        rows = map(json.loads, (out / "index.jsonl").read_text(encoding="utf-8").splitlines())
        return [(row["exit"], row["reasons"], (out / f"{row['id']}.safetensors").exists()) for row in rows]


class Judge:
    def __init__(self):
        self.used, self.counts = set(), {"rejected by both": 0, "taken by both": 0, "beyond the schema": 0}

    def difference(self, label, place, fits, path, answer):
        """What is wrong, or an empty text."""
        code, reasons, written = answer
        rejected, said = code == 2, "; ".join(reasons)
        beyond = [row for row in BEYOND if re.search(row[0], label) and row[1] in said] if fits and rejected else []
        self.used.update(beyond)
        self.counts["taken by both" if fits and not rejected else "beyond the schema" if fits else "rejected by both"] += 1
        if written != (code == 0) or (rejected and (len(reasons) != 1 or "\n" in said)):
            return "expected an answer only for exit 0, and one line for exit 2"
        if fits:
            return "" if beyond or code in (0, 3) else "fits the schema"
        if not rejected:
            return "does not fit the schema"
        return "" if said.startswith(f"{path}: case") and place in said else f"the message does not name {place} of the file"


def main():
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is not installed; nothing was checked")
        return 77
    schema = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    files = {path.stem: path for path in sorted(Path(sys.argv[2]).rglob("*.safetensors"))}
    wrong = [f"{path}: {e.message}" for path in files.values() for e in validator.iter_errors(case_of(read(path)[0]))]
    judge = Judge()
    with tempfile.TemporaryDirectory() as folder:
        spoiled = Spoiled(Path(folder), schema)
        for name in BASES:
            spoiled.add(name, *read(files[name]))
        spoiled.add("mla_cache_write", *mla_cache_write())
        for (what, label, place, case, path), answer in zip(spoiled.expected, spoiled.answers(sys.argv[3]), strict=True):
            difference = judge.difference(label, place, validator.is_valid(case), path, answer)
            if difference:
                wrong.append(f"{what}: {difference}; exit {answer[0]}, {answer[1]}")
    wrong += [f"BEYOND is out of date: {row}" for row in BEYOND if row not in judge.used]
    counts = [f"{number} spoiled objects {what}" for what, number in judge.counts.items()]
    print("\n".join([*wrong, f"{len(files)} case objects of files", *counts]))
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
