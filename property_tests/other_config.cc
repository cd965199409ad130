#include "property_tests/other_config.h"

#include <fmt/core.h>

#include <ostream>

namespace attn::property_tests {
namespace {

bool is_fp8(DType dtype) {
  return dtype == DType::kF8E4M3FN || dtype == DType::kF8E4M3FNUZ || dtype == DType::kF8E5M2;
}

}  // namespace

DifferentialConfig normalised(DifferentialConfig c) {
  ProblemConfig& a = c.attention;
  if (encoding_of(a.kv) != KvEncoding::kPlain) a.kv = KvFormat::kF8E5M2;
  a.memory.cache = CacheForm::kVarlen;
  a.sinks = SinkKind::kNone;
  a.output_codes = false;
  a.exec = {};
  a = normalised(a);
  return c;
}

CacheWriteConfig normalised(CacheWriteConfig c) {
  const DType dtype = dtype_of(c.cache);
  const bool plain = encoding_of(c.cache) == KvEncoding::kPlain;
  if (encoding_of(c.cache) == KvEncoding::kNvfp4) c.cache = KvFormat::kF8E4M3FN;
  if (!plain || !is_fp8(dtype) || c.input == dtype) c.scales = ScaleShape::kNone;
  if (c.scales == ScaleShape::kPerRequestHead) c.scales = ScaleShape::kPerHead;
  if (c.memory.cache == CacheForm::kVarlen) c.memory.cache = CacheForm::kPagedNHD;
  if (!plain) c.specials = false;
  return c;
}

LatentWriteConfig normalised(LatentWriteConfig c) {
  if (c.cache == LatentCache::kFp8DsMla) {
    c.latent = 512;
    c.rope = 64;
    c.input = DType::kBF16;
    c.specials = false;
  }
  if (c.cache != LatentCache::kF8E4M3FN || c.input == DType::kF8E4M3FN) c.k_scale = false;
  return c;
}

std::string to_string(const DifferentialConfig& c) {
  return fmt::format("norm={} {}", c.norm, to_string(c.attention));
}

std::string to_string(const IndexerConfig& c) {
  return fmt::format(
      "family={} seed={:#x} specials={} tokens={} keys={} heads={} head_size={} query={} key={} "
      "k_scale={}",
      name(c.family), c.seed, c.specials, c.num_tokens, c.num_keys, c.num_heads, c.head_size,
      name(c.query_dtype), name(c.key_dtype), static_cast<int>(c.k_scale));
}

std::string to_string(const MergeConfig& c) {
  return fmt::format(
      "family={} seed={:#x} specials={} empty_parts={} parts={} tokens={} heads={} head_size_v={} "
      "dtype={} base={}",
      name(c.family), c.seed, c.specials, c.empty_parts, c.num_parts, c.num_tokens, c.num_heads,
      c.head_size_v, name(c.dtype), c.base_2 ? "2" : "e");
}

std::string to_string(const CacheWriteConfig& c) {
  return fmt::format(
      "family={} seed={:#x} specials={} slots={} spare_rows={} input={} heads={} head_size={} "
      "head_size_v={} cache={} scales={} form={} block_size={} block_order={:#x} spare_blocks={}",
      name(c.family), c.seed, c.specials, c.num_slots, c.spare_rows, name(c.input), c.num_heads,
      c.head_size, c.head_size_v, name(c.cache), static_cast<int>(c.scales),
      static_cast<int>(c.memory.cache), c.memory.block_size, c.memory.block_order,
      c.memory.spare_blocks);
}

std::string to_string(const LatentWriteConfig& c) {
  return fmt::format(
      "family={} seed={:#x} specials={} slots={} spare_rows={} input={} latent={} rope={} cache={} "
      "k_scale={} block_size={} spare_blocks={}",
      name(c.family), c.seed, c.specials, c.num_slots, c.spare_rows, name(c.input), c.latent,
      c.rope, static_cast<int>(c.cache), c.k_scale, c.block_size, c.spare_blocks);
}

std::ostream& operator<<(std::ostream& stream, const DifferentialConfig& config) {
  return stream << to_string(config);
}
std::ostream& operator<<(std::ostream& stream, const IndexerConfig& config) {
  return stream << to_string(config);
}
std::ostream& operator<<(std::ostream& stream, const MergeConfig& config) {
  return stream << to_string(config);
}
std::ostream& operator<<(std::ostream& stream, const CacheWriteConfig& config) {
  return stream << to_string(config);
}
std::ostream& operator<<(std::ostream& stream, const LatentWriteConfig& config) {
  return stream << to_string(config);
}

}  // namespace attn::property_tests
