#!/usr/bin/env python3
"""Reads a golden pack with numpy alone and recomputes its attention cases from their definition.

    read_pack.py PACK [ID ...]     all cases of operation `attention`, or those named

Checks the digest of every case file first. Prints a line for each case whose answer differs from the stored one, then the
counts. Exits with 1 when a file is damaged or an answer differs, with 3 when no case could be recomputed. Nothing of attention-oracle's own code is used: start here to read packs in another language.
"""
import hashlib
import json
import sys
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("numpy is not installed, nothing was recomputed")
    sys.exit(77)

STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1", "BOOL": "?"}

# Float formats of 8 bits: exponent bits, fraction bits, bias, the codes of NaN.
FLOAT8 = {
    "f8_e4m3fn": (4, 3, 7, (0x7F, 0xFF)),
    "f8_e4m3fnuz": (4, 3, 8, (0x80,)),
    "f8_e5m2": (5, 2, 15, (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF)),
}


def load(path):
    """The case object and the tensors of a file, as stored."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    case, tensors = json.loads(header.pop("__metadata__")["case"]), {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], STORED[entry["dtype"]]).reshape(entry["shape"])
    return case, tensors


def float8_values(dtype):
    """The value of each of the 256 codes."""
    exponent_bits, fraction_bits, bias, nans = FLOAT8[dtype]
    codes = np.arange(256)
    exponent = (codes >> fraction_bits) & ((1 << exponent_bits) - 1)
    fraction = (codes & ((1 << fraction_bits) - 1)) / (1 << fraction_bits)
    values = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    values = np.where(codes >= 128, -values, values)
    values[list(nans)] = np.nan
    if dtype == "f8_e5m2":
        values[[0x7C, 0xFC]] = np.inf, -np.inf
    return values


def decode(tensor, dtype):
    if dtype == "bf16":
        return (tensor.astype("<u4") << 16).view("<f4").astype(np.float64)
    if dtype in FLOAT8:
        return float8_values(dtype)[tensor]
    return tensor if tensor.dtype.kind in "ib" else tensor.astype(np.float64)


def tensors_of(case, stored, table="inputs", prefix=""):
    return {name: decode(stored[prefix + name], entry["dtype"]) for name, entry in case[table].items() if prefix + name in stored}


class Attention:
    """One case of operation `attention`; names as in the case format."""

    def __init__(self, case, tensors):
        self.axes, self.attrs, self.t = case["axes"], case["attrs"], tensors
        self.query_start = tensors["query_start_loc"]
        self.group = self.axes["num_heads"] // self.axes["num_kv_heads"]

    def real(self, name):
        return float.fromhex(self.attrs[name]) if name in self.attrs else 0.0

    def cached(self, r, length):
        """Keys and values of a request, [length, num_kv_heads, size]."""
        layout = self.attrs.get("kv_layout")
        if layout == "varlen":
            at = np.arange(self.t["kv_start_loc"][r], self.t["kv_start_loc"][r] + length)
            key, value = self.t["key"][at], self.t["value"][at]
        else:
            packed = self.t.get("kv_cache")
            key = self.t["key_cache"] if packed is None else packed[..., : self.axes["head_size"]]
            value = self.t["value_cache"] if packed is None else packed[..., self.axes["head_size"] :]
            if self.attrs.get("kv_cache_layout") == "HND":
                key, value = key.swapaxes(1, 2), value.swapaxes(1, 2)
            positions = np.arange(length)
            size = key.shape[1]
            at = self.t["block_table"][r][positions // size], positions % size
            key, value = key[at], value[at]
        return self.scaled(key, "k", r, at), self.scaled(value, "v", r, at)

    def scaled(self, rows, side, r, at):
        if f"{side}_scale_cache" in self.t:
            return rows * self.t[f"{side}_scale_cache"][at][..., None]
        scale = self.t.get(f"{side}_scale")
        if scale is None:
            return rows.astype(np.float64)
        return rows * np.broadcast_to(scale[r] if scale.ndim == 2 else scale, rows.shape[1])[:, None]

    def visible(self, r, q, k):
        """Which keys k [n] the rows at positions q [rows, 1] see, before mask tensors."""
        get = self.attrs.get
        if "rswa_window" in self.attrs:
            prefix = self.t["rswa_prefix_lens"][r]
            return (k <= q) & ((k < prefix) | (q - k < get("rswa_window")))
        causal = self.t["causal_per_req"][r] if "causal_per_req" in self.t else get("causal")
        base = k <= q if causal else np.full(np.broadcast(q, k).shape, True)
        near = q - k <= get("window_left", np.iinfo(np.int64).max)
        base &= near | (k < get("sink_token_length", 0))
        base &= k - q <= get("window_right", np.iinfo(np.int64).max)
        if "attention_chunk_size" in self.attrs:
            behind = q // get("attention_chunk_size") - k // get("attention_chunk_size")
            base &= (behind >= 0) & (behind <= get("attention_chunk_lookback", 0))
        for first, last in self.t.get("mm_prefix_ranges", {r: ()})[r]:
            if 0 <= first < last:
                inside = (first <= q) & (q <= last) & (first <= k) & (k <= last)
                base |= inside & near if get("mm_prefix_clamp") else inside
        return base

    def alibi(self, head, q, k, context):
        form = self.attrs.get("alibi_form")
        if form is None:
            return 0.0
        distance = {"row": k - q, "context": k - context + 0 * q, "zero": k + 0 * q, "abs": -abs(q - k),
                    "sqrt": -np.sqrt(np.maximum(q - k, 0))}[form]
        return self.t["alibi_slopes"][head] * distance

    def of_axis(self, name, r, head, rows, keys):
        tensor = self.t[name]
        part = tensor[min(r, tensor.shape[0] - 1), min(head, tensor.shape[1] - 1)]
        part = part[:rows] if part.shape[0] > 1 else part
        return np.broadcast_to(part[:, :keys] if part.shape[1] > 1 else part, (rows, keys))

    def answer(self):
        out = np.zeros((self.axes["num_tokens"], self.axes["num_heads"], self.axes["head_size_v"]))
        lse = np.full(out.shape[1::-1], -np.inf)
        for r, length in enumerate(self.t["seq_lens"]):
            rows = np.arange(self.query_start[r], self.query_start[r + 1])
            key, value = self.cached(r, length)
            for head in range(self.axes["num_heads"]):
                kv = head // self.group
                out[rows, head], lse[head, rows] = self.rows(r, head, rows, key[:, kv], value[:, kv])
        return {"out": out, "lse": lse}

    def mask_and_bias(self, r, head, num_rows, num_keys):
        """Which of the keys each row of a request sees, bool [rows, keys], and what is added to their scores."""
        context = num_keys - num_rows
        q, k = context + np.arange(num_rows)[:, None], np.arange(num_keys)
        bias = self.alibi(head, q, k, context) + np.zeros((num_rows, num_keys))
        if "attn_bias" in self.t:
            bias = bias + self.of_axis("attn_bias", r, head, num_rows, num_keys)
        if "qq_bias" in self.t:
            tree = self.t["qq_bias"]
            new, i = k[k >= context][: len(tree)], np.arange(num_rows)[: len(tree)]
            bias[np.ix_(i, new)] += tree[np.ix_(i, new - context)]
        seen = self.visible(r, q, k) & (bias != -np.inf)
        if "attn_mask" in self.t:
            seen = seen & self.of_axis("attn_mask", r, head, num_rows, num_keys)
        return seen, bias

    def rows(self, r, head, rows, key, value):
        query = self.t["query"][rows, head]
        if "q_scale" in self.t:
            scale = self.t["q_scale"]
            query = query * scale[min(head // self.group, len(scale) - 1)]
        score = self.real("scale") * np.einsum("id,kd->ik", query, key)
        cap = self.real("logits_soft_cap")
        if cap:
            score = cap * np.tanh(score / cap)
        seen, bias = self.mask_and_bias(r, head, len(rows), len(key))
        results = [self.softmax((score + bias)[i][seen[i]], value[seen[i]], head) for i in range(len(rows))]
        return np.reshape([o for o, _ in results], (len(rows), value.shape[1])), [state for _, state in results]

    def softmax(self, u, value, head):
        value, u = value[u != -np.inf], u[u != -np.inf]
        sink = self.t["sinks"][head] if "sinks" in self.t else -np.inf
        in_lse = sink if self.attrs.get("lse_includes_sink", True) else -np.inf
        if np.isnan(u).any() or np.isnan(sink) or (u == np.inf).any():
            return np.full(value.shape[1], np.nan), np.nan
        if not len(u) or sink == np.inf:
            return np.zeros(value.shape[1]), self.log_sum(u, in_lse)
        top = max(u.max(), sink)
        weight = np.exp(u - top)
        return weight @ value / (weight.sum() + np.exp(sink - top)), self.log_sum(u, in_lse)

    @staticmethod
    def log_sum(u, sink):
        top = max(u.max(initial=-np.inf), sink)
        return top if np.isinf(top) else top + np.log(np.exp(u - top).sum() + np.exp(sink - top))


def agrees(answer, expected, tolerance):
    """Within the tolerance of the index (0 in packs) and what float64 sums of some hundred terms may be off."""
    atol, rtol = tolerance
    with np.errstate(invalid="ignore"):
        near = abs(answer - expected) <= atol + rtol * abs(expected) + 1e-12 * np.maximum(1, abs(expected))
    return bool(((answer == expected) | near | (np.isnan(answer) & np.isnan(expected))).all())


def difference(row, case, stored):
    """Empty when the stored answer is the recomputed one; None when this reader does not know the encoding."""
    if case["attrs"].get("kv_cache_dtype") == "nvfp4":
        return None
    with np.errstate(all="ignore"):
        answer = Attention(case, tensors_of(case, stored)).answer()
    expected = tensors_of(case, stored, "outputs")
    names = [name for name in ("out", "lse") if name in expected]
    return ", ".join(name for name in names if not agrees(answer[name], expected[name], row["tolerance"][name]))


def main(pack, ids):
    pack = Path(pack)
    rows = [json.loads(line) for line in (pack / "index.jsonl").read_text().splitlines()]
    for row in rows:
        if hashlib.sha256((pack / row["file"]).read_bytes()).hexdigest() != row["sha256"]:
            sys.exit(f"{row['file']}: damaged")
    unknown = set(ids) - {row["id"] for row in rows}
    if unknown:
        print(f"no case {', '.join(sorted(unknown))} in {pack}", file=sys.stderr)
        return 2
    counts = {"recomputed": 0, "different": 0, "passed over": 0}
    for row in rows:
        if ids and row["id"] not in ids:
            continue
        case, stored = load(pack / row["file"])
        if case["op"] != "attention" or case["result"] != "valid":
            counts["passed over"] += 1
            continue
        differs = difference(row, case, stored)
        counts["passed over" if differs is None else "different" if differs else "recomputed"] += 1
        if differs:
            print(f"{case['id']}: {differs} differ")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["different"] else 0 if counts["recomputed"] else 3


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
