#!/usr/bin/env python3
"""Checks that read_pack.py --judge accepts right answers to a pack and refuses planted errors: check_judging.py PACK ATTN_ORACLE"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("numpy is not installed, nothing was checked")
    sys.exit(77)

import read_pack
from pack_file import load, load_file, tensors_of

READER = Path(__file__).with_name("read_pack.py")


def read(*arguments):
    done = subprocess.run([sys.executable, str(READER), *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout


def write(path, tensors):
    """An answer in float64, or float32 where the arrays are."""
    header, data = {"__metadata__": {"format": "attn-result/1", "backend": "planted", "exec": "{}"}}, b""
    for name, values in tensors.items():
        raw = np.ascontiguousarray(values).tobytes()
        header[name] = {"dtype": f"F{8 * values.dtype.itemsize}", "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def bounds(pack, case_id, contract, stored):
    _, text = read(pack, "--print-bounds", case_id, "--contract", contract, "--stored", stored)
    tensors = json.loads(text)["tensors"]
    return {name: np.reshape([float.fromhex(x) for x in t["bounds"]], t["shape"]) for name, t in tensors.items()}


def tiled_float32(case, stored, tile=4):
    """A flash kernel in float32, one tile of keys after the other: what contract fp32 promises."""
    f = np.float32
    attention = read_pack.Attention(case, tensors_of(case, stored))

    def softmax(u, value, head):
        m, l, acc = f(-np.inf), f(0), np.zeros(value.shape[1], f)
        for first in range(0, len(u), tile):
            part, v = u[first : first + tile].astype(f), value[first : first + tile].astype(f)
            top = max(m, part.max())
            rescale, weight = np.exp(m - top), np.exp(part - top)
            m, l, acc = top, l * rescale + weight.sum(dtype=f), acc * rescale + weight @ v
        return (acc / l, m + np.log(l)) if len(u) else (acc, -np.inf)

    attention.softmax = softmax
    return {name: values.astype(f) for name, values in attention.answer().items()}


def without_last_key(case, stored):
    attention = read_pack.Attention(case, tensors_of(case, stored))
    softmax = attention.softmax
    attention.softmax = lambda u, value, head: softmax(u[:-1], value[:-1], head) if len(u) > 1 else softmax(u, value, head)
    return attention.answer()


def main(pack, cli):
    offences = []

    def check(holds, what):
        if not holds:
            offences.append(what)

    with tempfile.TemporaryDirectory() as temporary:
        answers = Path(temporary) / "answers"
        subprocess.run([cli, "--quiet", "run", "--cases", str(pack), "--backend", "REFERENCE", "--out", str(answers)], check=True, stdout=subprocess.DEVNULL)
        for contract in ("reference", "f64"):
            code, text = read(pack, "--judge", answers, "--contract", contract)
            check(code == 0 and ", 0 failed, 0 mistrusted" in text, f"REFERENCE under {contract}: {text}")

        def verdict(case_id, tensors, *options):
            """(exit, text) of one answer."""
            folder = Path(temporary) / "planted"
            folder.mkdir(exist_ok=True)
            write(folder / f"{case_id}.safetensors", tensors)
            result = read(pack, "--judge", folder, *options)
            (folder / f"{case_id}.safetensors").unlink()
            return result

        for row in map(json.loads, (pack / "index.jsonl").read_text().splitlines()):
            case, stored = load(pack / row["file"])
            if row["variant"] not in ("causal", "full") or set(case["outputs"]) != {"out", "lse"} or not np.isfinite(stored["out"]).all():
                continue
            case_id, right = row["id"], {name: stored[name] for name in ("out", "lse")}
            for stored_type, contract in (("f64", "f64"), ("f32", "fp32")):
                allowed = bounds(pack, case_id, contract, stored_type)
                kind = np.dtype(f"f{int(stored_type[1:]) // 8}")
                for name in right:
                    at = np.unravel_index(np.where(np.isfinite(right[name]), allowed[name], 0).argmax(), right[name].shape)
                    for factor, fails in ((0.4, False), (2.5, True)):
                        planted = {n: values.copy() for n, values in right.items()}
                        planted[name][at] += factor * allowed[name][at]
                        code, text = verdict(case_id, {n: v.astype(kind) for n, v in planted.items()}, "--contract", contract)
                        check(code == fails and (f"{case_id}: {name}[{','.join(map(str, at))}]" in text) == fails,
                              f"{case_id}: {name} off by {factor} bounds of {contract}: {text}")
            swapped = {**right, "out": right["out"][::-1]}
            check(len(right["out"]) < 2 or verdict(case_id, swapped)[0] == 1, f"{case_id}: tokens in reverse passed")
            lost = {**right, "out": np.where(np.arange(right["out"].size).reshape(right["out"].shape) == 0, np.nan, right["out"])}
            check(verdict(case_id, lost)[0] == 1, f"{case_id}: NaN passed")
            if case["attrs"]["scale"] != "0x0.0p+0":
                code, text = verdict(case_id, without_last_key(case, stored))
                check(code == 1, f"{case_id}: an answer without the last key passed")
            code, text = verdict(case_id, tiled_float32(case, stored))
            check(code == 0, f"{case_id}: an online softmax in float32: {text}")
    print("\n".join(offences) if offences else "right answers pass, planted errors do not")
    return 1 if offences else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
