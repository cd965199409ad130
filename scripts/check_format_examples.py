#!/usr/bin/env python3
"""The Python of docs/case_format.md works: check_format_examples.py CASE_FORMAT_MD CASES_DIR ATTN_ORACLE

Runs every folder of cases below CASES_DIR with REFERENCE and CPU, reads each result with the documented reader, and
compares it with the answer stored in the case within the documented tolerances. Then writes results with the documented
writer and expects `compare` to take the right ones and no other. Exit 0: all of it holds; 1: not. Runs in the
repository's root.
"""
import json
import math
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

BACKENDS = (("REFERENCE", "F64"), ("CPU", "F32"))  # and the storage of what they compute
ALLOWANCE = {"F64": 1e-11, "F32": 2e-5}  # docs/cli.md: what the arithmetic of an answer's type may add


def documented(markdown):
    """What the Python blocks define, after running them."""
    defined = {}
    text = Path(markdown).read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, markdown, "exec"), defined)
    return defined


def worst(expected, got, atol, rtol):
    """Largest error over what is allowed; infinite where NaN or infinities differ."""
    ratio = 0.0
    for e, g in zip(expected, got, strict=True):
        if e == g or (math.isnan(e) and math.isnan(g)):
            continue
        finite = math.isfinite(e) and math.isfinite(g)
        allowed = atol + rtol * abs(e) if finite else 0.0
        ratio = max(ratio, abs(e - g) / allowed if allowed > 0.0 else math.inf)
    return ratio


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Check:
    def __init__(self, program, defined):
        self.program = program
        self.read, self.numbers, self.write_result = (defined[name] for name in ("read", "numbers", "write_result"))
        self.wrong, self.compared = [], 0

    def expect(self, holds, text):
        if not holds:
            self.wrong.append(text)

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], capture_output=True, text=True)

    def folder(self, cases, backend, storage, out):
        """Every answer of one backend to one folder."""
        done = self.run("run", "--cases", cases, "--backend", backend, "--out", out, "--quiet")
        self.expect(done.returncode in (0, 3), f"{cases.name} with {backend}: exit {done.returncode}, {done.stderr}")
        for row, line in zip(lines(cases / "index.jsonl"), lines(out / "index.jsonl"), strict=True):
            what, answer = f"{row['id']} with {backend}", out / f"{row['id']}.safetensors"
            self.expect(answer.exists() == (line["exit"] == 0), f"{what}: a file only for exit 0, not {line['exit']}")
            if line["exit"] == 0:
                self.answer(what, row, cases / row["file"], answer, backend, storage)

    def answer(self, what, row, case_path, answer_path, backend, storage):
        strings, got = self.read(answer_path)
        case_strings, stored = self.read(case_path)
        case = json.loads(case_strings["case"])
        asked, honoured = case["attrs"].get("exec", {}), json.loads(strings["exec"])
        self.expect(strings["format"] == "attn-result/1" and strings["backend"] == backend, f"{what}: {strings}")
        self.expect(honoured.items() <= asked.items(), f"{what}: exec {honoured} of {asked}")
        self.expect(backend != "REFERENCE" or honoured == asked, f"{what}: exec {honoured} of {asked}")
        for name, description in case["outputs"].items():
            self.expect(got[name][1] == description["shape"], f"{what}: {name} has shape {got[name][1]}")
            if name.endswith("cache_after") and "scale" not in name:
                self.expect(got[name] == stored[name], f"{what}: {name} is not what is stored, bit for bit")
            elif name != "out_codes":
                self.tensor(what, name, got[name], stored[name], row, storage)

    def tensor(self, what, name, got, stored, row, storage):
        written = name.endswith("_after")  # in the type of the input, without an allowance
        self.expect(got[0] == (stored[0] if written else storage), f"{what}: {name} is stored as {got[0]}")
        unit = 0.0 if written else ALLOWANCE[storage]
        atol, rtol = row["tolerance"].get(name, (0.0, 0.0))
        atol += unit * row["vmax"] if name == "out" else unit
        ratio = worst(self.numbers(*stored), self.numbers(*got), atol, rtol + unit)
        self.expect(ratio <= 1.0, f"{what}: {name} is off by {ratio:.3g} times what is allowed")
        self.compared += 1

    def written(self, case_path, answer, folder):
        """Results of the documented writer, before `compare`."""
        right = {"a_note": ("U8", [3], b"abc")}  # more tensors are allowed, and this one cannot come first
        for name, tensor in self.read(answer)[1].items():
            right[name] = ("F32", tensor[1], struct.pack(f"<{math.prod(tensor[1])}f", *self.numbers(*tensor)))
        storage, shape, raw = right["out"]
        last = struct.unpack("<f", raw[-4:])[0] + 0.25
        wrong = dict(right, out=(storage, shape, raw[:-4] + struct.pack("<f", last)))
        path = folder / "written.safetensors"
        for tensors, code in ((right, 0), (wrong, 1), ({"out": right["out"]}, 2)):
            self.write_result(path, "a kernel in Python", tensors)
            self.expect(self.read(path)[1] == tensors, "what the writer wrote, the reader reads otherwise")
            done = self.run("compare", "--case", case_path, "--actual", path, "--atol", "1e-5")
            self.expect(done.returncode == code, f"compare: {done.returncode}, expected {code}; {done.stdout}{done.stderr}")


def main():
    defined, root = documented(sys.argv[1]), Path(sys.argv[2])
    check = Check(sys.argv[3], defined)
    attrs = defined["case"]["attrs"]
    check.expect(float.fromhex(attrs["scale"]) == 1.0 and attrs["window_left"] == 0, "the example reads another case")
    check.expect(defined["numbers"](*defined["tensors"]["seq_lens"]) == [6], "the example has other lengths")
    check.expect(defined["numbers"]("BF16", [2, 1], b"\xc0\x3f\x80\xff") == [1.5, -math.inf], "BF16 is read otherwise")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for cases in sorted(path.parent for path in root.glob("*/index.jsonl")):
            for backend, storage in BACKENDS:
                check.folder(cases, backend, storage, work / backend / cases.name)
        example = work / "REFERENCE" / "hand_made" / "H01-w1.safetensors"
        check.written(root / "hand_made" / "H01-w1.safetensors", example, work)
    check.expect(check.compared > 400, f"only {check.compared} tensors were compared")
    print("\n".join([*check.wrong, f"{check.compared} tensors of answers compared"]))
    return 1 if check.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
