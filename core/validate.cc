// Checks of the operation `attention`, from the outside in: types and shapes first, so that no
// element of an index tensor is read before it is known to be there.
#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "attn/error.h"
#include "attn/problem.h"

namespace attn {
namespace {

template <class... T>
[[noreturn]] void fail(fmt::format_string<T...> text, T&&... values) {
  throw Error(fmt::format(text, std::forward<T>(values)...));
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// kAny leaves an axis open.
constexpr std::int64_t kAny = -1;

void expect_shape(std::string_view what, const TensorView& view,
                  std::initializer_list<std::int64_t> shape) {
  bool fits = view.rank == static_cast<std::int32_t>(shape.size());
  int axis = 0;
  for (const std::int64_t size : shape) {
    fits = fits && (size == kAny ? view.shape[axis] >= 0 : view.shape[axis] == size);
    ++axis;
  }
  if (fits) return;
  std::string wanted;
  for (const std::int64_t size : shape) {
    if (!wanted.empty()) wanted += ',';
    wanted += size == kAny ? "?" : std::to_string(size);
  }
  fail("{} is {}, expected shape [{}]", what, to_string(view), wanted);
}

void expect_dtype(std::string_view what, const TensorView& view, DType dtype) {
  if (view.dtype != dtype) fail("{} is {}, expected {}", what, to_string(view), name(dtype));
}

void expect_tensor(std::string_view what, const TensorView& view, DType dtype,
                   std::initializer_list<std::int64_t> shape) {
  expect_dtype(what, view, dtype);
  expect_shape(what, view, shape);
}

void expect_absent(std::string_view what, const TensorView& view, std::string_view why) {
  if (view.present()) fail("{} is given, but {}", what, why);
}

// Types that hold one real number per element.
void expect_real(std::string_view what, const TensorView& view) {
  if (!is_floating(view.dtype) || view.dtype == DType::kF8E8M0 || view.dtype == DType::kF4E2M1) {
    fail("{} is {}, expected a floating type", what, to_string(view));
  }
}

void expect_finite_real(std::string_view what, double value) {
  if (!std::isfinite(value)) fail("{} is {}, must be finite", what, value);
}

void expect_finite(std::string_view what, const TensorView& view) {
  if (view.rank == 1) {
    for (std::int64_t i = 0; i < view.shape[0]; ++i) {
      if (!std::isfinite(value_at(view, i))) {
        fail("{}[{}] is {}, must be finite", what, i, value_at(view, i));
      }
    }
    return;
  }
  for (std::int64_t i = 0; i < view.shape[0]; ++i) {
    for (std::int64_t j = 0; j < view.shape[1]; ++j) {
      if (!std::isfinite(value_at(view, i, j))) {
        fail("{}[{},{}] is {}, must be finite", what, i, j, value_at(view, i, j));
      }
    }
  }
}

void expect_at_least(std::string_view what, std::int64_t value, std::int64_t least) {
  if (value < least) fail("{} is {}, must be at least {}", what, value, least);
}

class AttentionChecker {
 public:
  explicit AttentionChecker(const AttentionOp& op) : op_(op), kv_(op.kv) {}

  void check() {
    check_lengths();
    check_query();
    check_cache_shapes();
    check_heads();
    check_cache_addresses();
    check_encoding();
    check_mask();
    check_bias();
    check_numbers();
    check_exec();
  }

 private:
  void check_lengths() {
    expect_tensor("seq_lens", op_.seq_lens, DType::kI32, {kAny});
    num_reqs_ = op_.num_reqs();
    expect_tensor("query_start_loc", op_.query_start_loc, DType::kI32, {num_reqs_ + 1});
    check_starts("query_start_loc", op_.query_start_loc);
    for (std::int64_t r = 0; r < num_reqs_; ++r) {
      if (op_.seq_len(r) < 0) fail("seq_lens[{}] is {}, must not be negative", r, op_.seq_len(r));
      max_seq_len_ = std::max(max_seq_len_, op_.seq_len(r));
      max_query_len_ = std::max(max_query_len_, op_.query_len(r));
    }
  }

  void check_starts(std::string_view what, const TensorView& starts) const {
    if (int_at(starts, 0) != 0) fail("{}[0] is {}, must be 0", what, int_at(starts, 0));
    for (std::int64_t r = 0; r < num_reqs_; ++r) {
      if (int_at(starts, r + 1) < int_at(starts, r)) {
        fail("{}[{}] is {}, less than the {} before it", what, r + 1, int_at(starts, r + 1),
             int_at(starts, r));
      }
    }
  }

  void check_query() {
    expect_real("query", op_.query);
    expect_shape("query", op_.query, {kAny, kAny, kAny});
    expect_at_least("num_heads", op_.num_heads(), 1);
    expect_at_least("head_size", op_.head_size(), 1);
    if (op_.query.shape[0] < op_.num_tokens()) {
      fail("query has {} rows, query_start_loc[{}] asks for {}", op_.query.shape[0], num_reqs_,
           op_.num_tokens());
    }
  }

  void check_cache_shapes() {
    if (kv_.paged()) {
      expect_shape("key_cache", kv_.key, {kAny, kAny, kAny, kAny});
      expect_at_least("block_size", kv_.block_size(), 1);
      expect_shape("value_cache", kv_.value,
                   {kv_.key.shape[0], kv_.key.shape[1], kv_.key.shape[2], kAny});
      expect_tensor("block_table", kv_.block_table, DType::kI32, {num_reqs_, kAny});
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
      check_block_table();
      return;
    }
    check_starts("kv_start_loc", kv_.kv_start_loc);
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

  void check_block_table() const {
    const std::int64_t num_blocks = kv_.key.shape[0];
    for (std::int64_t r = 0; r < num_reqs_; ++r) {
      const std::int64_t used = ceil_div(op_.seq_len(r), kv_.block_size());
      if (used > kv_.block_table.shape[1]) {
        fail("block_table has {} columns, seq_lens[{}] = {} needs {}", kv_.block_table.shape[1], r,
             op_.seq_len(r), used);
      }
      for (std::int64_t j = 0; j < used; ++j) {
        const std::int64_t block = int_at(kv_.block_table, r, j);
        if (block < 0 || block >= num_blocks) {
          fail("block_table[{},{}] is {}, outside [0, {})", r, j, block, num_blocks);
        }
      }
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
    } else if (view.dtype != DType::kI8 && view.dtype != DType::kF8E4M3FN) {
      fail("{} is {}, a scale per token and head needs i8 or f8_e4m3fn", what, to_string(view));
    }
  }

  void check_scale(std::string_view what, const TensorView& scale, bool applies) const {
    if (!scale.present()) return;
    if (!applies) expect_absent(what, scale, "the cache has scales of its own");
    expect_dtype(what, scale, DType::kF32);
    if (scale.rank == 2) {
      expect_shape(what, scale, {num_reqs_, op_.num_kv_heads()});
    } else if (scale.rank != 1 || scale.shape[0] != 1) {
      expect_shape(what, scale, {op_.num_kv_heads()});
    }
    expect_finite(what, scale);
  }

  void check_scale_cache(std::string_view what, const TensorView& scale, bool applies) const {
    if (!applies) return expect_absent(what, scale, "the cache has no scale per token and head");
    expect_tensor(what, scale, DType::kF32,
                  {kv_.key.shape[0], kv_.key.shape[1], op_.num_kv_heads()});
  }

  void check_block_scale(std::string_view what, const TensorView& scale, bool applies,
                         std::int64_t head_size) const {
    if (!applies) return expect_absent(what, scale, "the cache is not nvfp4");
    if (head_size % 16 != 0)
      fail("nvfp4 needs head sizes that are multiples of 16, not {}", head_size);
    expect_tensor(what, scale, DType::kF8E4M3FN,
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
      expect_tensor("alibi_slopes", bias.alibi_slopes, DType::kF32, {op_.num_heads()});
    }
    if (bias.attn_bias.present()) {
      expect_real("attn_bias", bias.attn_bias);
      expect_score_shape("attn_bias", bias.attn_bias);
    }
    if (bias.qq_bias.present()) {
      expect_tensor("qq_bias", bias.qq_bias, DType::kF32, {kAny, kAny});
      expect_shape("qq_bias", bias.qq_bias, {bias.qq_bias.shape[1], bias.qq_bias.shape[1]});
    }
  }

  void check_numbers() const {
    expect_finite_real("scale", op_.scale);
    expect_finite_real("logits_soft_cap", op_.logits_soft_cap);
    if (op_.logits_soft_cap < 0.0) {
      fail("logits_soft_cap is {}, must not be negative", op_.logits_soft_cap);
    }
    if (op_.sinks.present()) {
      expect_real("sinks", op_.sinks);
      expect_shape("sinks", op_.sinks, {op_.num_heads()});
    }
    if (op_.q_scale.present()) {
      expect_dtype("q_scale", op_.q_scale, DType::kF32);
      if (op_.q_scale.rank != 1 || op_.q_scale.shape[0] != 1) {
        expect_shape("q_scale", op_.q_scale, {op_.num_kv_heads()});
      }
      expect_finite("q_scale", op_.q_scale);
    }
    if (op_.output_scale.present()) {
      expect_tensor("output_scale", op_.output_scale, DType::kF32, {1});
      expect_finite("output_scale", op_.output_scale);
      const double scale = value_at(op_.output_scale, 0);
      if (!(scale > 0.0)) fail("output_scale[0] is {}, must be positive", scale);
    }
  }

  void check_exec() const {
    const ExecSpec& exec = op_.exec;
    expect_at_least("exec.num_splits", exec.num_splits, 0);
    expect_at_least("exec.kv_chunk", exec.kv_chunk, 0);
    expect_at_least("exec.common_prefix_len", exec.common_prefix_len, 0);
    expect_at_least("exec.dcp_size", exec.dcp_size, 0);
    expect_at_least("exec.dcp_interleave", exec.dcp_interleave, 0);
    if (exec.num_splits != 0 && exec.kv_chunk != 0) {
      fail("exec has num_splits {} and kv_chunk {}, one excludes the other", exec.num_splits,
           exec.kv_chunk);
    }
    if (exec.dcp_interleave != 0 && exec.dcp_size == 0) {
      fail("exec.dcp_interleave is {} without dcp_size", exec.dcp_interleave);
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

AttentionProblem::AttentionProblem(Operation operation) : operation_(std::move(operation)) {
  if (const AttentionOp* op = attention()) validate(*op);
}

}  // namespace attn
