#include "optimized/cpu/key_parts.h"

#include <algorithm>

namespace attn::cpu {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

KeyParts::KeyParts(const ExecSpec& exec, std::int64_t seq_len)
    : seq_len_(seq_len), chunk_(seq_len), prefix_(0) {
  if (exec.num_splits != 0) chunk_ = ceil_div(seq_len, exec.num_splits);
  if (exec.kv_chunk != 0) chunk_ = std::min(exec.kv_chunk, seq_len);
  chunk_ = std::max<std::int64_t>(chunk_, 1);
  if (exec.has_common_prefix) prefix_ = exec.common_prefix_len;
}

std::int64_t KeyParts::end_of(std::int64_t k) const {
  const std::int64_t end = std::min((k / chunk_ + 1) * chunk_, seq_len_);
  return k < prefix_ ? std::min(end, prefix_) : end;
}

std::int64_t KeyParts::count() const {
  const bool extra_cut = prefix_ < seq_len_ && prefix_ % chunk_ != 0;
  return ceil_div(seq_len_, chunk_) + (extra_cut ? 1 : 0);
}

}  // namespace attn::cpu
