#include "golden/questions/setup.h"

#include <algorithm>

namespace attn::questions {
namespace {

std::vector<std::int64_t> lengths(const AttentionSetup& setup, std::int64_t RequestSetup::*which) {
  std::vector<std::int64_t> all(setup.requests.size());
  std::transform(setup.requests.begin(), setup.requests.end(), all.begin(),
                 [which](const RequestSetup& request) { return request.*which; });
  return all;
}

}  // namespace

std::vector<std::int64_t> query_lens(const AttentionSetup& setup) {
  return lengths(setup, &RequestSetup::query_len);
}

std::vector<std::int64_t> seq_lens(const AttentionSetup& setup) {
  return lengths(setup, &RequestSetup::seq_len);
}

}  // namespace attn::questions
