#include "property_tests/draw_values.h"

#include <algorithm>
#include <cmath>

#include "attn/random.h"

namespace attn::property_tests {
namespace {

// Coordinates of an element: position is absolute, head a query or KV head.
struct Place {
  std::int64_t request;
  std::int64_t position;
  std::int64_t head;
  std::int64_t dim;
};

Words words_at(const ProblemConfig& config, RandomTensor tensor, const Place& at) {
  return random_words(config.seed, random_index(at.request, at.position, at.head, at.dim), tensor,
                      static_cast<std::uint32_t>(config.family));
}

// The smallest power of two a with 4 * a * scale >= 128.
double logit_amplitude(const ProblemConfig& config) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(config.head_size));
  double amplitude = 1.0;
  while (4.0 * amplitude * scale < 128.0) amplitude *= 2.0;
  return amplitude;
}

double query_element(const ProblemConfig& config, const Words& words, std::int64_t dim) {
  switch (config.family) {
    case Family::kUniform:
      return uniform(words, config.query_dtype);
    case Family::kNegativeLogits:
    case Family::kLargeLogits:
      return dim == 0 ? 4.0 : bell(words) / 4.0;
    case Family::kExactLane:
    case Family::kMembership:
      return 0.0;
    default:
      return bell(words);
  }
}

double key_element(const ProblemConfig& config, const Words& words, std::int64_t dim) {
  switch (config.family) {
    case Family::kUniform:
      return uniform(words, DType::kF32);
    case Family::kNegativeLogits:
      return dim == 0 ? -logit_amplitude(config) : bell(words) / 4.0;
    case Family::kLargeLogits:
      return dim == 0 ? logit_amplitude(config) : bell(words) / 4.0;
    default:
      return bell(words);
  }
}

double value_element(const ProblemConfig& config, const Words& words, const Place& at) {
  switch (config.family) {
    case Family::kUniform:
      return uniform(words, DType::kF32);
    case Family::kNegativeLogits:
      return std::fabs(bell(words));
    case Family::kExactLane:
      return small_integer(words);
    case Family::kMembership: {
      const bool mine = at.position / 8 % config.head_size_v == at.dim;
      return mine ? std::ldexp(1.0, static_cast<int>(at.position % 8)) : 0.0;
    }
    case Family::kConstantValues: {
      const Place first{at.request, 0, at.head, at.dim};
      return bell(words_at(config, RandomTensor::kValue, first));
    }
    default:
      return bell(words);
  }
}

// A code of an 8-bit type, NaN and infinities moved to finite ones.
std::uint64_t finite_code(DType dtype, const Words& words) {
  const std::uint64_t code = words[0] >> 24;
  if (dtype == DType::kI8 || std::isfinite(decode(dtype, code))) return code;
  return dtype == DType::kF8E4M3FNUZ ? 0x00 : code & ~std::uint64_t{0x40};
}

// One side (keys or values) of a request's cache.
class SideDrawer {
 public:
  SideDrawer(const ProblemConfig& config, RandomTensor which, std::int64_t r, std::int64_t seq_len)
      : config_(config),
        which_(which),
        dtype_(dtype_of(config.kv)),
        encoding_(encoding_of(config.kv)),
        request_(r),
        seq_len_(seq_len),
        size_(which == RandomTensor::kKey ? config.head_size : config.head_size_v) {}

  void draw(HostTensor& codes, HostTensor& token_scale, HostTensor& block_scale) const {
    const std::int64_t heads = config_.num_kv_heads;
    codes = HostTensor(dtype_, {seq_len_, heads, size_ / elements_per_unit(dtype_)});
    if (encoding_ == KvEncoding::kPerTokenHead) {
      token_scale = HostTensor(DType::kF32, {seq_len_, heads});
    }
    if (encoding_ == KvEncoding::kNvfp4) {
      block_scale = HostTensor(DType::kF8E4M3FN, {seq_len_, heads, size_ / 16});
    }
    for (std::int64_t k = 0; k < seq_len_; ++k) {
      for (std::int64_t h = 0; h < heads; ++h) {
        if (encoding_ == KvEncoding::kPerTokenHead) draw_token(k, h, codes, token_scale);
        if (encoding_ == KvEncoding::kNvfp4) draw_nvfp4(k, h, codes, block_scale);
        if (encoding_ == KvEncoding::kPlain) draw_plain(k, h, codes);
      }
    }
  }

 private:
  bool all_codes() const { return config_.family == Family::kAllCodes && bits(dtype_) <= 8; }

  double element(const Place& at) const {
    const Words words = words_at(config_, which_, at);
    return which_ == RandomTensor::kKey ? key_element(config_, words, at.dim)
                                        : value_element(config_, words, at);
  }

  void draw_plain(std::int64_t k, std::int64_t h, HostTensor& codes) const {
    const std::int64_t row = (k * config_.num_kv_heads + h) * size_;
    for (std::int64_t d = 0; d < size_; ++d) {
      const Place at{request_, k, h, d};
      codes.set_code(row + d, all_codes() ? finite_code(dtype_, words_at(config_, which_, at))
                                          : encode(dtype_, element(at), Overflow::kSaturate));
    }
  }

  // As a cache writer does it: a float32 scale from the row's largest magnitude, codes by its
  // reciprocal.
  void draw_token(std::int64_t k, std::int64_t h, HostTensor& codes,
                  HostTensor& token_scale) const {
    const std::int64_t row = (k * config_.num_kv_heads + h) * size_;
    const RandomTensor scale_tensor =
        which_ == RandomTensor::kKey ? RandomTensor::kKScale : RandomTensor::kVScale;
    if (all_codes()) {
      token_scale.set(random_scale(words_at(config_, scale_tensor, {request_, k, h, 0})), k, h);
      for (std::int64_t d = 0; d < size_; ++d) {
        codes.set_code(row + d,
                       finite_code(dtype_, words_at(config_, which_, {request_, k, h, d})));
      }
      return;
    }
    float largest = 0.0f;
    for (std::int64_t d = 0; d < size_; ++d) {
      largest = std::max(largest, std::fabs(static_cast<float>(element({request_, k, h, d}))));
    }
    const bool integer = dtype_ == DType::kI8;
    const float scale = std::max(largest / (integer ? 127.0f : 448.0f), 1e-6f);
    token_scale.set(scale, k, h);
    for (std::int64_t d = 0; d < size_; ++d) {
      const float x = static_cast<float>(element({request_, k, h, d})) * (1.0f / scale);
      codes.set_code(row + d, encode(dtype_, integer ? std::round(x) : x, Overflow::kSaturate));
    }
  }

  void draw_nvfp4(std::int64_t k, std::int64_t h, HostTensor& codes,
                  HostTensor& block_scale) const {
    const std::int64_t row = (k * config_.num_kv_heads + h) * (size_ / 2);
    for (std::int64_t d = 0; d < size_; d += 2) {
      const std::uint64_t even = words_at(config_, which_, {request_, k, h, d})[0] >> 28;
      const std::uint64_t odd = words_at(config_, which_, {request_, k, h, d + 1})[0] >> 28;
      codes.set_code(row + d / 2, even | odd << 4);
    }
    const RandomTensor scales =
        which_ == RandomTensor::kKey ? RandomTensor::kKBlockScale : RandomTensor::kVBlockScale;
    const std::int64_t groups = size_ / 16;
    for (std::int64_t g = 0; g < groups; ++g) {
      block_scale.set_code((k * config_.num_kv_heads + h) * groups + g,
                           random_block_scale(words_at(config_, scales, {request_, k, h, g})));
    }
  }

  const ProblemConfig& config_;
  RandomTensor which_;
  DType dtype_;
  KvEncoding encoding_;
  std::int64_t request_;
  std::int64_t seq_len_;
  std::int64_t size_;
};

HostTensor scale_tensor(const ProblemConfig& config, RandomTensor which, ScaleShape shape) {
  if (shape == ScaleShape::kNone) return {};
  const std::int64_t heads = shape == ScaleShape::kOne ? 1 : config.num_kv_heads;
  const std::int64_t reqs = shape == ScaleShape::kPerRequestHead ? config.num_reqs : 1;
  std::vector<double> values;
  for (std::int64_t r = 0; r < reqs; ++r) {
    for (std::int64_t h = 0; h < heads; ++h) {
      values.push_back(random_scale(words_at(config, which, {r, 0, h, 0})));
    }
  }
  return shape == ScaleShape::kPerRequestHead ? HostTensor(DType::kF32, {reqs, heads}, values)
                                              : HostTensor(DType::kF32, {heads}, values);
}

}  // namespace

LogicalRequest draw_request(const ProblemConfig& config, std::int64_t r, std::int64_t query_len,
                            std::int64_t seq_len) {
  LogicalRequest request;
  const std::int64_t heads = std::int64_t{config.num_kv_heads} * config.group;
  request.query = HostTensor(config.query_dtype, {query_len, heads, config.head_size});
  for (std::int64_t i = 0; i < query_len; ++i) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t d = 0; d < config.head_size; ++d) {
        const Words words =
            words_at(config, RandomTensor::kQuery, {r, seq_len - query_len + i, h, d});
        request.query.set(query_element(config, words, d), i, h, d);
      }
    }
  }
  SideDrawer(config, RandomTensor::kKey, r, seq_len)
      .draw(request.key, request.k_token_scale, request.k_block_scale);
  SideDrawer(config, RandomTensor::kValue, r, seq_len)
      .draw(request.value, request.v_token_scale, request.v_block_scale);
  return request;
}

void draw_scales(const ProblemConfig& config, LogicalProblem& problem) {
  problem.k_scale = scale_tensor(config, RandomTensor::kKScale, config.kv_scales);
  problem.v_scale = scale_tensor(config, RandomTensor::kVScale, config.kv_scales);
  problem.q_scale = scale_tensor(config, RandomTensor::kQScale, config.q_scale);
  if (encoding_of(config.kv) == KvEncoding::kNvfp4) {
    problem.k_global_scale = scale_tensor(config, RandomTensor::kKScale, ScaleShape::kOne);
    problem.v_global_scale = scale_tensor(config, RandomTensor::kVScale, ScaleShape::kOne);
  }
  if (config.output_codes) {
    const Words words = words_at(config, RandomTensor::kOutputScale, {0, 0, 0, 0});
    problem.output_scale = HostTensor(DType::kF32, {1}, {std::ldexp(random_scale(words), -8)});
  }
}

}  // namespace attn::property_tests
