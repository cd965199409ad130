#include "judge/named_contracts.h"

namespace attn::judge {
namespace {

constexpr NamedContract kContracts[] = {
    {"fp32", R"({
  "vector": "f32", "flush": false, "query": "exact", "key": "exact", "value": "exact",
  "dot": {"type": "f32", "mode": "nearest", "lanes": 1, "block": 0, "mma_k": 0,
    "fused": true, "inner": null},
  "scale_roundings": 4, "cap": {"rel": "0x1p-21", "abs": "0x0p+0"}, "bias_rel": "0x1p-22",
  "logit": "exact", "logit_roundings": 0,
  "exp": {"rel": "0x1p-21", "abs": "0x1p-126", "arg_roundings": 3, "shift_roundings": 2},
  "tile": 64, "max_lag": "0x0p+0",
  "p": {"type": "exact", "mode": "nearest", "scale": "0x1p+0", "flush": false,
    "roundings": 0, "normalized": false},
  "sum": {"type": "f32", "mode": "nearest", "lanes": 1, "block": 0, "mma_k": 0,
    "fused": true, "inner": null, "rounded_p": false},
  "pv": {"type": "f32", "mode": "nearest", "lanes": 1, "block": 0, "mma_k": 0,
    "fused": true, "inner": null},
  "splits": 1, "merge": {"kind": "acc", "depth": 1, "part": "exact", "lse": "f32"},
  "normalize_roundings": 2, "log": {"abs": "0x1p-22", "roundings": 3}, "project": null,
  "out": "stored", "lse": "stored"
})"},
    {"fp32_lanes", R"({
  "extends": "fp32", "dot": {"lanes": 16}, "sum": {"lanes": 16, "block": 256},
  "pv": {"block": 256}, "tile": 256
})"},
    {"fp32_split", R"({
  "extends": "fp32", "dot": {"lanes": 16}, "sum": {"lanes": 16, "block": 64}, "pv": {"block": 64},
  "splits": 16, "merge": {"kind": "lse"}
})"},
    {"bf16_flash", R"({
  "extends": "fp32", "flush": true, "query": {"type": "bf16", "flush": true},
  "key": {"type": "bf16", "flush": true}, "value": {"type": "bf16", "flush": true},
  "dot": {"fused": false}, "pv": {"fused": false}, "p": {"type": "bf16", "flush": true}
})"},
    {"bf16_vdp", R"({
  "extends": "bf16_flash", "dot": {"lanes": 16, "fused": true},
  "sum": {"lanes": 16, "block": 256}, "pv": {"block": 256, "fused": true}, "tile": 256
})"},
    {"bf16_mma", R"({
  "extends": "bf16_flash", "flush": false,
  "dot": {"mode": "truncate", "mma_k": 16, "fused": true},
  "pv": {"mode": "truncate", "mma_k": 16, "fused": true}
})"},
    {"f16_flash", R"({
  "extends": "fp32", "query": "f16", "key": "f16", "value": "f16", "p": {"type": "f16"}
})"},
    {"fp8_flash", R"({
  "extends": "fp32", "query": "f8_e4m3fn", "scale_roundings": 6,
  "p": {"type": "f8_e4m3fn", "scale": "0x1p+8", "roundings": 2}, "normalize_roundings": 3
})"},
    {"tf32", R"({
  "extends": "fp32", "query": {"type": "tf32", "mode": "truncate"},
  "key": {"type": "tf32", "mode": "truncate"}, "value": {"type": "tf32", "mode": "truncate"},
  "dot": {"mode": "truncate", "mma_k": 8}, "pv": {"mode": "truncate", "mma_k": 8},
  "p": {"type": "tf32", "mode": "truncate"}
})"},
    {"bf16_unfused", R"({
  "extends": "fp32", "flush": true, "query": {"type": "bf16", "flush": true},
  "key": {"type": "bf16", "flush": true}, "value": {"type": "bf16", "flush": true},
  "dot": {"fused": false}, "pv": {"fused": false}, "logit": "bf16", "logit_roundings": 1,
  "tile": 0, "p": {"type": "bf16", "flush": true, "normalized": true}
})"},
    {"f64", R"({
  "extends": "fp32", "vector": "f64", "dot": {"type": "f64", "fused": false},
  "sum": {"type": "f64"}, "pv": {"type": "f64", "fused": false}, "scale_roundings": 1,
  "cap": {"rel": "0x1p-51"}, "bias_rel": "0x1p-52",
  "exp": {"rel": "0x1p-52", "abs": "0x1p-1022", "arg_roundings": 1, "shift_roundings": 0},
  "tile": 0, "log": {"abs": "0x1p-52"}, "merge": {"lse": "f64"}
})"},
    {"f64_flash", R"({
  "extends": "f64", "scale_roundings": 4, "exp": {"arg_roundings": 3, "shift_roundings": 2},
  "tile": 64, "splits": 16, "merge": {"kind": "lse"}
})"},
    {"reference", R"({
  "extends": "f64", "dot": {"lanes": 8}, "sum": {"block": 64}, "pv": {"block": 64}
})"},
};

}  // namespace

std::span<const NamedContract> named_contracts() { return kContracts; }

}  // namespace attn::judge
