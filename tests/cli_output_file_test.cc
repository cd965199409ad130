// Files that a command writes: whole or not at all.
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <set>

#include "tests/cli_expectations.h"
#include "tests/counting_case.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// What a command writes, and the words that make it write to a path.
struct Writer {
  const char* name;
  Words before;
};

class OutputFile : public testing::TestWithParam<Writer> {
 protected:
  OutputFile() {
    folder_.write("case", CountingCase().bytes());
    setting_.folder = folder_.path();
  }

  CommandOutput write_to(const std::string& path) const {
    Words words = GetParam().before;
    words.push_back(path);
    return attn_oracle(words, setting_);
  }
  std::set<std::string> names() const {
    const auto list = folder_.names();
    return {list.begin(), list.end()};
  }

  TemporaryFolder folder_;
  CommandSetting setting_;
};

INSTANTIATE_TEST_SUITE_P(
    Of, OutputFile,
    testing::Values(Writer{"Run", {"run", "--case", "case", "--backend", "CPU", "--out"}},
                    Writer{"ShowSvg", {"show", "--case", "case", "--svg"}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(OutputFile, ReplacesWhatWasThere) {
  ASSERT_EQ(write_to("y").exit, 0);
  const std::string right = text_of(folder_.path() / "y");
  EXPECT_FALSE(right.empty());
  folder_.write("y", std::string(100000, 'x'));
  ASSERT_EQ(write_to("y").exit, 0);
  EXPECT_EQ(text_of(folder_.path() / "y"), right);
  EXPECT_EQ(names(), (std::set<std::string>{"case", "y"}));
}

TEST_P(OutputFile, UnwritableTargetIsTwoAndLeavesNothing) {
  folder_.write("file", std::string("mine"));
  fs::create_directory(folder_.path() / "folder");
  ASSERT_EQ(::mkfifo((folder_.path() / "pipe").c_str(), 0666), 0);
  // A device of the test's own: the machine's would be lost to a command that replaces it.
  (void)::mknod((folder_.path() / "null").c_str(), S_IFCHR | 0666, makedev(1, 3));
  const std::set<std::string> before = names();
  std::vector<std::string> targets = {"file/y", "missing/y", "folder", ".", "pipe", "y/"};
  targets.emplace_back(300, 'y');
  targets.emplace_back(5000, 'y');
  if (before.contains("null")) targets.emplace_back("null");
  for (const std::string& target : targets) {
    expect_refused(write_to(target), target + ": ");
    EXPECT_EQ(names(), before) << target;
  }
  expect_refused(write_to(""), "");
  EXPECT_EQ(text_of(folder_.path() / "file"), "mine");
  EXPECT_TRUE(fs::is_empty(folder_.path() / "folder"));
}

TEST_P(OutputFile, FileLimitIsTwoAndKeepsTheOldFile) {
  folder_.write("y", std::string("mine"));
  setting_.max_file_bytes = 64;
  expect_refused(write_to("y"), "y: cannot write");
  EXPECT_EQ(text_of(folder_.path() / "y"), "mine");
  EXPECT_EQ(names(), (std::set<std::string>{"case", "y"}));
}

TEST_P(OutputFile, FullDiskIsTwoAndLeavesNothing) {
  const fs::path disk = folder_.path() / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=16k") != 0) {
    GTEST_SKIP() << "needs the right to mount";
  }
  { std::ofstream(disk / "fill") << std::string(1 << 20, 'x'); }
  const CommandOutput output = write_to("disk/y");
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(disk)) left.insert(entry.path().filename());
  EXPECT_EQ(::umount(disk.c_str()), 0);
  expect_refused(output, "disk/y: cannot write");
  EXPECT_EQ(left, (std::set<std::string>{"fill"}));
}

TEST_P(OutputFile, DoesNotReplaceASymbolicLink) {
  { std::ofstream(folder_.path() / "target") << "kept"; }
  fs::create_symlink("target", folder_.path() / "to-target");
  fs::create_symlink("nowhere", folder_.path() / "dangling");
  for (const char* link : {"to-target", "dangling"}) {
    expect_refused(write_to(link), "symbolic link");
    EXPECT_TRUE(fs::is_symlink(folder_.path() / link));
  }
  EXPECT_EQ(text_of(folder_.path() / "target"), "kept");
}

TEST_P(OutputFile, DoesNotReplaceTheCaseItReads) {
  const std::string before = text_of(folder_.path() / "case");
  fs::create_symlink("case", folder_.path() / "link");
  fs::create_hard_link(folder_.path() / "case", folder_.path() / "other-name");
  for (const char* same : {"case", "./case", "link", "other-name"}) {
    expect_refused(write_to(same), same);
    EXPECT_EQ(text_of(folder_.path() / "case"), before);
  }
}

}  // namespace
}  // namespace attn
