// Builders and implementations as an engine calls them, in any order, for several cache groups:
// against a model that knows which batch is behind each metadata object and which child built it.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/state.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "attn/executable_backend.h"
#include "attn/random.h"
#include "property_tests/composite_parts.h"
#include "property_tests/replay_line.h"

namespace attn::property_tests {
namespace {

constexpr int kHeads = 2;
constexpr int kHeadSize = 4;
constexpr int kBlockSize = 4;
constexpr int kBlocks = 12;
constexpr int kWidth = 4;
constexpr int kMostTokens = 12;

HostTensor random_tensor(std::vector<std::int64_t> shape, std::uint64_t seed) {
  HostTensor tensor(DType::kF32, std::move(shape));
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
    const Words words = random_words(seed, static_cast<std::uint64_t>(i), RandomTensor::kValue, 3);
    tensor.set_code(i, encode(DType::kF32, uniform(words, DType::kF32), Overflow::kInfinity));
  }
  return tensor;
}

// The leaves of the model's composites: all answer as CPU does, and count.
std::shared_ptr<const StandIn> leaf(int i) {
  static const std::vector<std::shared_ptr<const StandIn>> all = {
      std::make_shared<StandIn>("LEAF_0", shared_cpu()),
      std::make_shared<StandIn>("LEAF_1", shared_cpu()),
      std::make_shared<StandIn>("LEAF_2", shared_cpu())};
  return all[static_cast<std::size_t>(i)];
}

// One object a leaf: groups of one backend take each other's metadata.
AttentionBackendPtr leaf_child(int i) {
  static const std::vector<AttentionBackendPtr> all = {make_executable_backend(leaf(0)),
                                                       make_executable_backend(leaf(1)),
                                                       make_executable_backend(leaf(2))};
  return all[static_cast<std::size_t>(i)];
}

BuilderArguments group_arguments() {
  BuilderArguments group;
  group.spec = {.block_size = kBlockSize,
                .num_kv_heads = 1,
                .head_size = kHeadSize,
                .dtype = DType::kF32,
                .num_head_slots = {},
                .state_content_bytes = {},
                .block_stride_alignment = {}};
  group.layer_names = {"layers.0"};
  group.model = {{"layers.0", std::optional<int>(), false}};
  return group;
}

ImplArguments layer_arguments() {
  ImplArguments layer;
  layer.num_heads = kHeads;
  layer.head_size = kHeadSize;
  layer.scale = 0.5;
  return layer;
}

// What a cache group is made of, told without composites: a leaf, or a policy over parts.
struct Part {
  int leaf = 0;
  RoutingPolicyPtr policy;
  std::vector<Part> children;

  AttentionBackendPtr backend(const std::string& name) const {
    if (!policy) return leaf_child(leaf);
    std::vector<AttentionBackendPtr> made;
    for (std::size_t i = 0; i < children.size(); ++i) {
      made.push_back(children[i].backend(fmt::format("{}_{}", name, i)));
    }
    return composite_of(std::move(made), policy, name);
  }

  int built_by(const CommonAttentionMetadata& batch, bool capture) const {
    if (!policy) return leaf;
    const BuilderArguments group = group_arguments();
    const int child =
        capture ? policy->capture_child(group) : policy->make(group, {})->select(batch).child;
    return children[static_cast<std::size_t>(child)].built_by(batch, capture);
  }
};

Part leaf_part(int i) { return {i, nullptr, {}}; }

// Two groups with one backend, a composite, and composites in composites on either side.
const std::vector<Part>& parts() {
  static const std::vector<Part> all = [] {
    const Part flat = {0, mm_prefix_policy(), {leaf_part(0), leaf_part(1)}};
    const Part inner = {
        0, max_query_len_policy({2, std::nullopt, 1}), {leaf_part(1), leaf_part(2)}};
    const Part right = {0, mm_prefix_policy(), {leaf_part(0), inner}};
    const Part left = {0,
                       max_seq_len_policy(6),
                       {{0, mm_prefix_policy(), {leaf_part(2), leaf_part(1)}}, leaf_part(0)}};
    return std::vector<Part>{leaf_part(1), leaf_part(1), flat, right, left};
  }();
  return all;
}

std::vector<std::int64_t> slots_of(const CommonAttentionMetadata& batch) {
  std::vector<std::int64_t> slots;
  for (std::int32_t row = 0; row < batch.num_reqs; ++row) {
    const std::int32_t seq_len = batch.seq_lens[static_cast<std::size_t>(row)];
    for (std::int32_t k = seq_len - batch.query_len(row); k < seq_len; ++k) {
      const std::int32_t block =
          batch.block_table.row(row)[static_cast<std::size_t>(k / kBlockSize)];
      slots.push_back(std::int64_t{block} * kBlockSize + k % kBlockSize);
    }
  }
  return slots;
}

BlockTable random_table(std::int32_t rows, std::uint64_t seed) {
  const auto order = random_permutation(seed, kBlocks, RandomTensor::kBlockTable, 3);
  BlockTable table;
  table.width = kWidth;
  table.entries.assign(order.begin(), order.begin() + rows * kWidth);
  return table;
}

CommonAttentionMetadata random_batch(std::uint64_t seed) {
  std::uint64_t next = 0;
  const auto draw = [&](std::uint32_t n) {
    return static_cast<std::int32_t>(
        below(random_words(seed, next++, RandomTensor::kConfiguration, 3), n));
  };
  CommonAttentionMetadata batch;
  batch.num_reqs = 1 + draw(3);
  batch.query_start_loc = {0};
  batch.mm_req_doc_ranges.emplace();
  for (std::int32_t row = 0; row < batch.num_reqs; ++row) {
    const std::int32_t query_len = draw(5);
    const std::int32_t seq_len = query_len + (query_len == 0 ? 0 : draw(kMostTokens - 4));
    batch.query_start_loc.push_back(batch.query_start_loc.back() + query_len);
    batch.seq_lens.push_back(seq_len);
    batch.max_query_len = std::max(batch.max_query_len, query_len);
    batch.max_seq_len = std::max(batch.max_seq_len, seq_len);
    const std::int32_t start = draw(10);
    if (draw(2) == 0) batch.mm_req_doc_ranges->push_back({row, {{start, start + draw(4)}}});
  }
  batch.query_start_loc_cpu = batch.query_start_loc;
  batch.seq_lens_cpu_upper_bound = batch.seq_lens;
  batch.num_actual_tokens = batch.query_start_loc.back();
  batch.block_table = random_table(batch.num_reqs, seed);
  batch.slot_mapping = slots_of(batch);
  return batch;
}

// What a metadata object stands for.
struct Built {
  int group = 0;
  CommonAttentionMetadata batch;
  int leaf = 0;
};

struct Model {
  std::vector<Built> built;
};

// The engine: per group a backend, its builder and its implementation, and a cache.
struct Engine {
  struct Group {
    AttentionBackendPtr backend;
    std::unique_ptr<AttentionMetadataBuilder> builder;
    std::unique_ptr<AttentionImpl> impl;
    HostTensor key, value;
  };

  Engine() {
    for (std::size_t g = 0; g < parts().size(); ++g) {
      Group group;
      group.backend = parts()[g].backend(fmt::format("group_{}", g));
      group.builder = group.backend->make_builder(group_arguments());
      group.impl = group.backend->make_impl(layer_arguments());
      group.key = random_tensor({kBlocks, kBlockSize, 1, kHeadSize}, 10 + g);
      group.value = random_tensor({kBlocks, kBlockSize, 1, kHeadSize}, 50 + g);
      groups.push_back(std::move(group));
    }
  }

  HostTensor query = random_tensor({3 * kMostTokens, kHeads, kHeadSize}, 1);
  std::vector<Group> groups;
  std::vector<MetadataPtr> metadata;

  KvCacheView cache(int g) const {
    const Group& group = groups[static_cast<std::size_t>(g)];
    KvCacheView view;
    view.layout = KvLayout::kPaged;
    view.key = group.key.view();
    view.value = group.value.view();
    return view;
  }
};

HostTensor int_tensor(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& values) {
  return {DType::kI32, std::move(shape), std::vector<double>(values.begin(), values.end())};
}

// The answer to a batch over the cache of a group, asked as a problem.
Answer expected_answer(const Engine& engine, const Built& built) {
  const CommonAttentionMetadata& batch = built.batch;
  HostTensor ranges(DType::kI32, {batch.num_reqs, 1, 2});
  for (const RowImages& images : *batch.mm_req_doc_ranges) {
    ranges.set(images.ranges[0].start, images.row, 0, 0);
    ranges.set(images.ranges[0].end, images.row, 0, 1);
  }
  const HostTensor starts = int_tensor({batch.num_reqs + 1}, batch.query_start_loc);
  const HostTensor lens = int_tensor({batch.num_reqs}, batch.seq_lens);
  const HostTensor table = int_tensor({batch.num_reqs, kWidth}, batch.block_table.entries);
  AttentionOp op;
  op.query = engine.query.view();
  op.query_start_loc = starts.view();
  op.seq_lens = lens.view();
  op.kv = engine.cache(built.group);
  op.kv.block_table = table.view();
  op.scale = layer_arguments().scale;
  op.mask.causal = true;
  op.mask.mm_prefix_ranges = ranges.view();
  return answer(*shared_cpu(), op);
}

using EngineCommand = rc::state::Command<Model, Engine>;

// Commands that make a metadata object.
struct Build : EngineCommand {
  int group = *rc::gen::inRange(0, static_cast<int>(parts().size()));
  std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();

  virtual bool captures() const { return false; }

  void apply(Model& model) const override {
    const CommonAttentionMetadata batch = random_batch(seed);
    const int by = parts()[static_cast<std::size_t>(group)].built_by(batch, captures());
    model.built.push_back({group, batch, by});
  }
  virtual MetadataPtr call(AttentionMetadataBuilder& builder,
                           const CommonAttentionMetadata& batch) const {
    return builder.build(0, batch, false);
  }
  void run(const Model&, Engine& engine) const override {
    engine.metadata.push_back(
        call(*engine.groups[static_cast<std::size_t>(group)].builder, random_batch(seed)));
  }
  void show(std::ostream& stream) const override { stream << "Build " << group << " " << seed; }
};

struct Capture : Build {
  bool captures() const override { return true; }
  MetadataPtr call(AttentionMetadataBuilder& builder,
                   const CommonAttentionMetadata& batch) const override {
    return builder.build_for_cudagraph_capture(batch);
  }
  void show(std::ostream& stream) const override { stream << "Capture " << group << " " << seed; }
};

struct Draft : Build {
  MetadataPtr call(AttentionMetadataBuilder& builder,
                   const CommonAttentionMetadata& batch) const override {
    return builder.build_for_drafting(batch, 1);
  }
  void show(std::ostream& stream) const override { stream << "Draft " << group << " " << seed; }
};

// Metadata of another table for a group of the same parts, as engines do: updated where the builder
// can, else built again.
struct UpdateTable : EngineCommand {
  explicit UpdateTable(const Model& model)
      : from(*rc::gen::inRange<std::size_t>(0, std::max<std::size_t>(model.built.size(), 1))) {}

  std::size_t from;
  std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();

  void checkPreconditions(const Model& model) const override { RC_PRE(from < model.built.size()); }

  Built updated(const Model& model) const {
    Built built = model.built[from];
    if (built.group < 2) built.group = 1 - built.group;  // the two groups of one backend
    built.batch.block_table = random_table(built.batch.num_reqs, seed);
    built.batch.slot_mapping = slots_of(built.batch);
    return built;
  }
  void apply(Model& model) const override {
    Built built = updated(model);
    built.leaf = parts()[static_cast<std::size_t>(built.group)].built_by(built.batch, false);
    model.built.push_back(std::move(built));
  }
  void run(const Model& model, Engine& engine) const override {
    const Built built = updated(model);
    auto& builder = *engine.groups[static_cast<std::size_t>(built.group)].builder;
    engine.metadata.push_back(builder.supports_update_block_table()
                                  ? builder.update_block_table(*engine.metadata[from],
                                                               built.batch.block_table,
                                                               built.batch.slot_mapping)
                                  : builder.build(0, built.batch, false));
  }
  void show(std::ostream& stream) const override {
    stream << "UpdateTable " << from << " " << seed;
  }
};

struct Forward : EngineCommand {
  explicit Forward(const Model& model)
      : which(*rc::gen::inRange<std::size_t>(0, std::max<std::size_t>(model.built.size(), 1))) {}

  std::size_t which;

  void checkPreconditions(const Model& model) const override { RC_PRE(which < model.built.size()); }

  void run(const Model& model, Engine& engine) const override {
    const Built& built = model.built[which];
    const AttentionMetadata& metadata = *engine.metadata[which];
    RC_ASSERT(leaf_of(metadata).backend().name() == fmt::format("LEAF_{}", built.leaf));
    const std::int64_t num_tokens = built.batch.num_actual_tokens;
    HostTensor out(DType::kF32, {num_tokens, kHeads, kHeadSize});
    HostTensor lse(DType::kF32, {kHeads, num_tokens});
    ForwardArguments forward;
    forward.query = engine.query.view();
    forward.kv_cache = engine.cache(built.group);
    forward.output = out.view();
    forward.lse = lse.view();
    const int before = leaf(built.leaf)->num_answers();
    engine.groups[static_cast<std::size_t>(built.group)].impl->forward(metadata, forward);
    RC_ASSERT(leaf(built.leaf)->num_answers() == before + 1);
    const Answer expected = expected_answer(engine, built);
    for (std::int64_t i = 0; i < out.num_units(); ++i) {
      RC_ASSERT(decode(DType::kF32, out.code(i)) == expected.out[static_cast<std::size_t>(i)]);
    }
    for (std::int64_t i = 0; i < lse.num_units(); ++i) {
      RC_ASSERT(decode(DType::kF32, lse.code(i)) == expected.lse[static_cast<std::size_t>(i)]);
    }
  }
  void show(std::ostream& stream) const override { stream << "Forward " << which; }
};

// A sequence has up to 100 commands: a tenth of max_success of them.
TEST(Engine, EveryOrderOfCallsAnswersTheBatchBehindItsMetadata) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = std::max(1, params.maxSuccess / 10);
  const auto holds = [] {
    Engine engine;
    rc::state::check(Model{}, engine,
                     rc::state::gen::execOneOfWithArgs<Build, Capture, Draft, UpdateTable, Forward,
                                                       Forward, Forward>());
  };
  const rc::detail::TestMetadata metadata = {"Engine", "every order of calls"};
  const auto result = rc::detail::checkTestable(holds, metadata, params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << message.str() << "\n" << replay_line();
}

}  // namespace
}  // namespace attn::property_tests
