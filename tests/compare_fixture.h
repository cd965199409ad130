// An answer to a small case, spoiled by a test and given to `compare`.
#pragma once

#include "tests/cli_expectations.h"
#include "tests/counting_case.h"

namespace attn {

// Rows at positions 1 and 2 of three keys, and one that sees nothing: out 1.5, 2, 0.
inline CountingCase three_rows() {
  CountingCase made;
  made.requests = {{2, 3}, {1, 0}};
  return made;
}

// No rounding but that of the answer to bf16: |error| <= 2^-8 |e| + 2^-134.
inline constexpr const char* kOneRounding = R"({"extends": "f64", "vector": "exact",
  "dot": {"type": "exact"}, "sum": {"type": "exact"}, "pv": {"type": "exact"},
  "scale_roundings": 0, "cap": {"rel": "0x0p+0"}, "bias_rel": "0x0p+0",
  "exp": {"rel": "0x0p+0", "abs": "0x0p+0", "arg_roundings": 0}, "normalize_roundings": 0,
  "log": {"abs": "0x0p+0", "roundings": 0}, "out": "bf16", "lse": "bf16"})";

class CompareFixture : public testing::Test {
 protected:
  CompareFixture() : answer_(three_rows().answer()) {
    folder_.write("case", three_rows().bytes());
    setting_.folder = folder_.path();
  }

  void set(const std::string& tensor, std::size_t at, double value) {
    std::vector<double> values = values_of<double>(answer_.tensors.at(tensor));
    values.at(at) = value;
    answer_.tensors.at(tensor) = f64_tensor(answer_.tensors.at(tensor).shape, values);
  }

  CommandOutput compare(const std::vector<std::string>& more = {"--json"}) {
    folder_.write("y", answer_.bytes());
    std::vector<std::string> words = {"compare", "--case", "case", "--actual", "y"};
    words.insert(words.end(), more.begin(), more.end());
    return attn_oracle(words, setting_);
  }

  // The document, whose exit is the program's.
  Json judged(int exit, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"--json"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandOutput output = compare(words);
    EXPECT_EQ(output.exit, exit) << output.out << output.err;
    EXPECT_EQ(output.err, "");
    Json document = document_of(output);
    expect_document_form(document, "compare", exit);
    return document;
  }
  Json passed(const std::vector<std::string>& more = {}) {
    Json document = judged(0, more);
    EXPECT_EQ(document["verdict"], "pass");
    EXPECT_EQ(document["gate"], nullptr);
    EXPECT_EQ(document["reason"], "");
    return document;
  }
  Json failed(const std::string& gate, const std::string& reason,
              const std::vector<std::string>& more = {}) {
    Json document = judged(1, more);
    EXPECT_EQ(document["verdict"], "fail");
    EXPECT_EQ(document["gate"], gate);
    EXPECT_EQ(document["reason"].get<std::string>().substr(0, reason.size()), reason);
    return document;
  }
  Json mistrusted(const std::string& reason) {
    Json document = judged(0);
    EXPECT_EQ(document["verdict"], "mistrusted");
    EXPECT_EQ(document["gate"], nullptr);
    EXPECT_EQ(document["reason"], reason);
    EXPECT_EQ(judged(1, {"--strict"})["verdict"], "mistrusted");
    return document;
  }
  // The plain verdict beside the certified one, whose exit is `exit`.
  Json plain(int exit, const std::vector<std::string>& more) { return judged(exit, more)["plain"]; }

  void write_case(const CountingCase& made) {
    folder_.write("case", made.bytes());
    answer_ = made.answer();
  }

  PlainFile answer_;
  TemporaryFolder folder_;
  CommandSetting setting_;
};

}  // namespace attn
