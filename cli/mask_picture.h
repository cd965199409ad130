// A mask to look at: characters, or a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn/reference.h"

namespace attn::cli {

// What the rows of one request see with one head.
struct RequestMask {
  std::int64_t request = 0;
  std::int64_t query_len = 0;
  std::int64_t seq_len = 0;
  std::vector<std::vector<KeyRange>> visible;  // [query_len]
};

// A line a row with its position, '#' visible, '.' hidden; rows of more than 128 keys as ranges.
std::string mask_text(const RequestMask& mask);

// One picture of all requests, below one another; rows down, keys across.
std::string mask_svg(const std::string& title, const std::vector<RequestMask>& masks);

}  // namespace attn::cli
