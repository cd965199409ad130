// The table of where composites send batches: what policies select, also of derived batches, in
// nested composites and behind wrappers.
#include <fmt/core.h>

#include <utility>

#include "attn/derived_batches.h"
#include "attn/error.h"
#include "attn/local_batches.h"
#include "attn/ubatch.h"
#include "composite/batch_json.h"
#include "composite/call_rows.h"
#include "composite/composite_attention_backend.h"
#include "composite/mm_prefix_policy.h"
#include "composite/scripted_backend.h"
#include "composite/table_kinds.h"
#include "composite/table_policy.h"
#include "composite/wrapper_backend.h"
#include "core/table_values.h"

namespace attn {
namespace {

using nlohmann::json;
using Batch = CommonAttentionMetadata;

json select_answer(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "layers", "layer_names", "batch", "expect"});
  const BuilderArguments arguments = {
      {}, strings_from(row.at("layer_names")), layers_from(row.at("layers")), {}};
  const Batch batch = batch_from(row.at("batch"));
  return value_or_error([&]() -> json {
    const MmPrefixPolicy policy(arguments);
    return {{"unclamped_window", policy.unclamped_window()},
            {"variant", value_or_error([&]() -> json { return policy.select(batch).child; })},
            {"policy_cudagraph_support", name(mm_prefix_policy()->cudagraph_support(arguments))}};
  });
}

Batch without_last_row(const Batch& batch) {
  if (batch.num_reqs < 1) throw Error("a batch without rows has no last row to cut");
  const auto last = static_cast<std::size_t>(batch.num_reqs - 1);
  return unpadded(batch, batch.query_start_loc[last], batch.num_reqs - 1, Derivation::kVllm);
}

std::vector<Batch> two_ubatches(const Batch& batch) {
  std::vector<std::int32_t> query_lens;
  query_lens.reserve(batch.seq_lens.size());
  for (std::int32_t row = 0; row < batch.num_reqs; ++row)
    query_lens.push_back(batch.query_len(row));
  const UBatchSlices slices =
      create_ubatch_slices(query_lens, batch.num_actual_tokens, batch.num_reqs, 2, std::nullopt);
  std::vector<Batch> halves;
  halves.reserve(slices.slices.size());
  for (const UBatchSlice& slice : slices.slices) {
    halves.push_back(split_batch(slice, batch, Derivation::kVllm));
  }
  return halves;
}

// Only the last token of each row is wanted.
Batch last_tokens(Batch batch) {
  std::vector<std::int32_t> last;
  for (std::int32_t row = 0; row < batch.num_reqs; ++row) {
    const auto next = static_cast<std::size_t>(row) + 1;
    if (batch.query_len(row) > 0) last.push_back(batch.query_start_loc[next] - 1);
  }
  batch.num_logits_indices = static_cast<std::int32_t>(last.size());
  batch.logits_indices_padded = std::move(last);
  batch.max_logits_per_req = 1;
  return fast_prefill(batch, Derivation::kVllm).value_or(batch);
}

std::vector<Batch> derived(const Batch& batch, std::size_t derivation) {
  constexpr int kChunk = 8;
  constexpr int kBlock = 4;
  switch (derivation) {
    case 0:
      return {batch};
    case 1:
      return {without_last_row(batch)};
    case 2:
      return two_ubatches(batch);
    case 3:
      return {make_local_batch(batch, kChunk, kBlock, Derivation::kVllm).batch};
    default:
      return {last_tokens(batch)};
  }
}

json derived_answer(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "batch", "derivation", "expect"});
  const MmPrefixPolicy policy({});
  const Batch batch = batch_from(row.at("batch"));
  const std::size_t derivation =
      row.at("derivation")
          .choice({"replace", "unpadded", "ubatch", "local_chunks", "fast_prefill"});
  return value_or_error([&]() -> json {
    json answer = {{"original", policy.select(batch).child},
                   {"derived", json::array()},
                   {"keeps_ranges", json::array()}};
    for (const Batch& one : derived(batch, derivation)) {
      answer["derived"].push_back(policy.select(one).child);
      answer["keeps_ranges"].push_back(one.mm_req_doc_ranges.has_value());
    }
    return answer;
  });
}

ChildDescription plain_child(const std::string& name) {
  ChildDescription child;
  child.name = child.class_name = child.backend.name = name;
  child.module = "nested";
  child.backend.update_in_forward = false;
  return child;
}

json nested_answer(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "inner_is", "outer", "inner", "expect"});
  const bool inner_is_general = row.at("inner_is").choice({"general", "causal"}) == 0;
  const TablePolicy outer_policy = table_policy_from(row.at("outer"));
  const auto log = std::make_shared<CallLog>();
  const auto leaf = [&](const char* name) {
    return scripted_backend(plain_child(name), name, log);
  };
  CompositeOptions inner_options;
  inner_options.class_name = "InnerBackend";
  const AttentionBackendPtr inner =
      compose_as(Conduct::kVllm, {leaf("X"), leaf("Y")}, table_policy_from(row.at("inner")).policy,
                 inner_options);
  std::vector<AttentionBackendPtr> children = {inner, leaf("Z")};
  if (!inner_is_general) std::swap(children[0], children[1]);
  const AttentionBackendPtr outer =
      compose_as(Conduct::kVllm, children, outer_policy.policy, CompositeOptions{});

  Batch batch;
  batch.query_start_loc = batch.query_start_loc_cpu = {0, 1};
  batch.seq_lens = {1};
  const MetadataPtr metadata = outer->make_builder({})->build(0, batch, false);
  const auto& built = dynamic_cast<const ScriptedMetadata&>(leaf_of(*metadata));
  const auto impl = outer->make_impl({});
  log->take();
  impl->forward(*metadata, {});
  const auto forwarded_to = log->take().at(0).at("child").get<std::string>();
  return {{"built_by", built.role()},
          {"forwarded_to", forwarded_to},
          {"variant", outer_policy.tag(route_of(*metadata).front().route.child)},
          {"consistent", built.role() == forwarded_to}};
}

AttentionBackendPtr wrapped(std::size_t wrapper, AttentionBackendPtr backend) {
  constexpr int kChunk = 64;
  switch (wrapper) {
    case 0:
      return fast_prefill_backend(std::move(backend), "FastPrefill", Conduct::kVllm);
    case 1:
      return encoder_only_backend(std::move(backend), Conduct::kVllm);
    default:
      return chunked_local_backend(std::move(backend), kChunk, Conduct::kVllm);
  }
}

MetadataPtr wrapped_build(AttentionMetadataBuilder& builder, std::size_t op, const Batch& batch) {
  constexpr int kDraft = 1;
  switch (op) {
    case 0:
      return builder.build(0, batch, false);
    case 1:
      return builder.build_for_drafting(batch, kDraft);
    case 2:
      return builder.build_for_cudagraph_capture(batch);
    default:
      return builder.update_block_table(*builder.build(0, batch, false), batch.block_table,
                                        batch.slot_mapping);
  }
}

json seen_json(const Batch& batch) {
  return {{"num_reqs", batch.num_reqs},
          {"num_actual_tokens", batch.num_actual_tokens},
          {"max_query_len", batch.max_query_len},
          {"causal", batch.causal},
          {"has_ranges", batch.mm_req_doc_ranges.has_value()}};
}

json wrapped_answer(const KvCacheSpec& spec, const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "wrapper", "op", "general", "causal", "policy", "layers",
                   "layer_names", "batch", "expect"});
  const std::size_t wrapper =
      row.at("wrapper").choice({"fast_prefill", "encoder_only", "chunked_local"});
  const std::size_t op = row.at("op").choice(
      {"build", "build_for_drafting", "build_for_cudagraph_capture", "update_block_table"});
  const TablePolicy policy = table_policy_from(row.at("policy"));
  const ScriptedPair pair(row);
  const Batch batch = batch_from(row.at("batch"));
  const BuilderArguments arguments = {
      spec, strings_from(row.at("layer_names")), layers_from(row.at("layers")), {}};
  return value_or_error([&]() -> json {
    const AttentionBackendPtr backend = wrapped(wrapper, pair.composed(policy.policy));
    const auto builder = backend->make_builder(arguments);
    pair.log->take();
    json answer = {{"class", backend->full_class_name().name},
                   {"name", backend->name()},
                   {"cudagraph_support", name(backend->cudagraph_support(arguments))}};
    try {
      const MetadataPtr metadata = wrapped_build(*builder, op, batch);
      const auto& leaf = dynamic_cast<const ScriptedMetadata&>(leaf_of(*metadata));
      answer["built_by"] = leaf.role();
      answer["variant"] = policy.tag(route_of(*metadata).front().route.child);
      answer["has_logits_indices"] = wanted_logits(*metadata) != nullptr;
      answer["same_batch"] = leaf.same_as(batch);
      answer["seen"] = seen_json(leaf.batch());
    } catch (const VllmError& error) {
      answer.update(error_json(error));
    }
    answer["calls"] = pair.log->take();
    return answer;
  });
}

json answer_of(const KvCacheSpec& spec, const JsonNode& row) {
  switch (
      row.at("kind").choice({"select", "derived_select", "nested", "wrapped", "build", "impl"})) {
    case 0:
      return select_answer(row);
    case 1:
      return derived_answer(row);
    case 2:
      return nested_answer(row);
    case 3:
      return wrapped_answer(spec, row);
    case 4:
      return builder_answer(spec, row);
    default:
      return impl_answer(row);
  }
}

}  // namespace

LineKind routing_table(const JsonNode& header) {
  return {{"expect"}, [spec = spec_from(header.at("spec"))](const JsonNode& row) -> json {
            return {{"expect", answer_of(spec, row)}};
          }};
}

}  // namespace attn
