#include "composite/wrapper_backend.h"

#include <fmt/core.h>

#include <utility>

#include "attn/derived_batches.h"
#include "attn/error.h"
#include "attn/local_batches.h"
#include "attn/vllm_error.h"

namespace attn {
namespace {

using Batch = CommonAttentionMetadata;

// A batch for the wrapped builder, and what the metadata keeps of the rewriting.
struct Rewritten {
  std::optional<Batch> batch;  // none = the original serves
  std::optional<WantedLogits> logits;
  std::optional<LocalBlocks> blocks;
};

Derivation derivation_of(Conduct conduct) {
  return conduct == Conduct::kVllm ? Derivation::kVllm : Derivation::kFaithful;
}

class BatchRewrite {
 public:
  virtual ~BatchRewrite() = default;
  virtual std::string prefix() const = 0;
  virtual bool captures() const { return true; }
  virtual Rewritten of(const Batch& batch, const KvCacheSpec& spec,
                       Derivation derivation) const = 0;
};

class FastPrefill final : public BatchRewrite {
 public:
  explicit FastPrefill(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string prefix() const override { return prefix_; }
  Rewritten of(const Batch& batch, const KvCacheSpec&, Derivation derivation) const override {
    Rewritten rewritten;
    rewritten.batch = fast_prefill(batch, derivation);
    rewritten.logits = {batch.logits_indices_padded, batch.num_logits_indices};
    return rewritten;
  }

 private:
  std::string prefix_;
};

class EncoderOnly final : public BatchRewrite {
 public:
  std::string prefix() const override { return "EncoderOnlyAttention_"; }
  Rewritten of(const Batch& batch, const KvCacheSpec&, Derivation) const override {
    Rewritten rewritten{batch, {}, {}};
    rewritten.batch->causal = false;
    rewritten.batch->causal_per_req.reset();
    return rewritten;
  }
};

class ChunkedLocal final : public BatchRewrite {
 public:
  explicit ChunkedLocal(int chunk) : chunk_(chunk) {}
  std::string prefix() const override { return fmt::format("ChunkedLocalAttention_{}_", chunk_); }
  bool captures() const override { return false; }
  Rewritten of(const Batch& batch, const KvCacheSpec& spec, Derivation derivation) const override {
    LocalBatch local = make_local_batch(batch, chunk_, spec.block_size, derivation);
    return {std::move(local.batch), {}, std::move(local.blocks)};
  }

 private:
  int chunk_;
};

class WrapperMetadata final : public AttentionMetadata {
 public:
  WrapperMetadata(AttentionBackendPtr backend, MetadataPtr inner,
                  std::optional<WantedLogits> logits, std::optional<LocalBlocks> blocks)
      : backend_(std::move(backend)),
        inner_(std::move(inner)),
        logits_(std::move(logits)),
        blocks_(std::move(blocks)) {}

  const AttentionBackend& backend() const override { return *backend_; }
  const AttentionMetadata* inner() const override { return inner_.get(); }
  const std::optional<WantedLogits>& logits() const { return logits_; }
  const std::optional<LocalBlocks>& blocks() const { return blocks_; }

 private:
  AttentionBackendPtr backend_;
  MetadataPtr inner_;
  std::optional<WantedLogits> logits_;
  std::optional<LocalBlocks> blocks_;
};

const WrapperMetadata& own_metadata(const AttentionMetadata& metadata,
                                    const AttentionBackend& backend) {
  expect_built_by(metadata, backend);
  const auto* own = dynamic_cast<const WrapperMetadata*>(&metadata);
  if (own == nullptr) throw Error(fmt::format("metadata of {} is no wrapper's", backend.name()));
  return *own;
}

class WrapperBuilder final : public AttentionMetadataBuilder {
 public:
  WrapperBuilder(AttentionBackendPtr backend, const BatchRewrite& rewrite, Conduct conduct,
                 KvCacheSpec spec, std::unique_ptr<AttentionMetadataBuilder> wrapped)
      : backend_(std::move(backend)),
        rewrite_(rewrite),
        conduct_(conduct),
        spec_(spec),
        wrapped_(std::move(wrapped)) {}

  const AttentionBackend& backend() const override { return *backend_; }
  MetadataPtr build(int common_prefix_len, const Batch& batch, bool fast_build) override {
    return rewritten(batch, [&](const Batch& own) {
      return wrapped_->build(common_prefix_len, own, fast_build);
    });
  }
  MetadataPtr build_for_cudagraph_capture(const Batch& batch) override {
    if (conduct_ == Conduct::kVllm) return wrapped_->build_for_cudagraph_capture(batch);
    return rewritten(batch,
                     [&](const Batch& own) { return wrapped_->build_for_cudagraph_capture(own); });
  }
  MetadataPtr build_for_drafting(const Batch& batch, int draft_index) override {
    return rewritten(
        batch, [&](const Batch& own) { return wrapped_->build_for_drafting(own, draft_index); });
  }
  bool supports_update_block_table() const override {
    return wrapped_->supports_update_block_table();
  }
  MetadataPtr update_block_table(const AttentionMetadata& metadata, const BlockTable& table,
                                 const std::vector<std::int64_t>& slot_mapping) override {
    const WrapperMetadata& own = own_metadata(metadata, *backend_);
    const std::optional<LocalBlocks>& blocks = own.blocks();
    return wrap(wrapped_->update_block_table(*own.inner(), blocks ? blocks->remap(table) : table,
                                             slot_mapping),
                own.logits(), blocks);
  }
  bool supports_draft_decode_metadata_update() const override {
    return wrapped_->supports_draft_decode_metadata_update();
  }
  MetadataPtr update_draft_decode_metadata(const AttentionMetadata& metadata) override {
    const WrapperMetadata& own = own_metadata(metadata, *backend_);
    return wrap(wrapped_->update_draft_decode_metadata(*own.inner()), own.logits(), own.blocks());
  }
  std::optional<int> reorder_batch_threshold() const override {
    return wrapped_->reorder_batch_threshold();
  }
  void set_kernel_block_size(int block_size) override {
    AttentionMetadataBuilder::set_kernel_block_size(block_size);
    wrapped_->set_kernel_block_size(block_size);
  }
  bool provides_workspace() const override { return wrapped_->provides_workspace(); }
  WorkspacePtr workspace() override { return wrapped_->workspace(); }
  bool takes_workspace() const override { return wrapped_->takes_workspace(); }
  void set_workspace(WorkspacePtr buffer) override { wrapped_->set_workspace(std::move(buffer)); }

 private:
  template <class Build>
  MetadataPtr rewritten(const Batch& batch, const Build& build) {
    Rewritten rewritten = rewrite_.of(batch, spec_, derivation_of(conduct_));
    return wrap(build(rewritten.batch ? *rewritten.batch : batch), std::move(rewritten.logits),
                std::move(rewritten.blocks));
  }
  MetadataPtr wrap(MetadataPtr inner, std::optional<WantedLogits> logits,
                   std::optional<LocalBlocks> blocks) const {
    if (!inner)
      throw Error(fmt::format("the backend that {} wraps built no metadata",
                              to_string(backend_->full_class_name())));
    return std::make_shared<WrapperMetadata>(backend_, std::move(inner), std::move(logits),
                                             std::move(blocks));
  }

  AttentionBackendPtr backend_;
  const BatchRewrite& rewrite_;
  Conduct conduct_;
  KvCacheSpec spec_;
  std::unique_ptr<AttentionMetadataBuilder> wrapped_;
};

class WrapperImpl final : public AttentionImpl {
 public:
  WrapperImpl(AttentionBackendPtr backend, std::unique_ptr<AttentionImpl> wrapped)
      : backend_(std::move(backend)), wrapped_(std::move(wrapped)) {}

  const AttentionBackend& backend() const override { return *backend_; }
  ImplTraits traits() const override { return wrapped_->traits(); }
  void forward(const AttentionMetadata& metadata,
               const ForwardArguments& arguments) const override {
    wrapped_->forward(*own_metadata(metadata, *backend_).inner(), arguments);
  }
  void do_kv_cache_update(const CacheUpdate& update) const override {
    wrapped_->do_kv_cache_update(update);
  }
  bool fused_output_quant_supported() const override {
    return wrapped_->fused_output_quant_supported();
  }
  bool fused_update_supported(FusedUpdate which) const override {
    return wrapped_->fused_update_supported(which);
  }
  void do_fused_update(FusedUpdate which, const CacheUpdate& update) const override {
    wrapped_->do_fused_update(which, update);
  }
  std::vector<const AttentionImpl*> variants() const override { return wrapped_->variants(); }
  void process_weights_after_loading(DType activations) override {
    wrapped_->process_weights_after_loading(activations);
  }
  void prepare_for_batch(const AttentionMetadata& metadata) override {
    wrapped_->prepare_for_batch(*own_metadata(metadata, *backend_).inner());
  }

 private:
  AttentionBackendPtr backend_;
  std::unique_ptr<AttentionImpl> wrapped_;
};

// Kept alive by its builders, implementations and metadata.
class WrapperBackend final : public AttentionBackend,
                             public std::enable_shared_from_this<WrapperBackend> {
 public:
  WrapperBackend(AttentionBackendPtr wrapped, std::unique_ptr<const BatchRewrite> rewrite,
                 Conduct conduct)
      : wrapped_(std::move(wrapped)), rewrite_(std::move(rewrite)), conduct_(conduct) {
    if (!wrapped_) throw Error("the backend to wrap is null");
  }

  std::string name() const override { return wrapped_->name(); }
  ClassName full_class_name() const override {
    ClassName name = wrapped_->full_class_name();
    name.name = rewrite_->prefix() + name.name;
    return name;
  }
  DescribedBackend describe(const std::optional<DeviceCapability>& capability) const override {
    DescribedBackend described = wrapped_->describe(capability);
    if (!rewrite_->captures()) described.graph = GraphSupport::kNever;
    return described;
  }
  BlockSizes kernel_block_sizes(const KvCacheSpec& spec) const override {
    return wrapped_->kernel_block_sizes(spec);
  }
  KvCacheSpec customize_spec(const KvCacheSpec& spec) const override {
    return wrapped_->customize_spec(spec);
  }
  GraphSupport cudagraph_support(const BuilderArguments& arguments) const override {
    return rewrite_->captures() ? wrapped_->cudagraph_support(arguments) : GraphSupport::kNever;
  }
  std::optional<int> varlen_cudagraph_max_query_len(
      const BuilderArguments& arguments) const override {
    return wrapped_->varlen_cudagraph_max_query_len(arguments);
  }
  bool requires_block_table_width() const override {
    return wrapped_->requires_block_table_width();
  }
  std::vector<std::string> reasons_against(const Batch& batch,
                                           const BuilderArguments& group) const override {
    validate(batch);
    Rewritten rewritten;
    try {
      rewritten = rewrite_->of(batch, group.spec, derivation_of(conduct_));
    } catch (const Error& refusal) {  // this batch has no such form
      return {refusal.what()};
    } catch (const VllmError& refusal) {
      return {refusal.what()};
    }
    return wrapped_->reasons_against(rewritten.batch ? *rewritten.batch : batch, group);
  }
  std::unique_ptr<AttentionMetadataBuilder> make_builder(
      const BuilderArguments& arguments) const override {
    return std::make_unique<WrapperBuilder>(shared_from_this(), *rewrite_, conduct_, arguments.spec,
                                            wrapped_->make_builder(arguments));
  }
  std::unique_ptr<AttentionImpl> make_impl(const ImplArguments& arguments) const override {
    return std::make_unique<WrapperImpl>(shared_from_this(), wrapped_->make_impl(arguments));
  }

 private:
  AttentionBackendPtr wrapped_;
  std::unique_ptr<const BatchRewrite> rewrite_;
  Conduct conduct_;
};

}  // namespace

AttentionBackendPtr fast_prefill_backend(AttentionBackendPtr wrapped, std::string prefix,
                                         Conduct conduct) {
  return std::make_shared<WrapperBackend>(
      std::move(wrapped), std::make_unique<FastPrefill>(std::move(prefix)), conduct);
}
AttentionBackendPtr encoder_only_backend(AttentionBackendPtr wrapped, Conduct conduct) {
  return std::make_shared<WrapperBackend>(std::move(wrapped), std::make_unique<EncoderOnly>(),
                                          conduct);
}
AttentionBackendPtr chunked_local_backend(AttentionBackendPtr wrapped, int chunk, Conduct conduct) {
  if (chunk < 1) throw Error(fmt::format("chunk is {}, expected at least 1", chunk));
  return std::make_shared<WrapperBackend>(std::move(wrapped), std::make_unique<ChunkedLocal>(chunk),
                                          conduct);
}

AttentionBackendPtr fast_prefill_backend(AttentionBackendPtr wrapped, std::string prefix) {
  return fast_prefill_backend(std::move(wrapped), std::move(prefix), Conduct::kStrict);
}
AttentionBackendPtr encoder_only_backend(AttentionBackendPtr wrapped) {
  return encoder_only_backend(std::move(wrapped), Conduct::kStrict);
}
AttentionBackendPtr chunked_local_backend(AttentionBackendPtr wrapped, int chunk) {
  return chunked_local_backend(std::move(wrapped), chunk, Conduct::kStrict);
}

const WantedLogits* wanted_logits(const AttentionMetadata& metadata) {
  for (const AttentionMetadata* one = &metadata; one != nullptr; one = one->inner()) {
    const auto* wrapper = dynamic_cast<const WrapperMetadata*>(one);
    if (wrapper == nullptr) continue;
    const std::optional<WantedLogits>& logits = wrapper->logits();
    if (logits) return &*logits;
  }
  return nullptr;
}

}  // namespace attn
