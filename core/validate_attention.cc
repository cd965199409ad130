// Checks of the operation `attention`, from the outside in: types and shapes first, so that no
// element of an index tensor is read before it is known to be there.
#include <algorithm>

#include "attn/problem.h"
#include "core/checks.h"

namespace attn {
namespace {

using namespace checks;

class AttentionChecker {
 public:
  explicit AttentionChecker(const AttentionOp& op) : op_(op), kv_(op.kv) {}

  void check() {
    check_lengths();
    expect_query(op_.query, op_.query_start_loc);
    check_cache_shapes();
    check_heads();
    check_cache_addresses();
    check_encoding();
    check_mask();
    check_bias();
    check_numbers();
    expect_exec(op_.exec);
  }

 private:
  void check_lengths() {
    expect_lengths(op_.query_start_loc, op_.seq_lens);
    num_reqs_ = op_.num_reqs();
    for (std::int64_t r = 0; r < num_reqs_; ++r) {
      max_seq_len_ = std::max(max_seq_len_, op_.seq_len(r));
      max_query_len_ = std::max(max_query_len_, op_.query_len(r));
    }
  }

  void check_cache_shapes() {
    if (kv_.paged()) {
      expect_shape("key_cache", kv_.key, {kAny, kAny, kAny, kAny});
      expect_at_least("block_size", kv_.block_size(), 1);
      expect_shape("value_cache", kv_.value,
                   {kv_.key.shape[0], kv_.key.shape[1], kv_.key.shape[2], kAny});
      expect_absent("kv_start_loc", kv_.kv_start_loc, "the cache is paged");
    } else {
      expect_shape("key", kv_.key, {kAny, kAny, kAny});
      expect_shape("value", kv_.value, {kv_.key.shape[0], kv_.key.shape[1], kAny});
      expect_tensor("kv_start_loc", kv_.kv_start_loc, DType::kI32, {num_reqs_ + 1});
      expect_absent("block_table", kv_.block_table, "kv_layout is varlen");
    }
    expect_at_least("num_kv_heads", op_.num_kv_heads(), 1);
    expect_at_least("head_size_v", op_.head_size_v(), 1);
  }

  void check_heads() const {
    if (op_.num_heads() % op_.num_kv_heads() != 0) {
      fail("num_heads {} is not a multiple of num_kv_heads {}", op_.num_heads(),
           op_.num_kv_heads());
    }
    if (kv_.head_size() != op_.head_size()) {
      fail("the head size of the keys is {}, of the query {}", kv_.head_size(), op_.head_size());
    }
  }

  void check_cache_addresses() const {
    if (kv_.paged()) {
      return expect_block_table(kv_.block_table, op_.seq_lens, kv_.key.shape[0], kv_.block_size());
    }
    expect_starts("kv_start_loc", kv_.kv_start_loc);
    for (std::int64_t r = 0; r < num_reqs_; ++r) {
      const std::int64_t step = int_at(kv_.kv_start_loc, r + 1) - int_at(kv_.kv_start_loc, r);
      if (step != op_.seq_len(r)) {
        fail("kv_start_loc[{}] gives request {} a length of {}, seq_lens[{}] is {}", r + 1, r, step,
             r, op_.seq_len(r));
      }
    }
    if (kv_.key.shape[0] != int_at(kv_.kv_start_loc, num_reqs_)) {
      fail("key has {} rows, kv_start_loc[{}] is {}", kv_.key.shape[0], num_reqs_,
           int_at(kv_.kv_start_loc, num_reqs_));
    }
  }

  void check_encoding() const {
    const bool plain = kv_.encoding == KvEncoding::kPlain;
    const bool per_token_head = kv_.encoding == KvEncoding::kPerTokenHead;
    const bool nvfp4 = kv_.encoding == KvEncoding::kNvfp4;
    if (kv_.encoding == KvEncoding::kFp8DsMla) fail("fp8_ds_mla is no cache of attention");
    if (!plain && !kv_.paged()) fail("a cache with a scale per token or block must be paged");
    check_scale("k_scale", kv_.k_scale, plain);
    check_scale("v_scale", kv_.v_scale, plain);
    check_scale_cache("k_scale_cache", kv_.k_scale_cache, per_token_head);
    check_scale_cache("v_scale_cache", kv_.v_scale_cache, per_token_head);
    check_block_scale("k_block_scale", kv_.k_block_scale, nvfp4, op_.head_size());
    check_block_scale("v_block_scale", kv_.v_block_scale, nvfp4, op_.head_size_v());
    check_global_scale("k_global_scale", kv_.k_global_scale, nvfp4);
    check_global_scale("v_global_scale", kv_.v_global_scale, nvfp4);
    check_stored_type("key", kv_.key);
    check_stored_type("value", kv_.value);
    if (nvfp4 && kv_.layout == KvLayout::kPacked) fail("nvfp4 is not allowed in paged_packed");
  }

  void check_stored_type(std::string_view what, const TensorView& view) const {
    if (kv_.encoding == KvEncoding::kPlain) {
      expect_real(what, view);
    } else if (kv_.encoding == KvEncoding::kNvfp4) {
      expect_dtype(what, view, DType::kF4E2M1);
    } else if (view.dtype != DType::kI8 && view.dtype != DType::kF8E4M3FN &&
               view.dtype != DType::kI4) {
      fail("{} is {}, a scale per token and head needs i8, f8_e4m3fn or i4", what, to_string(view));
    }
  }

  void check_scale(std::string_view what, const TensorView& scale, bool applies) const {
    if (!scale.present()) return;
    if (!applies) expect_absent(what, scale, "the cache has scales of its own");
    expect_scale(what, scale, op_.num_kv_heads(), num_reqs_);
  }

  void check_scale_cache(std::string_view what, const TensorView& scale, bool applies) const {
    if (!applies) return expect_absent(what, scale, "the cache has no scale per token and head");
    expect_data(what, scale, DType::kF32, {kv_.key.shape[0], kv_.key.shape[1], op_.num_kv_heads()});
  }

  void check_block_scale(std::string_view what, const TensorView& scale, bool applies,
                         std::int64_t head_size) const {
    if (!applies) return expect_absent(what, scale, "the cache is not nvfp4");
    if (head_size % 16 != 0)
      fail("nvfp4 needs head sizes that are multiples of 16, not {}", head_size);
    expect_data(what, scale, DType::kF8E4M3FN,
                {kv_.key.shape[0], kv_.key.shape[1], op_.num_kv_heads(), head_size / 16});
  }

  void check_global_scale(std::string_view what, const TensorView& scale, bool applies) const {
    if (!applies) return expect_absent(what, scale, "the cache is not nvfp4");
    expect_tensor(what, scale, DType::kF32, {1});
    expect_finite(what, scale);
  }

  void check_mask() const {
    const MaskSpec& mask = op_.mask;
    expect_at_least("window_left", mask.window_left, MaskSpec::kUnbounded);
    expect_at_least("window_right", mask.window_right, MaskSpec::kUnbounded);
    expect_at_least("sink_token_length", mask.sink_token_length, 0);
    expect_at_least("attention_chunk_size", mask.attention_chunk_size, 0);
    expect_at_least("attention_chunk_lookback", mask.attention_chunk_lookback, 0);
    expect_at_least("rswa_window", mask.rswa_window, 0);
    if (mask.causal_per_req.present()) {
      expect_tensor("causal_per_req", mask.causal_per_req, DType::kBool, {num_reqs_});
    }
    if (mask.mm_prefix_ranges.present()) {
      expect_tensor("mm_prefix_ranges", mask.mm_prefix_ranges, DType::kI32, {num_reqs_, kAny, 2});
    }
    check_rswa(mask);
    if (mask.attn_mask.present()) {
      expect_dtype("attn_mask", mask.attn_mask, DType::kBool);
      expect_score_shape("attn_mask", mask.attn_mask);
    }
  }

  void check_rswa(const MaskSpec& mask) const {
    if (mask.rswa_window == 0) {
      return expect_absent("rswa_prefix_lens", mask.rswa_prefix_lens, "rswa_window is not");
    }
    expect_tensor("rswa_prefix_lens", mask.rswa_prefix_lens, DType::kI32, {num_reqs_});
    if (!mask.causal) fail("rswa_window {} needs causal", mask.rswa_window);
    expect_absent("causal_per_req", mask.causal_per_req, "rswa_window excludes it");
    expect_absent("mm_prefix_ranges", mask.mm_prefix_ranges, "rswa_window excludes it");
    const bool other = mask.window_left != MaskSpec::kUnbounded ||
                       mask.window_right != MaskSpec::kUnbounded || mask.sink_token_length != 0 ||
                       mask.attention_chunk_size != 0;
    if (other) fail("rswa_window {} excludes every other window and chunk", mask.rswa_window);
  }

  // [num_reqs|1, num_heads|1, max query_len|1, >= max seq_len|1]
  void expect_score_shape(std::string_view what, const TensorView& view) const {
    expect_shape(what, view, {kAny, kAny, kAny, kAny});
    const auto fits = [](std::int64_t size, std::int64_t wanted) {
      return size == 1 || size == wanted;
    };
    if (!fits(view.shape[0], num_reqs_) || !fits(view.shape[1], op_.num_heads()) ||
        !fits(view.shape[2], max_query_len_) ||
        (view.shape[3] != 1 && view.shape[3] < max_seq_len_)) {
      fail("{} is {}, expected [{}|1,{}|1,{}|1,>={}|1]", what, to_string(view), num_reqs_,
           op_.num_heads(), max_query_len_, max_seq_len_);
    }
  }

  void check_bias() const {
    const BiasSpec& bias = op_.bias;
    if (bias.alibi_form == AlibiForm::kNone) {
      expect_absent("alibi_slopes", bias.alibi_slopes, "alibi_form is not");
    } else {
      expect_data("alibi_slopes", bias.alibi_slopes, DType::kF32, {op_.num_heads()});
    }
    if (bias.attn_bias.present()) {
      expect_real("attn_bias", bias.attn_bias);
      expect_score_shape("attn_bias", bias.attn_bias);
    }
    if (bias.qq_bias.present()) {
      expect_data("qq_bias", bias.qq_bias, DType::kF32, {kAny, kAny});
      expect_shape("qq_bias", bias.qq_bias, {bias.qq_bias.shape[1], bias.qq_bias.shape[1]});
    }
  }

  void check_numbers() const {
    expect_finite_number("scale", op_.scale);
    expect_finite_number("logits_soft_cap", op_.logits_soft_cap);
    if (op_.logits_soft_cap < 0.0) {
      fail("logits_soft_cap is {}, must not be negative", op_.logits_soft_cap);
    }
    if (op_.sinks.present()) {
      expect_real("sinks", op_.sinks);
      expect_shape("sinks", op_.sinks, {op_.num_heads()});
    }
    if (op_.q_scale.present()) expect_scale("q_scale", op_.q_scale, op_.num_kv_heads(), kAny);
    if (op_.output_scale.present()) {
      expect_tensor("output_scale", op_.output_scale, DType::kF32, {1});
      expect_finite("output_scale", op_.output_scale);
      const double scale = value_at(op_.output_scale, 0);
      if (!(scale > 0.0)) fail("output_scale[0] is {}, must be positive", scale);
    }
  }

  const AttentionOp& op_;
  const KvCacheView& kv_;
  std::int64_t num_reqs_ = 0;
  std::int64_t max_seq_len_ = 0;
  std::int64_t max_query_len_ = 0;
};

}  // namespace

void validate(const AttentionOp& op) { AttentionChecker(op).check(); }

}  // namespace attn
