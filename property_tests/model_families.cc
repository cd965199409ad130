#include "property_tests/model_families.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attn/random.h"

namespace attn::property_tests {
namespace {

constexpr ModelFamily kFamilies[] = {ModelFamily::kBell,
                                     ModelFamily::kLargeLogits,
                                     ModelFamily::kNeedle,
                                     ModelFamily::kCancellingValues,
                                     ModelFamily::kCancellingScores,
                                     ModelFamily::kEqualKeys,
                                     ModelFamily::kConstants,
                                     ModelFamily::kTies,
                                     ModelFamily::kRamp,
                                     ModelFamily::kSubnormals,
                                     ModelFamily::kWideValues,
                                     ModelFamily::kFewKeys,
                                     ModelFamily::kRandomMask,
                                     ModelFamily::kAlibi,
                                     ModelFamily::kBias,
                                     ModelFamily::kCancellingBiases,
                                     ModelFamily::kSoftCap,
                                     ModelFamily::kSink,
                                     ModelFamily::kLargeMaximum,
                                     ModelFamily::kOneKeyPerTile,
                                     ModelFamily::kHugeQuery};

constexpr std::string_view kFamilyNames[] = {"bell",
                                             "large_logits",
                                             "needle",
                                             "cancelling_values",
                                             "cancelling_scores",
                                             "equal_keys",
                                             "constants",
                                             "ties",
                                             "ramp",
                                             "subnormals",
                                             "wide_values",
                                             "few_keys",
                                             "random_mask",
                                             "alibi",
                                             "bias",
                                             "cancelling_biases",
                                             "soft_cap",
                                             "sink",
                                             "large_maximum",
                                             "one_key_per_tile",
                                             "huge_query"};

class FamilyDraw {
 public:
  FamilyDraw(ModelFamily family, std::uint64_t seed, const FamilyLimits& limits)
      : family_(family), seed_(derived_seed(seed, static_cast<std::uint64_t>(family))) {
    const auto types = static_cast<std::int64_t>(limits.types.size());
    query_type_ = limits.types[static_cast<std::size_t>(below(types))];
    kv_type_ = limits.types[static_cast<std::size_t>(below(types))];
    rows_ = 1 + below(limits.most_rows);
    heads_ = 1 + below(limits.most_heads);
    keys_ = family == ModelFamily::kFewKeys ? 1 + below(3) : 1 + below(limits.most_keys);
    if (family == ModelFamily::kOneKeyPerTile) keys_ = limits.most_keys;
    size_ = 1 + below(limits.most_head_size);
    size_v_ = 1 + below(limits.most_head_size_v);
    scale_ = 1.0 / std::sqrt(static_cast<double>(size_));
    draw_bell();
  }

  DrawnOperation draw() {
    shape_data();
    build();
    shape_options();
    add_common_options();
    drawn_.operation = op_;
    return std::move(drawn_);
  }

 private:
  // One number after the other: [0, n), [-1, 1), about N(0, 1).
  std::int64_t below(std::int64_t n) {
    return n <= 1 ? 0 : static_cast<std::int64_t>(derived_seed(seed_, count_++) >> 1) % n;
  }
  double even() { return static_cast<double>(below(1 << 24)) * 0x1p-23 - 1.0; }
  double between(double low, double high) { return low + (high - low) * (even() * 0.5 + 0.5); }
  double sign() { return below(2) == 0 ? 1.0 : -1.0; }
  bool one_in(std::int64_t n) { return below(n) == 0; }

  void draw_bell() {
    const auto fill = [&](std::vector<double>& to, std::int64_t rows, std::int64_t columns,
                          RandomTensor tensor) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t d = 0; d < columns; ++d) {
          to.push_back(bell(random_words(seed_, random_index(0, i, 0, d), tensor, 0)));
        }
      }
    };
    fill(q_, rows_ * heads_, size_, RandomTensor::kQuery);
    fill(k_, keys_, size_, RandomTensor::kKey);
    fill(v_, keys_, size_v_, RandomTensor::kValue);
  }

  double& key(std::int64_t n, std::int64_t d) {
    return k_[static_cast<std::size_t>(n * size_ + d)];
  }
  double& value(std::int64_t n, std::int64_t j) {
    return v_[static_cast<std::size_t>(n * size_v_ + j)];
  }
  double query(std::int64_t d) const {
    return q_[static_cast<std::size_t>(d)];
  }  // of row 0, head 0

  // Key n with the score `score` under the first query, besides `noise` times what it was.
  void set_score(std::int64_t n, double score, double noise) {
    double square = 0.0;
    for (std::int64_t d = 0; d < size_; ++d) square += query(d) * query(d);
    for (std::int64_t d = 0; d < size_; ++d) {
      key(n, d) = key(n, d) * noise + query(d) * score / (square * scale_);
    }
  }
  void same_queries() {
    for (std::size_t i = static_cast<std::size_t>(size_); i < q_.size(); ++i) {
      q_[i] = q_[i - static_cast<std::size_t>(size_)];
    }
  }
  void times(std::vector<double>& to, double factor) {
    for (double& x : to) x *= factor;
  }

  void shape_data();
  void shape_scores();
  void small_and_large();
  void build();
  void shape_options();
  void add_common_options();
  void set_alibi();
  void set_attn_bias(double mean, double spread);
  void set_qq_bias(double mean);
  void set_mask(std::int64_t stride, double visible);
  void set_sinks(double mean, double spread);

  ModelFamily family_;
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
  DType query_type_, kv_type_;
  std::int64_t rows_, heads_, keys_, size_, size_v_;
  double scale_;
  std::vector<double> q_, k_, v_;
  DrawnOperation drawn_;
  AttentionOp op_;
};

void FamilyDraw::shape_data() {
  switch (family_) {
    case ModelFamily::kCancellingValues: {
      const double large = std::exp2(between(0.0, 20.0));
      times(q_, one_in(2) ? 0.0 : 0x1p-6);
      for (std::int64_t n = 0; n < keys_; ++n) {
        for (std::int64_t j = 0; j < size_v_; ++j) {
          value(n, j) = (n % 2 == 0 ? large : -large) + value(n, j) * (one_in(2) ? 0.01 : 0.0);
        }
      }
      return;
    }
    case ModelFamily::kWideValues:
      for (double& x : v_) x *= std::pow(10.0, between(-6.0, 6.0));
      return;
    case ModelFamily::kConstants: {
      std::fill(q_.begin(), q_.end(), between(0.1, 2.0));
      std::fill(k_.begin(), k_.end(), sign() * between(0.1, 2.0));
      if (one_in(2)) std::fill(v_.begin(), v_.end(), between(0.1, 2.0));
      return;
    }
    case ModelFamily::kEqualKeys:
    case ModelFamily::kTies: {
      const std::int64_t distinct = family_ == ModelFamily::kTies ? 2 : 1;
      for (std::int64_t n = distinct; n < keys_; ++n) {
        for (std::int64_t d = 0; d < size_; ++d) key(n, d) = key(below(distinct), d);
      }
      if (one_in(2)) {
        for (double& x : v_) x = std::fabs(x);
      }
      return;
    }
    case ModelFamily::kSubnormals:
    case ModelFamily::kHugeQuery:
      return small_and_large();
    default:
      return shape_scores();
  }
}

void FamilyDraw::shape_scores() {
  switch (family_) {
    case ModelFamily::kLargeLogits:
      return times(q_, std::exp2(between(1.0, 7.0)));
    case ModelFamily::kNeedle: {
      same_queries();
      const std::int64_t edges[] = {0, keys_ - 1, std::min<std::int64_t>(63, keys_ - 1),
                                    std::min<std::int64_t>(64, keys_ - 1), below(keys_)};
      return set_score(edges[below(5)], between(4.0, 60.0), 0.0);
    }
    case ModelFamily::kCancellingScores: {
      const double large = std::exp2(between(0.0, 9.0));
      for (std::size_t i = 1; i < q_.size(); i += 2) q_[i] = q_[i - 1];
      for (std::int64_t n = 0; n < keys_; ++n) {
        for (std::int64_t d = 1; d < size_; d += 2) {
          const double small = key(n, d);
          key(n, d - 1) *= large;
          key(n, d) = -key(n, d - 1) + small;
        }
      }
      return;
    }
    case ModelFamily::kRamp: {
      same_queries();
      const double step = sign() * between(0.05, 2.0);
      for (std::int64_t n = 0; n < keys_; ++n) {
        set_score(n, step * static_cast<double>(n), one_in(4) ? 0.1 : 0.0);
      }
      return;
    }
    case ModelFamily::kLargeMaximum: {
      same_queries();
      const double top = sign() * between(500.0, 2000.0);
      for (std::int64_t n = 0; n < keys_; ++n) set_score(n, top, between(0.0, 0.5));
      return;
    }
    case ModelFamily::kSoftCap:
      return times(q_, std::exp2(between(-3.0, 7.0)));
    default:
      return;
  }
}

// Exponents by type: where its numbers become subnormal, and what its largest allow.
void FamilyDraw::small_and_large() {
  const double lowest = kv_type_ == DType::kF16 ? -24.0 : -140.0;
  const double normal = kv_type_ == DType::kF16 ? -14.0 : -126.0;
  if (family_ == ModelFamily::kHugeQuery) {
    times(q_, std::exp2(query_type_ == DType::kF16 ? between(8.0, 13.0) : between(90.0, 125.0)));
    return times(k_, std::exp2(between(lowest, normal + 1.0)));
  }
  if (one_in(2)) times(v_, std::exp2(between(lowest, normal + 2.0)));
  if (one_in(2)) times(k_, std::exp2(between(lowest, normal + 2.0)));
  if (one_in(2))
    times(q_, std::exp2(query_type_ == DType::kF16 ? between(-20.0, 0.0) : between(-130.0, 0.0)));
}

void FamilyDraw::build() {
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  op_.query = drawn_.memory.keep(HostTensor(query_type_, {rows_, heads_, size_}, q_));
  op_.query_start_loc = drawn_.memory.keep(HostTensor(DType::kI32, {2}, {0.0, number(rows_)}));
  op_.seq_lens = drawn_.memory.keep(HostTensor(DType::kI32, {1}, {number(keys_)}));
  op_.kv.kv_start_loc = drawn_.memory.keep(HostTensor(DType::kI32, {2}, {0.0, number(keys_)}));
  op_.kv.key = drawn_.memory.keep(HostTensor(kv_type_, {keys_, 1, size_}, k_));
  op_.kv.value = drawn_.memory.keep(HostTensor(kv_type_, {keys_, 1, size_v_}, v_));
  op_.scale = scale_;
}

void FamilyDraw::set_alibi() {
  constexpr AlibiForm kForms[] = {AlibiForm::kRow, AlibiForm::kContext, AlibiForm::kZero,
                                  AlibiForm::kAbs, AlibiForm::kSqrt};
  op_.bias.alibi_form = kForms[below(5)];
  std::vector<double> slopes;
  for (std::int64_t h = 0; h < heads_; ++h)
    slopes.push_back(sign() * std::exp2(between(-8.0, 4.0)));
  op_.bias.alibi_slopes = drawn_.memory.keep(HostTensor(DType::kF32, {heads_}, slopes));
}

void FamilyDraw::set_attn_bias(double mean, double spread) {
  std::vector<double> terms;
  for (std::int64_t i = 0; i < heads_ * rows_ * keys_; ++i) {
    terms.push_back(mean + spread * even());
  }
  op_.bias.attn_bias =
      drawn_.memory.keep(HostTensor(DType::kF32, {1, heads_, rows_, keys_}, terms));
}

void FamilyDraw::set_qq_bias(double mean) {
  std::vector<double> terms;
  for (std::int64_t i = 0; i < rows_ * rows_; ++i) terms.push_back(mean + even());
  op_.bias.qq_bias = drawn_.memory.keep(HostTensor(DType::kF32, {rows_, rows_}, terms));
}

// Of every `stride` positions one is visible, with the given probability.
void FamilyDraw::set_mask(std::int64_t stride, double visible) {
  const std::int64_t place = below(stride);
  std::vector<double> bits;
  for (std::int64_t i = 0; i < heads_ * rows_; ++i) {
    for (std::int64_t k = 0; k < keys_; ++k) {
      bits.push_back(k % stride == place && between(0.0, 1.0) < visible ? 1.0 : 0.0);
    }
  }
  op_.mask.attn_mask =
      drawn_.memory.keep(HostTensor(DType::kBool, {1, heads_, rows_, keys_}, bits));
}

void FamilyDraw::set_sinks(double mean, double spread) {
  std::vector<double> sinks;
  for (std::int64_t h = 0; h < heads_; ++h) sinks.push_back(mean + spread * even());
  op_.sinks = drawn_.memory.keep(HostTensor(DType::kF32, {heads_}, sinks));
  op_.lse_includes_sink = !one_in(3);
}

void FamilyDraw::shape_options() {
  switch (family_) {
    case ModelFamily::kRandomMask:
      return set_mask(1, between(0.0, 1.0));
    case ModelFamily::kOneKeyPerTile: {
      const std::int64_t strides[] = {4, 8, 16, 64};
      return set_mask(strides[below(4)], 1.0);
    }
    case ModelFamily::kAlibi:
      set_alibi();
      if (one_in(3)) set_attn_bias(0.0, 1.0);
      return;
    case ModelFamily::kBias: {
      const double spread = std::exp2(between(-4.0, 10.0));
      return set_attn_bias(one_in(2) ? 0.0 : sign() * between(0.0, 1000.0), spread);
    }
    case ModelFamily::kCancellingBiases: {
      // A slope's terms and their negatives, but for a little.
      const double offset = sign() * std::exp2(between(0.0, 10.0));
      set_attn_bias(offset, 1.0);
      if (one_in(2)) {
        set_qq_bias(-offset);
      } else {
        op_.bias.alibi_form = AlibiForm::kZero;
        const std::vector<double> slopes(static_cast<std::size_t>(heads_),
                                         -offset / static_cast<double>(keys_));
        op_.bias.alibi_slopes = drawn_.memory.keep(HostTensor(DType::kF32, {heads_}, slopes));
        if (one_in(2)) set_qq_bias(offset);
      }
      return;
    }
    case ModelFamily::kSoftCap:
      op_.logits_soft_cap = std::exp2(between(-1.0, 6.0));
      return;
    case ModelFamily::kSink:
      return set_sinks(one_in(3) ? 0.0 : sign() * between(5.0, 90.0), 3.0);
    default:
      return;
  }
}

void FamilyDraw::add_common_options() {
  if (one_in(8)) op_.scale *= sign() * std::exp2(between(-2.0, 2.0));
  if (one_in(8) && !op_.mask.attn_mask.present()) set_mask(1, 0.75);
  if (one_in(8)) {
    op_.mask.causal = true;
  } else if (one_in(8)) {
    op_.mask.window_left = below(keys_);
  }
  if (one_in(8) && !op_.sinks.present()) set_sinks(0.0, 4.0);
  if (one_in(16) && op_.logits_soft_cap == 0.0) op_.logits_soft_cap = between(5.0, 50.0);
}

}  // namespace

std::span<const ModelFamily> all_model_families() { return kFamilies; }

std::string_view name(ModelFamily family) { return kFamilyNames[static_cast<int>(family)]; }

DrawnOperation draw_family(ModelFamily family, std::uint64_t seed, const FamilyLimits& limits) {
  return FamilyDraw(family, seed, limits).draw();
}

}  // namespace attn::property_tests
