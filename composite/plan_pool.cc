#include "composite/plan_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "attn/parallel.h"

namespace attn {
namespace {

using Key = std::vector<std::int64_t>;

void add_shape(Key& key, const TensorView& view) {
  key.push_back(view.rank);
  if (!view.present()) return;
  key.push_back(static_cast<std::int64_t>(view.dtype));
  key.insert(key.end(), view.shape, view.shape + view.rank);
  key.insert(key.end(), view.stride_bytes, view.stride_bytes + view.rank);
}

// All that a plan may rest on beside the query lengths of the batch.
Key key_of(const AttentionOp& op) {
  const MaskSpec& mask = op.mask;
  Key key = {num_workers(),
             static_cast<std::int64_t>(op.kv.layout),
             static_cast<std::int64_t>(op.kv.encoding),
             std::bit_cast<std::int64_t>(op.scale),
             std::bit_cast<std::int64_t>(op.logits_soft_cap),
             mask.causal ? 1 : 0,
             mask.window_left,
             mask.window_right,
             mask.rswa_window,
             mask.mm_prefix_clamp ? 1 : 0,
             static_cast<std::int64_t>(op.bias.alibi_form)};
  for (const TensorView* view :
       {&op.query, &op.kv.key, &op.kv.value, &op.kv.k_scale, &op.kv.v_scale, &op.kv.k_scale_cache,
        &op.kv.v_scale_cache, &op.kv.k_block_scale, &op.kv.v_block_scale, &op.kv.k_global_scale,
        &op.kv.v_global_scale, &mask.mm_prefix_ranges, &op.sinks, &op.output_scale}) {
    add_shape(key, *view);
  }
  // Layers of one batch differ: those of cross attention have the encoder's lengths.
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) key.push_back(op.seq_len(r));
  return key;
}

}  // namespace

struct PlanPool::Entry {
  Key key;
  WorkspaceBlock workspace;
  std::unique_ptr<Plan> plan;
};

PlanPool::PlanPool(std::shared_ptr<const Backend> backend,
                   std::shared_ptr<WorkspacePool> workspaces)
    : backend_(std::move(backend)), workspaces_(std::move(workspaces)) {}

PlanPool::~PlanPool() {
  for (const auto& entry : idle_) {
    entry->plan.reset();
    workspaces_->give_back(std::move(entry->workspace));
  }
}

std::unique_ptr<PlanPool::Entry> PlanPool::take(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(idle_.begin(), idle_.end(),
                                  [&](const auto& entry) { return entry->key == key; });
  if (found == idle_.end()) return nullptr;
  std::unique_ptr<Entry> entry = std::move(*found);
  idle_.erase(found);
  return entry;
}

std::unique_ptr<PlanPool::Entry> PlanPool::prepare(const AttentionProblem& problem, Key key) const {
  // Asked first: sizing a workspace needs a problem that the backend supports.
  require_supported(*backend_, problem, {nullptr, SIZE_MAX});
  WorkspaceBlock workspace = workspaces_->take(backend_->workspace_bytes(problem));
  std::unique_ptr<Plan> plan = backend_->prepare(problem, workspace.workspace());
  return std::make_unique<Entry>(Entry{std::move(key), std::move(workspace), std::move(plan)});
}

void PlanPool::run(const AttentionProblem& problem, const Outputs& outputs) const {
  Key key = key_of(*problem.attention());
  std::unique_ptr<Entry> entry = take(key);
  if (!entry) entry = prepare(problem, std::move(key));
  entry->plan->run(problem, outputs);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(entry));
}

}  // namespace attn
