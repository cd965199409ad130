"""What a correct attention kernel may get wrong, element by element: the certified error bound in numpy.

Derivation, notation and sources: docs/numerics.md. `contract(name)` says what a kernel promises about its arithmetic; `cond`
holds the conditioning sums of a case (tables `cond` of packs), which do not depend on any contract. `bounds` gives what an
answer may be off by. `row_bound` is the heart of it: copy that to have the bound in another language.
"""
import json
from dataclasses import dataclass

import numpy as np

# Fraction bits, exponent of the smallest normal number, largest number.
FORMATS = {
    "f64": (52, -1022, float.fromhex("0x1.fffffffffffffp+1023")),
    "f32": (23, -126, float.fromhex("0x1.fffffep+127")),
    "tf32": (10, -126, float.fromhex("0x1.ffcp+127")),
    "f16": (10, -14, 65504.0),
    "bf16": (7, -126, float.fromhex("0x1.fep+127")),
    "f8_e4m3fn": (3, -6, 448.0),
    "f8_e4m3fnuz": (3, -7, 240.0),
    "f8_e5m2": (2, -14, 57344.0),
}

# Contracts by name; what is absent stands in the one that it extends.
CONTRACTS = json.loads("""{
"fp32": {"vector": "f32", "flush": false, "query": "exact", "key": "exact", "value": "exact",
  "dot": {"type": "f32", "mode": "nearest", "lanes": 1, "block": 0, "mma_k": 0, "fused": true, "inner": null},
  "scale_roundings": 4, "cap": {"rel": "0x1p-21", "abs": "0x0p+0"}, "bias_rel": "0x1p-22", "logit": "exact", "logit_roundings": 0,
  "exp": {"rel": "0x1p-21", "abs": "0x1p-126", "arg_roundings": 3, "shift_roundings": 2},
  "tile": 64, "max_lag": "0x0p+0",
  "p": {"type": "exact", "mode": "nearest", "scale": "0x1p+0", "flush": false, "roundings": 0, "normalized": false},
  "sum": {"type": "f32", "mode": "nearest", "lanes": 1, "block": 0, "mma_k": 0, "fused": true, "inner": null, "rounded_p": false},
  "pv": {"type": "f32", "mode": "nearest", "lanes": 1, "block": 0, "mma_k": 0, "fused": true, "inner": null},
  "splits": 1, "merge": {"kind": "acc", "depth": 1, "part": "exact", "lse": "f32"},
  "normalize_roundings": 2, "log": {"abs": "0x1p-22", "roundings": 3}, "project": null, "out": "stored", "lse": "stored"},
"fp32_lanes": {"extends": "fp32", "dot": {"lanes": 16}, "sum": {"lanes": 16, "block": 256}, "pv": {"block": 256}, "tile": 256},
"fp32_split": {"extends": "fp32", "dot": {"lanes": 16}, "sum": {"lanes": 16, "block": 64}, "pv": {"block": 64}, "splits": 16, "merge": {"kind": "lse"}},
"bf16_flash": {"extends": "fp32", "flush": true, "query": {"type": "bf16", "flush": true}, "key": {"type": "bf16", "flush": true},
  "value": {"type": "bf16", "flush": true}, "dot": {"fused": false}, "pv": {"fused": false}, "p": {"type": "bf16", "flush": true}},
"bf16_vdp": {"extends": "bf16_flash", "dot": {"lanes": 16, "fused": true}, "sum": {"lanes": 16, "block": 256}, "pv": {"block": 256, "fused": true},
  "tile": 256},
"bf16_mma": {"extends": "bf16_flash", "flush": false, "dot": {"mode": "truncate", "mma_k": 16, "fused": true},
  "pv": {"mode": "truncate", "mma_k": 16, "fused": true}},
"f16_flash": {"extends": "fp32", "query": "f16", "key": "f16", "value": "f16", "p": {"type": "f16"}},
"fp8_flash": {"extends": "fp32", "query": "f8_e4m3fn", "scale_roundings": 6, "p": {"type": "f8_e4m3fn", "scale": "0x1p+8", "roundings": 2},
  "normalize_roundings": 3},
"tf32": {"extends": "fp32", "query": {"type": "tf32", "mode": "truncate"}, "key": {"type": "tf32", "mode": "truncate"},
  "value": {"type": "tf32", "mode": "truncate"}, "dot": {"mode": "truncate", "mma_k": 8}, "pv": {"mode": "truncate", "mma_k": 8},
  "p": {"type": "tf32", "mode": "truncate"}},
"bf16_unfused": {"extends": "fp32", "flush": true, "query": {"type": "bf16", "flush": true}, "key": {"type": "bf16", "flush": true},
  "value": {"type": "bf16", "flush": true}, "dot": {"fused": false}, "pv": {"fused": false}, "logit": "bf16", "logit_roundings": 1, "tile": 0,
  "p": {"type": "bf16", "flush": true, "normalized": true}},
"f64": {"extends": "fp32", "vector": "f64", "dot": {"type": "f64", "fused": false}, "sum": {"type": "f64"}, "pv": {"type": "f64", "fused": false},
  "scale_roundings": 1, "cap": {"rel": "0x1p-51"}, "bias_rel": "0x1p-52",
  "exp": {"rel": "0x1p-52", "abs": "0x1p-1022", "arg_roundings": 1, "shift_roundings": 0}, "tile": 0, "log": {"abs": "0x1p-52"}, "merge": {"lse": "f64"}},
"f64_flash": {"extends": "f64", "scale_roundings": 4, "exp": {"arg_roundings": 3, "shift_roundings": 2}, "tile": 64, "splits": 16, "merge": {"kind": "lse"}},
"reference": {"extends": "f64", "dot": {"lanes": 8}, "sum": {"block": 64}, "pv": {"block": 64}}
}""")

ROUNDINGS = ("query", "key", "value", "logit", "p", "out", "lse")
EXACT = {"type": "exact", "mode": "nearest", "scale": 1.0, "flush": False}
PLAIN = {**EXACT, "roundings": 0, "normalized": False}  # what a type's name alone says
SUM = {"type": "f32", "mode": "nearest", "lanes": 1, "block": 0, "mma_k": 0, "fused": True, "inner": None}

# Places of the last axis of cond_row.
M, L, COUNT, SPAN, MASS, PA, PD, SD, A_MAX, D_MAX, B_MAX, Q_L1, K_L1, Q_MAX, K_MAX, V_MAX, M_KEYS = range(17)


def unit(form):
    """Largest relative error of rounding to nearest."""
    return 2.0 ** -(FORMATS[form][0] + 1) if form in FORMATS else 0.0


def half_quantum(form):
    """Half the smallest subnormal; of f64 the whole, as half of it is no double."""
    if form not in FORMATS:
        return 0.0
    bits, exponent, _ = FORMATS[form]
    return max(2.0 ** (exponent - bits - 1), 2.0**-1074)


def smallest_normal(form):
    return 2.0 ** FORMATS[form][1] if form in FORMATS else 0.0


def largest(form):
    return FORMATS[form][2] if form in FORMATS else np.inf


def embeds(stored, form):
    """Whether every finite number of type `stored` is one of `form`."""
    if form == "exact":
        return True
    if stored not in FORMATS or form not in FORMATS:
        return False
    (bits, exponent, top), (to_bits, to_exponent, to_top) = FORMATS[stored], FORMATS[form]
    return bits <= to_bits and top <= to_top and exponent - bits >= to_exponent - to_bits


def rounding_unit(rounding):
    return unit(rounding["type"]) * (2 if rounding["mode"] == "truncate" else 1)


def rounding_quantum(rounding):
    """Largest absolute error besides, of the value before `scale`."""
    if rounding["flush"]:
        return smallest_normal(rounding["type"]) / rounding["scale"]
    return half_quantum(rounding["type"]) * (2 if rounding["mode"] == "truncate" else 1) / rounding["scale"]


# ---- contracts


def merged(below, above):
    """`above` over `below`, object by object; a type's name alone stands for a rounding to it."""
    both = dict(below)
    for key, value in above.items():
        if key not in below:
            raise ValueError(f"contract: unknown field {key}")
        if isinstance(below[key], dict) and isinstance(value, str):
            value = {**{name: PLAIN[name] for name in below[key]}, "type": value}
        both[key] = merged(below[key], value) if isinstance(below[key], dict) and isinstance(value, dict) else value
    return both


def every_field(declared):
    """The contract in JSON that it extends ("fp32" by default) with `declared` over it."""
    declared = dict(declared)
    parent = declared.pop("extends", "fp32")
    if parent not in CONTRACTS:
        raise ValueError(f"contract {parent} is not one of {', '.join(CONTRACTS)}: give it as a JSON file")
    if parent != "fp32":
        return merged(every_field(CONTRACTS[parent]), declared)
    base = dict(CONTRACTS["fp32"], merge={**CONTRACTS["fp32"]["merge"], "part": dict(EXACT)})
    for name in ROUNDINGS:
        base[name] = {**EXACT, **(base[name] if isinstance(base[name], dict) else {"type": base[name]})}
    return merged(base, declared)


def numbers(value):
    """Hex floats as floats."""
    if isinstance(value, dict):
        return {key: numbers(item) for key, item in value.items()}
    return float.fromhex(value) if isinstance(value, str) and value.lstrip("-").startswith("0x") else value


def contract(declared, stored="f64"):
    """Every field of a contract, named or in JSON; answers that are `stored` are of that type."""
    fields = numbers(every_field({"extends": declared} if isinstance(declared, str) else declared))
    for name in ("out", "lse"):
        if fields[name]["type"] == "stored":
            fields[name] = {**fields[name], "type": stored}
    if fields["project"] is not None:
        fields["project"] = merged({"sum": SUM, "round": EXACT}, fields["project"])
    return fields


# ---- the bound of softmax rows


@dataclass(frozen=True)
class Terms:
    """What the bound needs to know of a case beside its conditioning sums."""

    dot: int  # products in a score
    scale: float = 1.0
    cap: float = 0.0
    biases: int = 0  # terms that are added to a score
    sink: bool = False
    lse_includes_sink: bool = True
    # Types as stored, None where decoding multiplies by a scale.
    query: str = None
    key: str = None
    value: str = None
    # Largest scales that a kernel may multiply by after a sum, in which underflow then weighs more; _in_cache: one for a token or block.
    query_scale: float = 1.0
    key_scale: float = 1.0
    value_scale: float = 1.0
    key_scale_in_cache: bool = False
    value_scale_in_cache: bool = False
    # Of expanded latent attention: products in an element of k or v, else 0, and the types of the matrices.
    projected: int = 0
    w_uk: str = None
    w_uv: str = None


def depth(summation, n, span, is_dot=False):
    """Relative error of a sum of n products whose places lie within `span`."""
    s, lanes = summation, summation["lanes"]
    u = unit(s["type"]) * (2 if s["mode"] == "truncate" else 1)
    inner = u if s["inner"] is None else s["inner"]["unit"]
    block = s["block"] or np.inf
    n_in, span_in = np.minimum(n, block), np.minimum(span, block)
    if s["mma_k"]:
        inside = np.minimum(n_in, np.ceil(span_in / s["mma_k"]) + (not is_dot)) * (s["mma_k"] + 2)
    else:
        inside = np.minimum(n_in, np.ceil(span_in / lanes))
    outside = np.minimum(n, np.ceil(span / block) + 1) if s["block"] else 0
    return (inside + (not s["fused"])) * inner + (outside + np.ceil(np.log2(lanes))) * u


def gamma(g):
    """What factors (1 + e) with |e| adding up to g can multiply to, minus 1; no bound from g = 1/2 on."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(g) < 0.5, np.asarray(g) / (1 - np.asarray(g)), np.inf)


def operand(c, name, stored, scale=1.0):
    """(u, q) of the rounding of query, key or value; a scaled one is rounded whatever its type. `scale` of the decoding may come after a sum."""
    rounding = c[name]
    exact = stored is not None and embeds(stored, rounding["type"]) and rounding["scale"] == 1
    flushed = smallest_normal(rounding["type"]) / rounding["scale"] if rounding["flush"] else 0.0
    read = smallest_normal(c["vector"]) if c["flush"] else 0.0  # what is not rounded may be read as 0
    quantum = max(read, flushed if exact else max(flushed, rounding_quantum(rounding)))
    return 0.0 if exact else rounding_unit(rounding), scale * quantum


def lost(c, accumulator):
    """omega: what one operation may lose to underflow in a sum of that type, or in a scalar."""
    return max((smallest_normal if c["flush"] else half_quantum)(form) for form in (c["vector"], accumulator))


def folded(scale, in_cache, largest_value):
    """By how much underflow weighs more where scales multiply sums: one stored with codes is at most largest_value / smallest code."""
    return scale * np.maximum(1.0, largest_value * 2.0**9) if in_cache else scale


def project(c, terms):
    """What the products with w_uk and w_uv add to the relative errors of scores and of answers, and whether they may underflow."""
    if not terms.projected:
        return 0.0, 0.0, False
    p = c["project"] or {"sum": c["dot"], "round": {**EXACT, "type": c["vector"]}}
    products, stored = float(depth(p["sum"], terms.projected, terms.projected, True)), rounding_unit(p["round"])
    def again(name):  # what is stored becomes an operand again
        return rounding_unit(c[name]) if rounding_unit(c[name]) > stored else 0.0

    of_keys = products + stored + operand(c, "key", terms.w_uk)[0] + max(again("query"), again("key"))
    # The latent answer is normalised before w_uv: its elements are rounded apart.
    of_values = products + 2 * stored + operand(c, "value", terms.w_uv)[0] + again("value") + c["normalize_roundings"] * unit(c["vector"])
    quanta = (operand(c, "key", terms.key, terms.key_scale)[1], operand(c, "value", terms.value, terms.value_scale)[1],
              rounding_quantum(c["merge"]["part"]), half_quantum(p["round"]["type"]))
    return of_keys, of_values, max(quanta) > smallest_normal("bf16")


def score_error(c, terms, row, u, omega):
    """(C_a, C_u, C_0): a final logit is off by at most C_a * a + C_u * |logit| + C_0."""
    (u_q, q_q), (u_k, q_k) = operand(c, "query", terms.query, terms.query_scale), operand(c, "key", terms.key, terms.key_scale)
    c_a = gamma(float(depth(c["dot"], terms.dot, terms.dot, True)) + u_q + u_k + c["scale_roundings"] * u + project(c, terms)[0])
    size = terms.dot * abs(terms.scale)
    after = folded(terms.query_scale * terms.key_scale, terms.key_scale_in_cache, row[..., K_MAX]) / min(1.0, c["query"]["scale"] * c["key"]["scale"])
    underflow = 2 * size * lost(c, c["dot"]["type"]) * after
    c_0 = (1 + c_a) * (q_q * row[..., K_L1] + q_k * row[..., Q_L1] + q_q * q_k * size + underflow) + omega
    if terms.cap:
        c_t = gamma(3 * u + c["cap"]["rel"])
        c_0 = (c_0 + terms.cap * (c["cap"]["abs"] + 2 * omega)) * (1 + c_t) + omega
        c_a = c_a * (1 + c_t) + c_t
    nb, bias = terms.biases, c["bias_rel"]
    c_u = gamma((c["logit_roundings"] + nb) * u + rounding_unit(c["logit"]))
    if nb == 1:
        c_a = c_a + bias
    elif nb > 1:
        c_a, c_0 = c_a + gamma(nb * u), c_0 + (bias + gamma(nb * u)) * row[..., B_MAX]
    c_0 = (1 + c_u) * c_0 + rounding_quantum(c["logit"]) + (c["logit_roundings"] + 2 * nb) * omega
    return (1 + c_u) * c_a, c_u + (1 + c_u) * bias if nb == 1 else c_u, c_0


def exponent_error(c, terms, row, u, omega):
    """(alpha, beta, kappa, X): a weight is off by e^x, x <= alpha * a + beta * d + kappa <= X."""
    c_a, c_u, c_0 = score_error(c, terms, row, u, omega)
    c_e, c_s = gamma(c["exp"]["arg_roundings"] * u), gamma(c["exp"]["shift_roundings"] * u)
    m = np.abs(row[..., M])
    off = c_a * row[..., A_MAX] + c_u * (row[..., D_MAX] + m) + c_0  # of the maximum
    alpha, beta = c_a * (1 + c_e), c_u * (1 + c_e) + c_e + c_s
    kappa = (c_u * m + c_0) * (1 + c_e) + c_s * m + (c_e + c_s) * off + (2 * c_e + c_s) * c["max_lag"]
    if c["splits"] > 1 and c["merge"]["kind"] == "lse":
        lam = np.log(row[..., COUNT] + 1) + 1
        c_l = gamma(2 * c["log"]["roundings"] * u + unit(c["merge"]["lse"]))
        beta = beta + c["merge"]["depth"] * (c_l + c_e)
        kappa = kappa + c["merge"]["depth"] * (c["log"]["abs"] + c_l * (m + off + lam) + c_e * (lam + off) + half_quantum(c["merge"]["lse"]))
    return alpha, beta, kappa, alpha * row[..., A_MAX] + beta * row[..., D_MAX] + kappa


def relative_errors(c, terms, row, u):
    """(g_N, g_l): relative errors of the weighted sum of values and of the sum of weights, and the number of rescales."""
    n, span, e = row[..., COUNT], row[..., SPAN], c["exp"]["rel"]
    tiles = np.minimum(n, np.ceil(span / c["tile"]) + 1) if c["tile"] else 0 * n
    parts = c["splits"]
    merges = c["merge"]["depth"] if parts > 1 else 0
    u_p = rounding_unit(c["p"]) + c["p"]["roundings"] * u
    common = (1 + tiles) * e + tiles * u + merges * (e + u) + (parts - 1) * u + terms.sink * (e + 2 * u)
    g_n = common + u_p + depth(c["pv"], n, span) + operand(c, "value", terms.value)[0] + merges * rounding_unit(c["merge"]["part"])
    g_n = g_n + project(c, terms)[1]
    if parts > 1 and c["merge"]["kind"] == "lse":
        g_n = g_n + merges * (c["normalize_roundings"] + 2) * u
    if c["p"]["normalized"]:  # each weight is divided by itself: errors differ from key to key
        g_n = g_n + c["normalize_roundings"] * u
    return g_n, common + depth(c["sum"], n, span) + c["sum"]["rounded_p"] * u_p, tiles, merges


def outside_range(c, terms, row):
    """Rows in which something may overflow, or be lost, that the contract says nothing about."""
    over = np.full(row.shape[:-1], project(c, terms)[2])
    for name, field in (("query", Q_MAX), ("key", K_MAX), ("value", V_MAX)):
        over |= row[..., field] > largest(c[name]["type"]) / c[name]["scale"]
    over |= row[..., A_MAX] > largest(c["dot"]["type"]) / 4 * abs(terms.scale)
    size = np.abs(row[..., M]) + row[..., D_MAX]
    over |= size > largest(c["logit"]["type"]) / 2
    if c["splits"] > 1:
        over |= row[..., V_MAX] > largest(c["merge"]["part"]["type"])
        if c["merge"]["kind"] == "lse":
            over |= size + np.log(row[..., COUNT]) > largest(c["merge"]["lse"]) / 2
    return over | (c["p"]["scale"] * np.exp(c["max_lag"]) > largest(c["p"]["type"]))


def value_limit(c):
    """Where a sum of |values| is beyond it, an accumulator may overflow."""
    narrowest = largest(c["pv"]["type"])
    if c["splits"] > 1 and c["merge"]["kind"] == "acc":
        narrowest = min(narrowest, largest(c["merge"]["part"]["type"]))
    return narrowest / 4 / c["p"]["scale"] / np.exp(c["max_lag"])


def row_bound(c, terms, row):
    """Constants r_A, r_K, r_M, r_V, r_o, r_0 of rows [..., 17], their bound of lse, and why there is none ("": there is one).

    An element of out is off by at most r_A*pv + r_K*pav + r_M*puv + r_V*v + r_o*|out| + r_0.
    """
    with np.errstate(all="ignore"):
        return _row_bound(c, terms, np.asarray(row, np.float64))


def _row_bound(c, terms, row):
    u, omega = unit(c["vector"]), lost(c, c["vector"])
    n, parts, p = row[..., COUNT], c["splits"], c["p"]
    alpha, beta, kappa, x = exponent_error(c, terms, row, u, omega)
    g_n, g_l, tiles, merges = relative_errors(c, terms, row, u)
    phi_n, phi_l = gamma(g_n), gamma(g_l)
    r = np.where(x > 0, np.expm1(x) / np.where(x > 0, x, 1), 1.0)
    l = np.exp(row[..., L] - row[..., M])
    q_e = max(c["exp"]["abs"], omega) * (1 + tiles + merges)
    q_p = rounding_quantum(p) + (p["roundings"] + p["normalized"]) * omega
    q_l = q_e + c["sum"]["rounded_p"] * q_p
    growth = np.exp(x)
    tau = q_e * growth / l + (q_p if p["normalized"] else q_p * growth / l)
    after = folded(terms.value_scale, terms.value_scale_in_cache, row[..., V_MAX]) / min(1.0, p["scale"] * c["value"]["scale"])
    underflow = max(lost(c, c["sum"]["type"]), lost(c, c["pv"]["type"])) * after
    w = (2 * n + 2 * tiles + 2 * parts + 6) * underflow * growth * (1 + phi_n)

    def denominator(mass, sd):
        """Relative error of the sum of weights, with the sink or, divided by their share, of the keys alone."""
        exponents = alpha * row[..., PA] / mass + beta * (row[..., PD] / mass + sd) + kappa
        return phi_l + (1 + phi_l) * (r * exponents + growth * n * q_l / (l * mass)) + w / mass

    den = denominator(1.0, row[..., SD])
    nu = gamma(c["normalize_roundings"] * u)
    u_out, q_out, q_part = rounding_unit(c["out"]), rounding_quantum(c["out"]), rounding_quantum(c["merge"]["part"])
    h = (1 + nu) * (1 + u_out) / (1 - den)
    constants = (
        h * (phi_n + (1 + phi_n) * r * kappa),
        h * (1 + phi_n) * r * alpha,
        h * (1 + phi_n) * r * beta,
        h * (1 + phi_n) * tau,
        h * den + nu * (1 + u_out) + u_out,
        h * ((1 + phi_n) * growth * operand(c, "value", terms.value, terms.value_scale)[1] + w + (parts > 1) * 2 * parts * q_part) + omega * (1 + u_out) + q_out,
    )
    if terms.sink and not terms.lse_includes_sink:
        lse, den_lse = row[..., L] + np.log(row[..., MASS]), denominator(row[..., MASS], 0.0)
    else:
        lse, den_lse = row[..., L], den
    d1, log = -np.log1p(-den_lse), c["log"]
    sizes = np.abs(row[..., M]) + np.abs(lse - row[..., M]) + np.abs(lse) + 2 * (row[..., M] - row[..., M_KEYS]) + 2 * x + 2 * d1
    sizes = sizes + 2 * c["max_lag"]
    u_lse = rounding_unit(c["lse"])
    lse_bound = (d1 + log["abs"] + log["roundings"] * u * sizes + omega) * (1 + u_lse) + u_lse * np.abs(lse) + rounding_quantum(c["lse"])

    def where(condition, reason, otherwise):
        return np.where(condition, reason, otherwise).astype(object)

    vacuous = where(~(den < 0.5), "the sum of weights may be off by half", "")
    vacuous = where(~np.isfinite(phi_n + phi_l + nu), "too many roundings", vacuous)
    vacuous = where(~(x <= 1), "a weight may be off by a factor e", vacuous)
    vacuous = where(outside_range(c, terms, row), "outside the range of the contract's types", vacuous)
    vacuous = where(np.isinf(row[..., PA : V_MAX + 1]).any(-1), "a conditioning sum is infinite", vacuous)
    bad = vacuous != ""
    lse_bound = np.where(bad | ~(den_lse < 0.5), np.inf, lse_bound)
    return tuple(np.where(bad, np.inf, r) for r in constants) + (lse_bound, vacuous)


# ---- operations


def terms_of(case, inputs):
    """Of every operation with a bound; `inputs` are the tensors of the case by name."""
    attrs, axes, types = case["attrs"], case["axes"], {name: entry["dtype"] for name, entry in case["inputs"].items()}

    def real(name, default):
        return float.fromhex(attrs[name]) if name in attrs else default

    def largest_scale(*names):
        return max([1.0] + [float(np.abs(inputs[name]).max(initial=0.0)) for name in names if name in inputs])

    latent = case["op"] in ("mla", "mla_sparse")
    coded = attrs.get("kv_cache_dtype") in ("int8_per_token_head", "fp8_per_token_head", "nvfp4", "fp8_ds_mla")
    packed = types.get("kv_cache")
    names = {"query": types.get("query"), "key": types.get("key") or types.get("key_cache") or packed,
             "value": types.get("value") or types.get("value_cache") or packed or types.get("out_parts")}
    scales = {"query": "q_scale", "key": "k_scale", "value": "k_scale" if latent else "v_scale"}
    plain = {n: t for n, t in names.items() if scales[n] not in types and not (coded and n != "query")}
    expanded = attrs.get("mla_form") == "expanded"
    rank, nope, rope = (attrs.get(n, 0) for n in ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim"))
    return Terms(
        dot=(max(rank, nope) if expanded else rank) + rope if latent else axes.get("head_size", 0),
        scale=real("scale", 1.0), cap=real("logits_soft_cap", 0.0),
        biases=("alibi_form" in attrs) + ("attn_bias" in types) + ("qq_bias" in types),
        sink="sinks" in types, lse_includes_sink=attrs.get("lse_includes_sink", True), **plain,
        query_scale=largest_scale("q_scale"), key_scale=largest_scale("k_scale", "k_global_scale"),
        value_scale=largest_scale(scales["value"], "v_global_scale"), key_scale_in_cache=coded, value_scale_in_cache=coded,
        projected=max(rank, nope) if expanded else 0, w_uk=types.get("w_uk"), w_uv=types.get("w_uv"))


def bound_of_rows(c, terms, cond, out):
    """Bounds of elements and of lse [rows]; infinite where there is none."""
    *constants, lse, vacuous = row_bound(c, terms, cond["row"])
    with np.errstate(all="ignore"):
        sums = (cond["pv"], cond.get("pav", 0.0), cond["puv"], cond["v"], np.abs(out), 1.0)
        bound = sum(np.where(np.asarray(s) == 0, 0.0, r[..., None] * s) for r, s in zip(constants, sums))
    vacuous = np.where((vacuous == "") & (cond["v"].max(-1) > value_limit(c)), "a sum of values may overflow", vacuous)
    return np.where((vacuous != "")[..., None], np.inf, bound), lse, vacuous


def without_output_rounding(c):
    return {**c, "out": dict(EXACT)}


def differential_bound(c, terms, case, inputs, expected, cond):
    """Of the difference of two softmax outputs, with or without its norm."""
    u, omega = unit(c["vector"]), lost(c, c["vector"])
    attrs = {n: float.fromhex(v) for n, v in case["attrs"].items() if n.startswith("diff_")}
    parts, _, _ = bound_of_rows(without_output_rounding(c), terms, cond, cond["o"])
    lam, y0, y1 = attrs["diff_lambda"], cond["o"][0], cond["o"][1]
    b_y = (parts[0] + abs(lam) * parts[1]) * (1 + 4 * u) + 4 * u * (np.abs(y0) + np.abs(lam * y1)) + 3 * omega
    rest, z = abs(1 - attrs["diff_lambda_init"]), np.abs(expected["out"])
    if "diff_norm_weight" in inputs:
        y, size = y0 - lam * y1, y0.shape[-1]
        s = np.sqrt(np.mean(y**2, -1, keepdims=True) + attrs.get("diff_eps", 0.0))
        b = np.sqrt(np.mean(b_y**2, -1, keepdims=True)) + np.sqrt(4 * omega)  # squares may underflow
        g = gamma((size + 8) * u)
        b_z = rest * np.abs(inputs["diff_norm_weight"]) * (b_y + 4 * omega + np.abs(y) * b / s) / (s - b) * (1 + g) + g * z
        b_z = np.where((b < s / 2) & (s <= np.sqrt(largest(c["vector"]) / (4 * size))), b_z, np.inf)
    else:
        b_z = rest * b_y * (1 + 4 * u) + 2 * u * z
    u_out = rounding_unit(c["out"])
    return (b_z + 4 * omega) * (1 + u_out) + u_out * z + rounding_quantum(c["out"])


def indexer_bound(c, terms, case, inputs, expected, cond):
    u, u_out, heads = unit(c["vector"]), rounding_unit(c["out"]), case["axes"]["num_heads"]
    (u_q, q_q), (u_k, q_k) = operand(c, "query", terms.query), operand(c, "key", terms.key)
    g = gamma(float(depth(c["dot"], terms.dot, terms.dot, True)) + (heads + 3) * u + u_q + u_k)
    weights, scale = np.abs(inputs["weights"]), np.abs(inputs["k_scale"]).ravel() if "k_scale" in inputs else 1.0
    q_l1 = (weights * np.abs(inputs["query"][: len(weights)]).sum(-1)).sum(-1, keepdims=True)
    k_l1, weights = np.abs(inputs["key"]).sum(-1) * scale, weights.sum(-1, keepdims=True)
    omega = (2 * terms.dot + 4) * lost(c, c["dot"]["type"]) / min(1.0, c["query"]["scale"] * c["key"]["scale"])
    underflow = q_k * (q_l1 + weights * q_q * terms.dot) + weights * q_q * k_l1 + omega * (weights * (1 + scale) + 1)
    logit = np.abs(np.where(np.isfinite(expected["logits"]), expected["logits"], 0.0))
    bound = (g * cond["ix"] + (1 + g) * underflow) * (1 + u_out) + u_out * logit + rounding_quantum(c["out"])
    return np.where(np.isfinite(expected["logits"]), bound, 0.0)


def merge_contract(c, case):
    """Parts merged one after the other are one part a key, in (out, lse)."""
    parts = case["axes"]["num_parts"]
    roundings = 2 * (case["attrs"]["lse_base"] == "2") + (not embeds(case["inputs"]["lse_parts"]["dtype"], c["vector"]))
    return {**c, "tile": 0, "scale_roundings": 0, "logit_roundings": roundings, "splits": parts,
            "merge": {**c["merge"], "kind": "lse", "depth": max(1, parts - 1)}}


def bounds(c, case, inputs, expected, cond):
    """Bounds of the outputs by name, infinite where the contract gives none; rows without a key have 0."""
    terms = terms_of(case, inputs)
    with np.errstate(all="ignore"):
        if case["op"] == "indexer":
            return {"logits": indexer_bound(c, terms, case, inputs, expected, cond)}
        if case["op"] == "differential":
            bound = differential_bound(c, terms, case, inputs, expected, cond)
            return {"out": np.where((cond["row"][..., COUNT] == 0).all(0)[..., None], 0.0, bound)}
        if case["op"] == "merge_states":
            c = merge_contract(c, case)
        out, lse, _ = bound_of_rows(c, terms, cond, expected["out"])
    empty = cond["row"][..., COUNT] == 0  # answered exactly, as is what stands beside an infinite sink
    drowned = np.zeros(empty.shape, bool) | (inputs["sinks"] == np.inf if terms.sink else False)
    return {"out": np.where((empty | drowned)[..., None], 0.0, out), "lse": np.where(empty | (drowned & terms.lse_includes_sink), 0.0, lse).T}
