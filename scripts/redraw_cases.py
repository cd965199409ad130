#!/usr/bin/env python3
"""Draws the inputs of cases again and compares every code: redraw_cases.py FOLDER [FEWEST]

The random data of a pack is a pure function of (family, seed, tensor, coordinates): Philox4x32-10, integer maps, one
rounding into the type. This is a second implementation of those rules and shares nothing with the program; of a case it
takes the lengths, masks and block tables and provenance.where, "<family> seed <hex>". Cases of other operations and those
by hand are left out. Exit 1 when a code differs or fewer than FEWEST cases (default 1) were drawn.
"""
import json
import math
import struct
import sys
from fractions import Fraction
from pathlib import Path

WORD = 0xFFFFFFFF
FAMILIES = ("uniform bell needle_visible needle_hidden negative_logits large_logits exact_lane membership weights "
            "repeated_keys cancelling_values denormal_values extreme_values channel_outliers all_codes "
            "half_ulp_weights constant_values poisoned permuted_blocks").split()
QUERY, KEY, VALUE, SINKS, BIAS, MASK, TREE = 1, 2, 3, 4, 5, 6, 7
Q_SCALE, K_SCALE, V_SCALE, K_BLOCK, V_BLOCK, OUTPUT_SCALE, BLOCK_TABLE, NEEDLE = 11, 12, 13, 14, 15, 16, 20, 23
LOGARITHMS = struct.unpack("<8f", struct.pack("<8I", 0x00000000, 0x3f317218, 0x3f8c9f54, 0x3fb17218, 0x3fce0210,
                                              0x3fe55860, 0x3ff91395, 0x40051592))
# exponent bits, fraction bits, bias, largest finite code
FORMATS = {"f32": (8, 23, 127, 0x7f7fffff), "f16": (5, 10, 15, 0x7bff), "bf16": (8, 7, 127, 0x7f7f),
           "f8_e4m3fn": (4, 3, 7, 0x7e), "f8_e5m2": (5, 2, 15, 0x7b), "f8_e4m3fnuz": (4, 3, 8, 0x7f)}
UNIFORM_BITS = {"f32": 23, "f16": 11, "bf16": 8, "f8_e4m3fn": 4, "f8_e4m3fnuz": 4, "f8_e5m2": 3}
UNITS = {"F64": "Q", "F32": "I", "F16": "H", "BF16": "H", "I64": "q", "I32": "i", "I8": "B", "U8": "B", "BOOL": "B"}
MINUS_INFINITY = {"f32": 0xff800000, "f16": 0xfc00}
# Cases whose sinks or mask are part of the question.
BY_HAND = ("sinks-plus_inf", "sinks-huge", "softcap-bias-sink", "empty-all_masked")



def setting(case_id):
    """The case of pack core whose setting a case of pack extended has: "variant-x-what-family" is "variant-what"."""
    variant, mark, rest = case_id.partition("-x-")
    return f"{variant}-{rest.rpartition('-')[0]}" if mark else case_id


def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p, q = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (q >> 32) ^ c1 ^ k0, q & WORD, (p >> 32) ^ c3 ^ k1, p & WORD
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0, c1, c2, c3


def bell(w):
    s = sum((x >> shift) & 1023 for x in w for shift in (0, 10, 20))
    low = 64 * (w[0] >> 30) + 16 * (w[1] >> 30) + 4 * (w[2] >> 30) + (w[3] >> 30)
    return (512 * (s - 6138) + 2 * low - 255) / 2 ** 19


def uniform(w, dtype):
    b = UNIFORM_BITS[dtype]
    return ((w[0] >> (31 - b)) - 2 ** b) / 2 ** b


def scale(w):
    return (128 + (w[0] >> 25)) * 2.0 ** ((w[1] >> 30) - 9)


def mask_bit(w):
    return w[0] >> 30 != 0


def decode(dtype, code):
    exponent_bits, fraction_bits, bias, _ = FORMATS[dtype]
    fraction, exponent = code % 2 ** fraction_bits, (code >> fraction_bits) % 2 ** exponent_bits
    sign = -1 if code >> (exponent_bits + fraction_bits) else 1
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias - fraction_bits)
    return sign * (2 ** fraction_bits + fraction) * 2.0 ** (exponent - bias - fraction_bits)


def encode(dtype, x):
    """Nearest, ties to even, saturating; x is finite."""
    exponent_bits, fraction_bits, bias, largest = FORMATS[dtype]
    code = 0
    if x != 0:
        exponent = max(math.frexp(abs(x))[1] - 1, 1 - bias)
        steps = round(Fraction(abs(x)) / Fraction(2) ** (exponent - fraction_bits))
        code = min(steps + ((exponent + bias - 1) << fraction_bits), largest)
    if dtype == "f8_e4m3fnuz" and code == 0:
        return 0
    return code | (math.copysign(1, x) < 0) << (exponent_bits + fraction_bits)


def finite_code(w, dtype):
    code = w[0] >> 24
    if dtype == "f8_e4m3fnuz":
        return 0 if code == 0x80 else code
    not_finite = code & 0x7f == 0x7f if dtype == "f8_e4m3fn" else code & 0x7c == 0x7c
    return code & ~0x40 if not_finite else code


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def amplitude(factor, wanted):
    a = 2.0 ** -60
    while 4 * a * factor < wanted:
        a *= 2
    return a


class Source:
    def __init__(self, where, factor, head_size_v):
        self.family, _, seed = where.split(" ")
        self.number = FAMILIES.index(self.family) + 1
        self.seed = int(seed, 16)
        self.factor = factor
        self.head_size_v = head_size_v

    def words(self, tensor, r=0, t=0, h=0, d=0, family=None):
        index = (r << 50) + ((t % 2 ** 26) << 24) + (h << 12) + d
        return philox((index & WORD, index >> 32, tensor, self.number if family is None else family),
                      (self.seed & WORD, self.seed >> 32))

    def query(self, r, t, h, d, dtype):
        w, family = self.words(QUERY, r, t, h, d), self.family
        if family == "uniform":
            return uniform(w, dtype)
        if family in ("needle_visible", "needle_hidden", "negative_logits", "large_logits"):
            return 4.0 if d == 0 else bell(w) / 4
        if family in ("exact_lane", "membership"):
            return 0.0
        if family == "weights":
            return 1 / self.factor if d == 0 else 0.0
        if family == "half_ulp_weights":
            return 1.0 if d < 2 else 0.0
        return bell(w) / {"cancelling_values": 8, "extreme_values": 4}.get(family, 1)

    def key(self, r, t, h, d, dtype, needle):
        family = self.family
        w = self.words(KEY, r, t % 4 if family == "repeated_keys" else t, h, d)
        if family == "uniform":
            return uniform(w, dtype)
        if d == 0 and family in ("needle_visible", "needle_hidden"):
            return amplitude(self.factor, 32) if needle else 0.0
        if d == 0 and family in ("negative_logits", "large_logits"):
            return amplitude(self.factor, 128) * (-1 if family == "negative_logits" else 1)
        if d == 0 and family == "weights":
            return LOGARITHMS[w[0] >> 29]
        if d < 2 and family == "half_ulp_weights":
            return (-float.fromhex(("0x1.6p-1", "0x1.eap-10")[d]) / self.factor) if t > 0 else 0.0
        if family == "channel_outliers":
            return bell(w) * (32 if d % 16 == 5 else 1)
        quarter = ("needle_visible", "needle_hidden", "negative_logits", "large_logits", "extreme_values")
        return bell(w) / (4 if family in quarter else 8 if family == "cancelling_values" else 1)

    def value(self, r, t, h, d, dtype):
        family = self.family
        w = self.words(VALUE, r, 0 if family == "constant_values" else t, h, d)
        sign = -1 if w[0] >> 31 else 1
        if family == "uniform":
            return uniform(w, dtype)
        if family in ("negative_logits", "half_ulp_weights"):
            return abs(bell(w))
        if family in ("exact_lane", "weights"):
            return float((w[1] >> 28) - 8)
        if family == "membership":
            return 2.0 ** (t % 8) if d == t // 8 % self.head_size_v else 0.0
        if family == "cancelling_values":
            return (-1) ** t * (1 + uniform(w, dtype) / 16)
        if family == "denormal_values":
            return sign * decode(dtype, w[1] % 2 ** FORMATS[dtype][1])
        if family == "extreme_values":
            largest = 2.0 ** 100 if dtype in ("f32", "bf16") else decode(dtype, FORMATS[dtype][3])
            return sign * largest * 2.0 ** -(w[1] >> 30)
        return bell(w)

    def permutation(self, n):
        order = list(range(n))
        for j in range(n - 1, 0, -1):
            k = (philox((j, 0, BLOCK_TABLE, 0), (self.seed & WORD, self.seed >> 32))[0] * (j + 1)) >> 32
            order[j], order[k] = order[k], order[j]
        return order


class Tensor:
    def __init__(self, head, data):
        first, last = head["data_offsets"]
        self.shape = head["shape"]
        unit = UNITS[head["dtype"]]
        self.codes = struct.unpack(f"<{(last - first) // struct.calcsize(unit)}{unit}", data[first:last])

    def __getitem__(self, index):
        at = 0
        for size, i in zip(self.shape, index):
            at = at * size + i
        return self.codes[at]

    def indices(self):
        for flat in range(math.prod(self.shape)):
            index = []
            for size in reversed(self.shape):
                index.append(flat % size)
                flat //= size
            yield tuple(reversed(index))


class Case:
    def __init__(self, path, where):
        raw = path.read_bytes()
        n = int.from_bytes(raw[:8], "little")
        head = json.loads(raw[8:8 + n])
        case = json.loads(head.pop("__metadata__")["case"])
        self.id, self.axes, self.attrs, self.inputs = setting(case["id"]), case["axes"], case["attrs"], case["inputs"]
        self.tensors = {name: Tensor(entry, raw[8 + n:]) for name, entry in head.items()}
        factor = float.fromhex(self.attrs["scale"])
        self.source = Source(where, factor, self.axes["head_size_v"])
        starts = self.tensors["query_start_loc"].codes
        self.starts = starts
        self.query_lens = [b - a for a, b in zip(starts, starts[1:])]
        self.seq_lens = self.tensors["seq_lens"].codes
        self.layout = self.attrs.get("kv_layout", "varlen")
        # The same requests in another order keep their coordinates.
        self.drawn_as = [2, 1, 0] if self.id == "batch_invariance-reordered" else list(range(len(self.seq_lens)))
        if self.layout != "varlen":
            cache = self.tensors["kv_cache" if self.layout == "paged_packed" else "key_cache"]
            self.block_size = cache.shape[2 if self.attrs.get("kv_cache_layout") == "HND" else 1]
        self.checked, self.wrong = 0, []
        self.needles = [self.find_needle(r) for r in range(len(self.seq_lens))]

    def expect(self, what, found, wanted):
        self.checked += 1
        if found != wanted:
            self.wrong.append(f"{what}: {found:#x}, drawn {wanted:#x}")

    def score(self, name, r, h, i, k):
        tensor = self.tensors[name]
        return tensor[tuple(0 if size == 1 else j for size, j in zip(tensor.shape, (r, h, i, k)))]

    def sees(self, r, h, i, k):
        attrs, tensors = self.attrs, self.tensors
        q = self.seq_lens[r] - self.query_lens[r] + i
        left, right, chunk = attrs.get("window_left"), attrs.get("window_right"), attrs.get("attention_chunk_size")
        if "rswa_window" in attrs:
            seen = k <= q and (k < tensors["rswa_prefix_lens"][r,] or q - k < attrs["rswa_window"])
        else:
            causal = tensors["causal_per_req"][r,] if "causal_per_req" in tensors else attrs["causal"]
            behind = q // chunk - k // chunk if chunk else 0
            seen = ((not causal or k <= q) and
                    (left is None or q - k <= left or k < attrs.get("sink_token_length", 0)) and
                    (right is None or k - q <= right) and
                    0 <= behind <= (attrs.get("attention_chunk_lookback", 0) if chunk else 0))
            clamp = attrs.get("mm_prefix_clamp") and left is not None and q - k > left
            ranges = tensors["mm_prefix_ranges"] if "mm_prefix_ranges" in tensors else None
            for n in range(ranges.shape[1] if ranges else 0):
                start, end = ranges[r, n, 0], ranges[r, n, 1]
                seen = seen or (0 <= start < end and start <= min(q, k) and max(q, k) <= end and not clamp)
        if "attn_mask" in tensors and not self.score("attn_mask", r, h, i, k):
            return False
        if "attn_bias" in tensors:
            hidden = MINUS_INFINITY[self.inputs["attn_bias"]["dtype"]]
            seen = seen and self.score("attn_bias", r, h, i, k) != hidden
        if "qq_bias" in tensors:
            n, column = tensors["qq_bias"].shape[0], k - (q - i)
            if i < n and 0 <= column < n and tensors["qq_bias"][i, column] == MINUS_INFINITY["f32"]:
                return False
        return seen

    def find_needle(self, r):
        family, length = self.source.family, self.seq_lens[r]
        if family not in ("needle_visible", "needle_hidden") or self.query_lens[r] == 0:
            return None
        w = self.source.words(NEEDLE, self.drawn_as[r], family=0)
        row = w[0] * self.query_lens[r] >> 32
        seen = [False] + [self.sees(r, 0, row, k) for k in range(length)] + [False]  # with neighbours
        keys = [k for k in range(length) if not seen[k + 1] and (seen[k] or seen[k + 2])]
        if family == "needle_visible" or not keys:
            keys = [k for k in range(length)
                    if seen[k + 1] and (not seen[k] or not seen[k + 2] or k % 16 in (0, 15))]
        return keys[w[1] * len(keys) >> 32] if keys else None

    def check_query(self):
        dtype = self.inputs["query"]["dtype"]
        for r, length in enumerate(self.query_lens):
            for i in range(length):
                for h in range(self.axes["num_heads"]):
                    for d in range(self.axes["head_size"]):
                        x = self.source.query(self.drawn_as[r], self.seq_lens[r] - length + i, h, d, dtype)
                        self.expect(f"query {r} {i} {h} {d}", self.tensors["query"][self.starts[r] + i, h, d],
                                    encode(dtype, x))

    def check_table(self):
        """Blocks in the order of the permutation from block 1 on, or in order from 0."""
        used = {}
        for r, length in enumerate(self.seq_lens):
            for j in range(-(-length // self.block_size)):
                used.setdefault(self.tensors["block_table"][r, j])
        if self.id == "kernel_blocks-4":  # two of every block of 8
            used = {block // 2: None for block in used}
        permuted = [block + 1 for block in self.source.permutation(len(used))]
        plain = list(range(len(used)))
        orders = [permuted] if self.source.family == "permuted_blocks" else [permuted, plain]
        self.expect("block table in a known order", int(list(used) in orders), 1)

    def owner(self, r, k):
        """A shared block holds keys of the lowest request that has it."""
        if self.layout == "varlen":
            return r
        table, j = self.tensors["block_table"], k // self.block_size
        return min(other for other, length in enumerate(self.seq_lens)
                   if j < -(-length // self.block_size) and table[other, j] == table[r, j])

    def cached(self, name, r, k, h, d, heads_first=False):
        if self.layout == "varlen":
            return self.tensors[name][self.tensors["kv_start_loc"][r,] + k, h, d]
        block, slot = self.tensors["block_table"][r, k // self.block_size], k % self.block_size
        return self.tensors[name][(block, h, slot, d) if heads_first else (block, slot, h, d)]

    def check_side(self, side, r, k, h):
        """One row of keys ("k") or values ("v") with the scales beside it."""
        packed = self.layout == "paged_packed"
        long = {"k": "key", "v": "value"}[side]
        name = "kv_cache" if packed else long if self.layout == "varlen" else f"{long}_cache"
        dtype, encoding = self.inputs[name]["dtype"], self.attrs.get("kv_cache_dtype", "auto")
        size = self.axes["head_size" if side == "k" else "head_size_v"]
        offset = self.axes["head_size"] if packed and side == "v" else 0
        owner = self.owner(r, k)
        at, tensor = self.drawn_as[owner], KEY if side == "k" else VALUE
        hnd = self.attrs.get("kv_cache_layout") == "HND"
        place = f"{name} request {r} key {k} head {h} {side}"

        def found(d):
            return self.cached(name, r, k, h, offset + d, hnd)

        def element(d, of):
            if side == "k":
                return self.source.key(at, k, h, d, of, self.needles[owner] == k)
            return self.source.value(at, k, h, d, of)

        if encoding == "nvfp4":
            codes = [self.source.words(tensor, at, k, h, d)[0] >> 28 for d in range(size)]
            for d in range(0, size, 2):
                self.expect(f"{place} byte {d // 2}", found(d // 2), codes[d] | codes[d + 1] << 4)
            for g in range(size // 16):
                w = self.source.words(K_BLOCK if side == "k" else V_BLOCK, at, k, h, g)
                self.expect(f"{place} group {g}", self.cached(f"{side}_block_scale", r, k, h, g), 0x30 + (w[0] >> 28))
        elif encoding.endswith("per_token_head"):
            row = [single(element(d, "f32")) for d in range(size)]
            most = 127 if dtype == "i8" else 448
            factor = max(single(max(map(abs, row)) / most), single(1e-6))
            block, slot = self.tensors["block_table"][r, k // self.block_size], k % self.block_size
            self.expect(f"{place} scale", self.tensors[f"{side}_scale_cache"][block, slot, h], encode("f32", factor))
            for d, x in enumerate(row):
                y = single(x * single(1 / factor))
                away = math.floor(abs(y) + 0.5) * (1 if y >= 0 else -1)
                wanted = max(-128, min(127, away)) & 0xff if dtype == "i8" else encode(dtype, y)
                self.expect(f"{place} dim {d}", found(d), wanted)
        else:
            for d in range(size):
                if self.source.family == "all_codes" and dtype.startswith("f8"):
                    wanted = finite_code(self.source.words(tensor, at, k, h, d), dtype)
                else:
                    wanted = encode(dtype, element(d, dtype))
                self.expect(f"{place} dim {d}", found(d), wanted)

    def check_cache(self):
        for r, length in enumerate(self.seq_lens):
            rows = [(h, i) for h in range(self.axes["num_heads"]) for i in range(self.query_lens[r])]
            for k in range(length):
                if self.id == "poisoned-hidden_keys" and not any(self.sees(r, h, i, k) for h, i in rows):
                    continue  # NaN
                for h in range(self.axes["num_kv_heads"]):
                    self.check_side("k", r, k, h)
                    self.check_side("v", r, k, h)

    def check_scales(self):
        numbers = {"q_scale": Q_SCALE, "k_scale": K_SCALE, "v_scale": V_SCALE, "k_global_scale": K_SCALE,
                   "v_global_scale": V_SCALE, "output_scale": OUTPUT_SCALE}
        for name, number in numbers.items():
            if name not in self.tensors:
                continue
            for index in self.tensors[name].indices():
                w = self.source.words(number, r=index[0] if len(index) == 2 else 0, h=index[-1])
                wanted = scale(w) / (256 if name == "output_scale" else 1)
                self.expect(f"{name} {index}", self.tensors[name][index], encode("f32", wanted))

    def check_scores(self):
        """Sinks, masks and biases that are drawn; BY_HAND says which are not."""
        longest = max(self.seq_lens, default=0)
        source = self.source
        if "sinks" in self.tensors and self.id not in BY_HAND:
            for h in range(self.axes["num_heads"]):
                wanted = encode(self.inputs["sinks"]["dtype"], 2 * bell(source.words(SINKS, h=h)))
                self.expect(f"sink {h}", self.tensors["sinks"][h,], wanted)
        for name in ("attn_mask", "attn_bias"):
            if name not in self.tensors or self.id in BY_HAND and name == "attn_mask":
                continue
            for index in self.tensors[name].indices():
                r, h, i, k = index
                if k >= longest:
                    continue  # no key has this column
                wanted = mask_bit(source.words(MASK, r, k, h, i))
                if name == "attn_bias":
                    dtype = self.inputs[name]["dtype"]
                    hidden = self.id == "masked-bias_minus_inf" and not wanted
                    wanted = MINUS_INFINITY[dtype] if hidden else encode(dtype, bell(source.words(BIAS, r, k, h, i)))
                self.expect(f"{name} {index}", self.tensors[name][index], wanted)
        if self.id == "tree-added":
            for row, node in self.tensors["qq_bias"].indices():
                code = self.tensors["qq_bias"][row, node]
                if code != MINUS_INFINITY["f32"]:
                    wanted = encode("f32", bell(source.words(TREE, t=node, d=row)))
                    self.expect(f"qq_bias {row} {node}", code, wanted)

    def check(self):
        self.check_query()
        if self.layout != "varlen":
            self.check_table()
        self.check_cache()
        self.check_scales()
        self.check_scores()


def main():
    folder, fewest = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    cases = codes = wrong = 0
    for line in (folder / "index.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        where = row["provenance"]["where"]
        if row["op"] != "attention" or row["result"] != "valid" or where.split(" ")[0] not in FAMILIES:
            continue
        case = Case(folder / row["file"], where)
        case.check()
        cases, codes = cases + 1, codes + case.checked
        if case.wrong:
            wrong += 1
            print(f"{row['id']}: {len(case.wrong)} of {case.checked} differ, the first at {case.wrong[0]}")
    print(f"{cases} cases, {codes} codes, {wrong} cases differ")
    return 1 if wrong or cases < fewest else 0


if __name__ == "__main__":
    sys.exit(main())
