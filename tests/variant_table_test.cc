// The rows of the table of variants that name unit tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "attn/variant.h"

namespace attn {
namespace {

std::set<std::string> tests_of_this_program() {
  std::set<std::string> names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      names.insert(std::string(suite.name()) + "." + suite.GetTestInfo(t)->name());
    }
  }
  return names;
}

TEST(VariantTable, EveryTestNamedIsInThisProgram) {
  const std::set<std::string> known = tests_of_this_program();
  for (const Variant& variant : all_variants()) {
    for (const std::string_view test : variant.tests) {
      EXPECT_TRUE(known.count(std::string(test)) != 0) << variant.name << ": " << test;
    }
  }
}

TEST(VariantTable, VariantsWithoutCasesComeLastAndHaveTests) {
  bool cases_ended = false;
  for (const Variant& variant : all_variants()) {
    cases_ended = cases_ended || !variant.has_cases();
    EXPECT_EQ(variant.has_cases(), !cases_ended) << variant.name;
    EXPECT_EQ(variant.tests.empty(), variant.has_cases()) << variant.name;
  }
}

TEST(VariantTable, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Variant& variant : all_variants()) EXPECT_TRUE(names.insert(variant.name).second);
}

}  // namespace
}  // namespace attn
