// What several rows of vLLM's backends declare.
#pragma once

#include <vector>

#include "attn/described_backend.h"
#include "attn/selector_config.h"

namespace attn {

inline const std::vector<DType> kHalfDTypes = {DType::kF16, DType::kBF16};
inline const std::vector<DType> kBf16Only = {DType::kBF16};
inline const std::vector<DType> kDTypesWithFloat32 = {DType::kF16, DType::kBF16, DType::kF32};
inline const std::vector<AttentionType> kAllAttentionTypes = {
    AttentionType::kDecoder, AttentionType::kEncoder, AttentionType::kEncoderOnly,
    AttentionType::kEncoderDecoder};
inline const KvDTypes kCommonKv = {CacheDType::kAuto, CacheDType::kFloat16, CacheDType::kBFloat16,
                                   CacheDType::kFp8, CacheDType::kFp8E4M3};
inline const KvDTypes kPlainKv = {CacheDType::kAuto, CacheDType::kFloat16, CacheDType::kBFloat16};

}  // namespace attn
