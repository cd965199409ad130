#include "golden/case_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "attn/error.h"
#include "core/contains.h"
#include "golden/ascii.h"
#include "golden/safetensors.h"

namespace attn::golden {
namespace {

constexpr std::string_view kInputs[] = {"query",
                                        "key",
                                        "value",
                                        "key_cache",
                                        "value_cache",
                                        "kv_cache",
                                        "query_start_loc",
                                        "kv_start_loc",
                                        "seq_lens",
                                        "block_table",
                                        "slot_mapping",
                                        "causal_per_req",
                                        "mm_prefix_ranges",
                                        "rswa_prefix_lens",
                                        "alibi_slopes",
                                        "sinks",
                                        "attn_mask",
                                        "attn_bias",
                                        "qq_bias",
                                        "output_scale",
                                        "kv_c",
                                        "k_pe",
                                        "q_scale",
                                        "k_scale",
                                        "v_scale",
                                        "k_scale_cache",
                                        "v_scale_cache",
                                        "k_block_scale",
                                        "v_block_scale",
                                        "k_global_scale",
                                        "v_global_scale",
                                        "w_uk",
                                        "w_uv",
                                        "topk_indices",
                                        "topk_lens",
                                        "weights",
                                        "k_start",
                                        "k_end",
                                        "out_parts",
                                        "lse_parts",
                                        "diff_norm_weight"};

constexpr std::string_view kOutputs[] = {"out",
                                         "lse",
                                         "logits",
                                         "key_cache_after",
                                         "value_cache_after",
                                         "kv_cache_after",
                                         "out_codes",
                                         "k_scale_cache_after",
                                         "v_scale_cache_after"};

constexpr std::string_view kTruths[] = {"out", "lse", "logits"};

constexpr std::string_view kAxes[] = {"num_reqs",     "num_tokens", "num_heads",
                                      "num_kv_heads", "head_size",  "head_size_v",
                                      "num_parts",    "num_keys",   "num_blocks"};

// [a-z][a-z0-9_]*
bool is_snake_case(std::string_view text) {
  return !text.empty() && is_lower(text[0]) && std::all_of(text.begin(), text.end(), [](char c) {
    return is_lower(c) || is_digit(c) || c == '_';
  });
}

// [A-Za-z0-9][A-Za-z0-9_.-]*
bool is_id(std::string_view text) {
  const auto is_start = [](char c) { return is_lower(c) || is_upper(c) || is_digit(c); };
  return !text.empty() && is_start(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_start(c) || c == '_' || c == '.' || c == '-';
  });
}

void expect_known(const JsonNode& node, const std::string& key,
                  std::span<const std::string_view> known) {
  if (!contains(known, key)) {
    throw Error(fmt::format("{} has the unknown key {}", node.path(), in_quotes(key)));
  }
}

TensorDescription parse_tensor(const JsonNode& node) {
  node.expect_only({"dtype", "storage", "shape"});
  const JsonNode type = node.at("dtype");
  const std::optional<DType> dtype = dtype_from_name(type.string());
  if (!dtype || *dtype == DType::kI4) type.fail("a type of attn-case/1");
  const JsonNode storage = node.at("storage");
  if (storage.string() != storage_name(*dtype)) {
    storage.fail(fmt::format("{} for {}", storage_name(*dtype), name(*dtype)));
  }
  TensorDescription tensor;
  tensor.dtype = *dtype;
  for (const JsonNode& axis : node.at("shape").elements()) tensor.shape.push_back(axis.integer(0));
  return tensor;
}

void expect_dtype(const JsonNode& tensor, DType dtype, std::initializer_list<DType> allowed) {
  if (contains(allowed, dtype)) return;
  std::vector<std::string_view> names;
  for (const DType type : allowed) names.push_back(name(type));
  tensor.at("dtype").fail(fmt::format("{}", fmt::join(names, " or ")));
}

constexpr std::initializer_list<DType> kAnswerTypes = {DType::kF64, DType::kF32, DType::kF16,
                                                       DType::kBF16};

TensorTable parse_inputs(const JsonNode& node) {
  TensorTable table;
  for (const auto& [key, tensor] : node.members()) {
    expect_known(node, key, kInputs);
    table.emplace(key, parse_tensor(tensor));
  }
  return table;
}

// `outputs` and `truth`.
TensorTable parse_answers(const JsonNode& node, std::span<const std::string_view> known) {
  TensorTable table;
  for (const auto& [key, tensor] : node.members()) {
    expect_known(node, key, known);
    const TensorDescription description = parse_tensor(tensor);
    if (key == "out" || key == "lse" || key == "logits") {
      expect_dtype(tensor, description.dtype, kAnswerTypes);
    }
    if (key == "out_codes") expect_dtype(tensor, description.dtype, {DType::kF8E4M3FN});
    table.emplace(key, description);
  }
  return table;
}

TensorTable parse_cond(const JsonNode& node) {
  TensorTable table;
  for (const auto& [key, tensor] : node.members()) {
    if (!is_snake_case(key)) {
      throw Error(
          fmt::format("{} has the key {}, expected [a-z][a-z0-9_]*", node.path(), in_quotes(key)));
    }
    const TensorDescription description = parse_tensor(tensor);
    expect_dtype(tensor, description.dtype, {DType::kF64, DType::kF32});
    table.emplace(key, description);
  }
  return table;
}

std::vector<std::string> parse_flags(const JsonNode& node) {
  std::vector<std::string> flags;
  for (const JsonNode& flag : node.elements()) {
    flag.choice({"poisoned", "padded_rows", "q_len_gt_seq_len", "seq_len_zero"});
    if (contains(flags, flag.string())) {
      flag.fail("each flag once");
    }
    flags.push_back(flag.string());
  }
  return flags;
}

std::map<std::string, std::int64_t> parse_axes(const JsonNode& node) {
  std::map<std::string, std::int64_t> axes;
  for (const auto& [key, size] : node.members()) {
    expect_known(node, key, kAxes);
    axes.emplace(key, size.integer(0));
  }
  return axes;
}

}  // namespace

std::string parse_id(const JsonNode& node) {
  if (!is_id(node.string())) node.fail("[A-Za-z0-9][A-Za-z0-9_.-]*");
  return node.string();
}

std::string parse_variant(const JsonNode& node) {
  if (!is_snake_case(node.string())) node.fail("[a-z][a-z0-9_]*");
  return node.string();
}

OpKind parse_op(const JsonNode& node) {
  const std::string text = node.string();
  for (const OpKind op : kAllOpKinds) {
    if (name(op) == text) return op;
  }
  node.fail("an operation of attn-case/1");
}

CaseResult parse_result(const JsonNode& node) {
  return static_cast<CaseResult>(node.choice({"valid", "invalid", "acceptable"}));
}

CaseObject parse_case_object(const JsonNode& node) {
  node.expect_only({"spec_version", "id", "op", "variant", "name", "scenario", "flags", "result",
                    "axes", "attrs", "inputs", "outputs", "truth", "cond"});
  const JsonNode version = node.at("spec_version");
  if (version.integer(0) != 1) version.fail("1");
  node.at("name").string();
  node.at("scenario").string();

  CaseObject object;
  object.id = parse_id(node.at("id"));
  object.op = parse_op(node.at("op"));
  object.variant = parse_variant(node.at("variant"));
  object.flags = parse_flags(node.at("flags"));
  object.result = parse_result(node.at("result"));
  object.axes = parse_axes(node.at("axes"));
  object.attrs = parse_attributes(node.at("attrs"));
  object.inputs = parse_inputs(node.at("inputs"));
  object.outputs = parse_answers(node.at("outputs"), kOutputs);
  if (node.has("truth")) object.truth = parse_answers(node.at("truth"), kTruths);
  if (node.has("cond")) object.cond = parse_cond(node.at("cond"));
  expect_required(node, object);
  return object;
}

}  // namespace attn::golden
