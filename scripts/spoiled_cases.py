"""Case objects that are wrong in one place, for check_case_schema.py. Nothing here knows what the C++ reader does."""
import copy

DROPPED = object()
MUST_FIT = "(the schema must accept it)"  # what no message names: there is no message for what the format lists


def changed(case, path, value):
    """A copy with another value at `path`, or without that key."""
    if not path:
        return value
    case = copy.deepcopy(case)
    parent = case
    for step in path[:-1]:
        parent = parent[step]
    if value is DROPPED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return case


def all_spoiled(case, schema):
    """(label, what a message must name, case object): one change each; first the case as it is."""
    yield "as it is", "", case
    yield from anywhere(case)
    yield from operation(case, schema)
    if "rswa_window" in case["attrs"]:
        yield from rswa(case)
    elif case["op"] == "attention" and case["attrs"]["kv_layout"] == "paged":
        yield from attention(case, schema)


def dotted(path):
    return "case" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def nodes(value, path=()):
    """Every (path, value) of a case object; of the inputs only `query` is taken apart."""
    yield path, value
    if isinstance(value, dict) and not (len(path) == 2 and path[0] == "inputs" and path[1] != "query"):
        for key in value:
            yield from nodes(value[key], path + (key,))
    elif isinstance(value, list) and value:
        yield from nodes(value[0], path + (0,))


def other_values(value):
    """(what, value): other types, and values of the same type that a rule may exclude."""
    yield "null", None
    if isinstance(value, bool):
        yield from (("a number", 1), ("a string", "true"))
    elif isinstance(value, int):
        yield from (("a string", str(value)), ("true", True), ("-1", -1), ("a fraction", value + 0.5))
        yield from (("a float", float(value)), ("2^60", 2**60))
    elif isinstance(value, str):
        yield from (("a number", 1), ("an array", [value]), ("other words", "zz zz"), ("empty", ""))
    elif isinstance(value, list):
        yield from (("an object", {}), ("a string", "zz"), ("twice", value + value))
    else:
        yield from (("an array", []), ("a string", "zz"))


def anywhere(case):
    """Every node dropped, replaced by what it cannot be, and given an unknown key."""
    for path, value in nodes(case):
        place = dotted(path)
        if path and isinstance(path[-1], str):
            yield f"{place} dropped", place, changed(case, path, DROPPED)
        for what, other in other_values(value):
            yield f"{place} = {what}", place, changed(case, path, other)
        if isinstance(value, dict):
            unknown = changed(case, path, dict(value, zz=1))
            yield f"{place} with an unknown key", f'{place} has the unknown key "zz"', unknown


def operation(case, schema):
    """The same tables under the name of another operation, an exec where there is none, a cache that is never written."""
    for op in schema["properties"]["op"]["enum"]:
        if op != case["op"]:
            yield f"case.op = {op} instead of {case['op']}", "case.", changed(case, ("op",), op)
    place = "case.attrs.exec"
    allowed = case["op"] in ("attention", "mla")
    yield f"{place} of {case['op']}", MUST_FIT if allowed else place, changed(case, ("attrs", "exec"), {"kv_chunk": 2})
    if case["op"] == "mla_cache_write":
        place = "case.attrs.kv_cache_dtype"
        for dtype in schema["properties"]["attrs"]["properties"]["kv_cache_dtype"]["enum"]:
            names = MUST_FIT if dtype in ("auto", "fp8_e4m3", "fp8_ds_mla") else place
            yield f"{place} = {dtype}", names, changed(case, ("attrs", "kv_cache_dtype"), dtype)


def rswa(case):
    """Whatever R-SWA excludes."""
    tensor = {"dtype": "i32", "storage": "I32", "shape": [1]}
    excluded = {"window_left": 1, "window_right": 0, "sink_token_length": 0, "attention_chunk_size": 2, "causal": False}
    for key, value in excluded.items():
        yield f"case.attrs.{key} beside R-SWA", f"case.attrs.{key}", changed(case, ("attrs", key), value)
    yield "case.attrs.rswa_window = 0", "case.attrs.rswa_window", changed(case, ("attrs", "rswa_window"), 0)
    for key in ("mm_prefix_ranges", "causal_per_req"):
        yield f"case.inputs.{key} beside R-SWA", f"case.inputs.{key}", changed(case, ("inputs", key), tensor)


F32 = {"dtype": "f32", "storage": "F32", "shape": [7]}


def right_value(rule):
    """One value that a rule for a number or flag accepts."""
    by_type = {"boolean": True, "integer": 1, "#/definitions/count": 1, "#/definitions/real": "0x1p-1"}
    return by_type[rule.get("type") or rule["$ref"]]


def numbers_and_words(schema):
    """(place, label, what a message must name, value): attributes and axes at their limits, every word and an unknown one."""
    attrs = schema["properties"]["attrs"]["properties"]
    rules = {f"case.attrs.{name}": rule for name, rule in attrs.items() if name not in ("exec", "rswa_window")}
    rules.update({f"case.axes.{name}": rule for name, rule in schema["properties"]["axes"]["properties"].items()})
    for place, rule in rules.items():
        if "enum" in rule:
            yield place, "other words", f'{place} is "zz zz", expected one of {", ".join(rule["enum"])}', "zz zz"
            needs_tensors = place == "case.attrs.kv_layout"
            yield from ((place, word, "case." if needs_tensors else MUST_FIT, word) for word in rule["enum"])
        else:
            yield from ((place, f"another type: {value}", place, value) for value in (None, [], {"zz": 1}, "zz"))
            for value in (-1, 0, 1, True, "0x1p-1"):
                right = repr(value) == repr(right_value(rule))
                yield place, f"{value}", MUST_FIT if right else place, value
    for name in attrs["exec"]["properties"]:
        place, others = f"case.attrs.exec.{name}", {"dcp_size": 2} if name == "dcp_interleave" else {}
        for value in (None, -1, 0, 1, 1.5, True, "1"):
            names = MUST_FIT if repr(value) == "1" else place
            yield "case.attrs.exec", f"{name} of {value!r}", names, dict(others, **{name: value})
    for flag in schema["properties"]["flags"]["items"]["enum"]:
        yield "case.flags", flag, MUST_FIT, [flag]
    for result in schema["properties"]["result"]["enum"]:
        yield "case.result", result, MUST_FIT, result


def tensors(schema):
    """As numbers_and_words: every tensor and every type that the schema lists."""
    for table in ("outputs", "truth"):
        for name in schema["properties"][table]["properties"]:
            dtype, storage = ("f8_e4m3fn", "U8") if name == "out_codes" else ("f32", "F32")
            place = f"case.{table}.{name}"
            yield place, "a tensor of the format", MUST_FIT, dict(F32, dtype=dtype, storage=storage)
            yield place, "a tensor of logical type bool", place, dict(F32, dtype="bool", storage="BOOL")
            yield place, "no tensor", place, {"dtype": dtype}
    for dtype in ("f64", "f16", "bf16"):
        yield "case.outputs.out", f"of type {dtype}", MUST_FIT, dict(F32, dtype=dtype, storage=dtype.upper())
    for name in schema["definitions"]["inputs"]["properties"]:
        yield f"case.inputs.{name}", "a tensor of the format", MUST_FIT, F32
        yield f"case.inputs.{name}", "no tensor", f"case.inputs.{name}", {"dtype": "f32"}
    types = schema["definitions"]["tensor"]["properties"]
    for dtype in types["dtype"]["enum"] + ["i4", "f8"]:
        known = dtype not in ("i4", "f8")
        storage = "U8" if dtype[:2] in ("f8", "f4", "i4") else dtype.upper()
        names = MUST_FIT if known else "case.inputs.query.dtype"
        yield "case.inputs.query", f"of type {dtype}", names, dict(F32, dtype=dtype, storage=storage)
    for storage in types["storage"]["enum"]:
        description = dict(F32, dtype="f16" if storage == "F32" else "f32", storage=storage)
        yield "case.inputs.query", f"stored as {storage}", MUST_FIT, description
    for dtype in ("f32", "f64"):
        description = dict(F32, dtype=dtype, storage=dtype.upper())
        yield "case.cond", f"a conditioning tensor of {dtype}", MUST_FIT, {"mass": description}
    yield "case.cond", "a conditioning tensor of f16", "case.cond.mass.dtype", {"mass": dict(F32, dtype="f16", storage="F16")}
    yield "case.cond", "a conditioning tensor in capitals", 'case.cond has the key "Mass"', {"Mass": F32}
    yield "case.cond", "no tensor", "case.cond.mass", {"mass": {"dtype": "f32"}}
    yield "case.cond", "no table", "case.cond", []


SCALES = {
    "not a number": "nan",
    "too large": "0x1p+1024",
    "too fine": "0x1.00000000000001p+0",
    "decimal": "1.5",
    "in capitals": "0X1P+0",
    "not normalised": "0x10p+0",
    "a word": "infinity",
    "negative": "-0x1p+0",
}

EXECS = {
    "splits and chunks": {"num_splits": 2, "kv_chunk": 2},
    "an interleave alone": {"dcp_interleave": 2},
    "nothing": {},
    "everything": {"kv_chunk": 1, "common_prefix_len": 0, "dcp_size": 2, "dcp_interleave": 2},
}

TEXTS = {
    "case.id": ("-a", "a b", "a/b", "\u00e9", "A.1_b-c"),
    "case.variant": ("A", "1a", "a-b", "_a"),
    "case.flags": (["zz"], ["poisoned", "poisoned"]),
}


def attention(case, schema):
    """All that the schema lists, and what only an author who knows the format would spoil."""

    def change(label, place, value, names=None):
        path = tuple(place.split(".")[1:])
        base = case if path[0] in case else dict(case, **{path[0]: {}})
        return f"{place} = {label}", place if names is None else names, changed(base, path, value)

    for place, label, names, value in (*numbers_and_words(schema), *tensors(schema)):
        yield change(label, place, value, names)
    yield change("nothing", "case.inputs.query.shape", [])
    yield change("of no operation", "case.axes.num_layers", 1, 'case.axes has the unknown key "num_layers"')
    for label, value in SCALES.items():
        yield change(label, "case.attrs.scale", value)
    for label, value in EXECS.items():
        yield change(label, "case.attrs.exec", value)
    for place, values in TEXTS.items():
        for value in values:
            yield change(f"{value}", place, value)
