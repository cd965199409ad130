#include "tests/small_pack.h"

#include <utility>

#include "attn/backend.h"
#include "attn/random.h"
#include "attn/reference.h"

namespace attn {
namespace {

using questions::Question;

// Tensors of one question.
class Drawer {
 public:
  explicit Drawer(Question& question) : question_(question) {}

  TensorView uniform(DType dtype, std::vector<std::int64_t> shape) {
    HostTensor tensor(dtype, std::move(shape));
    for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
      const Words words =
          random_words(seed_, static_cast<std::uint64_t>(i), RandomTensor::kQuery, 0);
      tensor.set_code(i, encode(dtype, attn::uniform(words, dtype), Overflow::kSaturate));
    }
    ++seed_;
    return question_.memory.keep(std::move(tensor));
  }

  TensorView values(DType dtype, std::vector<std::int64_t> shape, const std::vector<double>& all) {
    return question_.memory.keep(HostTensor(dtype, std::move(shape), all));
  }

 private:
  Question& question_;
  std::uint64_t seed_ = 1;
};

Question question(const std::string& id, const std::string& variant) {
  Question q;
  q.id = id;
  q.variant = variant;
  q.name = "a small question";
  q.scenario = "packs";
  q.where = "by hand";
  return q;
}

// Three keys, one row; the last row of every request that begins so.
AttentionOp varlen(Drawer& draw, std::int32_t rows, std::int32_t keys) {
  AttentionOp op;
  op.query = draw.uniform(DType::kF32, {rows, 2, 4});
  op.query_start_loc = draw.values(DType::kI32, {2}, {0, 1.0 * rows});
  op.seq_lens = draw.values(DType::kI32, {1}, {1.0 * keys});
  op.kv.kv_start_loc = draw.values(DType::kI32, {2}, {0, 1.0 * keys});
  op.kv.key = draw.uniform(DType::kF32, {keys, 1, 4});
  op.kv.value = draw.uniform(DType::kF32, {keys, 1, 3});
  op.scale = 0.5;
  op.mask.causal = true;
  return op;
}

Question causal(const std::string& id) {
  Question q = question(id, "causal");
  Drawer draw(q);
  q.operation = varlen(draw, 2, 3);
  q.rulings = {"bottom_right", "gqa_floor"};
  return q;
}

Question empty_rows() {
  Question q = question("empty-more_rows_than_keys", "empty");
  Drawer draw(q);
  q.operation = varlen(draw, 3, 1);
  q.flags = {"q_len_gt_seq_len"};
  q.rulings = {"empty_row_zero"};
  return q;
}

Question heads_first_window() {
  Question q = question("sliding_window-hnd", "sliding_window");
  Drawer draw(q);
  AttentionOp op = varlen(draw, 2, 3);
  op.kv.layout = KvLayout::kPaged;
  op.kv.kv_start_loc = {};
  op.kv.key = swap_axes(draw.uniform(DType::kBF16, {3, 2, 2, 4}), 1, 2);
  op.kv.value = swap_axes(draw.uniform(DType::kBF16, {3, 2, 2, 3}), 1, 2);
  op.kv.block_table = draw.values(DType::kI32, {1, 3}, {2, 0, 2147480000});
  op.mask.window_left = 1;
  q.operation = op;
  q.flags = {"poisoned"};
  q.rulings = {"window_counts_self"};
  return q;
}

Question latent() {
  Question q = question("mla-absorbed", "mla");
  Drawer draw(q);
  MlaOp op;
  op.query = draw.uniform(DType::kF32, {1, 2, 6});
  op.query_start_loc = draw.values(DType::kI32, {2}, {0, 1});
  op.seq_lens = draw.values(DType::kI32, {1}, {2});
  op.kv_cache = draw.uniform(DType::kF32, {1, 2, 6});
  op.block_table = draw.values(DType::kI32, {1, 1}, {0});
  op.scale = 0.25;
  op.kv_lora_rank = 4;
  op.qk_rope_head_dim = 2;
  q.operation = op;
  return q;
}

Question indexer() {
  Question q = question("indexer-two_heads", "indexer");
  Drawer draw(q);
  IndexerOp op;
  op.query = draw.uniform(DType::kF32, {2, 2, 4});
  op.key = draw.uniform(DType::kF32, {3, 4});
  op.weights = draw.uniform(DType::kF32, {2, 2});
  op.k_start = draw.values(DType::kI32, {2}, {0, 1});
  op.k_end = draw.values(DType::kI32, {2}, {2, 3});
  q.operation = op;
  return q;
}

Question merge() {
  Question q = question("merge-two_parts", "merge");
  Drawer draw(q);
  MergeStatesOp op;
  op.out_parts = draw.uniform(DType::kF64, {2, 1, 2, 3});
  op.lse_parts = draw.uniform(DType::kF64, {2, 2, 1});
  q.operation = op;
  q.rulings = {"merge_natural"};
  return q;
}

Question cache_write() {
  Question q = question("cache_write-hnd", "cache_write");
  Drawer draw(q);
  CacheWriteOp op;
  op.key = draw.uniform(DType::kF32, {2, 2, 4});
  op.value = draw.uniform(DType::kF32, {2, 2, 3});
  op.slot_mapping = draw.values(DType::kI64, {2}, {3, -1});
  op.cache.layout = KvLayout::kPaged;
  op.cache.key = swap_axes(draw.uniform(DType::kF16, {2, 2, 3, 4}), 1, 2);
  op.cache.value = swap_axes(draw.uniform(DType::kF16, {2, 2, 3, 3}), 1, 2);
  q.operation = op;
  q.rulings = {"slot_minus_one_skipped"};
  return q;
}

Question invalid() {
  Question q = question("invalid-heads", "invalid");
  Drawer draw(q);
  AttentionOp op = varlen(draw, 1, 2);
  op.kv.key = draw.uniform(DType::kF32, {2, 3, 4});  // 2 heads on 3 KV heads
  op.kv.value = draw.uniform(DType::kF32, {2, 3, 3});
  q.operation = op;
  q.result = CaseResult::kInvalid;
  q.rulings = {"rejects"};
  return q;
}

}  // namespace

questions::QuestionSet small_questions() {
  questions::QuestionSet set;
  set.questions.push_back(merge());  // not in the order of their ids
  set.questions.push_back(causal("causal-first"));
  set.questions.push_back(causal("causal-again"));
  set.questions.push_back(empty_rows());
  set.questions.push_back(heads_first_window());
  set.questions.push_back(latent());
  set.questions.push_back(indexer());
  set.questions.push_back(cache_write());
  set.questions.push_back(invalid());
  set.relations = {{"the same twice", {{"causal-first", 0, 2}, {"causal-again", 0, 2}}}};
  return set;
}

golden::PackSpec small_pack_spec() {
  return {"small",
          "0.2.0",
          "core",
          "Problems to test packs with",
          {{"causal-wrong", "0.1.0", "it was wrong", "causal-first"}}};
}

int answer_by_reference(const AttentionProblem& problem, const Outputs& outputs) {
  run_once(*make_reference_backend(), problem, outputs);
  return problem.kind() == OpKind::kCacheWrite ? 0 : 800;
}

golden::MadePack make_small_pack(const std::filesystem::path& target) {
  return golden::make_pack(target, small_pack_spec(), small_questions(), answer_by_reference);
}

}  // namespace attn
