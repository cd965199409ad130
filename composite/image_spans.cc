#include "attn/image_spans.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "attn/error.h"

namespace attn {
namespace {

constexpr std::size_t kMaxPaddedRanges = std::size_t{1} << 24;

void expect_feature(const PromptFeature& feature) {
  const std::int64_t past = std::int64_t{feature.offset} + feature.length;
  if (feature.offset < 0 || feature.length < 0 || past > std::numeric_limits<std::int32_t>::max()) {
    throw Error(
        fmt::format("a feature has offset {} and length {}", feature.offset, feature.length));
  }
  if (feature.is_embed && feature.is_embed->size() != static_cast<std::size_t>(feature.length)) {
    throw Error(fmt::format("is_embed has {} entries, the length is {}", feature.is_embed->size(),
                            feature.length));
  }
}

// Maximal runs of true, at positions from `offset`.
std::vector<ImageRange> runs_of(const std::vector<bool>& is_embed, std::int32_t offset) {
  std::vector<ImageRange> runs;
  for (std::size_t i = 0; i < is_embed.size(); ++i) {
    if (!is_embed[i]) continue;
    const std::int32_t position = offset + static_cast<std::int32_t>(i);
    if (i == 0 || !is_embed[i - 1]) runs.push_back({position, position});
    runs.back().end = position;
  }
  return runs;
}

std::vector<ImageRange> ranges_of(const PromptFeature& feature, std::int32_t span_pad) {
  const std::int32_t last = feature.offset + feature.length - 1;
  if (span_pad > 0) {
    const std::int64_t start = std::int64_t{feature.offset / span_pad} * span_pad + span_pad - 1;
    if (start > std::numeric_limits<std::int32_t>::max()) {
      throw Error(fmt::format("offset {} does not fit span_pad {}", feature.offset, span_pad));
    }
    return {{static_cast<std::int32_t>(start), last}};
  }
  if (feature.is_embed) return runs_of(*feature.is_embed, feature.offset);
  return {{feature.offset, last}};
}

bool outgrows_window(const ImageRange& range, const ImageSpanOptions& options) {
  if (options.clamp_sliding_window || !options.sliding_window) return false;
  return std::int64_t{range.end} - range.start + 1 > *options.sliding_window;
}

}  // namespace

std::vector<RowImages> mm_prefix_ranges(std::span<const std::vector<PromptFeature>> features,
                                        const ImageSpanOptions& options) {
  if (options.span_pad < 0) {
    throw Error(fmt::format("span_pad is {}, must be at least 0", options.span_pad));
  }
  std::vector<RowImages> rows;
  for (const std::vector<PromptFeature>& of_row : features) {
    RowImages images{static_cast<std::int32_t>(rows.size()), {}};
    for (const PromptFeature& feature : of_row) {
      expect_feature(feature);
      if (feature.modality != "image" && feature.modality != "video") continue;
      for (const ImageRange& range : ranges_of(feature, options.span_pad)) {
        if (!outgrows_window(range, options)) images.ranges.push_back(range);
      }
    }
    rows.push_back(std::move(images));
  }
  return rows;
}

std::vector<ImageRange> mm_prefix_query_ranges(const std::optional<std::vector<RowImages>>& ranges,
                                               std::span<const std::int32_t> query_start_loc,
                                               std::span<const std::int32_t> seq_lens) {
  if (query_start_loc.size() != seq_lens.size() + 1 || query_start_loc.front() != 0 ||
      !std::is_sorted(query_start_loc.begin(), query_start_loc.end())) {
    throw Error("query_start_loc must have one entry more than seq_lens, from 0, not decreasing");
  }
  std::vector<ImageRange> of_token;
  for (const RowImages& images : ranges.value_or(std::vector<RowImages>{})) {
    if (images.row < 0 || static_cast<std::size_t>(images.row) >= seq_lens.size()) {
      throw Error(
          fmt::format("mm_req_doc_ranges names row {}, there are {}", images.row, seq_lens.size()));
    }
    const auto row = static_cast<std::size_t>(images.row);
    const std::int64_t query_len = query_start_loc[row + 1] - query_start_loc[row];
    const std::int64_t context_len = seq_lens[row] - query_len;
    for (const ImageRange& range : images.ranges) {
      if (query_len == 0 || range.start >= range.end) continue;
      const std::int64_t first = std::max<std::int64_t>(range.start - context_len, 0);
      const std::int64_t last = std::min(range.end - context_len, query_len - 1);
      if (first > last) continue;
      of_token.resize(static_cast<std::size_t>(query_start_loc.back()), kNoImage);
      const auto begin = of_token.begin() + query_start_loc[row];
      std::fill(begin + first, begin + last + 1, range);
    }
  }
  return of_token;
}

std::optional<std::vector<std::vector<ImageRange>>> padded_ranges(
    const std::optional<std::vector<RowImages>>& ranges, std::int32_t num_rows) {
  if (!ranges) return std::nullopt;
  constexpr ImageRange kFiller = {0, 0};
  std::vector<std::vector<ImageRange>> rows(static_cast<std::size_t>(std::max(num_rows, 0)));
  for (const RowImages& images : *ranges) {
    if (0 <= images.row && images.row < num_rows) {
      rows[static_cast<std::size_t>(images.row)] = images.ranges;
    }
  }
  std::size_t longest = 1;
  bool any = false;
  for (std::vector<ImageRange>& row : rows) {
    if (row.empty()) row = {kFiller};
    any = any || row.size() > 1 || row.front() != kFiller;
    longest = std::max(longest, row.size());
  }
  if (!any) return std::nullopt;
  if (longest > kMaxPaddedRanges / rows.size()) {
    throw Error(fmt::format("{} rows padded to {} ranges are too many", rows.size(), longest));
  }
  for (std::vector<ImageRange>& row : rows) row.resize(longest, kFiller);
  return rows;
}

}  // namespace attn
