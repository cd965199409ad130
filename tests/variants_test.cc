// The table of variants: what it claims is there.
#include "attn/variant.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "attn/case_file.h"
#include "attn/cpu_backend.h"
#include "attn/reference.h"
#include "attn/second_reference.h"
#include "tests/command_runner.h"

namespace attn {
namespace {

// "Suite.Claim" of every test of a GoogleTest program, without parameters.
std::set<std::string> tests_of(const std::string& program) {
  const std::string listed =
      RunningCommand({program, "--gtest_list_tests"}, CommandSetting{}).finish().out;
  std::set<std::string> names;
  std::string suite;
  for (const std::string& line : lines_of(listed)) {
    if (line.starts_with("  ")) {
      names.insert(suite + line.substr(2, line.find_first_of(" /", 2) - 2));
    } else if (line.ends_with(".")) {
      suite = line;
    }
  }
  return names;
}

const CaseFolder& core_pack() {
  static const CaseFolder pack = CaseFolder::open(ATTN_CORE_PACK);
  return pack;
}

// Whether the backend answers every valid case of the variant.
bool answers_all(const Backend& backend, const Variant& variant) {
  for (const CaseIndexRow& row : core_pack().rows) {
    if (row.variant != variant.name || row.result != CaseResult::kValid) continue;
    const CaseFile file = CaseFile::read(core_pack().path / row.file);
    if (!backend.supports(file.problem()).empty()) return false;
  }
  return true;
}

TEST(Variants, AreNamedOnce) {
  std::set<std::string_view> names;
  for (const Variant& variant : all_variants()) {
    EXPECT_TRUE(names.insert(variant.name).second) << variant.name;
  }
  EXPECT_GE(names.size(), 41U);
}

TEST(Variants, HaveTheCasesTheyClaim) {
  std::map<std::string, int> cases;
  for (const CaseIndexRow& row : core_pack().rows) ++cases[row.variant];
  for (const Variant& variant : all_variants()) {
    EXPECT_EQ(variant.pack_cases, cases[std::string(variant.name)]) << variant.name;
    cases.erase(std::string(variant.name));
  }
  EXPECT_TRUE(cases.empty()) << cases.begin()->first << " is not in the table";
}

TEST(Variants, AreAnsweredByWhomTheyClaim) {
  const auto reference = make_reference_backend();
  const auto second = make_second_reference_backend();
  const auto cpu = make_cpu_backend();
  for (const Variant& variant : all_variants()) {
    if (!variant.has_cases()) continue;
    EXPECT_EQ(variant.reference, answers_all(*reference, variant)) << variant.name;
    EXPECT_EQ(variant.second_reference, answers_all(*second, variant)) << variant.name;
    EXPECT_EQ(variant.cpu, answers_all(*cpu, variant)) << variant.name;
  }
}

TEST(Variants, AreBackedByPropertiesAndTestsThatExist) {
  const std::set<std::string> properties = tests_of(ATTN_PROPERTIES);
  const std::set<std::string> units = tests_of(ATTN_VARIANT_UNITS);
  ASSERT_GT(properties.size(), 50U);
  for (const Variant& variant : all_variants()) {
    EXPECT_FALSE(variant.properties.empty() && variant.tests.empty()) << variant.name;
    for (const std::string_view name : variant.properties) {
      EXPECT_TRUE(properties.contains(std::string(name))) << variant.name << ": " << name;
    }
    for (const std::string_view name : variant.tests) {
      EXPECT_TRUE(units.contains(std::string(name))) << variant.name << ": " << name;
    }
  }
}

TEST(Variants, ReadmeHoldsTheTableThatIsPrinted) {
  std::stringstream readme;
  readme << std::ifstream(ATTN_README).rdbuf();
  const std::string table = attn_oracle({"list", "variants"}).out;
  ASSERT_FALSE(table.empty());
  EXPECT_NE(readme.str().find("\n\n" + table + "\n"), std::string::npos)
      << "put this into README.md:\n"
      << table;
}

}  // namespace
}  // namespace attn
