// What makes no pack, and makers that are killed.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "golden/file_descriptor.h"
#include "golden/pack_limits.h"
#include "tests/error_text.h"
#include "tests/pack_fixture.h"
#include "tests/scoped_workers.h"

namespace attn {
namespace {

namespace fs = std::filesystem;

TEST(PackMaker, RefusesATargetThatIsTaken) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name) {
    return error_of([&] { make_small_pack(folder.path() / name); });
  };
  const std::string at = folder.path().string() + "/";
  fs::create_directory(folder.path() / "full");
  folder.write("full/x", "x");
  EXPECT_EQ(refusal("full"), at + "full: exists and is not empty");
  folder.write("file", "x");
  EXPECT_EQ(refusal("file"), at + "file: is not a folder");
  fs::create_directory(folder.path() / "empty");
  fs::create_directory_symlink(folder.path() / "empty", folder.path() / "link");
  EXPECT_EQ(refusal("link"), at + "link: is a symbolic link");
  EXPECT_EQ(refusal("empty"), "");
  EXPECT_EQ(refusal("new/folders/pack"), "");
  EXPECT_EQ(refusal("new/folders/pack"), at + "new/folders/pack: exists and is not empty");
  EXPECT_EQ(to_string(verify_pack(folder.path() / "new/folders/pack").damage), "");
}

// What make_pack says to a set of questions; nothing may be left behind.
std::string refusal_of(const questions::QuestionSet& set,
                       const golden::ExactAnswer& answer = answer_by_reference) {
  const TemporaryFolder folder;
  const std::string refusal =
      error_of([&] { golden::make_pack(folder.path() / "p", small_pack_spec(), set, answer); });
  EXPECT_EQ(folder.names(), std::vector<std::string>{});
  return refusal;
}

TEST(PackMaker, AQuestionWithoutAnAnswerStopsItAndLeavesNothing) {
  for (const int workers : {1, 4}) {
    const ScopedWorkers scope(workers);
    const std::string refusal =
        refusal_of(small_questions(), [](const AttentionProblem& problem, const Outputs& outputs) {
          if (problem.kind() != OpKind::kAttention) return answer_by_reference(problem, outputs);
          throw Error("1600 bits do not decide");
        });
    EXPECT_EQ(refusal, "case causal-again: 1600 bits do not decide");
  }
}

TEST(PackMaker, RefusesQuestionsThatMakeNoPack) {
  const auto refusal = [](const std::function<void(questions::QuestionSet & set)>& change) {
    questions::QuestionSet set = small_questions();
    change(set);
    return refusal_of(set);
  };
  const auto op = [](questions::QuestionSet& set) -> AttentionOp& {
    return std::get<AttentionOp>(set.questions[1].operation);
  };
  EXPECT_EQ(refusal([](auto& set) { set.questions[0].id = "causal-first"; }),
            "id causal-first is given twice");
  EXPECT_EQ(refusal([](auto& set) { set.questions[1].rulings = {"unheard_of"}; }),
            "case causal-first: \"unheard_of\" has no note");
  EXPECT_EQ(refusal([&](auto& set) { op(set).scale = 0.1; }),
            "case causal-first: scale is 0.1, not exact in binary32");
  EXPECT_EQ(refusal([&](auto& set) { op(set).logits_soft_cap = -1.0; }),
            "case causal-first: logits_soft_cap is -1, must not be negative");
  EXPECT_EQ(refusal([](auto& set) { set.questions[1].result = CaseResult::kInvalid; }),
            "case causal-first: the case is labelled invalid, but is not");
  EXPECT_NE(refusal([](auto& set) { set.questions[1].result = CaseResult::kAcceptable; }), "");
  EXPECT_EQ(refusal([](auto& set) { set.relations[0].rows[1].first_token = 1; }),
            "relations.jsonl: rows [1, 1+2) of causal-again do not exist, out is f64[2,2,3]");
  EXPECT_EQ(refusal([](auto& set) { set.questions[1].id = "causal-wrong"; }),
            "manifest.json: withdrawn causal-wrong is in index.jsonl");
  EXPECT_EQ(refusal([](auto& set) { set.questions[1].id = "../x"; }).substr(0, 12), "case ../x: t");
  EXPECT_NE(refusal([](auto& set) { set.questions.clear(); }), "");
}

TEST(PackMaker, KeepsToTheSizesOfTheTier) {
  questions::QuestionSet set = small_questions();
  auto& op = std::get<MergeStatesOp>(set.questions[0].operation);
  op.out_parts = set.questions[0].memory.keep(HostTensor(DType::kF64, {2, 1, 2, 3000}));
  EXPECT_EQ(refusal_of(set).substr(0, 39), "case merge-two_parts: bytes of the file");
}

TEST(PackLimits, CountProductsOfTheDefinition) {
  const questions::QuestionSet set = small_questions();
  const auto products = [&](std::size_t question) {
    return golden::multiply_adds(AttentionProblem(set.questions[question].operation));
  };
  EXPECT_EQ(products(0), 2 * 1 * 2 * 3);        // merge: parts, tokens, heads, size
  EXPECT_EQ(products(1), 2 * 3 * 2 * (4 + 3));  // rows, keys, heads, sizes of key and value
  EXPECT_EQ(products(5), 1 * 2 * 2 * (6 + 4));  // mla: the latent row is key and value
  EXPECT_EQ(products(6), 2 * 3 * 2 * 4);        // indexer: rows, keys, heads, size
  EXPECT_EQ(products(7), 0);                    // a write
  golden::expect_case_within("core", 64000, 1 << 20);
  EXPECT_EQ(error_of([] { golden::expect_case_within("core", 1, (1 << 20) + 1); }),
            "multiply-adds are 1048577, tier core allows 1048576");
  golden::expect_case_within("extended", 65000, (1 << 20) + 1);
}

// Folders of makers that were killed go; those of makers that live, and of other packs, stay.
TEST(PackMaker, RemovesWhatDeadMakersLeft) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);  // its id is free now
  const std::string dead = std::to_string(child);
  const std::string alive = std::to_string(::getppid());
  const TemporaryFolder folder;
  const std::vector<std::string> stay = {"small-0.2.0.partial-" + alive,
                                         "smaller-0.2.0.partial-" + dead, "small-x.partial-" + dead,
                                         "small-0.2.0.partial-" + dead + "x"};
  const std::vector<std::string> go = {"small-0.2.0.partial-" + dead,
                                       "small-0.1.0.partial-" + dead};
  for (const auto* names : {&stay, &go}) {
    for (const std::string& name : *names) {
      fs::create_directory(folder.path() / name);
      folder.write(name + "/file", "x");
    }
  }
  fs::create_directory_symlink(folder.path() / stay[1],
                               folder.path() / ("small-1.0.0.partial-" + dead));
  make_small_pack(folder.path() / "pack");
  std::vector<std::string> expected = stay;
  expected.push_back("pack");
  expected.push_back("small-1.0.0.partial-" + dead);
  std::vector<std::string> names = folder.names();
  std::sort(names.begin(), names.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names, expected);
}

// As of makers in other containers: ids that are dead here, or our own.
TEST(PackMaker, LetsFoldersStayThatTheirMakersLock) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const TemporaryFolder folder;
  std::vector<std::string> expected = {"pack"};
  std::vector<golden::FileDescriptor> locks;
  for (const pid_t maker : {child, ::getpid()}) {
    expected.push_back("small-0.2.0.partial-" + std::to_string(maker));
    const fs::path path = folder.path() / expected.back();
    fs::create_directory(path);
    locks.emplace_back(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::flock(locks.back().get(), LOCK_EX | LOCK_NB), 0);
  }
  make_small_pack(folder.path() / "pack");
  std::vector<std::string> names = folder.names();
  std::sort(names.begin(), names.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names, expected);

  locks.clear();
  fs::remove_all(folder.path() / "pack");
  make_small_pack(folder.path() / "pack");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"pack"});
}

int number_of_kills() {
  const char* asked = std::getenv("ATTN_PACK_KILLS");
  return asked == nullptr ? 20 : std::atoi(asked);
}

TEST(PackMaker, AKilledMakeLeavesNothingThatVerifies) {
  const TemporaryFolder folder;
  const fs::path target = folder.path() / "pack";
  const std::vector<std::string> words = {ATTN_SMALL_PACK, target.string()};
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(RunningCommand(words, {}).finish().exit, 0);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
  const auto complete = files_of(target);

  std::mt19937_64 random(7);
  int unfinished = 0;
  for (int kill = 0; kill < number_of_kills(); ++kill) {
    fs::remove_all(target);
    RunningCommand maker(words, {});
    const double share = static_cast<double>(random() % 1000) / 1000.0;
    std::this_thread::sleep_for(whole * share);
    maker.send(SIGKILL);
    maker.finish();
    for (const std::string& name : folder.names()) {
      if (name == "pack") {  // it was too late: then it is whole
        EXPECT_TRUE(files_of(target) == complete);
        continue;
      }
      ++unfinished;
      EXPECT_TRUE(name.starts_with("small-0.2.0.partial-")) << name;
      EXPECT_THROW(verify_pack(folder.path() / name), Error);
      EXPECT_THROW(CaseFolder::open(folder.path() / name), Error);
    }
  }
  EXPECT_GT(unfinished, 0);  // else nothing was tested
  fs::remove_all(target);
  make_small_pack(target);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"pack"});
  EXPECT_TRUE(files_of(target) == complete);
}

}  // namespace
}  // namespace attn
