#include "property_tests/drawn_batch.h"

#include <algorithm>
#include <utility>

#include "attn/error.h"
#include "attn/random.h"
#include "property_tests/draw_problem.h"

namespace attn::property_tests {
namespace {

// What the seed draws beside the problem.
enum BatchDraw : std::uint64_t {
  kPaddingRows = 900,
  kPaddingTokens,
  kFlags,
  kBatchFlag,
  kImages,
  kClamp,
  kRange
};

std::int32_t draw(const ProblemConfig& config, std::uint64_t what, std::uint32_t n) {
  return static_cast<std::int32_t>(
      below(random_words(config.seed, what, RandomTensor::kConfiguration, 1), n));
}

// Beside the masks of a config: a flag per request on symmetric windows, and images of requests
// that are not causal.
void widen_masks(const ProblemConfig& config, LogicalProblem& problem) {
  const bool symmetric = config.mask == MaskKind::kSymmetricWindow;
  if (symmetric && draw(config, kFlags, 2) == 0) {
    problem.causal_per_request = true;
    problem.settings.mask.causal = draw(config, kBatchFlag, 2) == 0;  // says nothing then
  }
  if (!symmetric && config.mask != MaskKind::kNone && config.mask != MaskKind::kCausalPerRequest) {
    return;
  }
  if (draw(config, kImages, 2) == 0) return;
  problem.has_mm_ranges = true;
  problem.settings.mask.mm_prefix_clamp = symmetric && draw(config, kClamp, 2) == 0;
  for (std::size_t r = 0; r < problem.requests.size(); ++r) {
    LogicalRequest& request = problem.requests[r];
    const std::uint64_t entry = kRange + 2 * r;
    const int start = draw(config, entry, static_cast<std::uint32_t>(request.seq_len()) + 1);
    request.mm_ranges = {{start, start + draw(config, entry + 1, 8)}};
  }
}

// What a batch may hold: ranges from position 0 that do not overlap, and void ones.
void keep_disjoint_ranges(LogicalProblem& problem) {
  for (LogicalRequest& request : problem.requests) {
    std::vector<std::pair<int, int>> kept;
    for (const auto& range : request.mm_ranges) {
      const bool overlaps = std::any_of(kept.begin(), kept.end(), [&](const auto& other) {
        return other.first < other.second && range.first <= other.second &&
               other.first <= range.second;
      });
      const bool is_void = range.first >= range.second;
      if (is_void || (range.first >= 0 && !overlaps)) kept.push_back(range);
    }
    request.mm_ranges = kept;
  }
}

void add_row(const LogicalProblem& problem, const AttentionOp& op, std::int64_t r,
             CommonAttentionMetadata& batch) {
  const LogicalRequest& request = problem.request(r);
  const auto query_len = static_cast<std::int32_t>(request.query_len());
  const auto seq_len = static_cast<std::int32_t>(request.seq_len());
  batch.query_start_loc.push_back(batch.query_start_loc.back() + query_len);
  batch.seq_lens.push_back(seq_len);
  batch.max_query_len = std::max(batch.max_query_len, query_len);
  batch.max_seq_len = std::max(batch.max_seq_len, seq_len);
  const std::int64_t block_size = op.kv.block_size();
  for (std::int64_t k = request.context_len(); k < request.seq_len(); ++k) {
    batch.slot_mapping.push_back(int_at(op.kv.block_table, r, k / block_size) * block_size +
                                 k % block_size);
  }
  for (std::int64_t j = 0; j < batch.block_table.width; ++j) {
    batch.block_table.entries.push_back(static_cast<std::int32_t>(int_at(op.kv.block_table, r, j)));
  }
  batch.is_prefilling->push_back(query_len > 1);
  if (batch.causal_per_req) batch.causal_per_req->push_back(request.causal);
  if (batch.rswa_prefix_lens) batch.rswa_prefix_lens->push_back(request.rswa_prefix_len);
  if (request.mm_ranges.empty()) return;
  RowImages images;
  images.row = batch.num_reqs;
  for (const auto& [start, end] : request.mm_ranges) images.ranges.push_back({start, end});
  batch.mm_req_doc_ranges->push_back(std::move(images));
}

void add_padding(const ProblemConfig& config, CommonAttentionMetadata& batch) {
  for (std::int32_t i = draw(config, kPaddingRows, 3); i > 0; --i) {
    batch.query_start_loc.push_back(batch.query_start_loc.back());
    batch.seq_lens.push_back(0);
    batch.block_table.entries.resize(
        batch.block_table.entries.size() + static_cast<std::size_t>(batch.block_table.width), 0);
    batch.is_prefilling->push_back(false);
    if (batch.causal_per_req) batch.causal_per_req->push_back(false);
    if (batch.rswa_prefix_lens) batch.rswa_prefix_lens->push_back(0);
    ++batch.num_reqs;
  }
  batch.slot_mapping.resize(
      batch.slot_mapping.size() + static_cast<std::size_t>(draw(config, kPaddingTokens, 4)), -1);
}

CommonAttentionMetadata batch_for(const ProblemConfig& config, const LogicalProblem& problem,
                                  const AttentionOp& op) {
  CommonAttentionMetadata batch;
  batch.query_start_loc = {0};
  batch.block_table.width = op.kv.block_table.shape[1];
  batch.causal = op.mask.causal;
  batch.is_prefilling.emplace();
  if (problem.causal_per_request) batch.causal_per_req.emplace();
  if (op.mask.rswa_window != 0) batch.rswa_prefix_lens.emplace();
  if (problem.has_mm_ranges) batch.mm_req_doc_ranges.emplace();
  for (std::int64_t r = 0; r < config.num_reqs; ++r) {
    add_row(problem, op, r, batch);
    ++batch.num_reqs;
  }
  add_padding(config, batch);
  batch.query_start_loc_cpu = batch.query_start_loc;
  batch.num_actual_tokens = static_cast<std::int32_t>(batch.slot_mapping.size());
  batch.seq_lens_cpu_upper_bound = batch.seq_lens;
  return batch;
}

std::vector<float> as_floats(const HostTensor& tensor) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
    values.push_back(static_cast<float>(tensor.value(i)));
  }
  return values;
}

ImplArguments layer_of(const ProblemConfig& config, const LogicalProblem& problem,
                       const AttentionOp& op) {
  ImplArguments layer;
  layer.num_heads = static_cast<int>(problem.num_heads);
  layer.num_kv_heads = static_cast<int>(problem.num_kv_heads);
  layer.head_size = static_cast<int>(problem.head_size);
  layer.scale = op.scale;
  layer.logits_soft_cap = op.logits_soft_cap;
  if (problem.alibi_slopes.present()) layer.alibi_slopes = as_floats(problem.alibi_slopes);
  if (problem.sinks.present()) layer.sinks = as_floats(problem.sinks);
  const bool window = op.mask.window_left != MaskSpec::kUnbounded || op.mask.rswa_window != 0;
  if (window) layer.sliding_window = config.window;
  layer.mm_prefix_clamp_sliding_window = op.mask.mm_prefix_clamp;
  return layer;
}

BuilderArguments group_of(const ImplArguments& layer, const AttentionOp& op) {
  BuilderArguments group;
  group.spec.block_size = static_cast<int>(op.kv.block_size());
  group.spec.num_kv_heads = layer.num_kv_heads;
  group.spec.head_size = layer.head_size;
  group.spec.dtype = op.kv.key.dtype;
  group.layer_names = {"layers.0"};
  group.model = {{"layers.0", layer.sliding_window, layer.mm_prefix_clamp_sliding_window}};
  return group;
}

}  // namespace

ConfigSpace batch_space() {
  ConfigSpace space;
  space.lengths = {Lengths::kRagged, Lengths::kEqual};
  space.query_dtypes = {DType::kF32, DType::kBF16, DType::kF16};
  space.scales = {ScaleShape::kNone, ScaleShape::kOne, ScaleShape::kPerHead};
  space.masks = {MaskKind::kCausal,          MaskKind::kRanges,
                 MaskKind::kRangesWindow,    MaskKind::kRangesClamped,
                 MaskKind::kRanges,          MaskKind::kRangesWindow,
                 MaskKind::kRangesClamped,   MaskKind::kRanges,
                 MaskKind::kWindow,          MaskKind::kNone,
                 MaskKind::kSymmetricWindow, MaskKind::kRswa,
                 MaskKind::kSymmetricWindow, MaskKind::kCausalPerRequest};
  space.attn_mask = false;
  space.alibi = {AlibiForm::kNone, AlibiForm::kRow};
  space.tree = false;
  turn_off(space.attn_bias);
  return space;
}

DrawnBatch draw_batch(const ProblemConfig& asked) {
  ProblemConfig config = asked;
  config.q_scale = ScaleShape::kNone;
  config.lse_includes_sink = true;
  if (config.memory.cache == CacheForm::kVarlen) config.memory.cache = CacheForm::kPagedNHD;
  // Padding rows have no scale of their own.
  if (config.kv_scales == ScaleShape::kPerRequestHead) config.kv_scales = ScaleShape::kPerHead;
  config = normalised(config);
  LogicalProblem problem = draw_problem(config);
  widen_masks(config, problem);
  keep_disjoint_ranges(problem);
  ProblemData data(problem, config.memory);
  CommonAttentionMetadata batch = batch_for(config, problem, data.op());
  ImplArguments layer = layer_of(config, problem, data.op());
  BuilderArguments group = group_of(layer, data.op());
  return {std::move(data), std::move(batch), std::move(layer), std::move(group)};
}

Answer forward_answer(const AttentionImpl& impl, const AttentionMetadata& metadata,
                      const DrawnBatch& drawn, DType dtype) {
  const AttentionOp& op = drawn.data.op();
  const std::int64_t padded = drawn.batch.num_actual_tokens;
  HostTensor out(dtype, {padded, op.num_heads(), op.head_size_v()});
  HostTensor lse(dtype, {op.num_heads(), padded});
  out.fill(~std::uint64_t{0});
  lse.fill(~std::uint64_t{0});
  ForwardArguments forward;
  forward.query = op.query;
  forward.kv_cache = op.kv;
  forward.kv_cache.block_table = {};
  forward.output = out.view();
  forward.lse = lse.view();
  impl.forward(metadata, forward);
  Answer answer;
  answer.num_tokens = op.num_tokens();
  answer.num_heads = op.num_heads();
  answer.head_size_v = op.head_size_v();
  answer.dtype = dtype;
  const std::int64_t row = answer.num_heads * answer.head_size_v;
  for (std::int64_t i = 0; i < answer.num_tokens * row; ++i) {
    answer.out.push_back(decode(dtype, out.code(i)));
  }
  for (std::int64_t h = 0; h < answer.num_heads; ++h) {
    for (std::int64_t t = 0; t < answer.num_tokens; ++t) {
      answer.lse.push_back(decode(dtype, lse.code(h * padded + t)));
    }
  }
  for (std::int64_t i = answer.num_tokens * row; i < out.num_units(); ++i) {
    if (out.code(i) != (~std::uint64_t{0} >> (64 - bits(dtype)))) {
      throw Error("a padding row of out was written");
    }
  }
  return answer;
}

}  // namespace attn::property_tests
