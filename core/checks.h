// Checks that validation is made of. Each throws Error naming field, index and value.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "attn/error.h"
#include "attn/operation.h"
#include "attn/view.h"

namespace attn::checks {

template <class... T>
[[noreturn]] void fail(fmt::format_string<T...> text, T&&... values) {
  throw Error(fmt::format(text, std::forward<T>(values)...));
}

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// Of two numbers >= 1; throws when it is beyond int.
int least_common_multiple(std::string_view what, int a, int b);

// Leaves an axis of a shape open.
inline constexpr std::int64_t kAny = -1;

// Also: there is memory, unless there are no elements.
void expect_shape(std::string_view what, const TensorView& view,
                  std::initializer_list<std::int64_t> shape);
// Index and scale tensors lie in host memory.
void expect_host(std::string_view what, const TensorView& view);
void expect_dtype(std::string_view what, const TensorView& view, DType dtype);
// An index or scale tensor.
void expect_tensor(std::string_view what, const TensorView& view, DType dtype,
                   std::initializer_list<std::int64_t> shape);
// A data tensor: in any memory.
void expect_data(std::string_view what, const TensorView& view, DType dtype,
                 std::initializer_list<std::int64_t> shape);
void expect_absent(std::string_view what, const TensorView& view, std::string_view why);

// A type that holds one real number per element.
void expect_real(std::string_view what, const TensorView& view);

void expect_finite_number(std::string_view what, double value);
void expect_at_least(std::string_view what, std::int64_t value, std::int64_t least);

// Every element of a tensor of one or two axes.
void expect_finite(std::string_view what, const TensorView& view);

// f32 [1] or [heads], finite; with num_reqs not negative also [num_reqs, heads].
void expect_scale(std::string_view what, const TensorView& scale, std::int64_t heads,
                  std::int64_t num_reqs);

// query_start_loc i32 [num_reqs + 1] from 0, not decreasing; seq_lens i32 [num_reqs], not negative.
void expect_lengths(const TensorView& query_start_loc, const TensorView& seq_lens);
void expect_starts(std::string_view what, const TensorView& starts);

// Floating [>= last query_start_loc, heads >= 1, head_size >= 1].
void expect_query(const TensorView& query, const TensorView& query_start_loc);

// i32 [num_reqs, width]: wide enough for every request, used block ids in [0, num_blocks).
void expect_block_table(const TensorView& block_table, const TensorView& seq_lens,
                        std::int64_t num_blocks, std::int64_t block_size);

// i64 [len]: -1 or in [0, num_slots).
void expect_slot_mapping(const TensorView& slot_mapping, std::int64_t num_slots);

void expect_exec(const ExecSpec& exec);

}  // namespace attn::checks
