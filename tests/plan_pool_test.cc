// Plans and workspaces behind the metadata of executable backends: kept, shared, and never in two
// calls at once.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attn/cpu_backend.h"
#include "attn/executable_backend.h"
#include "attn/random.h"
#include "composite/workspace_pool.h"
#include "tests/small_batch.h"

namespace attn {
namespace {

// What a watched backend was asked, by any thread.
class Watch {
 public:
  // A plan was made in memory of `given` bytes for a problem that needs `needed`.
  void prepared(std::size_t needed, std::size_t given) {
    const std::lock_guard lock(mutex_);
    ++num_prepared_;
    kept_ += given > needed ? 1 : 0;
  }

  // A plan of this workspace begins to run. The first `together` calls wait for each other, so that
  // they run at the same time.
  void enter(const void* workspace) {
    std::unique_lock lock(mutex_);
    if (!running_.insert(workspace).second) ++num_shared_;
    if (++num_runs_ > together_) return;
    all_in_.notify_all();
    all_in_.wait_for(lock, std::chrono::seconds(60), [&] { return num_runs_ >= together_; });
  }
  void leave(const void* workspace) {
    const std::lock_guard lock(mutex_);
    running_.erase(workspace);
  }
  // From the next call on.
  void let_meet(int together) {
    const std::lock_guard lock(mutex_);
    num_runs_ = 0;
    together_ = together;
  }

  int num_prepared() const { return num_prepared_; }
  int num_in_larger() const { return kept_; }     // plans made in memory larger than they need
  int num_shared() const { return num_shared_; }  // runs in a workspace that another run was using

 private:
  std::mutex mutex_;
  std::condition_variable all_in_;
  std::atomic<int> num_prepared_ = 0;
  int kept_ = 0;
  int num_runs_ = 0;
  int together_ = 0;
  int num_shared_ = 0;
  std::set<const void*> running_;
};

class WatchedPlan final : public Plan {
 public:
  WatchedPlan(std::unique_ptr<Plan> plan, const void* workspace, std::shared_ptr<Watch> watch)
      : plan_(std::move(plan)), workspace_(workspace), watch_(std::move(watch)) {}

  void run(const AttentionProblem& problem, const Outputs& outputs) const override {
    watch_->enter(workspace_);
    plan_->run(problem, outputs);
    watch_->leave(workspace_);
  }
  ExecSpec exec() const override { return plan_->exec(); }

 private:
  std::unique_ptr<Plan> plan_;
  const void* workspace_;
  std::shared_ptr<Watch> watch_;
};

class WatchedCpu final : public Backend {
 public:
  explicit WatchedCpu(std::shared_ptr<Watch> watch) : watch_(std::move(watch)) {}

  std::string_view name() const override { return "WATCHED_CPU"; }
  const Capabilities& capabilities() const override { return cpu_->capabilities(); }
  PrecisionContract contract(const AttentionProblem& problem) const override {
    return cpu_->contract(problem);
  }
  std::size_t workspace_bytes(const AttentionProblem& problem) const override {
    // Of different batches, different needs.
    return cpu_->workspace_bytes(problem) +
           static_cast<std::size_t>(problem.attention()->num_tokens());
  }
  std::unique_ptr<Plan> prepare(const AttentionProblem& problem,
                                Workspace workspace) const override {
    watch_->prepared(workspace_bytes(problem), workspace.bytes);
    return std::make_unique<WatchedPlan>(cpu_->prepare(problem, workspace), workspace.data, watch_);
  }

 private:
  std::shared_ptr<Watch> watch_;
  std::shared_ptr<const Backend> cpu_ = make_cpu_backend();
};

HostTensor random_tensor(std::vector<std::int64_t> shape, std::uint64_t seed) {
  HostTensor tensor(DType::kF32, std::move(shape));
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
    const Words words = random_words(seed, static_cast<std::uint64_t>(i), RandomTensor::kValue, 0);
    tensor.set_code(i, encode(DType::kF32, uniform(words, DType::kF32), Overflow::kInfinity));
  }
  return tensor;
}

constexpr int kHeads = 2;
constexpr int kHeadSize = 8;
constexpr int kBlockSize = 4;
constexpr int kMostTokens = 16;

// The tensors and options of one layer, and its backend.
struct Engine {
  Engine() {
    layer.num_heads = kHeads;
    layer.head_size = kHeadSize;
    layer.scale = 0.5;
    group.spec.block_size = kBlockSize;
  }

  std::vector<std::uint64_t> forward(const AttentionImpl& impl,
                                     const AttentionMetadata& metadata) const {
    HostTensor out(DType::kF32, {kMostTokens, kHeads, kHeadSize});
    ForwardArguments arguments;
    arguments.query = query.view();
    arguments.kv_cache.layout = KvLayout::kPaged;
    arguments.kv_cache.key = key.view();
    arguments.kv_cache.value = value.view();
    arguments.output = out.view();
    impl.forward(metadata, arguments);
    std::vector<std::uint64_t> codes;
    for (std::int64_t i = 0; i < out.num_units(); ++i) codes.push_back(out.code(i));
    return codes;
  }

  HostTensor query = random_tensor({kMostTokens, kHeads, kHeadSize}, 1);
  HostTensor key = random_tensor({12, kBlockSize, 1, kHeadSize}, 2);
  HostTensor value = random_tensor({12, kBlockSize, 1, kHeadSize}, 3);
  ImplArguments layer;
  BuilderArguments group;
  std::shared_ptr<Watch> watch = std::make_shared<Watch>();
  AttentionBackendPtr backend = make_executable_backend(std::make_shared<WatchedCpu>(watch));
};

const CommonAttentionMetadata kMixed = small_batch({5, 1, 3}, {9, 12, 3}, 3);
const CommonAttentionMetadata kDecodes = small_batch({1, 1, 1}, {4, 11, 8}, 3);

TEST(PlanPool, LayersOfOneShapeShareAPlan) {
  const Engine engine;
  const auto impl = engine.backend->make_impl(engine.layer);
  ImplArguments capped = engine.layer;
  capped.logits_soft_cap = 2.0;
  const auto other = engine.backend->make_impl(capped);
  const MetadataPtr metadata = engine.backend->make_builder(engine.group)->build(0, kMixed, false);
  const auto answer = engine.forward(*impl, *metadata);
  EXPECT_EQ(engine.watch->num_prepared(), 1);
  const auto capped_answer = engine.forward(*other, *metadata);
  EXPECT_EQ(engine.watch->num_prepared(), 2) << "another option, another plan";
  EXPECT_NE(answer, capped_answer);
  for (int layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(engine.forward(*impl, *metadata), answer);
    EXPECT_EQ(engine.forward(*other, *metadata), capped_answer);
  }
  EXPECT_EQ(engine.watch->num_prepared(), 2);
}

TEST(PlanPool, ABatchesWorkspaceServesTheNextBatchOfEveryBuilderThatSharesIt) {
  const Engine engine;
  const auto impl = engine.backend->make_impl(engine.layer);
  const auto first = engine.backend->make_builder(engine.group);
  const auto second = engine.backend->make_builder(engine.group);
  second->set_workspace(first->workspace());
  for (int step = 0; step < 3; ++step) {
    engine.forward(*impl, *first->build(0, kMixed, false));
    engine.forward(*impl, *second->build(0, kDecodes, false));
  }
  EXPECT_EQ(engine.watch->num_prepared(), 6);
  // Every batch of decodes got what the batch before it gave back.
  EXPECT_EQ(engine.watch->num_in_larger(), 3);
}

TEST(WorkspacePool, GivesKeptBlocksAndReplacesTooSmallOnes) {
  WorkspacePool pool;
  WorkspaceBlock block = pool.take(100);
  const void* const data = block.workspace().data;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % kWorkspaceAlignment, 0U);
  pool.give_back(std::move(block));
  WorkspaceBlock again = pool.take(60);
  EXPECT_EQ(again.workspace().data, data);
  EXPECT_EQ(again.workspace().bytes, 100U);
  const WorkspaceBlock other = pool.take(60);
  EXPECT_NE(other.workspace().data, data) << "in use";
  EXPECT_EQ(other.workspace().bytes, 60U);
  pool.give_back(std::move(again));
  pool.give_back(pool.take(200));  // 100 has gone
  const WorkspaceBlock large = pool.take(1);
  EXPECT_EQ(large.workspace().bytes, 200U);
  EXPECT_EQ(pool.take(1).workspace().bytes, 1U) << "nothing is left";
}

constexpr int kThreads = 4;

// Of kThreads threads that each call same(thread, round) for every round: how often it was false.
int count_different(int num_rounds, const std::function<bool(int thread, int round)>& same) {
  std::atomic<int> different = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < num_rounds; ++round) {
        if (!same(thread, round)) ++different;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return different;
}

// Four threads, each with both batches; their first calls meet.
TEST(PlanPool, CallsThatComeTogetherGetPlansOfTheirOwnAndTheSameBits) {
  const Engine engine;
  const auto impl = engine.backend->make_impl(engine.layer);
  const auto builder = engine.backend->make_builder(engine.group);
  const MetadataPtr batches[] = {builder->build(0, kMixed, false),
                                 builder->build(0, kDecodes, false)};
  const std::vector<std::uint64_t> expected[] = {engine.forward(*impl, *batches[0]),
                                                 engine.forward(*impl, *batches[1])};
  ASSERT_EQ(engine.watch->num_prepared(), 2);
  engine.watch->let_meet(kThreads);
  const int different = count_different(6, [&](int thread, int round) {
    const int which = thread < 3 ? round % 2 : (round + 1) % 2;
    return engine.forward(*impl, *batches[which]) == expected[which];
  });
  EXPECT_EQ(different, 0);
  EXPECT_EQ(engine.watch->num_shared(), 0);
  // The first three calls of one batch met, so that there are at least three plans of it; never
  // more than threads of either.
  EXPECT_GE(engine.watch->num_prepared(), 4);
  EXPECT_LE(engine.watch->num_prepared(), 2 * kThreads);
}

// A later metadata object of the same builder takes what an earlier one gave back.
TEST(PlanPool, MetadataOfOneBuilderMadeAndDroppedByThreadsHasTheSameBits) {
  constexpr int kRounds = 8;
  const Engine engine;
  const auto impl = engine.backend->make_impl(engine.layer);
  const auto builder = engine.backend->make_builder(engine.group);
  const CommonAttentionMetadata* const batches[] = {&kMixed, &kDecodes};
  const std::vector<std::uint64_t> expected[] = {
      engine.forward(*impl, *builder->build(0, kMixed, false)),
      engine.forward(*impl, *builder->build(0, kDecodes, false))};
  std::mutex building;  // a builder is not for concurrent calls
  const int different = count_different(kRounds, [&](int thread, int round) {
    const int which = (thread + round) % 2;
    const MetadataPtr metadata = [&] {
      const std::lock_guard lock(building);
      return builder->build(0, *batches[which], false);
    }();
    return engine.forward(*impl, *metadata) == expected[which];
  });
  EXPECT_EQ(different, 0);
  EXPECT_EQ(engine.watch->num_shared(), 0);
  EXPECT_EQ(engine.watch->num_prepared(), 2 + kThreads * kRounds);
}

}  // namespace
}  // namespace attn
