// Image ranges of a step, from the features of its prompts and for its tokens (vLLM's
// mm_prefix utilities).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attn/metadata.h"

namespace attn {

// A part of a prompt that stands for something that is not text.
struct PromptFeature {
  std::string modality;  // "image" and "video" see themselves both ways
  std::int32_t offset = 0;
  std::int32_t length = 0;
  std::optional<std::vector<bool>> is_embed;  // [length]; none = every token
};

struct ImageSpanOptions {
  std::optional<std::int32_t> sliding_window;
  bool clamp_sliding_window = false;  // the window holds within images, too
  std::int32_t span_pad = 0;          // > 0: images start behind padding to a multiple of it
};

// Every row gets an entry, possibly empty. An image longer than a window that it is not clamped to
// is none. Throws Error when offset or length is negative, a position does not fit an i32, or
// span_pad is negative.
std::vector<RowImages> mm_prefix_ranges(std::span<const std::vector<PromptFeature>> features,
                                        const ImageSpanOptions& options);

inline constexpr ImageRange kNoImage = {-1, -1};

// Per scheduled token the range it is in (the last one of several), else kNoImage; empty when no
// token is in any. query_start_loc [n + 1], seq_lens [n]. Throws Error for a row that there is not.
std::vector<ImageRange> mm_prefix_query_ranges(const std::optional<std::vector<RowImages>>& ranges,
                                               std::span<const std::int32_t> query_start_loc,
                                               std::span<const std::int32_t> seq_lens);

// The ranges of `num_rows` rows as rows of one length, filled up with [0, 0]; none when there is
// nothing else.
std::optional<std::vector<std::vector<ImageRange>>> padded_ranges(
    const std::optional<std::vector<RowImages>>& ranges, std::int32_t num_rows);

}  // namespace attn
