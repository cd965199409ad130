"""Judges answers to the cases of a pack by the certified error bound; the command line is read_pack.py."""
import json
import sys
from pathlib import Path

import numpy as np

import error_bound
from pack_file import decode, load_file, tensors_of

# What the bound of a computed type is by default.
CONTRACT_OF = {"f64": "f64", "f32": "fp32", "f16": "f16_flash", "bf16": "bf16_flash"}
FLOATING = ("out", "lse", "logits")
SLACK = 1 + 2.0**-20  # the arithmetic of the bound itself


def declared(contract):
    """A contract's name, or what its file holds."""
    return json.loads(Path(contract).read_text()) if contract and contract.endswith(".json") else contract


def bounds_of(case, stored, contract, stored_type, lse_type=None):
    """Bounds of an answer whose `out` (or logits) and lse are of these types, and what is expected."""
    inputs = tensors_of(case, stored)
    expected, cond = tensors_of(case, stored, "outputs"), tensors_of(case, stored, "cond", "cond_")
    name = declared(contract) or CONTRACT_OF[stored_type]
    fields = error_bound.contract(name, stored_type)
    fields["lse"] = error_bound.contract(name, lse_type or stored_type)["lse"]
    result = error_bound.bounds(fields, case, inputs, expected, cond)
    if "out_codes" in expected:
        step = float(inputs["output_scale"][0])
        fields["out"] = {**error_bound.EXACT, "type": "f8_e4m3fn", "scale": 1 / step}
        fields["normalize_roundings"] += 1
        bound, out = error_bound.bounds(fields, case, inputs, expected, cond)["out"], expected["out"]

        def saturated(x):
            return np.clip(x, -448 * step, 448 * step)

        expected["out_codes"] = saturated(out)
        # Both ends of what is allowed saturate, too.
        within = np.maximum(saturated(out + bound) - saturated(out), saturated(out) - saturated(out - bound))
        result["out_codes"] = np.where(np.isfinite(bound), within, bound)
    return result, expected


def ratios(actual, expected, bound, top):
    """|error| / bound, element by element; infinite where a special number differs, nan where there is no bound. `top` is the largest stored number."""
    # Stored answers of packs are correctly rounded float64.
    allowed = bound * SLACK + 2.0**-53 * np.abs(expected) + 2.0**-1074
    with np.errstate(all="ignore"):
        error = np.abs(actual - expected)
        ratio = np.where(bound > 0, error / allowed, np.where(error == 0, 0.0, np.inf))
        ratio = np.where(np.isinf(bound), np.nan, ratio)
        beyond = np.isfinite(expected) & (np.abs(expected) + bound > top)
        may_overflow = beyond & (np.abs(actual) >= top) & (np.sign(actual) == np.sign(expected))
        special = ~np.isfinite(expected) | (~np.isfinite(actual) & ~may_overflow)
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    return np.where(special, np.where(same, 0.0, np.inf), np.where(may_overflow, 0.0, ratio))


def same_bits(actual, expected, dtype):
    if dtype in ("u8", "i8"):
        return np.array_equal(actual, expected)
    a, e = decode(actual, dtype), decode(expected, dtype)
    return a.shape == e.shape and bool(((actual == expected) | (np.isnan(a) & np.isnan(e))).all())


def judge(case, stored, types, answer, contract):
    """(why the answer is wrong, whether some of it has no bound, largest ratio)."""
    if missing := set(case["outputs"]) - set(answer):
        return f"no {', '.join(sorted(missing))}", False, 0.0
    stored_type = next((types[name].lower() for name in FLOATING if name in case["outputs"]), None)
    if stored_type is None:
        wrong = [n for n, entry in case["outputs"].items() if not same_bits(answer[n], stored[n], entry["dtype"])]
        return ", ".join(f"{n} differs" for n in wrong), False, 0.0
    bound, expected = bounds_of(case, stored, contract, stored_type, types.get("lse", stored_type).lower())
    worst, unbounded, faults = 0.0, False, []
    for name, entry in case["outputs"].items():
        actual_type = entry["dtype"] if name == "out_codes" else types[name].lower()
        actual, top = decode(answer[name], actual_type), error_bound.largest(actual_type)
        if actual.shape != expected[name].shape:
            faults.append(f"{name} has another shape")
            continue
        if name == "out_codes":
            actual = actual * float(decode(stored["output_scale"], "f32")[0])
        if name == "lse":  # a row that sees no key has its sink, as the stored type has it
            with np.errstate(all="ignore"):
                kept = (bound[name] == 0) & (np.abs(actual - expected[name]) <= error_bound.unit(actual_type) * np.abs(expected[name]))
            actual = np.where(kept, expected[name], actual)
        ratio = ratios(actual, expected[name], bound[name], top)
        unbounded |= bool(np.isnan(ratio).any())
        ratio = np.nan_to_num(ratio, nan=0.0, posinf=np.inf)
        worst = max(worst, float(ratio.max(initial=0.0)))
        if (ratio > 1).any():
            at = np.unravel_index(ratio.argmax(), ratio.shape)
            place = ",".join(map(str, at))
            faults.append(f"{name}[{place}] is {actual[at]:.9g}, not {expected[name][at]:.9g}: {ratio[at]:.3g} of what the bound allows")
    return "; ".join(faults), unbounded, worst


def judge_folder(cases, folder, contract):
    """Judges folder/<id>.safetensors for every valid case of the pack."""
    counts, worst, worst_case = {"passed": 0, "failed": 0, "mistrusted": 0, "skipped": 0}, 0.0, ""
    for _, case, stored in cases:
        path = folder / f"{case['id']}.safetensors"
        if case["result"] != "valid" or not path.is_file():
            counts["skipped"] += 1
            continue
        _, types, answer = load_file(path)
        fault, unbounded, ratio = judge(case, stored, types, answer, contract)
        verdict = "failed" if fault else "mistrusted" if unbounded else "passed"
        counts[verdict] += 1
        if verdict in ("failed", "mistrusted"):
            print(f"{case['id']}: {fault or 'mistrusted, some elements have no bound under this contract'}")
        if not fault and ratio > worst:
            worst, worst_case = ratio, case["id"]
    print(f"largest error of those that did not fail: {worst:.3g} of what the bound allows{worst_case and f', {worst_case}'}")
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['mistrusted']} mistrusted{skipped}")
    if counts["failed"] or (counts["mistrusted"] and not counts["passed"]):
        return 1
    return 0 if counts["passed"] else 3


def print_bounds(case, stored, contract, stored_type):
    """The bounds of a case as JSON, reals as hex floats."""
    if not set(case["outputs"]) & set(FLOATING):
        print(f"{case['id']} is compared bit for bit: it has no bounds", file=sys.stderr)
        return 2
    result, _ = bounds_of(case, stored, contract, stored_type)
    tensors = {name: {"shape": list(b.shape), "bounds": [float(x).hex() for x in b.ravel()]} for name, b in result.items() if name in case["outputs"]}
    print(json.dumps({"id": case["id"], "contract": contract or CONTRACT_OF[stored_type], "stored": stored_type, "tensors": tensors}))
    return 0
