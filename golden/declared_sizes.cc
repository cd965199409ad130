// What a case declares about sizes, against what its tensors say. The operation has been validated.
#include <fmt/format.h>

#include "attn/error.h"
#include "golden/case_operation.h"

namespace attn::golden {
namespace {

using Shape = std::vector<std::int64_t>;

struct Sizes {
  std::map<std::string_view, std::int64_t> axes;
  std::map<std::string_view, Shape> answers;
};

Sizes sizes_of(const AttentionOp& op) {
  const std::int64_t tokens = op.num_tokens();
  Sizes sizes;
  sizes.axes = {{"num_reqs", op.num_reqs()},   {"num_tokens", tokens},
                {"num_heads", op.num_heads()}, {"num_kv_heads", op.num_kv_heads()},
                {"head_size", op.head_size()}, {"head_size_v", op.head_size_v()}};
  if (op.kv.paged()) sizes.axes["num_blocks"] = op.kv.key.shape[0];
  sizes.answers = {{"out", {tokens, op.num_heads(), op.head_size_v()}},
                   {"lse", {op.num_heads(), tokens}}};
  if (op.output_scale.present()) sizes.answers["out_codes"] = sizes.answers["out"];
  return sizes;
}

Sizes sizes_of(const DifferentialOp& op) {
  Sizes sizes = sizes_of(op.attention);
  sizes.answers = {
      {"out",
       {op.attention.num_tokens(), op.attention.num_heads() / 2, 2 * op.attention.head_size_v()}}};
  return sizes;
}

Sizes sizes_of(const MlaOp& op) {
  const std::int64_t tokens = int_at(op.query_start_loc, op.seq_lens.shape[0]);
  const std::int64_t heads = op.query.shape[1];
  const std::int64_t head_size_v =
      op.form == MlaForm::kExpanded ? op.w_uv.shape[2] : op.kv_lora_rank;
  return {{{"num_reqs", op.seq_lens.shape[0]},
           {"num_tokens", tokens},
           {"num_heads", heads},
           {"num_kv_heads", 1},
           {"head_size", op.query.shape[2]},
           {"head_size_v", head_size_v},
           {"num_blocks", op.kv_cache.shape[0]}},
          {{"out", {tokens, heads, head_size_v}}, {"lse", {heads, tokens}}}};
}

Sizes sizes_of(const MlaSparseOp& op) { return sizes_of(op.mla); }

Sizes sizes_of(const IndexerOp& op) {
  const std::int64_t tokens = op.query.shape[0];
  const std::int64_t keys = op.key.shape[0];
  return {{{"num_tokens", tokens},
           {"num_heads", op.query.shape[1]},
           {"head_size", op.query.shape[2]},
           {"num_keys", keys}},
          {{"logits", {tokens, keys}}}};
}

Sizes sizes_of(const MergeStatesOp& op) {
  const std::int64_t* shape = op.out_parts.shape;
  return {{{"num_parts", shape[0]},
           {"num_tokens", shape[1]},
           {"num_heads", shape[2]},
           {"head_size_v", shape[3]}},
          {{"out", {shape[1], shape[2], shape[3]}}, {"lse", {shape[2], shape[1]}}}};
}

// num_tokens counts the slots; answers are the caches as they are stored.
Sizes sizes_of(const CacheWriteOp& op) {
  Sizes sizes;
  sizes.axes = {{"num_tokens", op.slot_mapping.shape[0]},
                {"num_kv_heads", op.cache.num_kv_heads()},
                {"head_size", op.cache.head_size()},
                {"head_size_v", op.cache.head_size_v()},
                {"num_blocks", op.cache.key.shape[0]}};
  return sizes;
}

Sizes sizes_of(const MlaCacheWriteOp& op) {
  Sizes sizes;
  sizes.axes = {{"num_tokens", op.slot_mapping.shape[0]},
                {"num_kv_heads", 1},
                {"num_blocks", op.kv_cache.shape[0]}};
  return sizes;
}

void expect_axes(const CaseObject& object, const Sizes& sizes) {
  for (const auto& [axis, size] : object.axes) {
    const auto found = sizes.axes.find(axis);
    if (found == sizes.axes.end()) {
      throw Error(
          fmt::format("case.axes.{} does not belong to {}", axis, operation_text(object.op)));
    }
    if (found->second != size) {
      throw Error(fmt::format("case.axes.{} is {}, the tensors say {}", axis, size, found->second));
    }
  }
}

// A cache after a write has type and shape of the one before.
bool is_written_cache(const CaseObject& object, const std::string& output,
                      const TensorDescription& description) {
  constexpr std::string_view kSuffix = "_after";
  if (object.op != OpKind::kCacheWrite && object.op != OpKind::kMlaCacheWrite) return false;
  if (!output.ends_with(kSuffix)) return false;
  const std::string input = output.substr(0, output.size() - kSuffix.size());
  const auto before = object.inputs.find(input);
  if (before == object.inputs.end()) return false;
  if (description.dtype != before->second.dtype || description.shape != before->second.shape) {
    throw Error(fmt::format("case.outputs.{} is {} [{}], {} is {} [{}]", output,
                            name(description.dtype), fmt::join(description.shape, ","), input,
                            name(before->second.dtype), fmt::join(before->second.shape, ",")));
  }
  return true;
}

void expect_answers(const CaseObject& object, const Sizes& sizes, std::string_view table,
                    const TensorTable& described) {
  for (const auto& [output, description] : described) {
    if (is_written_cache(object, output, description)) continue;
    const auto answer = sizes.answers.find(output);
    if (answer == sizes.answers.end()) {
      throw Error(fmt::format("case.{}.{} is no answer of {}{}", table, output,
                              operation_text(object.op),
                              output == "out_codes" ? " without output_scale" : ""));
    }
    if (answer->second != description.shape) {
      throw Error(fmt::format("case.{}.{} has shape [{}], the answer has [{}]", table, output,
                              fmt::join(description.shape, ","), fmt::join(answer->second, ",")));
    }
  }
}

}  // namespace

void expect_declared_sizes(const CaseObject& object, const Operation& operation) {
  const Sizes sizes = std::visit([](const auto& op) { return sizes_of(op); }, operation);
  expect_axes(object, sizes);
  expect_answers(object, sizes, "outputs", object.outputs);
  expect_answers(object, sizes, "truth", object.truth);
}

}  // namespace attn::golden
