#include "attn/described_executable.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/contains.h"

namespace attn {
namespace {

std::vector<DType> model_dtypes(const Capabilities& c) {
  std::vector<DType> dtypes;
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    if (contains(c.query_dtypes, dtype)) dtypes.push_back(dtype);
  }
  return dtypes;
}

HeadSizes head_sizes(const HeadSizeRule& rule) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  HeadSizes heads;
  heads.min = static_cast<int>(std::min(rule.min, kMax));
  heads.max = static_cast<int>(rule.max == 0 ? kMax : std::min(rule.max, kMax));
  heads.multiple_of = static_cast<int>(std::min(rule.multiple_of, kMax));
  return heads;
}

KvDTypes kv_dtypes(const Capabilities& c, const std::vector<DType>& dtypes, bool mla) {
  const bool plain = contains(c.kv_encodings, KvEncoding::kPlain);
  const bool stores_own = std::all_of(dtypes.begin(), dtypes.end(),
                                      [&](DType dtype) { return contains(c.kv_dtypes, dtype); });
  const auto stored = [&](DType dtype) { return plain && contains(c.kv_dtypes, dtype); };
  const bool per_token = !mla && contains(c.kv_encodings, KvEncoding::kPerTokenHead);
  const std::pair<CacheDType, bool> answers[] = {
      {CacheDType::kAuto, plain && stores_own},
      {CacheDType::kFloat16, stored(DType::kF16)},
      {CacheDType::kBFloat16, stored(DType::kBF16)},
      {CacheDType::kFp8, stored(DType::kF8E4M3FN)},
      {CacheDType::kFp8E4M3, stored(DType::kF8E4M3FN)},
      {CacheDType::kFp8E5M2, stored(DType::kF8E5M2)},
      {CacheDType::kFp8DsMla, mla && contains(c.kv_encodings, KvEncoding::kFp8DsMla)},
      {CacheDType::kInt4PerTokenHead, per_token && contains(c.kv_dtypes, DType::kI4)},
      {CacheDType::kInt8PerTokenHead, per_token},
      {CacheDType::kFp8PerTokenHead, per_token},
      {CacheDType::kNvfp4, !mla && contains(c.kv_encodings, KvEncoding::kNvfp4)}};
  KvDTypes kv = {};
  kv.declared.clear();
  kv.accepted = CacheDTypeSet{};
  for (const auto& [dtype, accepted] : answers) {
    if (!accepted) continue;
    kv.declared.push_back(dtype);
    kv.accepted = kv.accepted.with(dtype);
  }
  if (kv.accepted.contains(CacheDType::kAuto)) kv.accepted = kv.accepted.with(std::nullopt);
  return kv;
}

// What only the operation `attention` knows.
void describe_attention(const Capabilities& c, DescribedBackend& b) {
  b.heads = head_sizes(c.head_size);
  if (c.has(Feature::kNonCausal) && contains(c.kv_layouts, KvLayout::kVarlen)) {
    b.attn_types = {AttentionType::kDecoder, AttentionType::kEncoder, AttentionType::kEncoderOnly,
                    AttentionType::kEncoderDecoder};
  }
  b.sink = c.has(Feature::kSinks);
  b.alibi_sqrt = c.has(Feature::kAlibiSqrt);
  b.mm_prefix = c.has(Feature::kMmPrefix);
  b.per_head_quant_scales = c.has(Feature::kPerHeadScales);
  b.sliding_window = c.has(Feature::kSlidingWindow);
  b.rswa = c.has(Feature::kRswa);
}

}  // namespace

DescribedBackend describe_executable(std::string name, const Capabilities& capabilities,
                                     OpKind operation) {
  const Capabilities& c = capabilities;
  DescribedBackend b;
  b.name = std::move(name);
  b.mla = operation != OpKind::kAttention;
  b.sparse = operation == OpKind::kMlaSparse;
  b.dtypes = contains(c.operations, operation) ? model_dtypes(c) : std::vector<DType>{};
  b.kv = kv_dtypes(c, b.dtypes, b.mla);
  if (!b.mla) describe_attention(c, b);
  b.non_causal = c.has(Feature::kNonCausal);
  b.batch_invariance = c.batch_invariant;
  b.dcp = c.honours_dcp;
  b.non_causal_dcp = b.mla && b.non_causal && b.dcp;
  b.update_in_forward = false;  // writing a cache is an operation of its own
  b.update_bypass = true;
  b.decode_lse = c.returns_lse;
  b.lse_base_e = c.lse_form.base == LseBase::kE;
  b.graph = GraphSupport::kNever;
  return b;
}

}  // namespace attn
