#!/usr/bin/env python3
"""Reads a golden pack with numpy alone: recomputes its attention cases from their definition, judges answers to its cases.

    read_pack.py PACK [ID ...]                                   all cases of operation `attention`, or those named
    read_pack.py PACK --judge DIR [--contract NAME|FILE.json]    the answers DIR/<id>.safetensors
    read_pack.py PACK --print-bounds ID [--contract NAME|FILE.json] [--stored TYPE]

Checks the digest of every case file first. Prints a line for each case whose answer differs from the stored one, then the
counts. Exits with 1 when a file is damaged or an answer differs, with 3 when no case could be recomputed or judged.

Answers are judged by the certified bound of their contract (error_bound.py); by default that of the type they are stored in.
A case is mistrusted when nothing is wrong with its answer but some of it has no bound under the contract.

Nothing of attention-oracle's own code is used: start here to read packs in another language.
"""
import argparse
import hashlib
import json
import sys
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("numpy is not installed, nothing was recomputed")
    sys.exit(77)

import judge_pack
from pack_file import load, tensors_of


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


def recompute(cases):
    counts = {"recomputed": 0, "different": 0, "passed over": 0}
    for row, case, stored in cases:
        if case["op"] != "attention" or case["result"] != "valid":
            counts["passed over"] += 1
            continue
        differs = difference(row, case, stored)
        counts["passed over" if differs is None else "different" if differs else "recomputed"] += 1
        if differs:
            print(f"{case['id']}: {differs} differ")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["different"] else 0 if counts["recomputed"] else 3


def rows_of(pack):
    rows = [json.loads(line) for line in (pack / "index.jsonl").read_text().splitlines()]
    for row in rows:
        if hashlib.sha256((pack / row["file"]).read_bytes()).hexdigest() != row["sha256"]:
            sys.exit(f"{row['file']}: damaged")
    return rows


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--judge", type=Path)
    parser.add_argument("--contract")
    parser.add_argument("--print-bounds")
    parser.add_argument("--stored", choices=("f64", "f32", "f16", "bf16"), default="f64")
    args = parser.parse_intermixed_args()
    rows = rows_of(args.pack)
    unknown = {*args.ids, *filter(None, [args.print_bounds])} - {row["id"] for row in rows}
    if unknown:
        print(f"no case {', '.join(sorted(unknown))} in {args.pack}", file=sys.stderr)
        return 2
    cases = ((row, *load(args.pack / row["file"])) for row in rows if not args.ids or row["id"] in args.ids)
    try:
        if args.judge:
            return judge_pack.judge_folder(cases, args.judge, args.contract)
        if args.print_bounds:
            found = next(row for row in rows if row["id"] == args.print_bounds)
            return judge_pack.print_bounds(*load(args.pack / found["file"]), args.contract, args.stored)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return recompute(cases)


if __name__ == "__main__":
    sys.exit(main())
