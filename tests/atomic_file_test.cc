#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "attn/case_file.h"
#include "tests/damaged_file.h"
#include "tests/error_text.h"

namespace attn {
namespace {

void write_text(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

std::string write_error(const std::filesystem::path& path, std::string_view text = "new") {
  return error_of([&] { write_text(path, text); });
}

// Files may not grow beyond a few bytes while this lives, as on a disk that is full.
class FullDisk {
 public:
  FullDisk() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small = {16, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(AtomicFile, WritesAndReplaces) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "file";
  write_text(path, "first, longer");
  EXPECT_EQ(text_of(path), "first, longer");
  write_text(path, "second");
  EXPECT_EQ(text_of(path), "second");
  write_text(path, "");
  EXPECT_EQ(text_of(path), "");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
  EXPECT_EQ(temporary_in_flight(), nullptr);
}

TEST(AtomicFile, TakesPlainNamesInTheWorkingFolder) {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string error = write_error("file");
  std::filesystem::current_path(before);
  EXPECT_EQ(error, "");
  EXPECT_EQ(text_of(folder.path() / "file"), "new");
}

TEST(AtomicFile, RefusesTargetsThatAreNoFiles) {
  const TemporaryFolder folder;
  const std::string at = folder.path().string();
  EXPECT_EQ(write_error(folder.path()), at + ": cannot write: it is a folder");
  EXPECT_EQ(write_error(at + "/"), at + "/: cannot write: the path names no file");
  EXPECT_EQ(write_error(""), ": cannot write: the path names no file");
  EXPECT_EQ(write_error("/dev/null"), "/dev/null: cannot write: it is not a regular file");
  ASSERT_EQ(::mkfifo((at + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(write_error(at + "/pipe"), at + "/pipe: cannot write: it is not a regular file");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"pipe"});
}

TEST(AtomicFile, SaysWhyATargetCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string at = folder.path().string();
  folder.write("file", std::string_view("old"));
  EXPECT_EQ(write_error(at + "/none/y"),
            at + "/none/y: cannot write: cannot open its folder: No such file or directory");
  EXPECT_EQ(write_error(at + "/file/y"),
            at + "/file/y: cannot write: cannot open its folder: Not a directory");
  const std::string long_name = at + "/" + std::string(300, 'n');
  EXPECT_EQ(write_error(long_name), long_name + ": cannot write: rename: File name too long");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
  if (::geteuid() == 0) return;  // root may write anywhere
  std::filesystem::permissions(
      folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_EQ(write_error(at + "/y"),
            at + "/y: cannot write: cannot create a temporary file beside it: Permission denied");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

TEST(AtomicFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("file", std::string_view("old"));
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  std::string error;
  {
    const FullDisk full;
    error = write_error(path, std::string(100, 'x'));
  }
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(error, path.string() + ": cannot write: 84 bytes left: File too large");
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
  EXPECT_EQ(temporary_in_flight(), nullptr);
}

// The limit's signal comes from within the write.
void remove_temporary_and_exit(int) {
  const char* path = temporary_in_flight();
  ::_exit(path != nullptr && ::unlink(path) == 0 ? 3 : 4);
}

TEST(AtomicFileDeathTest, LetsASignalHandlerCleanUp) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "file";
  EXPECT_EXIT(
      {
        std::signal(SIGXFSZ, remove_temporary_and_exit);
        const FullDisk full;
        write_text(path, std::string(100, 'x'));
      },
      testing::ExitedWithCode(3), "");
  EXPECT_TRUE(folder.names().empty());
}

TEST(AtomicFile, PassesOverNamesThatAreTaken) {
  const TemporaryFolder folder;
  for (int i = 0; i < 200; ++i) {
    folder.write(
        ".attn-oracle-" + std::to_string(::getpid()) + "-" + std::to_string(i) + ".partial",
        std::string_view("left over"));
  }
  EXPECT_EQ(write_error(folder.path() / "file"), "");
  EXPECT_EQ(text_of(folder.path() / "file"), "new");
  EXPECT_EQ(folder.names().size(), 201u);
}

}  // namespace
}  // namespace attn
