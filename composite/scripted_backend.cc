#include "composite/scripted_backend.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "attn/error.h"
#include "attn/vllm_error.h"

namespace attn {
namespace {

using nlohmann::json;

struct NamedScale {
  std::string_view name;
  float value;
};
constexpr std::array<NamedScale, 2> kScales = {NamedScale{"scale", 1.0F},
                                               NamedScale{"block_scale", 1.0F}};

json name_of_scale(const TensorView& view) {
  for (const NamedScale& scale : kScales) {
    if (view.data == &scale.value) return scale.name;
  }
  return nullptr;
}

// What the backend, its builders and its implementations share.
struct Script {
  ChildDescription child;
  std::string role;
  std::shared_ptr<CallLog> log;

  void note(std::string_view call, json details = json::object()) const {
    if (!log) return;
    details["child"] = role;
    details["call"] = call;
    log->add(std::move(details));
  }
};

class ScriptedBuilder final : public AttentionMetadataBuilder {
 public:
  ScriptedBuilder(const AttentionBackend& backend, const Script& script,
                  const BuilderArguments& arguments)
      : backend_(backend), script_(script) {
    json kwargs = json::object();
    if (arguments.block_table_width) kwargs["block_table_width"] = *arguments.block_table_width;
    script_.note("builder_init", {{"kwargs", kwargs}});
  }

  const AttentionBackend& backend() const override { return backend_; }
  MetadataPtr build(int common_prefix_len, const CommonAttentionMetadata& batch,
                    bool fast_build) override {
    script_.note("build", {{"common_prefix_len", common_prefix_len}, {"fast_build", fast_build}});
    return script_.child.builder.build_returns_none ? nullptr : metadata(batch);
  }
  MetadataPtr build_for_cudagraph_capture(const CommonAttentionMetadata& batch) override {
    if (!script_.child.builder.own_capture) {
      return AttentionMetadataBuilder::build_for_cudagraph_capture(batch);
    }
    script_.note("build_for_cudagraph_capture");
    return metadata(batch);
  }
  MetadataPtr build_for_drafting(const CommonAttentionMetadata& batch, int draft_index) override {
    if (!script_.child.builder.own_drafting) {
      return AttentionMetadataBuilder::build_for_drafting(batch, draft_index);
    }
    script_.note("build_for_drafting", {{"draft_index", draft_index}});
    return metadata(batch);
  }
  bool supports_update_block_table() const override {
    return script_.child.builder.supports_update_block_table;
  }
  bool supports_draft_decode_metadata_update() const override {
    return script_.child.builder.supports_draft_decode_metadata_update;
  }
  std::optional<int> reorder_batch_threshold() const override {
    return script_.child.builder.reorder_batch_threshold;
  }
  bool provides_workspace() const override { return script_.child.builder.has_get_workspace; }
  WorkspacePtr workspace() override {
    script_.note("get_workspace_buffer");
    return std::make_shared<NamedWorkspace>("workspace-of-" + script_.role);
  }
  bool takes_workspace() const override { return script_.child.builder.has_set_workspace; }
  void set_workspace(WorkspacePtr buffer) override {
    const auto* named = dynamic_cast<const NamedWorkspace*>(buffer.get());
    script_.note("set_workspace_buffer",
                 {{"buffer", named == nullptr ? json(nullptr) : json(named->name)}});
  }

 private:
  MetadataPtr metadata(const CommonAttentionMetadata& batch) const {
    return std::make_shared<ScriptedMetadata>(backend_, script_.role, batch);
  }

  const AttentionBackend& backend_;
  const Script& script_;
};

class ScriptedImpl final : public AttentionImpl {
 public:
  ScriptedImpl(const AttentionBackend& backend, const Script& script,
               const ImplArguments& arguments)
      : backend_(backend), script_(script) {
    json kwargs = {{"kv_cache_dtype", name(arguments.kv_cache_dtype)},
                   {"sinks", arguments.sinks.empty() ? json(nullptr) : json("sinks")}};
    script_.note("impl_init", {{"args", json::array({arguments.num_heads, arguments.head_size,
                                                     arguments.scale, arguments.num_kv_heads})},
                               {"kwargs", std::move(kwargs)}});
    if (script_.child.impl.raises) throw VllmError(*script_.child.impl.raises);
  }

  const AttentionBackend& backend() const override { return backend_; }
  ImplTraits traits() const override { return script_.child.impl.traits; }
  void forward(const AttentionMetadata&, const ForwardArguments& arguments) const override {
    script_.note("forward", {{"output_scale", name_of_scale(arguments.output_scale)},
                             {"output_block_scale", name_of_scale(arguments.output_block_scale)}});
  }
  void do_kv_cache_update(const CacheUpdate& update) const override {
    if (!script_.child.impl.has_kv_cache_update) return AttentionImpl::do_kv_cache_update(update);
    script_.note("do_kv_cache_update", {{"num_args", 5}});
  }
  bool fused_output_quant_supported() const override {
    return script_.child.impl.fused_output_quant;
  }
  bool fused_update_supported(FusedUpdate which) const override {
    switch (which) {
      case FusedUpdate::kQkNormRope:
        return script_.child.impl.fused_qk_norm_rope;
      case FusedUpdate::kQkNormMrope:
        return script_.child.impl.fused_qk_norm_mrope;
      case FusedUpdate::kRope:
        return script_.child.impl.fused_rope;
    }
    return false;
  }
  void do_fused_update(FusedUpdate which, const CacheUpdate&) const override {
    switch (which) {
      case FusedUpdate::kQkNormRope:
        return script_.note("do_qk_norm_rope_kvcache_update", {{"num_args", 12}});
      case FusedUpdate::kQkNormMrope:
        return script_.note("do_qk_norm_mrope_kvcache_update", {{"num_args", 12}});
      case FusedUpdate::kRope:
        return script_.note("do_rope_and_kv_cache_update", {{"num_args", 9}});
    }
  }
  void process_weights_after_loading(DType activations) override {
    script_.note("process_weights_after_loading", {{"dtype", model_dtype_name(activations)}});
  }
  void prepare_for_batch(const AttentionMetadata&) override { script_.note("prepare_for_batch"); }

 private:
  const AttentionBackend& backend_;
  const Script& script_;
};

class ScriptedBackend final : public AttentionBackend {
 public:
  explicit ScriptedBackend(Script script) : script_(std::move(script)) {}

  std::string name() const override { return script_.child.name; }
  ClassName full_class_name() const override {
    return {script_.child.module, script_.child.class_name};
  }
  DescribedBackend describe(const std::optional<DeviceCapability>& capability) const override {
    return described_on(script_.child, capability);
  }
  BlockSizes kernel_block_sizes(const KvCacheSpec&) const override {
    return script_.child.kernel_block_sizes_with_spec;
  }
  KvCacheSpec customize_spec(const KvCacheSpec& spec) const override {
    return customized(script_.child, spec);
  }
  GraphSupport cudagraph_support(const BuilderArguments&) const override {
    return script_.child.builder.cudagraph_support;
  }
  std::optional<int> varlen_cudagraph_max_query_len(const BuilderArguments&) const override {
    return script_.child.builder.varlen_bound;
  }
  bool requires_block_table_width() const override {
    return script_.child.builder.requires_block_table_width;
  }
  std::unique_ptr<AttentionMetadataBuilder> make_builder(
      const BuilderArguments& arguments) const override {
    return std::make_unique<ScriptedBuilder>(*this, script_, arguments);
  }
  std::unique_ptr<AttentionImpl> make_impl(const ImplArguments& arguments) const override {
    return std::make_unique<ScriptedImpl>(*this, script_, arguments);
  }

 private:
  Script script_;
};

}  // namespace

json CallLog::take() { return std::exchange(calls_, json::array()); }

AttentionBackendPtr scripted_backend(ChildDescription description, std::string role,
                                     std::shared_ptr<CallLog> log) {
  return std::make_shared<ScriptedBackend>(
      Script{std::move(description), std::move(role), std::move(log)});
}

TensorView named_scale(const std::string& name) {
  for (const NamedScale& scale : kScales) {
    if (scale.name != name) continue;
    TensorView view;
    view.data = &scale.value;
    view.rank = 1;
    view.shape[0] = 1;
    view.stride_bytes[0] = sizeof(float);
    return view;
  }
  throw Error(fmt::format("\"{}\" is no scale, expected scale or block_scale", name));
}

}  // namespace attn
