// Wrappers: batches are rewritten on every path, and nothing is lost on the way.
#include "attn/backend_wrappers.h"

#include <gtest/gtest.h>

#include "attn/composite.h"
#include "attn/error.h"
#include "attn/vllm_error.h"
#include "tests/scripted_child.h"

namespace attn {
namespace {

using nlohmann::json;

const json kOwnAll = {{"builder",
                       {{"own_capture", true},
                        {"own_drafting", true},
                        {"cudagraph_support", "ALWAYS"},
                        {"supports_update_block_table", true}}}};

// Seven tokens of the first request, of which the last three have wanted logits; one of the second.
CommonAttentionMetadata prefill_batch() {
  CommonAttentionMetadata batch = batch_of_lengths({7, 1}, {12, 9});
  batch.block_table = {3, {0, 1, 2, 3, 4, 5}};
  batch.logits_indices_padded = {4, 5, 6, 7, 7};
  batch.num_logits_indices = 4;
  batch.max_logits_per_req = 3;
  batch.mm_req_doc_ranges = {{0, {{8, 11}}}};
  return batch;
}

enum class Path { kBuild, kCapture, kDraft };

MetadataPtr built(const AttentionBackend& backend, Path path, const CommonAttentionMetadata& batch,
                  int block_size = 4) {
  BuilderArguments arguments;
  arguments.spec.block_size = block_size;
  const auto builder = backend.make_builder(arguments);
  if (path == Path::kCapture) return builder->build_for_cudagraph_capture(batch);
  if (path == Path::kDraft) return builder->build_for_drafting(batch, 1);
  return builder->build(0, batch, false);
}

const ScriptedMetadata& leaf(const MetadataPtr& metadata) {
  return dynamic_cast<const ScriptedMetadata&>(leaf_of(*metadata));
}

class Wrappers : public testing::Test {
 protected:
  // Child 0 takes images; both have entry points of their own.
  AttentionBackendPtr composite() {
    return compose({scripted_child("A", log, kOwnAll), scripted_child("B", log, kOwnAll)},
                   mm_prefix_policy(), {});
  }
  std::shared_ptr<CallLog> log = std::make_shared<CallLog>();
};

TEST_F(Wrappers, ClassNamesArePrefixed) {
  const AttentionBackendPtr inner = composite();
  EXPECT_EQ(fast_prefill_backend(inner, "Fast")->full_class_name().name, "FastCompositeBackend");
  EXPECT_EQ(encoder_only_backend(inner)->full_class_name().name,
            "EncoderOnlyAttention_CompositeBackend");
  EXPECT_EQ(chunked_local_backend(inner, 64)->full_class_name().name,
            "ChunkedLocalAttention_64_CompositeBackend");
  EXPECT_EQ(chunked_local_backend(inner, 64)->name(), "COMPOSITE");
  EXPECT_EQ(thrown<Error>([&] { chunked_local_backend(inner, 0); }),
            "chunk is 0, expected at least 1");
  EXPECT_EQ(thrown<Error>([&] { encoder_only_backend(nullptr); }), "the backend to wrap is null");
}

TEST_F(Wrappers, FastPrefillRewritesEveryPathAndKeepsImages) {
  const CommonAttentionMetadata batch = prefill_batch();
  const AttentionBackendPtr wrapper = fast_prefill_backend(composite(), "Fast");
  for (const Path path : {Path::kBuild, Path::kCapture, Path::kDraft}) {
    const MetadataPtr metadata = built(*wrapper, path, batch);
    EXPECT_EQ(leaf(metadata).batch().query_start_loc, (std::vector<std::int32_t>{0, 3, 4}));
    EXPECT_EQ(leaf(metadata).batch().mm_req_doc_ranges, batch.mm_req_doc_ranges);
    EXPECT_EQ(leaf(metadata).role(), path == Path::kCapture ? "B" : "A");
    const WantedLogits* wanted = wanted_logits(*metadata);
    ASSERT_NE(wanted, nullptr);
    EXPECT_EQ(wanted->logits_indices_padded, batch.logits_indices_padded);
    EXPECT_EQ(wanted->num_logits_indices, 4);
  }
  EXPECT_EQ(wanted_logits(*built(*composite(), Path::kBuild, batch)), nullptr);
}

TEST_F(Wrappers, RowsInTheirPromptAreKnownBehindAWrapper) {
  CommonAttentionMetadata batch = prefill_batch();
  batch.mm_req_doc_ranges.reset();
  batch.is_prefilling = {true, false};
  const AttentionBackendPtr inner =
      compose({scripted_child("A", log, kOwnAll), scripted_child("B", log, kOwnAll)},
              decode_only_policy({}), {});
  EXPECT_EQ(leaf(built(*fast_prefill_backend(inner, "Fast"), Path::kBuild, batch)).role(), "A");
  const MetadataPtr chunks = built(*chunked_local_backend(inner, 4), Path::kBuild, batch, 2);
  EXPECT_EQ(leaf(chunks).role(), "A");
  // Positions 5..11 of the first request in chunks of 4, position 8 of the second.
  EXPECT_EQ(leaf(chunks).batch().is_prefilling, (std::vector<bool>{true, true, false}));
}

TEST_F(Wrappers, ABatchWithoutARewrittenFormIsARefusalAndNoError) {
  CommonAttentionMetadata batch = prefill_batch();
  batch.mm_req_doc_ranges = {{0, {{3, 8}}}};  // across two chunks of 4
  BuilderArguments group;
  group.spec.block_size = 2;
  const AttentionBackendPtr chunked = chunked_local_backend(scripted_child("B", log, kOwnAll), 4);
  EXPECT_EQ(chunked->reasons_against(batch, group).size(), 1u);
  const AttentionBackendPtr either =
      compose({scripted_child("A", log, kOwnAll), chunked}, supports_policy(), {});
  const MetadataPtr metadata = either->make_builder(group)->build(0, batch, false);
  EXPECT_EQ(route_of(*metadata).front().route.child, 0);
}

TEST_F(Wrappers, EncoderOnlyIsNotCausalOnAnyPath) {
  CommonAttentionMetadata batch = prefill_batch();
  batch.causal_per_req = {true, false};
  for (const Path path : {Path::kBuild, Path::kCapture, Path::kDraft}) {
    const MetadataPtr metadata = built(*encoder_only_backend(composite()), path, batch);
    EXPECT_FALSE(leaf(metadata).batch().causal);
    EXPECT_EQ(leaf(metadata).batch().causal_per_req, std::nullopt);
    EXPECT_EQ(leaf(metadata).batch().query_start_loc, batch.query_start_loc);
  }
}

TEST_F(Wrappers, ChunkedLocalIsNeverCapturedAndMapsTables) {
  CommonAttentionMetadata batch = prefill_batch();
  batch.mm_req_doc_ranges.reset();
  const AttentionBackendPtr plain = scripted_child("A", log, kOwnAll);
  const AttentionBackendPtr wrapper = chunked_local_backend(plain, 8);
  EXPECT_EQ(wrapper->cudagraph_support({}), GraphSupport::kNever);
  EXPECT_EQ(encoder_only_backend(plain)->cudagraph_support({}), GraphSupport::kAlways);
  for (const Path path : {Path::kBuild, Path::kCapture, Path::kDraft}) {
    // Positions 5..11 are cut before 8, position 8 is alone in its chunk.
    const CommonAttentionMetadata seen = leaf(built(*wrapper, path, batch)).batch();
    EXPECT_EQ(seen.query_start_loc, (std::vector<std::int32_t>{0, 3, 7, 8}));
    EXPECT_EQ(seen.seq_lens, (std::vector<std::int32_t>{8, 4, 1}));
    EXPECT_EQ(seen.block_table.entries, (std::vector<std::int32_t>{0, 1, 2, 2, 5, 5}));
  }
}

// A builder that takes the tables of others.
class Updating final : public AttentionBackend {
 public:
  struct Metadata final : AttentionMetadata {
    Metadata(const AttentionBackend& builder, BlockTable table)
        : backend_(builder), block_table(std::move(table)) {}
    const AttentionBackend& backend() const override { return backend_; }
    const AttentionBackend& backend_;
    BlockTable block_table;
  };
  struct Builder final : AttentionMetadataBuilder {
    explicit Builder(const AttentionBackend& backend) : backend_(backend) {}
    const AttentionBackend& backend() const override { return backend_; }
    MetadataPtr build(int, const CommonAttentionMetadata& batch, bool) override {
      return std::make_shared<Metadata>(backend_, batch.block_table);
    }
    bool supports_update_block_table() const override { return true; }
    MetadataPtr update_block_table(const AttentionMetadata& metadata, const BlockTable& table,
                                   const std::vector<std::int64_t>&) override {
      expect_built_by(metadata, backend_);
      return std::make_shared<Metadata>(backend_, table);
    }
    const AttentionBackend& backend_;
  };
  std::string name() const override { return "UPDATING"; }
  ClassName full_class_name() const override { return {"test", "Updating"}; }
  DescribedBackend describe(const std::optional<DeviceCapability>&) const override { return {}; }
  BlockSizes kernel_block_sizes(const KvCacheSpec&) const override { return {}; }
  GraphSupport cudagraph_support(const BuilderArguments&) const override {
    return GraphSupport::kNever;
  }
  std::unique_ptr<AttentionMetadataBuilder> make_builder(const BuilderArguments&) const override {
    return std::make_unique<Builder>(*this);
  }
  std::unique_ptr<AttentionImpl> make_impl(const ImplArguments&) const override { return nullptr; }
};

TEST_F(Wrappers, UpdateBlockTableMapsTheTableFirst) {
  const CommonAttentionMetadata batch = [] {
    CommonAttentionMetadata one = prefill_batch();
    one.mm_req_doc_ranges.reset();
    return one;
  }();
  const AttentionBackendPtr wrapper = chunked_local_backend(std::make_shared<Updating>(), 8);
  BuilderArguments arguments;
  arguments.spec.block_size = 4;
  const auto builder = wrapper->make_builder(arguments);
  ASSERT_TRUE(builder->supports_update_block_table());
  const MetadataPtr first = builder->build(0, batch, false);
  const MetadataPtr second =
      builder->update_block_table(*first, {3, {10, 11, 12, 13, 14, 15}}, batch.slot_mapping);
  EXPECT_EQ(&second->backend(), wrapper.get());
  EXPECT_EQ(dynamic_cast<const Updating::Metadata&>(leaf_of(*second)).block_table.entries,
            (std::vector<std::int32_t>{10, 11, 12, 12, 15, 15}));
  // Also of the updated one, which keeps the mapping.
  const MetadataPtr third =
      builder->update_block_table(*second, batch.block_table, batch.slot_mapping);
  EXPECT_EQ(dynamic_cast<const Updating::Metadata&>(leaf_of(*third)).block_table.entries,
            dynamic_cast<const Updating::Metadata&>(leaf_of(*first)).block_table.entries);
}

TEST_F(Wrappers, ImplementationsUnwrapOnlyTheirOwnMetadata) {
  const AttentionBackendPtr inner = composite();
  const AttentionBackendPtr wrapper = encoder_only_backend(inner);
  const CommonAttentionMetadata batch = prefill_batch();
  const auto impl = wrapper->make_impl({});
  const MetadataPtr own = built(*wrapper, Path::kBuild, batch);
  const MetadataPtr others = built(*inner, Path::kBuild, batch);
  log->take();
  impl->forward(*own, {});
  EXPECT_EQ(log->take().at(0).at("child"), "A");
  EXPECT_EQ(route_of(*own).size(), 1U);
  EXPECT_EQ(thrown<Error>([&] { impl->forward(*others, {}); }),
            "metadata was built by COMPOSITE (composite.module.CompositeBackend), not by COMPOSITE "
            "(composite.module.EncoderOnlyAttention_CompositeBackend)");
  EXPECT_THROW(inner->make_impl({})->forward(*own, {}), Error);
}

TEST_F(Wrappers, ACompositeOfWrappersRoutesToThem) {
  const AttentionBackendPtr causal = scripted_child("B", log);
  const AttentionBackendPtr backend =
      compose({scripted_child("A", log), encoder_only_backend(causal)}, constant_policy(1, 1), {});
  const CommonAttentionMetadata batch = prefill_batch();
  const MetadataPtr metadata = built(*backend, Path::kBuild, batch);
  EXPECT_FALSE(leaf(metadata).batch().causal);
  const auto impl = backend->make_impl({});
  log->take();
  impl->forward(*metadata, {});
  EXPECT_EQ(log->take().at(0).at("child"), "B");
}

}  // namespace
}  // namespace attn
