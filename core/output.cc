#include "attn/output.h"

#include <fmt/format.h>

#include <algorithm>

#include "attn/conditioning.h"
#include "attn/error.h"

namespace attn {
namespace {

using Shape = std::vector<std::int64_t>;

Shape shape_of(const TensorView& view) { return {view.shape, view.shape + view.rank}; }

// Lists the outputs of each operation.
class Lister {
 public:
  Lister(DType computed, LseLayout layout) : computed_(computed), layout_(layout) {}

  std::vector<OutputSpec> operator()(const AttentionOp& op) const {
    const Shape out = {op.num_tokens(), op.num_heads(), op.head_size_v()};
    std::vector<OutputSpec> specs = states(out);
    if (op.output_scale.present()) {
      specs.push_back({"out_codes", &Outputs::out_codes, DType::kF8E4M3FN, out, {}});
    }
    return specs;
  }

  std::vector<OutputSpec> operator()(const DifferentialOp& op) const {
    const AttentionOp& a = op.attention;
    return {{"out",
             &Outputs::out,
             computed_,
             {a.num_tokens(), a.num_heads() / 2, 2 * a.head_size_v()},
             {}}};
  }

  std::vector<OutputSpec> operator()(const MlaOp& op) const {
    const std::int64_t tokens = int_at(op.query_start_loc, op.seq_lens.shape[0]);
    const bool expanded = op.form == MlaForm::kExpanded;
    return states({tokens, op.query.shape[1], expanded ? op.w_uv.shape[2] : op.kv_lora_rank});
  }

  std::vector<OutputSpec> operator()(const MlaSparseOp& op) const { return (*this)(op.mla); }

  std::vector<OutputSpec> operator()(const IndexerOp& op) const {
    return {{"logits", &Outputs::logits, computed_, {op.query.shape[0], op.key.shape[0]}, {}}};
  }

  std::vector<OutputSpec> operator()(const MergeStatesOp& op) const {
    const std::int64_t* shape = op.out_parts.shape;
    return states({shape[1], shape[2], shape[3]});
  }

  std::vector<OutputSpec> operator()(const CacheWriteOp& op) const {
    const KvCacheView& cache = op.cache;
    std::vector<OutputSpec> specs;
    const auto add = [&](std::string_view name, MutableTensorView Outputs::*view,
                         const TensorView& before) {
      if (before.present()) specs.push_back({name, view, before.dtype, shape_of(before), before});
    };
    const bool per_token_head = cache.encoding == KvEncoding::kPerTokenHead;
    if (per_token_head) add("k_scale_cache_after", &Outputs::k_scale_cache, cache.k_scale_cache);
    add("key_cache_after", &Outputs::key_cache, cache.key);
    if (per_token_head) add("v_scale_cache_after", &Outputs::v_scale_cache, cache.v_scale_cache);
    add("value_cache_after", &Outputs::value_cache, cache.value);
    return specs;
  }

  std::vector<OutputSpec> operator()(const MlaCacheWriteOp& op) const {
    return {{"kv_cache_after", &Outputs::kv_cache, op.kv_cache.dtype, shape_of(op.kv_cache),
             op.kv_cache}};
  }

 private:
  // lse and out, [tokens, heads, head_size_v].
  std::vector<OutputSpec> states(const Shape& out) const {
    const bool by_head = layout_ == LseLayout::kHeadsTokens;
    const Shape lse = by_head ? Shape{out[1], out[0]} : Shape{out[0], out[1]};
    return {{"lse", &Outputs::lse, computed_, lse, {}}, {"out", &Outputs::out, computed_, out, {}}};
  }

  DType computed_;
  LseLayout layout_;
};

void check_output(const OutputSpec& spec, const MutableTensorView& view) {
  if (view.dtype != spec.dtype || shape_of(view) != spec.shape) {
    throw Error(fmt::format("output {} is {}, expected {}[{}]", spec.name, to_string(view),
                            name(spec.dtype), fmt::join(spec.shape, ",")));
  }
  if (view.data == nullptr && view.num_units() != 0) {
    throw Error(fmt::format("output {} has no memory", spec.name));
  }
}

constexpr MutableTensorView Outputs::*kAllOutputs[] = {
    &Outputs::out,           &Outputs::lse,         &Outputs::out_codes, &Outputs::logits,
    &Outputs::key_cache,     &Outputs::value_cache, &Outputs::kv_cache,  &Outputs::k_scale_cache,
    &Outputs::v_scale_cache, &Outputs::cond_pv,     &Outputs::cond_pav,  &Outputs::cond_puv,
    &Outputs::cond_v,        &Outputs::cond_row,    &Outputs::cond_o,    &Outputs::cond_ix};

}  // namespace

std::vector<OutputSpec> output_specs(const AttentionProblem& problem, DType computed,
                                     LseLayout layout) {
  return std::visit(Lister(computed, layout), problem.operation());
}

void check_outputs(const AttentionProblem& problem, const Outputs& outputs, DType computed,
                   bool conditioning) {
  std::vector<OutputSpec> specs = output_specs(problem, computed, outputs.lse_form.layout);
  if (conditioning) {
    const std::vector<OutputSpec> sums = conditioning_specs(problem);
    specs.insert(specs.end(), sums.begin(), sums.end());
  }
  for (const OutputSpec& spec : specs) {
    if ((outputs.*spec.view).present()) check_output(spec, outputs.*spec.view);
  }
  for (const auto view : kAllOutputs) {
    const bool known = std::any_of(specs.begin(), specs.end(),
                                   [&](const OutputSpec& spec) { return spec.view == view; });
    if (!known && (outputs.*view).present()) {
      throw Error(fmt::format("an output {} was asked for that this {} problem does not have",
                              to_string(outputs.*view), name(problem.kind())));
    }
  }
}

}  // namespace attn
