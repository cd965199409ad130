// The JSON case object as typed data, checked as strictly as its schema says.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/case_file.h"
#include "attn/operation.h"
#include "core/strict_json.h"

namespace attn::golden {

enum class CacheDType : std::uint8_t {
  kAuto,
  kFp8E4M3,
  kFp8E5M2,
  kFp8E4M3Fnuz,
  kInt8PerTokenHead,
  kFp8PerTokenHead,
  kNvfp4,
  kFp8DsMla
};
std::string_view name(CacheDType type);  // spelling of kv_cache_dtype

// An absent attribute is off.
struct CaseAttributes {
  std::vector<std::string> given;  // names of all that are there, sorted

  std::optional<KvLayout> kv_layout;
  std::optional<bool> causal;
  CacheDType kv_cache_dtype = CacheDType::kAuto;
  AlibiForm alibi_form = AlibiForm::kNone;
  MlaForm mla_form = MlaForm::kAbsorbed;
  TopkIndexSpace topk_index_space = TopkIndexSpace::kRequest;
  bool heads_first = false;  // kv_cache_layout HND
  bool mm_prefix_clamp = false;
  bool lse_includes_sink = true;
  bool lse_base_2 = false;

  std::optional<std::int64_t> block_size;
  std::optional<std::int64_t> window_left;
  std::optional<std::int64_t> window_right;
  std::int64_t sink_token_length = 0;
  std::int64_t attention_chunk_size = 0;
  std::int64_t attention_chunk_lookback = 0;
  std::int64_t rswa_window = 0;
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::optional<std::int64_t> qk_nope_head_dim;

  std::optional<double> scale;
  double logits_soft_cap = 0.0;
  double diff_lambda = 0.0;
  double diff_lambda_init = 0.0;
  double diff_eps = 0.0;
  ExecSpec exec;

  bool has(std::string_view attribute) const;
};

using TensorTable = std::map<std::string, TensorDescription>;

struct CaseObject {
  std::string id;
  OpKind op = OpKind::kAttention;
  std::string variant;
  std::vector<std::string> flags;
  CaseResult result = CaseResult::kValid;
  std::map<std::string, std::int64_t> axes;
  CaseAttributes attrs;
  TensorTable inputs, outputs, truth, cond;
};

// Throws Error, with the path, for everything the schema forbids: unknown keys and values, missing
// keys of the operation and layout, types that do not fit their storage, masks beside rswa_window,
// exec where it does not belong.
CaseObject parse_case_object(const JsonNode& node);

// Fields that index rows share with the case object.
std::string parse_id(const JsonNode& node);
std::string parse_variant(const JsonNode& node);
OpKind parse_op(const JsonNode& node);
CaseResult parse_result(const JsonNode& node);

// Parts of parse_case_object(), one file each.
CaseAttributes parse_attributes(const JsonNode& node);
void expect_required(const JsonNode& node, const CaseObject& object);

}  // namespace attn::golden
