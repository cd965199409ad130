// attn-oracle show
#include "tests/cli_expectations.h"
#include "tests/counting_case.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

class ShowCommand : public testing::Test {
 protected:
  ShowCommand() { setting_.folder = folder_.path(); }

  CommandOutput show(const Words& more) const {
    Words words = {"show", "--case", "case"};
    words.insert(words.end(), more.begin(), more.end());
    return attn_oracle(words, setting_);
  }
  Json shown(Words more = {}) const {
    more.emplace_back("--json");
    const CommandOutput output = show(more);
    EXPECT_EQ(output.exit, 0) << output.err;
    EXPECT_EQ(output.err, "");
    Json document = document_of(output);
    expect_document_form(document, "show", 0);
    return document;
  }

  TemporaryFolder folder_;
  CommandSetting setting_;
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_F(ShowCommand, DocumentIsTheContractsExample) {
  const CommandOutput output = attn_oracle(
      {"show", "--case", third_party("hand_made/H01-w3-varlen.safetensors"), "--json"}, setting_);
  EXPECT_EQ(output.exit, 0);
  const std::string rest = output.out.substr(output.out.find("\"id\""));
  EXPECT_EQ(rest, R"("id":"H01-w3-varlen","op":"attention","requests":[{"request":0,"query_len":6,)"
                  R"("seq_len":6,"visible":[[[0,1]],[[0,2]],[[0,3]],[[1,4]],[[2,5]],[[3,6]]]}],)"
                  R"("routing":null,"exit":0})"
                  "\n");
}

TEST_F(ShowCommand, TextDrawsKeysARowSees) {
  CountingCase made;
  made.requests = {{3, 4}, {2, 1}};
  made.attrs["window_left"] = 1;
  folder_.write("case", made.bytes());
  const std::string expected =
      "request 0: query_len 3, seq_len 4\n"
      "     1 ##..\n"
      "     2 .##.\n"
      "     3 ..##\n"
      "request 1: query_len 2, seq_len 1\n"
      "    -1 .\n"
      "     0 #\n";
  EXPECT_EQ(show({"--quiet"}).out, expected);
  const std::string prose = show({}).out;
  EXPECT_TRUE(prose.starts_with("counting: attention ")) << prose;
  EXPECT_TRUE(prose.ends_with("\n" + expected)) << prose;
  EXPECT_EQ(shown()["requests"][1]["visible"].dump(), "[[],[[0,1]]]");
}

TEST_F(ShowCommand, RequestPicksOne) {
  CountingCase made;
  made.requests = {{1, 2}, {2, 3}, {0, 4}};
  folder_.write("case", made.bytes());
  EXPECT_EQ(shown()["requests"].size(), 3U);
  EXPECT_EQ(shown({"--request", "1"})["requests"].dump(),
            R"([{"request":1,"query_len":2,"seq_len":3,"visible":[[[0,2]],[[0,3]]]}])");
  EXPECT_EQ(shown({"--request=2"})["requests"].dump(),
            R"([{"request":2,"query_len":0,"seq_len":4,"visible":[]}])");
}

// Two heads: the second does not see key 1.
TEST_F(ShowCommand, HeadPicksTheMaskOfOne) {
  CountingCase made;
  made.requests = {{1, 3}};
  made.masks["attn_mask"] = {"BOOL", {1, 2, 1, 3}, std::string("\1\1\1\1\0\1", 6)};
  TemporaryFolder scratch;
  PlainFile file = PlainFile::read(scratch.write("case", made.bytes()));
  Json object = Json::parse(file.metadata["case"]);
  file.tensors["query"] = f32_tensor({1, 2, 1}, {0.0F, 0.0F});
  object["axes"]["num_heads"] = 2;
  object["inputs"]["query"]["shape"] = {1, 2, 1};
  object["outputs"]["out"]["shape"] = {1, 2, 1};
  object["outputs"]["lse"]["shape"] = {2, 1};
  file.metadata["case"] = object.dump();
  folder_.write("case", file.bytes());
  EXPECT_EQ(shown()["requests"][0]["visible"].dump(), "[[[0,3]]]");
  EXPECT_EQ(shown({"--head", "0"})["requests"][0]["visible"].dump(), "[[[0,3]]]");
  EXPECT_EQ(shown({"--head", "1"})["requests"][0]["visible"].dump(), "[[[0,1],[2,3]]]");
  expect_refused(show({"--head", "2"}), "--head 2 is outside [0, 2)");
}

TEST_F(ShowCommand, WhatIsOutOfRangeIsTwo) {
  folder_.write("case", CountingCase().bytes());
  for (const char* flag : {"--request", "--head"}) {
    for (const char* value :
         {"1", "-1", "9223372036854775808", "-9223372036854775809", "x", "1.0", "1 ", ""}) {
      expect_refused(show({flag, value, "--json", "--svg", "picture"}), flag);
    }
  }
  EXPECT_EQ(folder_.names(), Words{"case"}) << "no picture of what is refused";
}

TEST_F(ShowCommand, LongRowsAreRanges) {
  CountingCase made;
  made.requests = {{1, 128}, {1, 129}};
  folder_.write("case", made.bytes());
  const Words lines = lines_of(show({"--quiet"}).out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[1], "   127 " + std::string(128, '#'));
  EXPECT_EQ(lines[3], "   128 [0,129)");
}

TEST_F(ShowCommand, SvgHasARectangleForEveryRange) {
  CountingCase made;
  made.requests = {{3, 4}, {2, 1}};
  folder_.write("case", made.bytes());
  const CommandOutput output = show({"--svg", "picture.svg", "--json"});
  EXPECT_EQ(output.exit, 0) << output.err;
  const std::string svg = text_of(folder_.path() / "picture.svg");
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  // Rows of the first request see one range each, of the second one row sees nothing.
  EXPECT_EQ(count(svg, "fill=\"#1f6feb\""), 4U) << svg;
  EXPECT_EQ(count(svg, "request "), 2U);
  show({"--svg", "again.svg", "--threads", "1"});
  EXPECT_EQ(text_of(folder_.path() / "again.svg"), svg);
  show({"--svg", "one.svg", "--request", "1"});
  EXPECT_EQ(count(text_of(folder_.path() / "one.svg"), "fill=\"#1f6feb\""), 1U);
}

TEST_F(ShowCommand, EmptyBatchShowsNothing) {
  CountingCase made;
  made.requests = {};
  folder_.write("case", made.bytes());
  EXPECT_EQ(shown({"--svg", "picture.svg"})["requests"], Json::array());
  EXPECT_EQ(show({"--quiet"}).out, "");
  expect_refused(show({"--request", "0"}), "--request 0 is outside [0, 0)");
}

TEST_F(ShowCommand, OperationWithoutAMaskIsThree) {
  const CommandOutput output = attn_oracle(
      {"show", "--case", third_party("vllm/vllm_triton-cache-f32.safetensors")}, setting_);
  EXPECT_EQ(output.exit, 3);
  EXPECT_EQ(output.out, "");
  EXPECT_EQ(lines_of(output.err).size(), 1U);
}

TEST_F(ShowCommand, WhatIsNoValidCaseIsTwo) {
  expect_refused(
      attn_oracle({"show", "--case", third_party("hand_made/format-invalid-heads.safetensors")}),
      "num_heads 5");
  expect_refused(show({}), "case: cannot open");
  folder_.write("case", CountingCase().answer().bytes());
  expect_refused(show({}), "attn-case/1");
}

}  // namespace
}  // namespace attn
