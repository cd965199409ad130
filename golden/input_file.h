// Reading of regular files, front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "golden/file_descriptor.h"

namespace attn::golden {

// Messages do not repeat the path; with_source() puts it before them.
class InputFile {
 public:
  // Throws Error for what is not a regular file (folder, device, pipe) or cannot be opened; never
  // waits for a writer.
  explicit InputFile(const std::filesystem::path& path);

  std::int64_t size() const { return size_; }  // when opened

  // Fills `to` with the next bytes; throws Error when the file ends before, as it does when
  // somebody cuts it meanwhile.
  void read(std::span<std::byte> to);

 private:
  FileDescriptor fd_;
  std::int64_t size_ = 0;
};

// A whole file of text.
std::string read_text(const std::filesystem::path& path);

std::vector<std::byte> read_bytes(const std::filesystem::path& path);

// SHA-256, 64 lower-case hex digits.
std::string sha256_of_file(const std::filesystem::path& path);
std::string sha256_of(std::span<const std::byte> bytes);

}  // namespace attn::golden
