"""Files of golden packs and of answers as numpy arrays; the format is docs/case_format.md."""
import json

import numpy as np

STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1", "BOOL": "?"}

# Float formats of 8 bits: exponent bits, fraction bits, bias, the codes of NaN.
FLOAT8 = {
    "f8_e4m3fn": (4, 3, 7, (0x7F, 0xFF)),
    "f8_e4m3fnuz": (4, 3, 8, (0x80,)),
    "f8_e5m2": (5, 2, 15, (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF)),
}


def load_file(path):
    """Metadata, storage types and tensors of a file, as stored."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    metadata, tensors = header.pop("__metadata__"), {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], STORED[entry["dtype"]]).reshape(entry["shape"])
    return metadata, {name: entry["dtype"] for name, entry in header.items()}, tensors


def load(path):
    """The case object and the tensors of a case file."""
    metadata, _, tensors = load_file(path)
    return json.loads(metadata["case"]), tensors


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
