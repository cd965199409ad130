#include "tests/cpu_random_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/random.h"

namespace attn::cpu_tests {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}

  std::int64_t below(std::int64_t n) { return attn::below(next(), static_cast<std::uint32_t>(n)); }
  std::int64_t from(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(std::int64_t percent) { return below(100) < percent; }
  double real() { return bell(next()); }
  double scale() { return random_scale(next()); }
  template <class T>
  T of(std::initializer_list<T> items) {
    return items.begin()[below(static_cast<std::int64_t>(items.size()))];
  }

 private:
  Words next() { return random_words(seed_, index_++, RandomTensor::kConfiguration, 0); }

  std::uint64_t seed_;
  std::uint64_t index_ = 0;
};

class Builder {
 public:
  Builder(std::uint64_t seed, std::uint8_t unread, RandomProblem& problem)
      : draw_(seed), unread_(unread), memory_(problem.memory), op_(problem.op) {}

  void build() {
    sizes();
    query();
    cache();
    mask();
    biases();
    rest();
  }

 private:
  void sizes() {
    num_reqs_ = draw_.of<std::int64_t>({0, 1, 1, 2, 3, 3, 4});
    kv_heads_ = draw_.from(1, 3);
    heads_ = kv_heads_ * draw_.of<std::int64_t>({1, 2, 3, 7});
    nvfp4_ = draw_.chance(12);
    head_size_ = nvfp4_ ? 16 * draw_.from(1, 3) : draw_.of<std::int64_t>({1, 3, 8, 24, 65, 70});
    head_size_v_ = draw_.chance(60) ? head_size_ : nvfp4_ ? 32 : draw_.from(1, 40);
    const bool long_keys = draw_.chance(30);
    std::vector<double> starts = {0}, lens;
    for (std::int64_t r = 0; r < num_reqs_; ++r) {
      const std::int64_t query = draw_.of<std::int64_t>({0, 1, 1, 2, 5, long_keys ? 70 : 9});
      const std::int64_t context = draw_.from(draw_.chance(15) ? -query : 0, long_keys ? 190 : 12);
      starts.push_back(starts.back() + static_cast<double>(query));
      lens.push_back(static_cast<double>(query + context));
      max_query_ = std::max(max_query_, query);
      max_seq_ = std::max(max_seq_, query + context);
    }
    op_.query_start_loc = memory_.list(DType::kI32, {num_reqs_ + 1}, starts);
    op_.seq_lens = memory_.list(DType::kI32, {num_reqs_}, lens);
  }

  DType float_type() {
    return draw_.of({DType::kF32, DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3FN,
                     DType::kF8E5M2, DType::kF8E4M3FNUZ});
  }

  void query() {
    const std::int64_t tokens = int_at(op_.query_start_loc, num_reqs_);
    op_.query = memory_.add(float_type(), {tokens + 2, heads_, head_size_}, unread_,
                            draw_.of<std::int64_t>({1, 1, 2}));
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        for (std::int64_t d = 0; d < head_size_; ++d) put(op_.query, draw_.real(), t, h, d);
      }
    }
    op_.scale = draw_.of({1.0, -1.0, 0.3}) / std::sqrt(static_cast<double>(head_size_));
  }

  void cache() {
    KvCacheView& kv = op_.kv;
    const bool per_token_head = !nvfp4_ && draw_.chance(20);
    kv.encoding = nvfp4_           ? KvEncoding::kNvfp4
                  : per_token_head ? KvEncoding::kPerTokenHead
                                   : KvEncoding::kPlain;
    const DType stored = nvfp4_           ? DType::kF4E2M1
                         : per_token_head ? draw_.of({DType::kI8, DType::kF8E4M3FN})
                                          : float_type();
    const bool paged = kv.encoding != KvEncoding::kPlain || draw_.chance(65);
    if (paged) {
      paged_cache(stored);
    } else {
      varlen_cache(stored);
    }
    scales();
    for (std::int64_t r = 0; r < num_reqs_; ++r) {
      for (std::int64_t k = 0; k < op_.seq_len(r); ++k) {
        for (std::int64_t g = 0; g < kv_heads_; ++g) token(r, k, g);
      }
    }
  }

  void varlen_cache(DType stored) {
    KvCacheView& kv = op_.kv;
    std::vector<double> starts = {0};
    for (std::int64_t r = 0; r < num_reqs_; ++r) {
      starts.push_back(starts.back() + static_cast<double>(op_.seq_len(r)));
    }
    const auto rows = static_cast<std::int64_t>(starts.back());
    kv.kv_start_loc = memory_.list(DType::kI32, {num_reqs_ + 1}, starts);
    kv.key = memory_.add(stored, {rows, kv_heads_, head_size_}, unread_, 1 + draw_.below(2));
    kv.value = memory_.add(stored, {rows, kv_heads_, head_size_v_}, unread_);
  }

  void paged_cache(DType stored) {
    KvCacheView& kv = op_.kv;
    const std::int64_t block_size = draw_.of<std::int64_t>({1, 4, 5, 16, 64});
    const auto blocks_of = [&](std::int64_t r) {
      return (op_.seq_len(r) + block_size - 1) / block_size;
    };
    std::int64_t used = 0;
    for (std::int64_t r = 0; r < num_reqs_; ++r) used += blocks_of(r);
    num_blocks_ = used + 2;
    block_size_ = block_size;
    const std::int64_t width = (max_seq_ + block_size - 1) / block_size + 1;
    kv.block_table = memory_.add(DType::kI32, {num_reqs_, width});
    const auto ids =
        random_permutation(static_cast<std::uint64_t>(draw_.below(1 << 20)),
                           static_cast<std::int32_t>(num_blocks_), RandomTensor::kBlockTable, 0);
    std::size_t taken = 0;
    for (std::int64_t r = 0; r < num_reqs_; ++r) {
      for (std::int64_t j = 0; j < width; ++j) {
        put(kv.block_table, j < blocks_of(r) ? ids[taken++] : unread_ == 0 ? 0 : 2147480000, r, j);
      }
    }
    const std::int64_t per_unit = elements_per_unit(stored);
    const std::int64_t size = head_size_ / per_unit, size_v = head_size_v_ / per_unit;
    const bool heads_first = draw_.chance(50);
    const auto side = [&](std::int64_t units) {
      const std::int64_t a = heads_first ? kv_heads_ : block_size;
      const std::int64_t b = heads_first ? block_size : kv_heads_;
      const TensorView view = memory_.add(stored, {num_blocks_, a, b, units}, unread_);
      return heads_first ? swap_axes(view, 1, 2) : view;
    };
    if (stored != DType::kF4E2M1 && draw_.chance(40)) {
      kv.layout = KvLayout::kPacked;
      const TensorView both = side(size + size_v);
      kv.key = slice(both, 3, 0, size);
      kv.value = slice(both, 3, size, size_v);
    } else {
      kv.layout = KvLayout::kPaged;
      kv.key = side(size);
      kv.value = side(size_v);
    }
  }

  TensorView scale_tensor() {
    const Shape shape = draw_.of<Shape>({{1}, {kv_heads_}, {num_reqs_, kv_heads_}});
    std::int64_t count = 1;
    for (const std::int64_t n : shape) count *= n;
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(draw_.scale() / 2);
    return memory_.list(DType::kF32, shape, values);
  }

  void scales() {
    KvCacheView& kv = op_.kv;
    if (kv.encoding == KvEncoding::kPlain) {
      if (draw_.chance(40)) kv.k_scale = scale_tensor();
      if (draw_.chance(40)) kv.v_scale = scale_tensor();
    } else if (kv.encoding == KvEncoding::kPerTokenHead) {
      const Shape shape = {num_blocks_, block_size_, kv_heads_};
      kv.k_scale_cache = memory_.add(DType::kF32, shape, unread_);
      kv.v_scale_cache = memory_.add(DType::kF32, shape, unread_);
    } else {
      const auto planes = [&](std::int64_t size) {
        const Shape shape = {num_blocks_, block_size_, kv_heads_, size / 16};
        return memory_.add(DType::kF8E4M3FN, shape, unread_);
      };
      kv.k_block_scale = planes(head_size_);
      kv.v_block_scale = planes(head_size_v_);
      kv.k_global_scale = memory_.list(DType::kF32, {1}, {draw_.scale() / 4});
      kv.v_global_scale = memory_.list(DType::kF32, {1}, {draw_.scale() / 4});
    }
  }

  void token(std::int64_t r, std::int64_t k, std::int64_t g) {
    const KvCacheView& kv = op_.kv;
    const KvSlot at = kv_slot(kv, r, k);
    const bool int8 = kv.key.dtype == DType::kI8;
    if (kv.encoding == KvEncoding::kPerTokenHead) {
      const double unit = int8 ? 1.0 / 64 : 1.0;
      put(kv.k_scale_cache, draw_.scale() / 2 * unit, at.block, at.slot, g);
      put(kv.v_scale_cache, draw_.scale() / 2 * unit, at.block, at.slot, g);
    }
    if (kv.encoding == KvEncoding::kNvfp4) {
      for (const TensorView* plane : {&kv.k_block_scale, &kv.v_block_scale}) {
        for (std::int64_t i = 0; i < plane->shape[3]; ++i) {
          put(*plane, draw_.scale() / 2, at.block, at.slot, g, i);
        }
      }
    }
    for (const TensorView* side : {&kv.key, &kv.value}) {
      for (std::int64_t d = 0; d < side->shape[side->rank - 1]; ++d) {
        auto* to = const_cast<std::byte*>(kv.paged() ? side->at(at.block, at.slot, g, d)
                                                     : side->at(at.block, g, d));
        if (side->dtype == DType::kF4E2M1) {
          *to = static_cast<std::byte>(draw_.below(256));
        } else {
          const double value = int8 ? 50 * draw_.real() : draw_.real();
          store_code(side->dtype, encode(side->dtype, value, Overflow::kSaturate), to);
        }
      }
    }
  }

  void mask() {
    MaskSpec& m = op_.mask;
    m.causal = draw_.chance(60);
    if (m.causal && draw_.chance(15)) {
      m.rswa_window = draw_.from(1, 7);
      std::vector<double> prefixes;
      for (std::int64_t r = 0; r < num_reqs_; ++r) prefixes.push_back(double(draw_.below(9)));
      m.rswa_prefix_lens = memory_.list(DType::kI32, {num_reqs_}, prefixes);
    } else {
      windows(m);
      if (draw_.chance(25)) ranges(m);
    }
    if (draw_.chance(20)) {
      m.attn_mask = per_score(DType::kBool, [&] { return draw_.chance(75) ? 1.0 : 0.0; });
    }
  }

  void windows(MaskSpec& m) {
    const std::int64_t reach = draw_.of<std::int64_t>({1, 6, 150});
    if (draw_.chance(35)) m.window_left = draw_.below(reach);
    if (draw_.chance(25)) m.window_right = draw_.below(reach);
    if (draw_.chance(3)) m.window_left = std::numeric_limits<std::int64_t>::max();
    if (draw_.chance(20)) m.sink_token_length = draw_.from(1, 6);
    if (draw_.chance(20)) {
      m.attention_chunk_size = draw_.of<std::int64_t>({1, 3, 8, 70});
      m.attention_chunk_lookback = draw_.below(3);
    }
    if (draw_.chance(20)) {
      std::vector<double> flags;
      for (std::int64_t r = 0; r < num_reqs_; ++r) flags.push_back(draw_.chance(50) ? 1 : 0);
      m.causal_per_req = memory_.list(DType::kBool, {num_reqs_}, flags);
    }
  }

  void ranges(MaskSpec& m) {
    const std::int64_t n = draw_.from(0, 3);
    std::vector<double> ends;
    for (std::int64_t i = 0; i < num_reqs_ * n; ++i) {
      const auto start = double(draw_.from(-1, max_seq_));
      ends.insert(ends.end(), {start, start + double(draw_.from(-1, 9))});
    }
    m.mm_prefix_ranges = memory_.list(DType::kI32, {num_reqs_, n, 2}, ends);
    m.mm_prefix_clamp = draw_.chance(50);
  }

  // A tensor with an element a score, some axes broadcast.
  template <class Value>
  TensorView per_score(DType dtype, const Value& value) {
    const auto axis = [&](std::int64_t size) { return draw_.chance(30) ? 1 : size; };
    const Shape shape = {axis(num_reqs_), axis(heads_), axis(std::max<std::int64_t>(max_query_, 1)),
                         axis(max_seq_ + 2)};
    std::vector<double> values(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
    std::generate(values.begin(), values.end(), value);
    return memory_.list(dtype, shape, values);
  }

  void biases() {
    constexpr double kMasks = -std::numeric_limits<double>::infinity();
    BiasSpec& bias = op_.bias;
    if (draw_.chance(30)) {
      bias.alibi_form = draw_.of({AlibiForm::kRow, AlibiForm::kContext, AlibiForm::kZero,
                                  AlibiForm::kAbs, AlibiForm::kSqrt});
      std::vector<double> slopes;
      for (std::int64_t h = 0; h < heads_; ++h) slopes.push_back(draw_.scale() / 8);
      bias.alibi_slopes = memory_.list(DType::kF32, {heads_}, slopes);
    }
    if (draw_.chance(20)) {
      const DType dtype = draw_.of({DType::kF64, DType::kF32, DType::kBF16});
      bias.attn_bias = per_score(dtype, [&] { return draw_.chance(8) ? kMasks : draw_.real(); });
    }
    if (draw_.chance(15)) {
      const std::int64_t n = max_query_ + draw_.below(2);
      std::vector<double> values(static_cast<std::size_t>(n * n));
      for (double& value : values) value = draw_.chance(20) ? kMasks : draw_.real();
      bias.qq_bias = memory_.list(DType::kF32, {n, n}, values);
    }
  }

  void rest() {
    if (draw_.chance(20)) op_.logits_soft_cap = draw_.of({0.5, 3.0, 1e12, 1e300});
    if (draw_.chance(35)) {
      std::vector<double> sinks;
      for (std::int64_t h = 0; h < heads_; ++h) {
        sinks.push_back(draw_.chance(10) ? -std::numeric_limits<double>::infinity() : draw_.real());
      }
      op_.sinks = memory_.list(draw_.of({DType::kF32, DType::kBF16, DType::kF64}), {heads_}, sinks);
      op_.lse_includes_sink = draw_.chance(60);
    }
    if (draw_.chance(20)) {
      const std::int64_t n = draw_.chance(50) ? 1 : kv_heads_;
      std::vector<double> values;
      for (std::int64_t i = 0; i < n; ++i) values.push_back(draw_.scale() / 2);
      op_.q_scale = memory_.list(DType::kF32, {n}, values);
    }
    if (draw_.chance(20)) op_.output_scale = memory_.list(DType::kF32, {1}, {draw_.scale() / 8});
    if (draw_.chance(25)) op_.exec.num_splits = draw_.from(1, 5);
    if (op_.exec.num_splits == 0 && draw_.chance(25)) op_.exec.kv_chunk = draw_.from(1, 80);
    if (draw_.chance(15)) {
      op_.exec.has_common_prefix = true;
      op_.exec.common_prefix_len = draw_.below(90);
    }
    if (draw_.chance(10)) op_.exec.dcp_size = 2;
  }

  Draw draw_;
  std::uint8_t unread_;
  Memory& memory_;
  AttentionOp& op_;
  bool nvfp4_ = false;
  std::int64_t num_reqs_ = 0, heads_ = 0, kv_heads_ = 0, head_size_ = 0, head_size_v_ = 0;
  std::int64_t max_query_ = 0, max_seq_ = 0, num_blocks_ = 0, block_size_ = 0;
};

}  // namespace

TensorView Memory::add(DType dtype, const Shape& shape, std::uint8_t fill, std::int64_t spacing) {
  TensorView view;
  view.dtype = dtype;
  view.rank = static_cast<std::int32_t>(shape.size());
  std::int64_t bytes = unit_bytes(dtype) * spacing;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.shape[axis] = shape[static_cast<std::size_t>(axis)];
    view.stride_bytes[axis] = bytes;
    bytes *= view.shape[axis];
  }
  tensors_.emplace_back(std::max<std::size_t>(static_cast<std::size_t>(bytes), 1), std::byte{fill});
  view.data = tensors_.back().data();
  return view;
}

TensorView Memory::list(DType dtype, const Shape& shape, const std::vector<double>& values) {
  const TensorView view = add(dtype, shape);
  auto* to = static_cast<std::byte*>(const_cast<void*>(view.data));
  for (const double value : values) {
    store_code(dtype, encode(dtype, value, Overflow::kInfinity), to);
    to += unit_bytes(dtype);
  }
  return view;
}

void make_random_problem(std::uint64_t seed, std::uint8_t unread, RandomProblem& problem) {
  Builder(seed, unread, problem).build();
}

AttentionOp alone(const AttentionOp& op, std::int64_t r, Memory& memory) {
  AttentionOp one = op;
  const std::int64_t query_len = op.query_len(r);
  const auto only = [&](TensorView& view) {
    if (view.present() && view.shape[0] == op.num_reqs()) view = slice(view, 0, r, 1);
  };
  const auto only_scores = [&](TensorView& view) {
    only(view);
    if (view.present() && view.shape[2] != 1) view = slice(view, 2, 0, query_len);
  };
  one.query = slice(op.query, 0, op.query_start(r), query_len);
  one.query_start_loc = memory.list(DType::kI32, {2}, {0, double(query_len)});
  only(one.seq_lens);
  if (op.kv.paged()) {
    only(one.kv.block_table);
  } else {
    const std::int64_t first = int_at(op.kv.kv_start_loc, r);
    one.kv.kv_start_loc = memory.list(DType::kI32, {2}, {0, double(op.seq_len(r))});
    one.kv.key = slice(op.kv.key, 0, first, op.seq_len(r));
    one.kv.value = slice(op.kv.value, 0, first, op.seq_len(r));
  }
  if (one.kv.k_scale.rank == 2) only(one.kv.k_scale);
  if (one.kv.v_scale.rank == 2) only(one.kv.v_scale);
  only(one.mask.causal_per_req);
  only(one.mask.rswa_prefix_lens);
  only(one.mask.mm_prefix_ranges);
  only_scores(one.mask.attn_mask);
  only_scores(one.bias.attn_bias);
  return one;
}

}  // namespace attn::cpu_tests
