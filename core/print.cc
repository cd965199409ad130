#include <fmt/format.h>

#include <iterator>
#include <ostream>

#include "attn/problem.h"

namespace attn {
namespace {

constexpr std::string_view kOpNames[] = {"attention",   "differential",   "mla",
                                         "mla_sparse",  "indexer",        "merge_states",
                                         "cache_write", "mla_cache_write"};

std::string_view alibi_name(AlibiForm form) {
  constexpr std::string_view kNames[] = {"none", "row", "context", "zero", "abs", "sqrt"};
  return kNames[static_cast<int>(form)];
}

class Line {
 public:
  template <class... T>
  void add(fmt::format_string<T...> text, T&&... values) {
    if (!text_.empty()) text_ += ' ';
    fmt::format_to(std::back_inserter(text_), text, std::forward<T>(values)...);
  }
  void tensor(std::string_view what, const TensorView& view) {
    if (view.present()) add("{}={}", what, to_string(view));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void print_mask(Line& line, const MaskSpec& mask) {
  line.add("causal={}", mask.causal);
  line.tensor("causal_per_req", mask.causal_per_req);
  if (mask.window_left != MaskSpec::kUnbounded) line.add("window_left={}", mask.window_left);
  if (mask.window_right != MaskSpec::kUnbounded) line.add("window_right={}", mask.window_right);
  if (mask.sink_token_length != 0) line.add("sink_token_length={}", mask.sink_token_length);
  if (mask.attention_chunk_size != 0) {
    line.add("attention_chunk_size={} attention_chunk_lookback={}", mask.attention_chunk_size,
             mask.attention_chunk_lookback);
  }
  if (mask.rswa_window != 0) line.add("rswa_window={}", mask.rswa_window);
  line.tensor("rswa_prefix_lens", mask.rswa_prefix_lens);
  line.tensor("mm_prefix_ranges", mask.mm_prefix_ranges);
  if (mask.mm_prefix_clamp) line.add("mm_prefix_clamp=true");
  line.tensor("attn_mask", mask.attn_mask);
}

void print_exec(Line& line, const ExecSpec& exec) {
  if (exec.num_splits != 0) line.add("num_splits={}", exec.num_splits);
  if (exec.kv_chunk != 0) line.add("kv_chunk={}", exec.kv_chunk);
  if (exec.has_common_prefix) line.add("common_prefix_len={}", exec.common_prefix_len);
  if (exec.dcp_size != 0) line.add("dcp_size={}", exec.dcp_size);
  if (exec.dcp_interleave != 0) line.add("dcp_interleave={}", exec.dcp_interleave);
}

void print_attention(Line& line, const AttentionOp& op) {
  line.add("reqs={} tokens={} heads={}/{} head_size={}", op.num_reqs(), op.num_tokens(),
           op.num_heads(), op.num_kv_heads(), op.head_size());
  if (op.head_size_v() != op.head_size()) line.add("head_size_v={}", op.head_size_v());
  line.add("query={} key={}", name(op.query.dtype), name(op.kv.key.dtype));
  if (op.kv.value.dtype != op.kv.key.dtype) line.add("value={}", name(op.kv.value.dtype));
  line.add("{}", name(op.kv.layout));
  if (op.kv.encoding != KvEncoding::kPlain) line.add("{}", name(op.kv.encoding));
  if (op.kv.paged()) line.add("block_size={}", op.kv.block_size());
  line.add("scale={}", op.scale);
  if (op.logits_soft_cap != 0.0) line.add("logits_soft_cap={}", op.logits_soft_cap);
  print_mask(line, op.mask);
  if (op.bias.alibi_form != AlibiForm::kNone) line.add("alibi={}", alibi_name(op.bias.alibi_form));
  line.tensor("attn_bias", op.bias.attn_bias);
  line.tensor("qq_bias", op.bias.qq_bias);
  if (op.sinks.present()) line.add("sinks lse_includes_sink={}", op.lse_includes_sink);
  line.tensor("k_scale", op.kv.k_scale);
  line.tensor("v_scale", op.kv.v_scale);
  line.tensor("q_scale", op.q_scale);
  line.tensor("output_scale", op.output_scale);
  print_exec(line, op.exec);
}

class Printer {
 public:
  explicit Printer(Line& line) : line_(line) {}

  void operator()(const AttentionOp& op) const { print_attention(line_, op); }
  void operator()(const DifferentialOp& op) const {
    print_attention(line_, op.attention);
    line_.add("diff_lambda={} diff_lambda_init={}", op.lambda, op.lambda_init);
    if (op.norm_weight.present()) line_.add("diff_eps={}", op.eps);
    line_.tensor("diff_norm_weight", op.norm_weight);
  }
  void operator()(const MlaOp& op) const {
    print_latent(op);
    line_.add("{} causal={}", op.form == MlaForm::kAbsorbed ? "absorbed" : "expanded", op.causal);
    if (op.form == MlaForm::kExpanded) {
      line_.add("qk_nope_head_dim={} head_size_v={}", op.qk_nope_head_dim, op.w_uv.shape[2]);
    }
    print_exec(line_, op.exec);
  }
  void operator()(const MlaSparseOp& op) const {
    print_latent(op.mla);
    line_.tensor("topk_indices", op.topk_indices);
    line_.add("{}", op.index_space == TopkIndexSpace::kSlot ? "slots" : "positions");
    line_.tensor("topk_lens", op.topk_lens);
    if (op.sinks.present()) line_.add("sinks lse_includes_sink={}", op.lse_includes_sink);
  }
  void operator()(const IndexerOp& op) const {
    line_.tensor("query", op.query);
    line_.tensor("key", op.key);
    line_.tensor("k_scale", op.k_scale);
    line_.tensor("weights", op.weights);
  }
  void operator()(const MergeStatesOp& op) const {
    line_.tensor("out_parts", op.out_parts);
    line_.add("lse_base={}", op.lse_base_2 ? "2" : "e");
  }
  void operator()(const CacheWriteOp& op) const {
    line_.tensor("key", op.key);
    line_.tensor("value", op.value);
    line_.tensor("slot_mapping", op.slot_mapping);
    line_.tensor("key_cache", op.cache.key);
    line_.tensor("value_cache", op.cache.value);
    line_.add("{}", name(op.cache.encoding));
  }
  void operator()(const MlaCacheWriteOp& op) const {
    line_.tensor("kv_c", op.kv_c);
    line_.tensor("k_pe", op.k_pe);
    line_.tensor("slot_mapping", op.slot_mapping);
    line_.tensor("kv_cache", op.kv_cache);
    line_.add("{}", name(op.encoding));
  }

 private:
  void print_latent(const MlaOp& op) const {
    line_.add("reqs={} heads={} kv_lora_rank={} qk_rope_head_dim={}", op.seq_lens.shape[0],
              op.query.shape[1], op.kv_lora_rank, op.qk_rope_head_dim);
    line_.tensor("query", op.query);
    line_.tensor("kv_cache", op.kv_cache);
    if (op.encoding != KvEncoding::kPlain) line_.add("{}", name(op.encoding));
    line_.add("scale={}", op.scale);
    line_.tensor("k_scale", op.k_scale);
  }

  Line& line_;
};

}  // namespace

std::string_view name(OpKind kind) { return kOpNames[static_cast<int>(kind)]; }

std::string to_string(const AttentionProblem& problem) {
  Line line;
  line.add("{}", name(problem.kind()));
  std::visit(Printer(line), problem.operation());
  return line.take();
}

std::ostream& operator<<(std::ostream& stream, const AttentionProblem& problem) {
  return stream << to_string(problem);
}

}  // namespace attn
