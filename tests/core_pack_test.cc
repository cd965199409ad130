// The committed core pack: whole, made of these questions, and what the references answer.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "attn/golden.h"
#include "attn/reference.h"
#include "attn/second_reference.h"
#include "golden/questions/question.h"
#include "property_tests/drift_alarm.h"
#include "property_tests/operation_answer.h"
#include "tests/cli_expectations.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
namespace props = property_tests;

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename()] = text_of(entry.path());
  }
  return files;
}

Json verified(const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"golden", "verify", ATTN_CORE_PACK, "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return document_of(attn_oracle(words));
}

TEST(CorePack, IsWhole) {
  const Json document = verified();
  EXPECT_EQ(document["damage"], Json::array());
  EXPECT_EQ(document["exit"], 0);
  EXPECT_GE(document["passed"], 170);
}

TEST(CorePack, IsWhatMakeMakesOnAnyNumberOfThreads) {
  const std::map<std::string, std::string> committed = files_of(ATTN_CORE_PACK);
  for (const char* threads : {"1", "3"}) {
    const TemporaryFolder folder;
    const fs::path made = folder.path() / fs::path(ATTN_CORE_PACK).filename();
    ASSERT_EQ(attn_oracle({"golden", "make", "--out", made.string(), "--threads", threads}).exit,
              0);
    EXPECT_TRUE(files_of(made) == committed)
        << "the questions or the evaluation changed: that needs a new version of the pack";
  }
}

TEST(CorePack, IsAnsweredByTheReferenceWhole) {
  const Json document = verified({"--backend", "REFERENCE"});
  EXPECT_EQ(document["failures"], Json::array());
  // Two cases in which no row sees a key: a pass would prove nothing.
  EXPECT_EQ(document["skipped"], 2);
  EXPECT_EQ(document["mistrusted"], 2);
  EXPECT_EQ(document["exit"], 0);
}

TEST(CorePack, IsAnsweredByTheCpuWhereItCan) {
  const Json document = verified({"--backend", "CPU"});
  EXPECT_EQ(document["failures"], Json::array());
  EXPECT_GE(document["passed"], 150);
}

// Both references and the exact evaluation, within the alarm for drift of float64.
TEST(CorePack, ReferencesDoNotDrift) {
  const auto reference = make_reference_backend();
  const auto second = make_second_reference_backend();
  int compared = 0;
  for (const questions::Question& question : questions::core_questions().questions) {
    if (question.result != CaseResult::kValid) continue;
    const props::Tensors exact = props::answer_operation_exactly(question.operation);
    const props::Tensors first = props::answer_operation(*reference, question.operation, true);
    const props::DriftAlarm alarm(question.operation, first);
    EXPECT_EQ(alarm.difference(first, exact), "") << question.id;
    EXPECT_EQ(alarm.sums_difference(first, exact), "") << question.id;
    EXPECT_EQ(alarm.difference(props::answer_operation(*second, question.operation), exact), "")
        << question.id;
    ++compared;
  }
  EXPECT_GE(compared, 170);
}

}  // namespace
}  // namespace attn
