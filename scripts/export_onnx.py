#!/usr/bin/env python3
"""Writes what ONNX's Attention operator can say of a golden pack as ONNX backend-test folders, and checks them.

    export_onnx.py PACK OUT

Needs PyPI's onnx >= 1.22 and onnxruntime (Debian's onnx has no Attention):

    python3 -m venv onnx && onnx/bin/pip install 'onnx>=1.22' onnxruntime numpy && onnx/bin/python scripts/export_onnx.py PACK OUT

Every folder OUT/test_attn_oracle_<id> holds a model of one node and one data set per batch of equal query lengths. All are
checked by onnx's checker, read back by onnx's loader of backend tests, and run by onnx's evaluator and by onnxruntime;
OUT/CHECKED.txt says what came out. Exit 1 when one of them disagrees with the pack.
"""
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test.loader
import onnx.reference
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import read_pack

IR_VERSION = {23: 11, 24: 12, 25: 13}
# What the operator has no word for.
INEXPRESSIBLE = ("sinks", "k_scale", "v_scale", "q_scale", "output_scale", "k_scale_cache", "k_block_scale")
# What only a mask says.
MASKED = ("mm_prefix_ranges", "causal_per_req", "rswa_prefix_lens", "attn_mask", "attn_bias", "qq_bias", "alibi_slopes")
MASKED_ATTRIBUTES = ("sink_token_length", "attention_chunk_size", "rswa_window")


def exact_in_float32(x):
    return np.float64(np.float32(x)) == x


class Batch:
    """Requests of equal query length, dense: query [B, H, q, D], key and value [B, Hk, S, D] with zeros behind short ones."""

    def __init__(self, attention, requests, answer):
        self.lengths = np.array([attention.t["seq_lens"][r] for r in requests])
        self.rows = [np.arange(attention.query_start[r], attention.query_start[r + 1]) for r in requests]
        longest = self.lengths.max()
        caches = [self.readable(attention, r) for r in requests]
        pad = lambda x: np.pad(x, ((0, longest - len(x)), (0, 0), (0, 0)))
        heads_first = lambda parts: np.stack([p.swapaxes(0, 1) for p in parts]).astype(np.float32)
        self.query = heads_first([attention.t["query"][rows] for rows in self.rows])
        self.key = heads_first([pad(key) for key, _ in caches])
        self.value = heads_first([pad(value) for _, value in caches])
        self.out = heads_first([answer[rows] for rows in self.rows])

    @staticmethod
    def readable(attention, r):
        """Keys and values of a request; poison that no row sees becomes 0: ONNX does not promise not to read it."""
        length, rows = attention.t["seq_lens"][r], attention.query_start[r + 1] - attention.query_start[r]
        heads = range(attention.axes["num_heads"])
        hidden = ~np.any([attention.mask_and_bias(r, head, rows, length)[0] for head in heads], axis=(0, 1))
        return [np.where(hidden[:, None, None] & ~np.isfinite(x), 0, x) for x in attention.cached(r, length)]

    @property
    def query_len(self):
        return self.query.shape[2]

    @property
    def equal(self):
        return (self.lengths == self.lengths[0]).all()

    def mask(self, attention, requests):
        """Composed mask [B, H or 1, q, S]: bool, or float32 with -inf; None when its bias is not exact in float32."""
        longest = self.lengths.max()
        heads = attention.axes["num_heads"]
        seen = np.zeros((len(requests), heads, self.query_len, longest), bool)
        bias = np.zeros(seen.shape)
        for b, r in enumerate(requests):
            for head in range(heads):
                visible, added = attention.mask_and_bias(r, head, self.query_len, self.lengths[b])
                seen[b, head, :, : self.lengths[b]], bias[b, head, :, : self.lengths[b]] = visible, added
        bias[~seen] = 0
        if not (bias.astype(np.float32) == bias).all():
            return None
        mask = np.where(seen, bias, -np.inf).astype(np.float32) if bias.any() else seen
        return mask[:, :1] if (mask == mask[:, :1]).all() else mask


def batches_of(attention, answer):
    """Requests with rows, as one batch when their query lengths are equal, else each alone."""
    requests = [r for r in range(len(attention.t["seq_lens"])) if attention.query_start[r + 1] > attention.query_start[r]]
    lengths = {attention.query_start[r + 1] - attention.query_start[r] for r in requests}
    groups = [requests] if len(lengths) == 1 else [[r] for r in requests]
    return [(group, Batch(attention, group, answer)) for group in groups]


def why_not(case):
    attrs, inputs = case["attrs"], case["inputs"]
    if case["op"] != "attention" or case["result"] != "valid":
        return "another operation"
    if attrs.get("kv_cache_dtype", "auto") != "auto" or any(name in inputs for name in INEXPRESSIBLE):
        return "sinks, scales or codes"
    if any(inputs[name]["dtype"] != "f32" for name in inputs if name in ("query", "key", "value", "key_cache", "value_cache", "kv_cache")):
        return "not float32"
    scale, cap = float.fromhex(attrs["scale"]), float.fromhex(attrs.get("logits_soft_cap", "0x0p+0"))
    if not scale > 0 or not exact_in_float32(scale) or not exact_in_float32(cap):
        return "scale or soft cap"
    return ""


def form_of(case, batches):
    """plain, past, nonpad or mask, and the lowest opset that has it."""
    attrs = case["attrs"]
    if any(name in case["inputs"] for name in MASKED) or any(name in attrs for name in MASKED_ATTRIBUTES):
        return "mask", 23
    window = "window_left" in attrs or "window_right" in attrs
    if all(batch.equal for _, batch in batches):
        if not attrs["causal"] and not window:
            return "plain", 23
        if all(batch.lengths[0] >= batch.query_len for _, batch in batches):
            return "past", 25 if window else 23
    return "nonpad", 25 if window else 24


def data_of(form, attention, requests, batch):
    """Named inputs and outputs of one data set."""
    inputs = {"Q": batch.query, "K": batch.key, "V": batch.value}
    outputs = {"Y": batch.out}
    if form == "mask":
        inputs["attn_mask"] = batch.mask(attention, requests)
    elif form == "nonpad":
        inputs["nonpad_kv_seqlen"] = batch.lengths.astype(np.int64)
    elif form == "past" and batch.lengths[0] > batch.query_len:
        past = batch.lengths[0] - batch.query_len
        outputs |= {"present_key": batch.key, "present_value": batch.value}
        inputs |= {"past_key": batch.key[:, :, :past], "past_value": batch.value[:, :, :past]}
        inputs |= {"K": batch.key[:, :, past:], "V": batch.value[:, :, past:]}
    return inputs, outputs


ONNX_INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")


def model_of(case, form, opset, data):
    attrs = case["attrs"]
    options = {"scale": float.fromhex(attrs["scale"])}
    if "logits_soft_cap" in attrs:
        options["softcap"] = float.fromhex(attrs["logits_soft_cap"])
    if form in ("past", "nonpad"):
        options["is_causal"] = int(attrs["causal"])
        if "window_left" in attrs:
            options["left_window_size"] = attrs["window_left"]
        if "window_right" in attrs:
            options["right_window_size"] = attrs["window_right"]
    inputs, outputs = data[0]
    names = [name if name in inputs else "" for name in ONNX_INPUTS]
    while not names[-1]:
        names.pop()
    node = helper.make_node("Attention", names, list(outputs), **options)

    def info(name, which):
        shapes = [d[which][name].shape for d in data]
        shape = [size if all(s[axis] == size for s in shapes) else f"{name}_{axis}" for axis, size in enumerate(shapes[0])]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data[0][which][name].dtype), shape)

    graph = helper.make_graph([node], case["id"], [info(n, 0) for n in names if n], [info(n, 1) for n in outputs])
    model = helper.make_model(graph, producer_name="attention-oracle", opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = IR_VERSION[opset]
    return model


def write_folder(folder, model, data):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    names = [i.name for i in model.graph.input]
    for index, (inputs, outputs) in enumerate(data):
        place = folder / f"test_data_set_{index}"
        place.mkdir()
        for prefix, tensors in (("input", [inputs[n] for n in names]), ("output", list(outputs.values()))):
            for i, tensor in enumerate(tensors):
                proto = numpy_helper.from_array(tensor)
                (place / f"{prefix}_{i}.pb").write_bytes(proto.SerializeToString(deterministic=True))


def read_tensors(place, prefix):
    paths = sorted(place.glob(f"{prefix}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    return [numpy_helper.to_array(TensorProto.FromString(p.read_bytes())) for p in paths]


def error_of(expected, actual):
    """Largest |e - g| / (1e-7 + 1e-3 * |e|): the node tests' tolerance is 1. present_* must be equal."""
    worst = 0.0
    for index, (e, g) in enumerate(zip(expected, actual, strict=True)):
        if index > 0 and not np.array_equal(e, g):
            return np.inf
        if e.size:
            worst = max(worst, float((abs(e - g) / (1e-7 + 1e-3 * abs(e))).max()))
    return worst


def check(test):
    """One line about a folder and whether all is well; `test` is what onnx's loader made of it."""
    path = Path(test.model_dir)
    model = onnx.load(path / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    evaluators = {
        "onnx": lambda feeds: onnx.reference.ReferenceEvaluator(model).run(None, feeds),
        "onnxruntime": lambda feeds: onnxruntime.InferenceSession(
            str(path / "model.onnx"), providers=["CPUExecutionProvider"]).run(None, feeds),
    }
    worst = dict.fromkeys(evaluators, 0.0)
    names = [i.name for i in model.graph.input]
    for place in sorted(path.glob("test_data_set_*")):
        feeds = dict(zip(names, read_tensors(place, "input"), strict=True))
        for name, run in evaluators.items():
            worst[name] = max(worst[name], error_of(read_tensors(place, "output"), run(feeds)))
    errors = "  ".join(f"{name} {value:.1e}" for name, value in worst.items())
    return f"{path.name}  checker ok  {errors}", all(value <= 1 for value in worst.values())


def export(pack, out):
    counts = {}
    for row in map(json.loads, (pack / "index.jsonl").read_text().splitlines()):
        case, stored = read_pack.load(pack / row["file"])
        reason = why_not(case)
        if reason:
            continue
        attention = read_pack.Attention(case, read_pack.tensors_of(case, stored))
        answer = read_pack.tensors_of(case, stored, "outputs")["out"]
        batches = batches_of(attention, answer)
        if not batches or any(batch.lengths.max() == 0 for _, batch in batches) or np.isnan(answer).any():
            continue
        form, opset = form_of(case, batches)
        data = [data_of(form, attention, requests, batch) for requests, batch in batches]
        same_names = len({tuple(inputs) for inputs, _ in data}) == 1
        if not same_names or any(inputs.get("attn_mask", 0) is None for inputs, _ in data):
            continue
        folder = out / f"test_attn_oracle_{case['id'].replace('-', '_').replace('.', '_')}"
        write_folder(folder, model_of(case, form, opset, data), data)
        counts[form] = counts.get(form, 0) + 1
    return counts


def main(pack, out):
    pack, out = Path(pack), Path(out)
    if out.exists() and any(out.iterdir()):
        print(f"{out} is not empty", file=sys.stderr)
        return 2
    counts = export(pack, out)
    if not counts:
        print("no case of the pack can be expressed", file=sys.stderr)
        return 3
    tests = onnx.backend.test.loader.load_model_tests(data_dir=str(out.parent), kind=out.name)
    lines, all_well = [], len(tests) == sum(counts.values())
    for test in sorted(tests, key=lambda t: t.name):
        line, well = check(test)
        lines.append(line)
        all_well &= well
    head = f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__} CPUExecutionProvider; largest |e - g| / (1e-7 + 1e-3 |e|)"
    (out / "CHECKED.txt").write_text("\n".join([head, *lines]) + "\n")
    print(", ".join(f"{form} {count}" for form, count in sorted(counts.items())), "| all well" if all_well else "| see CHECKED.txt")
    return 0 if all_well and tests else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
