#include "optimized/cpu/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "attn/error.h"
#include "attn/parallel.h"
#include "optimized/cpu/latent.h"

namespace attn::cpu {
namespace {

// Rows (token, head) of an item: enough to use a loaded tile of keys and values many times, few
// enough that the rows' states stay in the cache.
constexpr std::int64_t kRowsPerItem = 64;

ScratchSizes scratch_sizes(const AttentionOp& op, const ExecSpec& exec) {
  std::int64_t longest = 0;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) longest = std::max(longest, op.query_len(r));
  ScratchSizes sizes;
  sizes.heads = op.num_queries_per_kv();
  sizes.tokens = std::min(std::max<std::int64_t>(kRowsPerItem / sizes.heads, 1), longest);
  sizes.head_size = op.head_size();
  sizes.head_size_v = op.head_size_v();
  sizes.intervals_per_row = BaseMask::max_intervals(op.mask);
  sizes.has_parts = exec.any();
  return sizes;
}

std::vector<WorkItem> work_items(const AttentionOp& op, std::int64_t tokens_per_item) {
  std::vector<WorkItem> items;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    const std::int64_t query_len = op.query_len(r);
    for (std::int64_t h = 0; h < op.num_kv_heads(); ++h) {
      for (std::int64_t first = 0; first < query_len; first += tokens_per_item) {
        items.push_back({static_cast<std::int32_t>(r), static_cast<std::int32_t>(h),
                         static_cast<std::int32_t>(first),
                         static_cast<std::int32_t>(std::min(tokens_per_item, query_len - first))});
      }
    }
  }
  return items;
}

void expect_same(std::string_view what, std::int64_t planned, std::int64_t found) {
  if (planned != found) {
    throw Error(fmt::format("{} is {}, the plan was prepared for {}", what, found, planned));
  }
}

class CpuPlan final : public Plan {
 public:
  CpuPlan(const AttentionOp& op, const ExecSpec& exec, Workspace workspace)
      : exec_(exec),
        asked_exec_(op.exec),
        sizes_(scratch_sizes(op, exec)),
        num_heads_(op.num_heads()),
        workers_(num_workers()),
        workspace_(static_cast<std::byte*>(workspace.data)),
        items_(work_items(op, sizes_.tokens)) {
    for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
      query_lens_.push_back(op.query_len(r));
      seq_lens_.push_back(op.seq_len(r));
    }
  }

  void run(const AttentionProblem& problem, const Outputs& outputs) const override {
    const std::optional<AttentionOp> op = as_attention(problem);
    if (!op) throw Error("the plan was prepared for another operation");
    check_outputs(problem, outputs, DType::kF32);
    if (outputs.lse.present() && outputs.lse_form != LseForm{}) {
      throw Error(
          "CPU writes lse in natural log, [num_heads, num_tokens]; outputs ask for another form");
    }
    expect_planned(*op);
    const std::size_t bytes = scratch_bytes(sizes_);
    parallel_for(static_cast<std::int64_t>(items_.size()), [&](std::int64_t i, int worker) {
      Scratch scratch =
          place_scratch(sizes_, workspace_ + static_cast<std::size_t>(worker) * bytes);
      answer_item(*op, exec_, items_[static_cast<std::size_t>(i)], outputs, scratch);
    });
  }

  ExecSpec exec() const override { return exec_; }

 private:
  // What the items and the scratch rest on: a problem of another shape must not run past them.
  void expect_planned(const AttentionOp& op) const {
    expect_same("number of workers", workers_, num_workers());
    expect_same("num_heads", num_heads_, op.num_heads());
    expect_same("num_kv_heads", num_heads_ / sizes_.heads, op.num_kv_heads());
    expect_same("num_reqs", static_cast<std::int64_t>(seq_lens_.size()), op.num_reqs());
    for (std::size_t i = 0; i < seq_lens_.size(); ++i) {
      const auto r = static_cast<std::int64_t>(i);
      expect_same(fmt::format("query_len of request {}", r), query_lens_[i], op.query_len(r));
      expect_same(fmt::format("seq_lens[{}]", r), seq_lens_[i], op.seq_len(r));
    }
    if (op.exec != asked_exec_) throw Error("exec is not the one the plan was prepared for");
    if (scratch_sizes(op, exec_) != sizes_) {
      throw Error("head sizes or mm_prefix_ranges are not those the plan was prepared for");
    }
  }

  ExecSpec exec_;
  ExecSpec asked_exec_;
  ScratchSizes sizes_;
  std::int64_t num_heads_;
  int workers_;
  std::byte* workspace_;
  std::vector<WorkItem> items_;
  std::vector<std::int64_t> query_lens_;
  std::vector<std::int64_t> seq_lens_;
};

}  // namespace

std::size_t plan_workspace_bytes(const AttentionOp& op, const ExecSpec& exec) {
  return scratch_bytes(scratch_sizes(op, exec)) * static_cast<std::size_t>(num_workers());
}

std::unique_ptr<Plan> make_plan(const AttentionOp& op, const ExecSpec& exec, Workspace workspace) {
  return std::make_unique<CpuPlan>(op, exec, workspace);
}

}  // namespace attn::cpu
