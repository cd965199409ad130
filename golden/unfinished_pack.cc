#include "golden/unfinished_pack.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <vector>

#include "attn/error.h"
#include "golden/error_source.h"

namespace attn::golden {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".partial-";
constexpr int kMaxAttempts = 1000;

[[noreturn]] void fail(std::string_view what, int error_number) {
  throw Error(fmt::format("{}: {}", what, system_message(error_number)));
}

// Process id in "<label>.partial-<digits>".
std::optional<pid_t> maker_of(std::string_view name) {
  const std::size_t mark = name.rfind(kMark);
  if (mark == std::string_view::npos || mark == 0) return std::nullopt;
  const std::string_view digits = name.substr(mark + kMark.size());
  pid_t process = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), process);
  const bool whole = error == std::errc() && end == digits.data() + digits.size() && process > 0;
  return whole ? std::optional(process) : std::nullopt;
}

bool is_digits_and_points(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// A maker holds a lock on its folder as long as it lives. Process ids alone do not tell: makers in
// two containers may share the folder's parent and not see each other, or even have the same id.
bool is_locked(const fs::path& path) {
  const FileDescriptor folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  return folder.valid() && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// "<name>-<version>.partial-<digits>" of a process that has ended. A process of our own id is an
// earlier one: we have not made ours yet.
bool is_abandoned(std::string_view entry, std::string_view name) {
  const std::optional<pid_t> maker = maker_of(entry);
  if (!maker || !entry.starts_with(name) || entry.size() <= name.size() ||
      entry[name.size()] != '-') {
    return false;
  }
  const std::string_view version =
      entry.substr(name.size() + 1, entry.rfind(kMark) - name.size() - 1);
  if (!is_digits_and_points(version)) return false;
  return *maker == ::getpid() || (::kill(*maker, 0) != 0 && errno == ESRCH);
}

void remove_abandoned(const fs::path& folder, const std::string& name) {
  std::vector<fs::path> abandoned;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.symlink_status().type() == fs::file_type::directory &&
        is_abandoned(entry.path().filename().native(), name) && !is_locked(entry.path())) {
      abandoned.push_back(entry.path());
    }
  }
  std::error_code ignored;  // one that cannot be removed is in nobody's way
  for (const fs::path& path : abandoned) fs::remove_all(path, ignored);
}

fs::path without_trailing_slash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void expect_free(const fs::path& target) {
  struct stat status = {};
  if (::lstat(target.c_str(), &status) != 0) return;
  if (S_ISLNK(status.st_mode)) throw Error("is a symbolic link");
  if (!S_ISDIR(status.st_mode)) throw Error("is not a folder");
  if (!fs::is_empty(target)) throw Error("exists and is not empty");
}

FileDescriptor open_folder(const fs::path& path) {
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) fail("cannot open the folder", errno);
  return folder;
}

// "<label><our process id>", or a number after it while a process that we cannot see has that one.
fs::path make_folder(const fs::path& parent, const std::string& label) {
  for (int attempt = 0;; ++attempt) {
    fs::path path = parent / fmt::format("{}{}", label, ::getpid() + attempt);
    if (::mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST || attempt == kMaxAttempts) fail("cannot make a folder beside it", errno);
  }
}

// Some file systems cannot sync a folder.
void sync_folder(const FileDescriptor& folder) {
  if (::fsync(folder.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    fail("fsync of the folder", errno);
  }
}

void write_all(const FileDescriptor& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file.get(), bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(fmt::format("{} bytes left", bytes.size()), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

}  // namespace

void expect_finished(const fs::path& folder) {
  std::error_code error;
  fs::path path = fs::canonical(folder, error);
  if (error) path = without_trailing_slash(folder);
  if (maker_of(path.filename().native())) {
    throw Error(fmt::format("{}: is an unfinished pack", single_line(folder.string())));
  }
}

UnfinishedPack::UnfinishedPack(const fs::path& target, const std::string& name,
                               const std::string& version)
    : target_(without_trailing_slash(target)), folder_(-1) {
  expect_finished(target_);
  with_source(target.string(), [&] {
    expect_free(target_);
    const fs::path parent = folder_of(target_);
    try {
      fs::create_directories(parent);
      remove_abandoned(parent, name);
    } catch (const fs::filesystem_error& error) {
      fail("cannot use its folder", error.code().value());
    }
    path_ = make_folder(parent, fmt::format("{}-{}{}", name, version, kMark));
    folder_ = open_folder(path_);
    (void)::flock(folder_.get(), LOCK_EX | LOCK_NB);  // where there are no locks, ids must do
  });
}

UnfinishedPack::~UnfinishedPack() {
  std::error_code ignored;
  if (!published_) fs::remove_all(path_, ignored);
}

void UnfinishedPack::write(const std::string& name, std::span<const std::byte> bytes) const {
  with_source((path_ / name).string(), [&] {
    FileDescriptor file(::openat(folder_.get(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!file.valid()) fail("cannot create", errno);
    write_all(file, bytes);
    if (::fsync(file.get()) != 0) fail("fsync", errno);
    if (!file.close()) fail("close", errno);
  });
}

void UnfinishedPack::publish() {
  with_source(target_.string(), [&] {
    sync_folder(folder_);
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail("cannot rename to it", errno);
    published_ = true;
    sync_folder(open_folder(folder_of(target_)));
  });
}

}  // namespace attn::golden
