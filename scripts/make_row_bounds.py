#!/usr/bin/env python3
"""Writes bounds of softmax rows as error_bound.py has them, for the test of another implementation: make_row_bounds.py FILE [--check]

With --check the file must already hold them, up to the last digits of a logarithm or an exponential.
"""
import json
import math
import random
import sys
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("numpy is not installed, nothing was made")
    sys.exit(77)

from error_bound import CONTRACTS, Terms, contract, row_bound, value_limit

HOW = "Made by scripts/make_row_bounds.py from scripts/error_bound.py, which is written apart from the C++ judge. Reals are hex floats."


def drawn_row(seed, keys, size=1.0, offset=0.0, sink=None, spread=1, magnitude=1.0):
    """cond_row of random logits of a size around an offset, and of a sink; what belongs to a value in [-1, 1] times magnitude."""
    draw = random.Random(seed)
    u = [offset + size * draw.gauss(0, 1) for _ in range(keys)]
    a = [abs(x - offset) + size * 8 * draw.random() for x in u]
    m_keys = max(u)
    m = m_keys if sink is None else max(m_keys, sink)
    ends = [] if sink is None else [sink]
    lse = m + math.log(math.fsum(math.exp(x - m) for x in u + ends))
    p, d = [math.exp(x - lse) for x in u], [m - x for x in u]
    distance = 0.0 if sink is None else abs(sink - m_keys)
    return [m, lse, keys, keys * spread, math.fsum(p), math.fsum(x * y for x, y in zip(p, a)), math.fsum(x * y for x, y in zip(p, d)),
            0.0 if sink is None else math.exp(sink - lse) * distance, max(a), max(*d, distance) if keys > 1 else distance,
            1.5 * abs(offset) + size, 9.5 * size, 11.25 * size, 3.25 * size, 2.75 * size, magnitude, m_keys]


ROWS = {
    "one_key": drawn_row(1, 1),
    "two_keys": drawn_row(2, 2, 3.0),
    "small": drawn_row(3, 17),
    "block": drawn_row(4, 64, 2.0),
    "apart": drawn_row(5, 40, 1.0, spread=9),
    "long": drawn_row(6, 1025),
    "longer": drawn_row(7, 6000, 0.5),
    "offset": drawn_row(8, 33, 0.75, 20.0),
    "below": drawn_row(9, 33, 0.75, -35.0),
    "sink": drawn_row(10, 50, 1.0, sink=1.5),
    "sink_above": drawn_row(11, 21, 1.0, sink=14.0),
    "sink_below": drawn_row(12, 21, 1.0, 3.0, sink=-20.0),
    "flat": drawn_row(13, 12, 0.0),
    "far": drawn_row(14, 30, 300.0),
    "huge": drawn_row(15, 9, 2.0e6),
    "tiny": drawn_row(16, 25, 1e-30),
    "large_values": drawn_row(17, 5, magnitude=1e39),
    "values_beyond_f16": drawn_row(18, 5, magnitude=1e5),
    "many": drawn_row(19, 200, 1.0, 1.0)[:2] + [3.0e7, 3.0e7] + drawn_row(19, 200, 1.0, 1.0)[4:],
    "sink_low": drawn_row(22, 5, 0.25, sink=0.5),
    "sink_high": drawn_row(23, 5, 0.25, sink=7.0),
    "sink_higher": drawn_row(24, 5, 0.25, sink=11.0),
    "large_key": [1e4 if place == 14 else x for place, x in enumerate(drawn_row(21, 6))],
    "infinite": drawn_row(20, 8)[:8] + [math.inf] * 8 + [0.5],
}

PLAIN = {"dot_length": 128, "abs_scale": 0.08838834764831845, "query": "f32", "key": "f32", "value": "f32"}
BF16 = {**PLAIN, "query": "bf16", "key": "bf16", "value": "bf16"}


F16 = {"vector": "f16", "dot": {"type": "f16"}, "sum": {"type": "f16"}, "pv": {"type": "f16"}, "exp": {"rel": "0x1p-11", "abs": "0x1p-20"}, "merge": {"lse": "f16"}}


def terms_of(declared):
    names = {"dot_length": "dot", "abs_scale": "scale", "soft_cap": "cap", "num_biases": "biases"}
    return Terms(**{names.get(name, name): value for name, value in declared.items()})


# (what the case is about, fields over each contract, terms, rows)
OPTIONS = [
    ("cap", {}, {"soft_cap": 30.0}, ("small", "offset")),
    ("cap with an absolute error", {"cap": {"rel": "0x1p-12", "abs": "0x1p-20"}}, {"soft_cap": 50.0}, ("block",)),
    ("one bias", {}, {"num_biases": 1}, ("small", "offset", "below")),
    ("two biases", {"bias_rel": "0x1p-18"}, {"num_biases": 2}, ("offset",)),
    ("three biases and a cap", {}, {"num_biases": 3, "soft_cap": 20.0}, ("below",)),
    ("sink", {}, {"sink": True}, ("sink", "sink_above", "sink_below")),
    ("sink outside the lse", {}, {"sink": True, "lse_includes_sink": False}, ("sink", "sink_above")),
    ("accumulators merged", {"splits": 5, "merge": {"kind": "acc", "depth": 3, "part": "f32"}}, {}, ("long", "small")),
    ("parts merged in f16", {"splits": 4, "merge": {"kind": "acc", "depth": 4, "part": "f16"}}, {}, ("block", "values_beyond_f16")),
    ("lse merged", {"splits": 6, "merge": {"kind": "lse", "depth": 5, "part": {"type": "bf16", "flush": True}, "lse": "bf16"}}, {}, ("one_key", "small")),
    ("lse in f16", {"splits": 2, "merge": {"kind": "lse", "lse": "f16"}}, {"sink": True}, ("sink", "huge")),
    ("lag", {"max_lag": "0x1.62e42fefa39efp+2"}, {}, ("apart",)),
    ("lag with fp8 weights", {"max_lag": "0x1p+1", "p": {"type": "f8_e4m3fn", "scale": "0x1p+4"}}, {}, ("small",)),
    ("weights overflow", {"max_lag": "0x1p+2", "p": {"type": "f8_e4m3fn", "scale": "0x1p+8"}}, {}, ("small",)),
    ("inner accumulator", {"dot": {"inner": {"unit": "0x1p-13"}, "block": 32}, "pv": {"inner": {"unit": "0x1p-13"}, "block": 128}}, {}, ("long",)),
    ("matrix instructions", {"dot": {"mma_k": 16, "mode": "truncate"}, "pv": {"mma_k": 32, "block": 64}, "sum": {"mma_k": 8, "lanes": 4}}, {}, ("apart", "long")),
    ("normalised weights", {"tile": 0, "p": {"type": "bf16", "roundings": 2, "normalized": True}}, {}, ("block", "sink")),
    ("rounded weights summed", {"p": {"type": "f16", "roundings": 1}, "sum": {"rounded_p": True, "fused": False}}, {}, ("block",)),
    ("flush", {"flush": True, "p": {"type": "f16", "flush": True}, "value": {"type": "f16", "flush": True}}, {}, ("small", "tiny")),
    ("vector f16", {"vector": "f16", "scale_roundings": 2, "exp": {"arg_roundings": 1, "rel": "0x1p-11"}, "tile": 0}, {"num_biases": 3, "soft_cap": 8.0}, ("two_keys", "one_key")),
    ("accumulator f16", {"dot": {"type": "f16"}, "pv": {"type": "f16"}}, {"dot_length": 16}, ("two_keys", "values_beyond_f16")),
    ("query scaled before", {"query": {"type": "bf16", "scale": "0x1p-4"}}, BF16, ("small",)),
    ("query and key scaled up", {"query": {"type": "f16", "scale": "0x1p+3"}, "key": {"type": "f16", "scale": "0x1p+1"}}, PLAIN, ("small",)),
    ("weights scaled down", {"p": {"type": "f16", "scale": "0x1p-3"}, "value": {"type": "f16", "scale": "0x1p-2"}}, {}, ("small",)),
    ("decoding scales", {"key": "f16", "value": "bf16"}, {"key": None, "value": None, "query_scale": 3.0, "key_scale": 7.0, "value_scale": 2.0**40}, ("small",)),
    ("scales in the cache", {"value": "f16"}, {"key": None, "value": None, "key_scale": 2.0, "key_scale_in_cache": True, "value_scale_in_cache": True}, ("block", "tiny")),
    ("fp8 cache", {"key": "f16", "value": "f16"}, {"key": "f8_e4m3fn", "value": "f8_e5m2"}, ("small",)),
    ("latent", {"project": {"sum": {"lanes": 8}, "round": "bf16"}, "key": "bf16", "value": "bf16"}, {**BF16, "projected": 512, "dot_length": 576, "w_uk": "f32", "w_uv": "bf16"}, ("small",)),
    ("latent as scores are", {"dot": {"lanes": 32}}, {**PLAIN, "projected": 512, "dot_length": 576, "w_uk": "f32", "w_uv": "f32"}, ("block",)),
    ("latent that underflows", {"project": {"round": "f16"}}, {**PLAIN, "projected": 64, "w_uk": "f32", "w_uv": "f32"}, ("small",)),
    ("codes of an answer", {"normalize_roundings": 3, "out": {"type": "f8_e4m3fn", "scale": "0x1.4p+5"}, "lse": {"type": "f16", "mode": "truncate"}}, {}, ("small",)),
    ("stored logit", {"logit": {"type": "bf16", "mode": "truncate"}, "logit_roundings": 2, "tile": 0}, {"num_biases": 1}, ("offset",)),
    ("merged states", {"splits": 3, "merge": {"kind": "lse", "depth": 2}, "tile": 0, "scale_roundings": 0, "logit_roundings": 2}, {"dot_length": 0, "query": None, "key": None}, ("two_keys", "offset")),
    ("no scale", {}, {"abs_scale": 0.0}, ("flat",)),
    ("latent, one matrix rounded", {"key": "bf16", "value": "bf16"}, {**BF16, "projected": 64, "w_uk": "bf16", "w_uv": "f32"}, ("small",)),
    ("latent, the other rounded", {"key": "bf16", "value": "bf16"}, {**BF16, "projected": 64, "w_uk": "f32", "w_uv": "bf16"}, ("small",)),
    ("f16 underflows in scaled operands", {**F16, "query": {"type": "f16", "scale": "0x1p-4"}, "p": {"type": "f16", "scale": "0x1p-3"}}, {"dot_length": 16}, ("two_keys", "one_key")),
    ("f16 underflows before scales", F16, {"dot_length": 16, "query": None, "query_scale": 3.0, "key_scale": 2.0, "key_scale_in_cache": True, "value_scale_in_cache": True},
     ("one_key", "two_keys")),
    ("f16 underflows in a logit", {**F16, "logit_roundings": 3}, {"dot_length": 16, "num_biases": 1}, ("two_keys",)),
    ("f16 flushed", {**F16, "flush": True}, {"dot_length": 4}, ("one_key",)),
    ("f16 beside a sink", F16, {"dot_length": 16, "sink": True, "lse_includes_sink": False}, ("sink_low", "sink_high", "sink_higher")),
    ("f16 accumulators overflow", {"dot": {"type": "f16"}}, {"dot_length": 16, "abs_scale": 2.0**-10}, ("block", "one_key")),
    ("a large key", {"key": {"type": "f16", "scale": "0x1p+4"}}, {}, ("large_key",)),
    ("a large key that fits", {"key": {"type": "f16", "scale": "0x1p+2"}}, {}, ("large_key",)),
    ("operands beyond their types", {"query": "f8_e4m3fn", "key": {"type": "f16", "scale": "0x1p+4"}}, {}, ("far", "huge")),
]


def cases():
    """(about, contract, type of the answer, terms, row)"""
    for name in CONTRACTS:
        stored = "f64" if name in ("f64", "f64_flash", "reference") else "bf16" if name.startswith("bf16") else "f32"
        types = {**PLAIN, **dict.fromkeys(("query", "key", "value"), stored)}
        for row in ("one_key", "block", "apart", "longer"):
            yield "named", {"extends": name}, stored, types, row
        yield "named, sink and bias", {"extends": name}, "f16", {**types, "sink": True, "num_biases": 1}, "sink"
    for row in ("far", "huge", "large_values", "many", "infinite", "tiny"):
        yield "range", {"extends": "fp32"}, "f32", PLAIN, row
    for index, (about, fields, terms, rows) in enumerate(OPTIONS):
        bases = ("fp32", "fp32_lanes") if index % 2 else ("fp32_lanes", "fp32")
        for row, base in [(rows[0], bases[1]), *((row, bases[0]) for row in rows)]:
            yield about, {"extends": base, **fields}, ("f32", "bf16")[index % 2], {**PLAIN, **terms}, row


def hexed(value):
    return float(value).hex() if math.isfinite(value) else str(float(value))


def evaluated():
    places, result = list(ROWS), []
    for about, declared, stored, terms, row in cases():
        c = contract(declared, stored)
        terms = {name: value for name, value in terms.items() if value is not None}
        *constants, lse, vacuous = row_bound(c, terms_of(terms), np.array(ROWS[row], float))
        case = {"about": about, "contract": declared, "stored": stored, "terms": {n: hexed(v) if isinstance(v, float) else v for n, v in terms.items()},
                "row": places.index(row), "vacuous": bool(vacuous != "")}
        if not case["vacuous"]:
            case |= {"out": [hexed(x) for x in constants], "lse": hexed(lse), "value_limit": hexed(value_limit(c))}
        result.append(case)
    return {"how": HOW, "rows": [[hexed(x) for x in row] for row in ROWS.values()], "cases": result}


def text_of(made):
    def lines(entries):
        return "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]"

    return f'{{"how": {json.dumps(made["how"])},\n"rows": {lines(made["rows"])},\n"cases": {lines(made["cases"])}}}\n'


def same(a, b):
    """Equal, reals to 13 digits."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, str) and isinstance(b, str) and a != b:
        try:
            return math.isclose(float.fromhex(a), float.fromhex(b), rel_tol=1e-13)
        except ValueError:
            return False
    return a == b


def main():
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    path, made = Path(sys.argv[1]), evaluated()
    if sys.argv[2:]:
        kept = same(json.loads(path.read_text()), json.loads(text_of(made)))
        print(f"{path} is {'' if kept else 'not '}what error_bound.py makes")
        return 0 if kept else 1
    path.write_text(text_of(made))
    print(f"{len(made['cases'])} cases, {sum(case['vacuous'] for case in made['cases'])} without a bound")
    return 0


if __name__ == "__main__":
    sys.exit(main())
