// The container of cases and results: u64 header length, JSON header, tensors. Read strictly,
// written deterministically. Little endian, C order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/dtype.h"
#include "attn/view.h"

namespace attn::golden {

inline constexpr std::int64_t kMaxHeaderBytes = std::int64_t{16} << 20;

// How a logical type is stored: as itself, or as U8 when it is a floating type below 16 bits.
DType storage_of(DType logical);
std::string_view storage_name(DType logical);  // of storage_of(logical): "F64", "BF16", "U8", ...

struct StoredTensor {
  DType storage = DType::kU8;  // one of F64 F32 F16 BF16 I64 I32 I8 U8 BOOL
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;  // owned by the container, aligned to the element size

  // The same memory as `logical`, which must be stored as `storage`; 1 to kMaxRank axes.
  TensorView view(DType logical) const { return contiguous(data.data(), logical, shape); }
};

using Metadata = std::map<std::string, std::string>;
using StoredTensors = std::map<std::string, StoredTensor>;

class Safetensors {
 public:
  // Both throw Error unless: the header length is a multiple of 8, at most kMaxHeaderBytes and
  // inside the file; the header is JSON padded with spaces; every tensor has a known type, axes
  // whose product fits its data_offsets, and is aligned to its element size; the tensors cover all
  // that follows the header, without overlap, gap or rest.
  static Safetensors read(const std::filesystem::path& path);
  static Safetensors parse(std::span<const std::byte> bytes);  // copies

  const Metadata& metadata() const { return metadata_; }
  const StoredTensors& tensors() const { return tensors_; }

 private:
  // Fills its argument with the next bytes of the file.
  using ReadNext = std::function<void(std::span<std::byte>)>;

  Safetensors() = default;
  static Safetensors load(std::int64_t file_bytes, const ReadNext& read_next);

  std::unique_ptr<std::byte[]> bytes_;  // what follows the header
  Metadata metadata_;
  StoredTensors tensors_;
};

// Throws Error unless the metadata are `format` = `expected` and texts of the given keys, no
// others.
void expect_metadata(const Safetensors& file, std::string_view expected,
                     std::initializer_list<std::string_view> keys);

// Throws Error unless a view can have the axes of `shape`: 1 to kMaxRank.
void expect_viewable(std::string_view tensor, std::span<const std::int64_t> shape);

// Bytes of a file: tensors in descending element size, then by name; header padded with spaces to a
// multiple of 8. Throws Error when a name or text is not UTF-8 or data does not fit its shape.
std::vector<std::byte> to_safetensors(const Metadata& metadata, const StoredTensors& tensors);

}  // namespace attn::golden
