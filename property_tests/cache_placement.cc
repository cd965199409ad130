#include "property_tests/cache_placement.h"

#include <numeric>
#include <utility>

#include "attn/error.h"
#include "attn/random.h"

namespace attn::property_tests {
namespace {

constexpr std::int32_t kUnusedBlock = 2147480000;

using RequestTensor = HostTensor LogicalRequest::*;

// Rows of one side of all requests behind one another.
TensorView place_rows(const LogicalProblem& problem, const MemoryForm& form, RequestTensor side,
                      std::int64_t size, TensorStore& store) {
  std::int64_t num_rows = 0;
  for (const LogicalRequest& request : problem.requests) num_rows += request.seq_len();
  const std::int64_t width = size + form.dim_padding;
  HostTensor rows = filled(problem.kv_dtype, {num_rows, problem.num_kv_heads, width}, form.fill);
  std::int64_t line = 0;
  for (const LogicalRequest& request : problem.requests) {
    for (std::int64_t i = 0; i < request.seq_len() * problem.num_kv_heads; ++i, ++line) {
      copy_units(request.*side, i * size, size, rows, line * width);
    }
  }
  return slice(store.keep(std::move(rows)), 2, 0, size);
}

KvCacheView place_varlen(const LogicalProblem& problem, const MemoryForm& form,
                         TensorStore& store) {
  KvCacheView kv = problem.settings.kv;
  if (kv.encoding != KvEncoding::kPlain) throw Error("this encoding needs a paged cache");
  kv.layout = KvLayout::kVarlen;
  std::vector<double> starts = {0};
  for (const LogicalRequest& request : problem.requests) {
    starts.push_back(starts.back() + static_cast<double>(request.seq_len()));
  }
  kv.kv_start_loc =
      store.keep(HostTensor(DType::kI32, {static_cast<std::int64_t>(starts.size())}, starts));
  kv.key = place_rows(problem, form, &LogicalRequest::key, problem.head_size, store);
  kv.value = place_rows(problem, form, &LogicalRequest::value, problem.head_size_v, store);
  return kv;
}

class PagedPlacement {
 public:
  PagedPlacement(const LogicalProblem& problem, const MemoryForm& form, TensorStore& store)
      : problem_(problem), form_(form), store_(store) {
    assign_blocks();
  }

  KvCacheView place() {
    KvCacheView kv = problem_.settings.kv;
    kv.layout = is_packed(form_.cache) ? KvLayout::kPacked : KvLayout::kPaged;
    kv.block_table = store_.keep(table_);
    const std::int64_t per_unit = elements_per_unit(problem_.kv_dtype);
    const std::int64_t key_units = problem_.head_size / per_unit;
    const std::int64_t value_units = problem_.head_size_v / per_unit;
    if (kv.layout == KvLayout::kPacked) {
      const TensorView both =
          place_data({{&LogicalRequest::key, key_units}, {&LogicalRequest::value, value_units}});
      kv.key = slice(both, 3, 0, key_units);
      kv.value = slice(both, 3, key_units, value_units);
    } else {
      kv.key = slice(place_data({{&LogicalRequest::key, key_units}}), 3, 0, key_units);
      kv.value = slice(place_data({{&LogicalRequest::value, value_units}}), 3, 0, value_units);
    }
    if (kv.encoding == KvEncoding::kPerTokenHead) {
      kv.k_scale_cache = place_token_scales(&LogicalRequest::k_token_scale);
      kv.v_scale_cache = place_token_scales(&LogicalRequest::v_token_scale);
    }
    if (kv.encoding == KvEncoding::kNvfp4) {
      kv.k_block_scale = place_block_scales(&LogicalRequest::k_block_scale, problem_.head_size);
      kv.v_block_scale = place_block_scales(&LogicalRequest::v_block_scale, problem_.head_size_v);
    }
    return kv;
  }

 private:
  // A tensor of every request that lands in the same row of a slot.
  struct RowPiece {
    RequestTensor from;
    std::int64_t width;  // units
  };

  std::int64_t num_blocks_of(std::int64_t seq_len) const {
    return (seq_len + form_.block_size - 1) / form_.block_size;
  }

  void assign_blocks() {
    num_blocks_ = form_.spare_blocks;
    for (const LogicalRequest& request : problem_.requests) {
      num_blocks_ += num_blocks_of(request.seq_len());
    }
    std::vector<std::int32_t> order(static_cast<std::size_t>(num_blocks_));
    std::iota(order.begin(), order.end(), 0);
    if (form_.block_order != 0) {
      order = random_permutation(form_.block_order, static_cast<std::int32_t>(num_blocks_),
                                 RandomTensor::kBlockTable, 0);
    }
    const std::int64_t width = num_blocks_of(problem_.max_seq_len()) + form_.table_padding;
    table_ = HostTensor(DType::kI32, {static_cast<std::int64_t>(problem_.requests.size()), width});
    if (form_.fill != Fill::kZero) table_.fill(kUnusedBlock);
    std::size_t next = 0;
    for (std::size_t r = 0; r < problem_.requests.size(); ++r) {
      const std::int64_t used = num_blocks_of(problem_.requests[r].seq_len());
      for (std::int64_t j = 0; j < used; ++j) table_.set(order[next++], r, j);
    }
  }

  // Position of row (block, slot, head) of `width` units.
  std::int64_t row_at(std::size_t r, std::int64_t k, std::int64_t head, bool hnd,
                      std::int64_t width) const {
    const auto block = static_cast<std::int64_t>(table_.value(r, k / form_.block_size));
    const std::int64_t slot = k % form_.block_size;
    const std::int64_t heads = problem_.num_kv_heads;
    const std::int64_t row = hnd ? (block * heads + head) * form_.block_size + slot
                                 : (block * form_.block_size + slot) * heads + head;
    return row * width;
  }

  void copy_rows(RequestTensor from, std::int64_t units, bool hnd, std::int64_t width,
                 std::int64_t offset, HostTensor& to) const {
    for (std::size_t r = 0; r < problem_.requests.size(); ++r) {
      const LogicalRequest& request = problem_.requests[r];
      for (std::int64_t k = 0; k < request.seq_len(); ++k) {
        for (std::int64_t h = 0; h < problem_.num_kv_heads; ++h) {
          copy_units(request.*from, (k * problem_.num_kv_heads + h) * units, units, to,
                     row_at(r, k, h, hnd, width) + offset);
        }
      }
    }
  }

  // Indexed [block, slot, head, unit]; the pieces lie behind one another in a row.
  TensorView place_data(const std::vector<RowPiece>& pieces) {
    const bool hnd = is_hnd(form_.cache);
    std::int64_t width = form_.dim_padding;
    for (const RowPiece& piece : pieces) width += piece.width;
    const std::int64_t heads = problem_.num_kv_heads;
    const std::int64_t slots = form_.block_size;
    HostTensor data = filled(problem_.kv_dtype,
                             hnd ? std::vector<std::int64_t>{num_blocks_, heads, slots, width}
                                 : std::vector<std::int64_t>{num_blocks_, slots, heads, width},
                             form_.fill);
    std::int64_t offset = 0;
    for (const RowPiece& piece : pieces) {
      copy_rows(piece.from, piece.width, hnd, width, offset, data);
      offset += piece.width;
    }
    const TensorView view = store_.keep(std::move(data));
    return hnd ? swap_axes(view, 1, 2) : view;
  }

  // Scales keep the order [block, slot, head] whatever the form is.
  TensorView place_token_scales(RequestTensor from) {
    HostTensor scales =
        filled(DType::kF32, {num_blocks_, form_.block_size, problem_.num_kv_heads}, form_.fill);
    copy_rows(from, 1, false, 1, 0, scales);
    return store_.keep(std::move(scales));
  }

  TensorView place_block_scales(RequestTensor from, std::int64_t head_size) {
    const std::int64_t width = head_size / 16;
    HostTensor scales =
        filled(DType::kF8E4M3FN, {num_blocks_, form_.block_size, problem_.num_kv_heads, width},
               form_.fill);
    copy_rows(from, width, false, width, 0, scales);
    return store_.keep(std::move(scales));
  }

  const LogicalProblem& problem_;
  const MemoryForm& form_;
  TensorStore& store_;
  std::int64_t num_blocks_ = 0;
  HostTensor table_;  // i32 [num_reqs, width]
};

}  // namespace

KvCacheView place_cache(const LogicalProblem& problem, const MemoryForm& form, TensorStore& store) {
  KvCacheView kv = form.cache == CacheForm::kVarlen ? place_varlen(problem, form, store)
                                                    : PagedPlacement(problem, form, store).place();
  kv.k_scale = store.keep(problem.k_scale);
  kv.v_scale = store.keep(problem.v_scale);
  kv.k_global_scale = store.keep(problem.k_global_scale);
  kv.v_global_scale = store.keep(problem.v_global_scale);
  return kv;
}

}  // namespace attn::property_tests
