#include "composite/executable_impl.h"

#include <fmt/core.h>

#include <utility>

#include "attn/error.h"
#include "attn/vllm_error.h"
#include "composite/executable_builder.h"

namespace attn {
namespace {

// The first rows of an output that a batch may be padded for.
MutableTensorView first_units(MutableTensorView view, int axis, std::int64_t count) {
  if (axis < view.rank && view.shape[axis] > count) view.shape[axis] = count;
  return view;
}

Outputs outputs_for(const ForwardArguments& forward, std::int64_t num_tokens, const LseForm& form) {
  Outputs outputs;
  MutableTensorView& place =
      forward.output.dtype == DType::kF8E4M3FN ? outputs.out_codes : outputs.out;
  place = first_units(forward.output, 0, num_tokens);
  const int token_axis = form.layout == LseLayout::kHeadsTokens ? 1 : 0;
  outputs.lse = first_units(forward.lse, token_axis, num_tokens);
  outputs.lse_form = form;
  return outputs;
}

class ExecutableImpl final : public AttentionImpl {
 public:
  ExecutableImpl(const ExecutableBackend& backend, ImplArguments arguments)
      : backend_(backend), arguments_(std::move(arguments)) {}

  const AttentionBackend& backend() const override { return backend_; }

  ImplTraits traits() const override {
    const Capabilities& capabilities = backend_.answering()->capabilities();
    ImplTraits traits;
    traits.num_heads = arguments_.num_heads;
    traits.num_kv_heads = arguments_.num_kv_heads;
    traits.head_size = arguments_.head_size;
    traits.scale = arguments_.scale;
    traits.kv_cache_dtype = arguments_.kv_cache_dtype;
    traits.can_return_lse_for_decode = capabilities.returns_lse;
    traits.lse_base_on_e = capabilities.lse_form.base == LseBase::kE;
    return traits;
  }

  void forward(const AttentionMetadata& metadata, const ForwardArguments& forward) const override {
    const ExecutableMetadata& own = executable_metadata(metadata, backend_);
    const BatchProblem made = attention_problem(own.batch(), arguments_, forward);
    const Capabilities& capabilities = backend_.answering()->capabilities();
    const Outputs outputs =
        outputs_for(forward, made.problem.attention()->num_tokens(), capabilities.lse_form);
    own.plans().run(made.problem, outputs);
  }

  void do_kv_cache_update(const CacheUpdate& update) const override {
    if (backend_.cache_writer() == nullptr) {
      throw Error(fmt::format("{} does not write caches, and no other backend was named for it",
                              backend_.name()));
    }
    CacheWriteOp op;
    op.key = update.key;
    op.value = update.value;
    const HostTensor slots(
        DType::kI64, {static_cast<std::int64_t>(update.slot_mapping.size())},
        std::vector<double>(update.slot_mapping.begin(), update.slot_mapping.end()));
    op.slot_mapping = slots.view();
    op.cache = update.cache;
    op.cache.block_table = {};
    Outputs outputs;
    outputs.key_cache = update.key_cache;
    outputs.value_cache = update.value_cache;
    outputs.k_scale_cache = update.k_scale_cache;
    outputs.v_scale_cache = update.v_scale_cache;
    run_once(*backend_.cache_writer(), AttentionProblem(op), outputs);
  }

  bool fused_output_quant_supported() const override {
    return backend_.answering()->capabilities().has(Feature::kOutputQuantised);
  }

 private:
  const ExecutableBackend& backend_;
  ImplArguments arguments_;
};

void refuse(const ExecutableBackend& backend, bool asked, Feature feature, const char* argument) {
  if (asked && !backend.answering()->capabilities().has(feature)) {
    throw VllmError("TypeError", fmt::format("{} does not know {}", backend.name(), argument));
  }
}

template <class... T>
[[noreturn]] void value_error(fmt::format_string<T...> text, T&&... values) {
  throw VllmError("ValueError", fmt::format(text, std::forward<T>(values)...));
}

void expect_values(const ImplArguments& a) {
  if (a.num_kv_heads < 1 || a.num_heads % a.num_kv_heads != 0) {
    value_error("num_heads {} is not a multiple of num_kv_heads {}", a.num_heads, a.num_kv_heads);
  }
  if (a.sliding_window && *a.sliding_window < 1) {
    value_error("sliding_window is {}, must be at least 1", *a.sliding_window);
  }
  const auto expect_heads = [&](const char* what, const std::vector<float>& values) {
    if (!values.empty() && values.size() != static_cast<std::size_t>(a.num_heads)) {
      value_error("{} has {} values for {} heads", what, values.size(), a.num_heads);
    }
  };
  expect_heads("alibi_slopes", a.alibi_slopes);
  expect_heads("sinks", a.sinks);
}

}  // namespace

std::unique_ptr<AttentionImpl> make_executable_impl(const ExecutableBackend& backend,
                                                    const ImplArguments& arguments) {
  refuse(backend, arguments.sliding_window.has_value(), Feature::kSlidingWindow, "sliding_window");
  refuse(backend, arguments.logits_soft_cap != 0.0, Feature::kSoftCap, "logits_soft_cap");
  refuse(backend, !arguments.alibi_slopes.empty(), Feature::kAlibi, "alibi_slopes");
  refuse(backend, !arguments.sinks.empty(), Feature::kSinks, "sinks");
  const bool causal_type = arguments.attn_type == AttentionType::kDecoder;
  refuse(backend, !causal_type, Feature::kNonCausal, "attn_type");
  expect_values(arguments);
  return std::make_unique<ExecutableImpl>(backend, arguments);
}

}  // namespace attn
