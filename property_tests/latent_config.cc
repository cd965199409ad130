#include "property_tests/latent_config.h"

#include <fmt/core.h>

#include <ostream>

namespace attn::property_tests {
namespace {

constexpr int kDsMlaLatent = 512;
constexpr int kDsMlaRope = 64;

std::string_view name_of(LatentCache cache) {
  constexpr std::string_view kNames[] = {"f32", "bf16", "f16", "f8_e4m3fn", "fp8_ds_mla"};
  return kNames[static_cast<std::size_t>(cache)];
}

std::string text(const ExecSpec& exec) {
  return fmt::format("splits={} chunk={} prefix={} dcp={}/{}", exec.num_splits, exec.kv_chunk,
                     exec.has_common_prefix ? exec.common_prefix_len : -1, exec.dcp_size,
                     exec.dcp_interleave);
}

}  // namespace

DType dtype_of(LatentCache cache) {
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3FN, DType::kU8};
  return kTypes[static_cast<std::size_t>(cache)];
}

LatentConfig normalised(LatentConfig c) {
  if (c.lengths == Lengths::kBeyond) c.context_len = 0;
  if (c.cache == LatentCache::kFp8DsMla) {  // rows are long: few of them
    c.latent = kDsMlaLatent;
    c.rope = kDsMlaRope;
    c.k_scale = false;
    c.num_reqs = std::min(c.num_reqs, 2);
    c.num_heads = std::min(c.num_heads, 2);
    c.query_len = std::min(c.query_len, 3);
    c.context_len = std::min(c.context_len, 5);
    c.nope = std::min(c.nope, 4);
    c.head_size_v = std::min(c.head_size_v, 4);
  }
  if (!c.expanded) c.nope = c.head_size_v = 1;
  if (c.exec.num_splits != 0) c.exec.kv_chunk = 0;
  if (!c.exec.has_common_prefix) c.exec.common_prefix_len = 0;
  if (c.exec.dcp_size == 0) c.exec.dcp_interleave = 0;
  return c;
}

SparseConfig normalised(SparseConfig c) {
  c.mla.expanded = false;
  c.mla.exec = {};
  c.mla = normalised(c.mla);
  if (c.sinks == SparseSinks::kNone) c.lse_includes_sink = true;
  return c;
}

std::string to_string(const LatentConfig& c) {
  const MemoryForm& m = c.memory;
  return fmt::format(
      "family={} seed={:#x} specials={} reqs={} lengths={} query_len={} context_len={} heads={} "
      "latent={} rope={} query={} cache={} k_scale={} expanded={} nope={} head_size_v={} causal={} "
      "{} block_size={} block_order={:#x} spare_blocks={} paddings={},{},{} fill={}",
      name(c.family), c.seed, c.specials, c.num_reqs, static_cast<int>(c.lengths), c.query_len,
      c.context_len, c.num_heads, c.latent, c.rope, name(c.query_dtype), name_of(c.cache),
      c.k_scale, c.expanded, c.nope, c.head_size_v, c.causal, text(c.exec), m.block_size,
      m.block_order, m.spare_blocks, m.table_padding, m.row_padding, m.dim_padding,
      static_cast<int>(m.fill));
}

std::string to_string(const SparseConfig& c) {
  return fmt::format("listed={} topk_lens={} space={} sinks={} lse_includes_sink={} {}", c.listed,
                     c.topk_lens, c.space == TopkIndexSpace::kSlot ? "slot" : "request",
                     static_cast<int>(c.sinks), c.lse_includes_sink, to_string(c.mla));
}

std::ostream& operator<<(std::ostream& stream, const LatentConfig& config) {
  return stream << to_string(config);
}
std::ostream& operator<<(std::ostream& stream, const SparseConfig& config) {
  return stream << to_string(config);
}

}  // namespace attn::property_tests
