#include "attn/executable_backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "attn/composite.h"
#include "attn/cpu_backend.h"
#include "attn/error.h"
#include "attn/reference.h"
#include "attn/vllm_error.h"

namespace attn {
namespace {

template <class Thrown, class Call>
std::string text_of(const Call& call) {
  try {
    call();
  } catch (const Thrown& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// Blocks of 2; a request of 2 tokens of 3 keys in blocks 3 and 1, one of 1 token of 1 key in block
// 2, a padding row. Keys are 0; the value of a slot is its number.
struct SmallEngine {
  SmallEngine() {
    for (int slot = 0; slot < 8; ++slot) value.set(slot, slot / 2, slot % 2, 0, 0);
    batch.query_start_loc = batch.query_start_loc_cpu = {0, 2, 3, 3};
    batch.seq_lens = {3, 1, 0};
    batch.seq_lens_cpu_upper_bound = batch.seq_lens;
    batch.num_reqs = 3;
    batch.num_actual_tokens = 4;
    batch.max_query_len = 2;
    batch.max_seq_len = 3;
    batch.block_table = {2, {3, 1, 2, 0, 0, 0}};
    batch.slot_mapping = {7, 2, 4, -1};
    layer.head_size = 1;
    group.spec = {2, 1, 1, DType::kF32, {}, {}, {}};
    group.layer_names = {"layers.0"};
    group.model = {{"layers.0", std::optional<int>(), false}};
  }

  ForwardArguments forward() {
    ForwardArguments arguments;
    arguments.query = query.view();
    arguments.kv_cache.layout = KvLayout::kPaged;
    arguments.kv_cache.key = key.view();
    arguments.kv_cache.value = value.view();
    arguments.output = out.view();
    arguments.lse = lse.view();
    return arguments;
  }

  HostTensor query{DType::kF32, {4, 1, 1}};
  HostTensor key{DType::kF32, {4, 2, 1, 1}};
  HostTensor value{DType::kF32, {4, 2, 1, 1}};
  HostTensor out{DType::kF64, {4, 1, 1}, {9, 9, 9, 9}};
  HostTensor lse{DType::kF64, {1, 4}, {9, 9, 9, 9}};
  CommonAttentionMetadata batch;
  ImplArguments layer;
  BuilderArguments group;
};

const AttentionBackendPtr& reference() {
  static const AttentionBackendPtr backend = make_executable_backend(make_reference_backend());
  return backend;
}

TEST(ExecutableBackend, AnswersABatchAndLeavesPaddingAlone) {
  SmallEngine engine;
  const MetadataPtr metadata =
      reference()->make_builder(engine.group)->build(0, engine.batch, false);
  reference()->make_impl(engine.layer)->forward(*metadata, engine.forward());
  EXPECT_EQ(engine.out.value(0, 0, 0), 6.5);  // slots 6 and 7
  EXPECT_EQ(engine.out.value(1, 0, 0), 5.0);  // and slot 2
  EXPECT_EQ(engine.out.value(2, 0, 0), 4.0);
  EXPECT_EQ(engine.out.value(3, 0, 0), 9.0);
  EXPECT_DOUBLE_EQ(engine.lse.value(0, 1), std::log(3.0));
  EXPECT_EQ(engine.lse.value(0, 3), 9.0);
}

TEST(ExecutableBackend, UpdatedBlockTableIsTheOneThatIsRead) {
  SmallEngine engine;
  const auto builder = reference()->make_builder(engine.group);
  const MetadataPtr before = builder->build(0, engine.batch, false);
  ASSERT_TRUE(builder->supports_update_block_table());
  const MetadataPtr after =
      builder->update_block_table(*before, {2, {0, 1, 2, 0, 0, 0}}, {1, 2, 4, -1});
  const auto impl = reference()->make_impl(engine.layer);
  impl->forward(*after, engine.forward());
  EXPECT_EQ(engine.out.value(0, 0, 0), 0.5);
  impl->forward(*before, engine.forward());
  EXPECT_EQ(engine.out.value(0, 0, 0), 6.5);
  EXPECT_THROW(builder->update_block_table(*before, {2, {0, 1}}, {1, 2, 4, -1}), Error);
}

TEST(ExecutableBackend, RefusesWhatItCannotExpressOrDo) {
  SmallEngine engine;
  const auto convert = [&] { attention_problem(engine.batch, engine.layer, engine.forward()); };
  engine.batch.dcp_local_seq_lens = {1, 1, 1};
  EXPECT_EQ(text_of<Error>(convert), "dcp_local_seq_lens: context parallelism not supported");
  engine.batch.dcp_local_seq_lens.reset();
  engine.layer.attn_type = AttentionType::kEncoderDecoder;
  EXPECT_EQ(text_of<Error>(convert), "cross attention needs encoder_seq_lens");
  engine.layer.attn_type = AttentionType::kDecoder;
  engine.layer.num_heads = 2;
  EXPECT_EQ(text_of<Error>(convert), "query is f32[4,1,1], axis 1 must be 2");
  engine.layer.sinks = {1.0F};
  EXPECT_EQ(text_of<VllmError>([&] { reference()->make_impl(engine.layer); }),
            "sinks has 1 values for 2 heads");
}

TEST(ExecutableBackend, MaskFieldsComeFromBatchAndLayer) {
  SmallEngine engine;
  engine.layer.sliding_window = 2;
  const auto mask = [&] {
    return attention_problem(engine.batch, engine.layer, engine.forward())
        .problem.attention()
        ->mask;
  };
  EXPECT_TRUE(mask().causal);
  EXPECT_EQ(mask().window_left, 1);
  EXPECT_EQ(mask().window_right, MaskSpec::kUnbounded);
  engine.batch.causal = false;  // symmetric
  EXPECT_EQ(mask().window_right, 1);
  engine.batch.causal = true;
  engine.batch.mm_req_doc_ranges = {{0, {{1, 1}, {2, 1}}}};
  EXPECT_FALSE(mask().mm_prefix_ranges.present()) << "void ranges";
  engine.batch.mm_req_doc_ranges = {{0, {{1, 1}, {1, 2}}}};
  EXPECT_EQ(mask().mm_prefix_ranges.shape[1], 1);
  EXPECT_FALSE(mask().mm_prefix_clamp);
  engine.layer.mm_prefix_clamp_sliding_window = true;
  EXPECT_TRUE(mask().mm_prefix_clamp);
  engine.batch.mm_req_doc_ranges.reset();
  engine.batch.rswa_prefix_lens = {1, 0, 0};
  EXPECT_EQ(mask().rswa_window, 2);
  EXPECT_EQ(mask().window_left, MaskSpec::kUnbounded);
  engine.batch.mm_req_doc_ranges = {{0, {{1, 2}}}};
  EXPECT_THROW(mask(), Error) << "ranges together with R-SWA";
}

// Two tokens of the step are all that an encoder sees; cross attention sees the encoder's cache.
TEST(ExecutableBackend, EncoderAndCrossAttentionHaveTheirOwnKeys) {
  SmallEngine engine;
  engine.batch.causal = false;
  const HostTensor rows(DType::kF32, {4, 1, 1}, {1, 2, 7, 0});
  ForwardArguments forward = engine.forward();
  forward.key = engine.query.view();
  forward.value = rows.view();
  const MetadataPtr metadata =
      reference()->make_builder(engine.group)->build(0, engine.batch, false);
  engine.layer.attn_type = AttentionType::kEncoderOnly;
  reference()->make_impl(engine.layer)->forward(*metadata, forward);
  EXPECT_EQ(engine.out.value(0, 0, 0), 1.5);
  EXPECT_EQ(engine.out.value(2, 0, 0), 7.0);
  engine.batch.encoder_seq_lens = {2, 2, 0};
  engine.layer.attn_type = AttentionType::kEncoderDecoder;
  reference()
      ->make_impl(engine.layer)
      ->forward(*reference()->make_builder(engine.group)->build(0, engine.batch, false), forward);
  EXPECT_EQ(engine.out.value(0, 0, 0), 6.5);
  EXPECT_EQ(engine.out.value(2, 0, 0), 4.5);
}

TEST(ExecutableBackend, LayersOfOneBatchWithOtherKeysHavePlansOfTheirOwn) {
  for (const auto& backend : {reference(), make_executable_backend(make_cpu_backend())}) {
    SmallEngine engine;
    engine.batch.causal = false;
    engine.batch.encoder_seq_lens = {2, 1, 0};
    engine.out = HostTensor(backend == reference() ? DType::kF64 : DType::kF32, {4, 1, 1});
    engine.lse = HostTensor(engine.out.dtype(), {1, 4});
    const MetadataPtr metadata = backend->make_builder(engine.group)->build(0, engine.batch, false);
    backend->make_impl(engine.layer)->forward(*metadata, engine.forward());
    EXPECT_EQ(engine.out.value(0, 0, 0), 5.0);  // slots 6, 7 and 2
    engine.layer.attn_type = AttentionType::kEncoderDecoder;
    backend->make_impl(engine.layer)->forward(*metadata, engine.forward());
    EXPECT_EQ(engine.out.value(0, 0, 0), 6.5);  // slots 6 and 7
  }
}

TEST(ExecutableBackend, AnImageOfARowThatThereIsNotIsAnErrorOfRouting) {
  SmallEngine engine;
  engine.batch.mm_req_doc_ranges = {{7, {{0, 2}}}};
  const AttentionBackendPtr both =
      compose({reference(), make_executable_backend(make_cpu_backend(), make_reference_backend())},
              supports_policy(), {});
  EXPECT_THROW(both->make_builder(engine.group)->build(0, engine.batch, false), Error);
}

TEST(ExecutableBackend, CacheNeedsAWriter) {
  SmallEngine engine;
  const auto update = [&](const AttentionBackendPtr& backend) {
    CacheUpdate rows;
    rows.key = slice(engine.query.view(), 0, 0, 1);
    const HostTensor five(DType::kF32, {1, 1, 1}, {5});
    rows.value = five.view();
    rows.slot_mapping = {3};
    rows.cache = engine.forward().kv_cache;
    rows.key_cache = engine.key.view();
    rows.value_cache = engine.value.view();
    backend->make_impl(engine.layer)->do_kv_cache_update(rows);
  };
  const std::shared_ptr<const Backend> cpu = make_cpu_backend();
  EXPECT_EQ(text_of<Error>([&] { update(make_executable_backend(cpu)); }),
            "CPU does not write caches, and no other backend was named for it");
  EXPECT_EQ(text_of<Error>([&] { make_executable_backend(cpu, cpu); }),
            "CPU does not write caches");
  update(make_executable_backend(cpu, make_reference_backend()));
  EXPECT_EQ(engine.value.value(1, 1, 0, 0), 5.0);
  EXPECT_EQ(engine.value.value(1, 0, 0, 0), 2.0);
}

TEST(ExecutableBackend, MetadataOfAnotherBackendIsNotTaken) {
  SmallEngine engine;
  const AttentionBackendPtr cpu =
      make_executable_backend(make_cpu_backend(), make_reference_backend());
  const MetadataPtr metadata = cpu->make_builder(engine.group)->build(0, engine.batch, false);
  const auto forward_by = [&](const AttentionBackendPtr& backend) {
    return text_of<Error>(
        [&] { backend->make_impl(engine.layer)->forward(*metadata, engine.forward()); });
  };
  EXPECT_EQ(
      forward_by(reference()),
      "metadata was built by CPU (attn_oracle.CPU), not by REFERENCE (attn_oracle.REFERENCE)");
  // A child's own metadata says nothing about a route.
  const std::string of_composite =
      forward_by(compose({reference(), cpu}, mm_prefix_policy(), CompositeOptions()));
  EXPECT_NE(of_composite.find("CPU"), std::string::npos) << of_composite;
  EXPECT_NE(of_composite.find("COMPOSITE"), std::string::npos) << of_composite;
}

TEST(ExecutableBackend, IsCapturedIntoNoGraph) {
  SmallEngine engine;
  EXPECT_EQ(reference()->cudagraph_support(engine.group), GraphSupport::kNever);
  EXPECT_EQ(reference()->describe(std::nullopt).graph, GraphSupport::kNever);
}

}  // namespace
}  // namespace attn
