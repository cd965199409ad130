// What every backend gets from core: refusal with reasons, workspaces, run_once.
#include "attn/backend.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/error_text.h"
#include "tests/small_problem.h"

namespace attn {
namespace {

// Says what it was given; honours the splits of an exec.
class Recorder final : public Backend {
 public:
  Recorder() { capabilities_.operations = {OpKind::kAttention}; }

  std::string_view name() const override { return "RECORDER"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  PrecisionContract contract(const AttentionProblem&) const override { return {"fp32", "{}"}; }
  std::vector<std::string> supports(const AttentionProblem&) const override { return reasons; }
  std::size_t workspace_bytes(const AttentionProblem&) const override { return bytes; }
  std::unique_ptr<Plan> prepare(const AttentionProblem& problem,
                                Workspace workspace) const override {
    require_supported(*this, problem, workspace);
    given = workspace;
    return std::make_unique<RecordedPlan>(*this);
  }

  std::vector<std::string> reasons;
  std::size_t bytes = 100;
  mutable Workspace given;
  mutable int runs = 0;

 private:
  struct RecordedPlan final : Plan {
    explicit RecordedPlan(const Recorder& backend) : recorder(backend) {}
    void run(const AttentionProblem&, const Outputs&) const override { ++recorder.runs; }
    ExecSpec exec() const override {
      ExecSpec exec;
      exec.num_splits = 3;
      return exec;
    }
    const Recorder& recorder;
  };
  Capabilities capabilities_;
};

class BackendRules : public testing::Test {
 protected:
  Recorder backend_;
  const SmallProblem p_;
  const AttentionProblem problem_ = p_.problem();
  alignas(kWorkspaceAlignment) std::byte memory_[256];
};

TEST_F(BackendRules, AnUnsupportedProblemIsRefusedWithEveryReason) {
  backend_.reasons = {"sinks not supported", "ALiBi not supported"};
  EXPECT_EQ(error_of([&] {
              backend_.prepare(problem_, {memory_, 256});
            }),
            "RECORDER cannot answer: sinks not supported; ALiBi not supported");
  EXPECT_EQ(error_of([&] { run_once(backend_, problem_, {}); }),
            "RECORDER cannot answer: sinks not supported; ALiBi not supported");
  EXPECT_EQ(backend_.runs, 0);
}

TEST_F(BackendRules, ASmallWorkspaceIsRefused) {
  EXPECT_EQ(error_of([&] {
              backend_.prepare(problem_, {memory_, 99});
            }),
            "RECORDER needs a workspace of 100 bytes, got 99");
  EXPECT_EQ(error_of([&] { backend_.prepare(problem_, {memory_, 100}); }), "");
}

TEST_F(BackendRules, AMisalignedWorkspaceIsRefused) {
  EXPECT_EQ(error_of([&] {
              backend_.prepare(problem_, {memory_ + 8, 200});
            }),
            "the workspace of RECORDER is not aligned to 64 bytes");
}

TEST_F(BackendRules, NoWorkspaceIsFineWhenNoneIsNeeded) {
  backend_.bytes = 0;
  EXPECT_EQ(error_of([&] { backend_.prepare(problem_, {}); }), "");
}

TEST_F(BackendRules, RunOnceGivesAnAlignedWorkspaceOfTheSizeAskedFor) {
  run_once(backend_, problem_, {});
  EXPECT_EQ(backend_.given.bytes, 100u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(backend_.given.data) % kWorkspaceAlignment, 0u);
  EXPECT_EQ(backend_.runs, 1);
}

TEST_F(BackendRules, RunOnceSaysWhatThePlanHonoured) {
  EXPECT_EQ(run_once(backend_, problem_, {}).num_splits, 3);
}

TEST_F(BackendRules, TheDefaultOfSupportsReadsTheCapabilities) {
  EXPECT_EQ(backend_.Backend::supports(problem_),
            unsupported_reasons(backend_.capabilities(), problem_));
  EXPECT_FALSE(backend_.Backend::supports(problem_).empty());
}

}  // namespace
}  // namespace attn
