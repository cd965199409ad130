#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attn/random.h"
#include "core/special_values.h"
#include "property_tests/latent_config.h"
#include "property_tests/random_element.h"

namespace attn::property_tests {
namespace {

constexpr std::int32_t kGarbageIndex = 2147480000;

// Rows of a kFp8DsMla cache: 512 codes, 4 float32 scales, 64 bf16.
constexpr std::int64_t kDsMlaRowBytes = 656;
constexpr std::int64_t kDsMlaGroup = 128;
constexpr std::int64_t kDsMlaScalesAt = 512;
constexpr std::int64_t kDsMlaRopeAt = 528;

enum LatentEntry : std::uint64_t { kLatentQueryLen, kLatentContextLen };

struct Request {
  int number;  // in the batch: a coordinate of its values
  std::int64_t query_len;
  std::int64_t seq_len;
  std::vector<std::int32_t> blocks = {};
};

class LatentDrawer {
 public:
  LatentDrawer(const LatentConfig& config, std::optional<int> alone) : config_(config) {
    for (int r = 0; r < config.num_reqs; ++r) {
      if (!alone || *alone == r) requests_.push_back(lengths_of(r));
    }
    place_blocks();
  }

  MlaOp draw(TensorStore& memory) const {
    MlaOp op;
    op.kv_lora_rank = config_.latent;
    op.qk_rope_head_dim = config_.rope;
    op.form = config_.expanded ? MlaForm::kExpanded : MlaForm::kAbsorbed;
    if (config_.expanded) op.qk_nope_head_dim = config_.nope;
    op.scale = 1.0 / std::sqrt(static_cast<double>(query_size()));
    op.causal = config_.causal;
    op.exec = config_.exec;
    draw_lengths(memory, op);
    op.query = draw_query(memory);
    op.kv_cache = draw_cache(memory);
    op.block_table = block_table(memory);
    if (config_.cache == LatentCache::kFp8DsMla) op.encoding = KvEncoding::kFp8DsMla;
    if (config_.k_scale) {
      const double scale = random_scale(words(RandomTensor::kKScale, 0, 0, 0, 0));
      op.k_scale = memory.keep(HostTensor(DType::kF32, {1}, {scale}));
    }
    if (config_.expanded) {
      op.w_uk = draw_weights(memory, RandomTensor::kWUk, config_.nope);
      op.w_uv = draw_weights(memory, RandomTensor::kWUv, config_.head_size_v);
    }
    return op;
  }

  const std::vector<Request>& requests() const { return requests_; }

  std::int64_t slot_of(const Request& request, std::int64_t position) const {
    const std::int64_t size = config_.memory.block_size;
    return request.blocks[static_cast<std::size_t>(position / size)] * size + position % size;
  }

  Words words(RandomTensor tensor, std::int64_t r, std::int64_t position, std::int64_t head,
              std::int64_t dim) const {
    return random_words(config_.seed, random_index(r, position, head, dim), tensor,
                        static_cast<std::uint32_t>(config_.family));
  }

 private:
  std::int64_t row_size() const { return config_.latent + config_.rope; }
  std::int64_t query_size() const {
    return (config_.expanded ? config_.nope : config_.latent) + config_.rope;
  }

  int draw_up_to(int r, LatentEntry entry, int most) const {
    const Words w = random_words(config_.seed, static_cast<std::uint64_t>(r) * 64 + entry,
                                 RandomTensor::kConfiguration, 0);
    return static_cast<int>(below(w, static_cast<std::uint32_t>(most) + 1));
  }

  Request lengths_of(int r) const {
    switch (config_.lengths) {
      case Lengths::kEqual:
        break;
      case Lengths::kRagged: {
        const int query_len = draw_up_to(r, kLatentQueryLen, config_.query_len);
        return {r, query_len, query_len + draw_up_to(r, kLatentContextLen, config_.context_len)};
      }
      case Lengths::kBeyond:
        return {r, config_.query_len, draw_up_to(r, kLatentContextLen, config_.query_len - 1)};
    }
    return {r, config_.query_len, config_.query_len + config_.context_len};
  }

  void place_blocks() {
    const std::int64_t size = config_.memory.block_size;
    for (Request& request : requests_) {
      request.blocks.resize(static_cast<std::size_t>((request.seq_len + size - 1) / size));
      num_blocks_ += static_cast<std::int32_t>(request.blocks.size());
    }
    num_blocks_ += config_.memory.spare_blocks;
    std::vector<std::int32_t> order(static_cast<std::size_t>(num_blocks_));
    std::iota(order.begin(), order.end(), 0);
    if (config_.memory.block_order != 0) {
      order =
          random_permutation(config_.memory.block_order, num_blocks_, RandomTensor::kBlockTable, 0);
    }
    auto next = order.begin();
    for (Request& request : requests_) {
      for (std::int32_t& block : request.blocks) block = *next++;
    }
  }

  void draw_lengths(TensorStore& memory, MlaOp& op) const {
    std::vector<double> starts = {0.0};
    std::vector<double> seq_lens;
    for (const Request& request : requests_) {
      starts.push_back(starts.back() + static_cast<double>(request.query_len));
      seq_lens.push_back(static_cast<double>(request.seq_len));
    }
    const auto count = static_cast<std::int64_t>(requests_.size());
    op.query_start_loc = memory.keep(HostTensor(DType::kI32, {count + 1}, starts));
    op.seq_lens = memory.keep(HostTensor(DType::kI32, {count}, seq_lens));
  }

  TensorView block_table(TensorStore& memory) const {
    std::size_t width = 0;
    for (const Request& request : requests_) width = std::max(width, request.blocks.size());
    width += static_cast<std::size_t>(config_.memory.table_padding);
    HostTensor table(DType::kI32, {static_cast<std::int64_t>(requests_.size()),
                                   static_cast<std::int64_t>(width)});
    table.fill(config_.memory.fill == Fill::kZero ? 0 : kGarbageIndex);
    for (std::size_t r = 0; r < requests_.size(); ++r) {
      const std::vector<std::int32_t>& blocks = requests_[r].blocks;
      for (std::size_t j = 0; j < blocks.size(); ++j) {
        table.set_code(static_cast<std::int64_t>(r * width + j),
                       static_cast<std::uint64_t>(blocks[j]));
      }
    }
    return memory.keep(std::move(table));
  }

  double element(const Words& w, DType dtype) const {
    if (config_.specials && is_special(w)) return special_value(w);
    return random_element(config_.family, w, dtype);
  }

  double query_element(const Words& w) const {
    if (config_.specials && is_special(w)) return special_value(w);
    if (config_.family == Family::kExactLane) return 0.0;
    const double x = random_element(config_.family, w, config_.query_dtype);
    return config_.family == Family::kLargeLogits ? 8.0 * x : x;
  }

  TensorView draw_query(TensorStore& memory) const {
    std::int64_t tokens = 0;
    for (const Request& request : requests_) tokens += request.query_len;
    HostTensor query = filled(
        config_.query_dtype, {tokens + config_.memory.row_padding, config_.num_heads, query_size()},
        config_.memory.fill);
    std::int64_t token = 0;
    for (const Request& request : requests_) {
      for (std::int64_t i = 0; i < request.query_len; ++i, ++token) {
        for (std::int64_t h = 0; h < config_.num_heads; ++h) {
          for (std::int64_t d = 0; d < query_size(); ++d) {
            query.set(query_element(words(RandomTensor::kQuery, request.number, i, h, d)), token, h,
                      d);
          }
        }
      }
    }
    return memory.keep(std::move(query));
  }

  void write_plain_row(const Request& request, std::int64_t k, HostTensor& cache,
                       std::int64_t row) const {
    const std::int64_t width = cache.shape()[2];
    for (std::int64_t d = 0; d < row_size(); ++d) {
      const double x = element(words(RandomTensor::kKey, request.number, k, 0, d), DType::kF32);
      cache.set_code(
          row * width + d,
          encode(cache.dtype(), x, std::isinf(x) ? Overflow::kInfinity : Overflow::kSaturate));
    }
  }

  void write_ds_mla_row(const Request& request, std::int64_t k, HostTensor& cache,
                        std::int64_t row) const {
    std::int64_t at = row * cache.shape()[2];
    const auto put = [&](std::uint64_t code, int bytes) {
      for (int i = 0; i < bytes; ++i) cache.set_code(at++, code >> (8 * i) & 0xFF);
    };
    for (std::int64_t d = 0; d < kDsMlaScalesAt; ++d) {
      const double x = element(words(RandomTensor::kKey, request.number, k, 0, d), DType::kF32);
      put(encode(DType::kF8E4M3FN, 4.0 * x, Overflow::kSaturate), 1);
    }
    for (std::int64_t group = 0; group < kDsMlaScalesAt / kDsMlaGroup; ++group) {
      const Words w = words(RandomTensor::kKScale, request.number, k, 0, group);
      put(encode(DType::kF32, random_scale(w) / 4.0, Overflow::kInfinity), 4);
    }
    for (std::int64_t d = 0; d < (kDsMlaRowBytes - kDsMlaRopeAt) / 2; ++d) {
      const Words w = words(RandomTensor::kKey, request.number, k, 0, kDsMlaScalesAt + d);
      put(encode(DType::kBF16, element(w, DType::kBF16), Overflow::kInfinity), 2);
    }
  }

  TensorView draw_cache(TensorStore& memory) const {
    const bool ds_mla = config_.cache == LatentCache::kFp8DsMla;
    const std::int64_t size = ds_mla ? kDsMlaRowBytes : row_size();
    const MemoryForm& form = config_.memory;
    HostTensor cache(dtype_of(config_.cache),
                     {num_blocks_, form.block_size, size + form.dim_padding});
    if (!ds_mla) cache.fill(fill_code(form.fill, cache.dtype()));
    if (ds_mla && form.fill != Fill::kZero) cache.fill(0xFF);  // NaN in each of its types
    for (const Request& request : requests_) {
      for (std::int64_t k = 0; k < request.seq_len; ++k) {
        if (ds_mla) {
          write_ds_mla_row(request, k, cache, slot_of(request, k));
        } else {
          write_plain_row(request, k, cache, slot_of(request, k));
        }
      }
    }
    return slice(memory.keep(std::move(cache)), 2, 0, size);
  }

  // [latent, heads, columns], of a size that keeps projections near that of the latent.
  TensorView draw_weights(TensorStore& memory, RandomTensor which, std::int64_t columns) const {
    HostTensor weights(DType::kF32, {config_.latent, config_.num_heads, columns});
    int halvings = 0;
    while ((4 << (2 * halvings)) <= config_.latent) ++halvings;
    for (std::int64_t l = 0; l < config_.latent; ++l) {
      for (std::int64_t h = 0; h < config_.num_heads; ++h) {
        for (std::int64_t j = 0; j < columns; ++j) {
          const double x = random_element(config_.family, words(which, 0, l, h, j), DType::kF32);
          weights.set(std::ldexp(x, -halvings), l, h, j);
        }
      }
    }
    return memory.keep(std::move(weights));
  }

  const LatentConfig& config_;
  std::vector<Request> requests_;
  std::int32_t num_blocks_ = 0;
};

TensorView draw_list(const SparseConfig& config, const LatentDrawer& drawer, TensorStore& memory) {
  std::vector<double> indices;
  std::int64_t tokens = 0;
  for (const Request& request : drawer.requests()) {
    for (std::int64_t i = 0; i < request.query_len; ++i, ++tokens) {
      for (int place = 0; place < config.listed; ++place) {
        const Words w = drawer.words(RandomTensor::kTopkIndices, request.number, i, 0, place);
        if (request.seq_len == 0 || w[1] % 6 == 0) {
          indices.push_back(-1.0);
          continue;
        }
        const std::int64_t position = below(w, static_cast<std::uint32_t>(request.seq_len));
        const bool by_slot = config.space == TopkIndexSpace::kSlot;
        indices.push_back(
            static_cast<double>(by_slot ? drawer.slot_of(request, position) : position));
      }
    }
  }
  return memory.keep(HostTensor(DType::kI32, {tokens, config.listed}, indices));
}

// Each row keeps a prefix of its own length; what lies behind is garbage that nobody looks at.
TensorView draw_lens(const SparseConfig& config, const LatentDrawer& drawer, TensorStore& memory) {
  std::vector<double> lens;
  for (const Request& request : drawer.requests()) {
    for (std::int64_t i = 0; i < request.query_len; ++i) {
      const Words w = drawer.words(RandomTensor::kTopkIndices, request.number, i, 1, 0);
      lens.push_back(below(w, static_cast<std::uint32_t>(config.listed) + 1));
    }
  }
  const auto count = static_cast<std::int64_t>(lens.size());
  return memory.keep(HostTensor(DType::kI32, {count}, lens));
}

TensorView without_tail(const TensorView& list, const TensorView& lens, TensorStore& memory) {
  HostTensor kept(DType::kI32, {list.shape[0], list.shape[1]});
  for (std::int64_t t = 0; t < list.shape[0]; ++t) {
    for (std::int64_t place = 0; place < list.shape[1]; ++place) {
      const bool live = place < int_at(lens, t);
      kept.set(static_cast<double>(live ? int_at(list, t, place) : kGarbageIndex), t, place);
    }
  }
  return memory.keep(std::move(kept));
}

TensorView draw_sinks(const SparseConfig& config, const LatentDrawer& drawer, TensorStore& memory) {
  if (config.sinks == SparseSinks::kNone) return {};
  HostTensor sinks(DType::kF32, {config.mla.num_heads});
  for (std::int64_t h = 0; h < config.mla.num_heads; ++h) {
    const Words w = drawer.words(RandomTensor::kSinks, 0, 0, h, 0);
    double sink = 2.0 * bell(w);
    const bool infinite = (w[1] >> 31) != 0;
    if (infinite && config.sinks == SparseSinks::kSomeMinusInfinity) sink = -kInf;
    if (infinite && config.sinks == SparseSinks::kSomePlusInfinity) sink = kInf;
    sinks.set(sink, h);
  }
  return memory.keep(std::move(sinks));
}

}  // namespace

DrawnOperation draw_operation(const LatentConfig& config, std::optional<int> alone) {
  DrawnOperation drawn;
  drawn.operation = LatentDrawer(config, alone).draw(drawn.memory);
  return drawn;
}

DrawnOperation draw_operation(const SparseConfig& config, std::optional<int> alone) {
  DrawnOperation drawn;
  const LatentDrawer drawer(config.mla, alone);
  MlaSparseOp op;
  op.mla = drawer.draw(drawn.memory);
  op.topk_indices = draw_list(config, drawer, drawn.memory);
  if (config.topk_lens) {
    op.topk_lens = draw_lens(config, drawer, drawn.memory);
    op.topk_indices = without_tail(op.topk_indices, op.topk_lens, drawn.memory);
  }
  op.index_space = config.space;
  op.sinks = draw_sinks(config, drawer, drawn.memory);
  op.lse_includes_sink = config.lse_includes_sink;
  drawn.operation = op;
  return drawn;
}

}  // namespace attn::property_tests
