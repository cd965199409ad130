#include "core/checks.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <string>

namespace attn::checks {

int least_common_multiple(std::string_view what, int a, int b) {
  const std::int64_t multiple = std::int64_t{a} / std::gcd(a, b) * b;
  if (multiple > std::numeric_limits<int>::max()) {
    fail("{} {} and {} have no common multiple in range", what, a, b);
  }
  return static_cast<int>(multiple);
}

void expect_shape(std::string_view what, const TensorView& view,
                  std::initializer_list<std::int64_t> shape) {
  bool fits = view.rank == static_cast<std::int32_t>(shape.size());
  int axis = 0;
  for (const std::int64_t size : shape) {
    fits = fits && (size == kAny ? view.shape[axis] >= 0 : view.shape[axis] == size);
    ++axis;
  }
  if (fits && view.data == nullptr && view.num_units() != 0) fail("{} has no memory", what);
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
  expect_host(what, view);
  expect_data(what, view, dtype, shape);
}

void expect_data(std::string_view what, const TensorView& view, DType dtype,
                 std::initializer_list<std::int64_t> shape) {
  expect_dtype(what, view, dtype);
  expect_shape(what, view, shape);
}

void expect_host(std::string_view what, const TensorView& view) {
  if (view.space != MemorySpace::kHost)
    fail("{} lies in device memory, must be in host memory", what);
}

void expect_absent(std::string_view what, const TensorView& view, std::string_view why) {
  if (view.present()) fail("{} is given, but {}", what, why);
}

void expect_real(std::string_view what, const TensorView& view) {
  if (!is_floating(view.dtype) || view.dtype == DType::kF8E8M0 || view.dtype == DType::kF4E2M1) {
    fail("{} is {}, expected a floating type", what, to_string(view));
  }
}

void expect_finite_number(std::string_view what, double value) {
  if (!std::isfinite(value)) fail("{} is {}, must be finite", what, value);
}

void expect_at_least(std::string_view what, std::int64_t value, std::int64_t least) {
  if (value < least) fail("{} is {}, must be at least {}", what, value, least);
}

void expect_finite(std::string_view what, const TensorView& view) {
  for (std::int64_t i = 0; i < view.shape[0]; ++i) {
    if (view.rank == 1) {
      const double value = value_at(view, i);
      if (!std::isfinite(value)) fail("{}[{}] is {}, must be finite", what, i, value);
      continue;
    }
    for (std::int64_t j = 0; j < view.shape[1]; ++j) {
      const double value = value_at(view, i, j);
      if (!std::isfinite(value)) fail("{}[{},{}] is {}, must be finite", what, i, j, value);
    }
  }
}

void expect_scale(std::string_view what, const TensorView& scale, std::int64_t heads,
                  std::int64_t num_reqs) {
  expect_dtype(what, scale, DType::kF32);
  expect_host(what, scale);
  if (scale.rank == 2 && num_reqs >= 0) {
    expect_shape(what, scale, {num_reqs, heads});
  } else if (scale.rank != 1 || scale.shape[0] != 1) {
    expect_shape(what, scale, {heads});
  }
  expect_finite(what, scale);
}

void expect_starts(std::string_view what, const TensorView& starts) {
  if (int_at(starts, 0) != 0) fail("{}[0] is {}, must be 0", what, int_at(starts, 0));
  for (std::int64_t r = 0; r + 1 < starts.shape[0]; ++r) {
    if (int_at(starts, r + 1) < int_at(starts, r)) {
      fail("{}[{}] is {}, less than the {} before it", what, r + 1, int_at(starts, r + 1),
           int_at(starts, r));
    }
  }
}

void expect_lengths(const TensorView& query_start_loc, const TensorView& seq_lens) {
  expect_tensor("seq_lens", seq_lens, DType::kI32, {kAny});
  expect_tensor("query_start_loc", query_start_loc, DType::kI32, {seq_lens.shape[0] + 1});
  expect_starts("query_start_loc", query_start_loc);
  for (std::int64_t r = 0; r < seq_lens.shape[0]; ++r) {
    const std::int64_t seq_len = int_at(seq_lens, r);
    if (seq_len < 0) fail("seq_lens[{}] is {}, must not be negative", r, seq_len);
  }
}

void expect_query(const TensorView& query, const TensorView& query_start_loc) {
  expect_real("query", query);
  expect_shape("query", query, {kAny, kAny, kAny});
  expect_at_least("num_heads", query.shape[1], 1);
  expect_at_least("head_size", query.shape[2], 1);
  const std::int64_t last = query_start_loc.shape[0] - 1;
  if (query.shape[0] < int_at(query_start_loc, last)) {
    fail("query has {} rows, query_start_loc[{}] asks for {}", query.shape[0], last,
         int_at(query_start_loc, last));
  }
}

void expect_block_table(const TensorView& block_table, const TensorView& seq_lens,
                        std::int64_t num_blocks, std::int64_t block_size) {
  expect_tensor("block_table", block_table, DType::kI32, {seq_lens.shape[0], kAny});
  for (std::int64_t r = 0; r < seq_lens.shape[0]; ++r) {
    const std::int64_t used = ceil_div(int_at(seq_lens, r), block_size);
    if (used > block_table.shape[1]) {
      fail("block_table has {} columns, seq_lens[{}] = {} needs {}", block_table.shape[1], r,
           int_at(seq_lens, r), used);
    }
    for (std::int64_t j = 0; j < used; ++j) {
      const std::int64_t block = int_at(block_table, r, j);
      if (block < 0 || block >= num_blocks) {
        fail("block_table[{},{}] is {}, outside [0, {})", r, j, block, num_blocks);
      }
    }
  }
}

void expect_slot_mapping(const TensorView& slot_mapping, std::int64_t num_slots) {
  expect_tensor("slot_mapping", slot_mapping, DType::kI64, {kAny});
  for (std::int64_t t = 0; t < slot_mapping.shape[0]; ++t) {
    const std::int64_t slot = int_at(slot_mapping, t);
    if (slot < -1 || slot >= num_slots) {
      fail("slot_mapping[{}] is {}, neither -1 nor in [0, {})", t, slot, num_slots);
    }
  }
}

void expect_exec(const ExecSpec& exec) {
  expect_at_least("exec.num_splits", exec.num_splits, 0);
  expect_at_least("exec.kv_chunk", exec.kv_chunk, 0);
  expect_at_least("exec.common_prefix_len", exec.common_prefix_len, 0);
  expect_at_least("exec.dcp_size", exec.dcp_size, 0);
  expect_at_least("exec.dcp_interleave", exec.dcp_interleave, 0);
  if (exec.num_splits != 0 && exec.kv_chunk != 0) {
    fail("exec has num_splits {} and kv_chunk {}, one excludes the other", exec.num_splits,
         exec.kv_chunk);
  }
  if (exec.common_prefix_len != 0 && !exec.has_common_prefix) {
    fail("exec.common_prefix_len is {} without has_common_prefix", exec.common_prefix_len);
  }
  if (exec.dcp_interleave != 0 && exec.dcp_size == 0) {
    fail("exec.dcp_interleave is {} without dcp_size", exec.dcp_interleave);
  }
}

}  // namespace attn::checks
