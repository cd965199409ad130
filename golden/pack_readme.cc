#include <fmt/format.h>

#include "golden/pack_texts.h"

namespace attn::golden {
namespace {

constexpr const char* kAbout = R"md({title}.

Pack `{name}` {version} holds {cases} attention problems, {valid} of them with their answers and the rest to be rejected. It is meant for whoever writes an attention kernel, in
any language: nothing has to be linked or installed to read it. Everything in it was computed for it, from inputs of its own, and is given away under CC0-1.0 (`LICENSE`).
{tier}
| file | holds |
|---|---|
| `<id>.safetensors` | one problem: inputs, expected outputs, and how sensitive each element is to rounding (`cond_...`) |
| `index.jsonl` | one line a case: operation, variant, whether it must be answered (`valid`) or rejected (`invalid`), flags, rulings, SHA-256 |
| `relations.jsonl` | rows of `out` that must be the same bits in several cases |
| `manifest.json` | counts, notes on every flag and ruling, withdrawn ids |
| `SHA256SUMS` | digests of every other file, for `sha256sum -c SHA256SUMS` |

The case object, a JSON text in the metadata of each file under the key `case`, says what is asked: operation `op`, sizes `axes`, options `attrs`, and type and shape of every tensor.
Real numbers in it are hexadecimal floats in strings (Python's `float.fromhex` reads them).

Expected values are not the output of a kernel. They are the mathematical values of the definition, evaluated with MPFR in {bits} bits and again in twice as many until both
round to the same bytes, then rounded once to the nearest float64. Differences from them are yours; how large they may be depends on your arithmetic. When a case fails, read the
notes of its flags and rulings in `manifest.json` first: they say which mistake it was made to show.

A released folder is never edited. A wrong value would be withdrawn by a newer version, under `withdrawn` in its manifest.

## Reading it

Python 3 with numpy, nothing else; run it in this folder. Floating types below 16 bits come as raw `U8` codes, the case object says which format.

)md";

constexpr std::string_view kExtendedTier = R"md(
It is of tier `extended`: too large to be kept with the sources, made on demand by `attn-oracle golden make --pack extended`, the same bytes every time. The pack of tier
`core` holds the small cases; begin there.
)md";

constexpr std::string_view kReader = R"md(```python
import json, numpy as np
T = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1", "BOOL": "?"}

def load(path):
    raw = open(path, "rb").read()
    n = int.from_bytes(raw[:8], "little")
    head, out = json.loads(raw[8:8 + n]), {}
    case = json.loads(head.pop("__metadata__")["case"])
    for name, h in head.items():
        a, b = h["data_offsets"]
        x = np.frombuffer(raw[8 + n + a:8 + n + b], T[h["dtype"]])
        if h["dtype"] == "BF16":
            x = (x.astype("<u4") << 16).view("<f4")
        out[name] = x.reshape(h["shape"])
    return case, out

for row in map(json.loads, open("index.jsonl")):
    case, t = load(row["file"])
    print(case["id"], case["op"], case["attrs"], {k: v.shape for k, v in t.items()})
```
)md";

}  // namespace

std::string readme_of(const PackManifest& manifest) {
  const auto valid = manifest.counts.by_result.find("valid");
  return fmt::format("# Golden pack {}-{}\n\n", manifest.name, manifest.version) +
         fmt::format(
             fmt::runtime(kAbout), fmt::arg("title", manifest.title),
             fmt::arg("name", manifest.name), fmt::arg("version", manifest.version),
             fmt::arg("tier", manifest.tier == "extended" ? kExtendedTier : std::string_view()),
             fmt::arg("cases", manifest.counts.cases),
             fmt::arg("valid", valid == manifest.counts.by_result.end() ? 0 : valid->second),
             fmt::arg("bits", manifest.bits)) +
         std::string(kReader);
}

}  // namespace attn::golden
