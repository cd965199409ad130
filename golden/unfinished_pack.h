// A pack that is being made: a folder beside its place, renamed when it is complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "golden/file_descriptor.h"

namespace attn::golden {

// Throws Error when the folder has the name of an unfinished pack, "<any>.partial-<digits>".
void expect_finished(const std::filesystem::path& folder);

// write() may be called from many threads at once.
class UnfinishedPack {
 public:
  // Makes the folder `<name>-<version>.partial-<process>` beside `target` and locks it. Removes
  // folders of other makers of `name`, of any version, whose process has ended. Throws Error when
  // `target` exists and is not an empty folder.
  UnfinishedPack(const std::filesystem::path& target, const std::string& name,
                 const std::string& version);
  UnfinishedPack(const UnfinishedPack&) = delete;
  UnfinishedPack& operator=(const UnfinishedPack&) = delete;
  ~UnfinishedPack();  // removes the folder unless it was published

  const std::filesystem::path& path() const { return path_; }

  // A new file, on the disk when this returns.
  void write(const std::string& name, std::span<const std::byte> bytes) const;
  void write(const std::string& name, const std::string& text) const {
    write(name, std::as_bytes(std::span(text)));
  }

  // Renames the folder to its target, durably.
  void publish();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  FileDescriptor folder_;
  bool published_ = false;
};

}  // namespace attn::golden
