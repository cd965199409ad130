#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "attn/case_file.h"
#include "golden/error_source.h"
#include "golden/file_descriptor.h"

namespace attn {
namespace {

using golden::FileDescriptor;
using golden::system_message;

// The one temporary file in flight, for a signal handler: set before the file exists, cleared after
// it is gone. Writers take turns.
char in_flight_path[PATH_MAX];
std::atomic<bool> in_flight{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler reads it");
std::mutex writer_turn;

[[noreturn]] void fail(std::string_view what, int error_number) {
  throw Error(fmt::format("cannot write: {}: {}", what, system_message(error_number)));
}

// The temporary file: created on construction, removed on destruction unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& folder) : fd_(-1) {
    // A name of this process may be left over from one that was killed and had the same id.
    for (int attempt = 0; attempt < kMaxAttempts && !fd_.valid(); ++attempt) {
      static unsigned counter = 0;
      const std::string name = fmt::format(".attn-oracle-{}-{}.partial", ::getpid(), counter++);
      announce((folder / name).native());
      fd_ = FileDescriptor(
          ::open(in_flight_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666));
      const int error = errno;
      if (!fd_.valid()) {
        in_flight.store(false);
        if (error != EEXIST) fail("cannot create a temporary file beside it", error);
      }
    }
    if (!fd_.valid()) fail("every temporary name is taken", EEXIST);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (in_flight.load()) ::unlink(in_flight_path);
    in_flight.store(false);
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(fd_.get(), bytes.data(), bytes.size());
      const int error = errno;
      if (done < 0 && error == EINTR) continue;
      if (done < 0) fail(fmt::format("{} bytes left", bytes.size()), error);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    if (::fsync(fd_.get()) != 0) fail("fsync", errno);
    if (!fd_.close()) fail("close", errno);
  }

  void rename_to(const std::filesystem::path& path) {
    if (::rename(in_flight_path, path.c_str()) != 0) fail("rename", errno);
    in_flight.store(false);
  }

 private:
  static constexpr int kMaxAttempts = 1000;

  static void announce(const std::string& path) {
    if (path.size() >= sizeof in_flight_path) fail("path", ENAMETOOLONG);
    std::memcpy(in_flight_path, path.c_str(), path.size() + 1);
    in_flight.store(true);
  }

  FileDescriptor fd_;
};

// Renaming would put a file in the place of a device or pipe, e.g. /dev/null.
void expect_replaceable(const std::filesystem::path& path) {
  if (!path.has_filename()) throw Error("cannot write: the path names no file");
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (S_ISLNK(status.st_mode)) throw Error("cannot write: it is a symbolic link");
  if (S_ISDIR(status.st_mode)) throw Error("cannot write: it is a folder");
  if (!S_ISREG(status.st_mode)) throw Error("cannot write: it is not a regular file");
}

// Makes the rename durable. Some file systems cannot sync a folder.
void sync_folder(const FileDescriptor& folder) {
  if (::fsync(folder.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    fail("fsync of the folder", errno);
  }
}

void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const std::lock_guard<std::mutex> turn(writer_turn);
  expect_replaceable(path);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const FileDescriptor folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_fd.valid()) fail("cannot open its folder", errno);
  TemporaryFile temporary(folder);
  temporary.write(bytes);
  temporary.rename_to(path);
  sync_folder(folder_fd);
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  golden::with_source(path.string(), [&] { replace_file(path, bytes); });
}

const char* temporary_in_flight() { return in_flight.load() ? in_flight_path : nullptr; }

}  // namespace attn
