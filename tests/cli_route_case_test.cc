// attn-oracle route --case, and COMPOSITE(...) wherever --backend is
#include "tests/cli_expectations.h"
#include "tests/counting_case.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

class RouteCase : public testing::Test {
 protected:
  RouteCase() { setting_.folder = folder_.path(); }

  CommandOutput route(const std::string& file, const std::string& backend) const {
    return attn_oracle({"route", "--case", file, "--backend", backend, "--json"}, setting_);
  }
  Json routed(const std::string& file, const std::string& backend) const {
    const CommandOutput output = route(file, backend);
    EXPECT_EQ(output.exit, 0) << output.err;
    Json document = document_of(output);
    expect_document_form(document, "route", 0);
    expect_replays(document, setting_);
    return document;
  }

  TemporaryFolder folder_;
  CommandSetting setting_;
  const std::string image_ = third_party("hand_made/H03.safetensors");
};

TEST_F(RouteCase, DocumentNamesChildAndForcingRequest) {
  const Json document = routed(image_, "COMPOSITE(REFERENCE,CPU)");
  EXPECT_EQ(document["id"], "H03");
  EXPECT_EQ(document["backend"], "COMPOSITE(REFERENCE,CPU)");
  EXPECT_EQ(document["policy"], "mm_prefix");
  EXPECT_EQ(document["variant"], 0);
  EXPECT_EQ(document["path"], Json::parse("[0]"));
  EXPECT_EQ(document["child"], "REFERENCE");
  EXPECT_EQ(document["forced_by"], Json::parse("[0]"));
  ASSERT_EQ(document["requests"].size(), 1U);
  EXPECT_EQ(document["requests"][0]["request"], 0);
  EXPECT_EQ(document["requests"][0]["variant"], 0);
  EXPECT_NE(document["requests"][0]["reason"].get<std::string>().find("are inside image ["),
            std::string::npos);
  EXPECT_EQ(document["reasons"], Json::array());
}

TEST_F(RouteCase, PlainCaseIsForTheCausalChild) {
  folder_.write("case", CountingCase().bytes());
  const Json document = routed("case", "COMPOSITE(CPU,COMPOSITE(CPU,REFERENCE))");
  EXPECT_EQ(document["path"], Json::parse("[1,1]"));
  EXPECT_EQ(document["child"], "REFERENCE");
  EXPECT_EQ(document["forced_by"], Json::array());
  EXPECT_EQ(document["requests"].dump(),
            R"([{"request":0,"variant":1,"reason":"no image range"}])");
}

TEST_F(RouteCase, PoliciesByName) {
  CountingCase made;
  made.requests = {{1, 4}, {3, 9}};
  folder_.write("case", made.bytes());
  const auto child = [&](const std::string& policy) {
    const std::string name = "COMPOSITE(REFERENCE,CPU,policy=" + policy + ")";
    return routed("case", name)["child"].get<std::string>();
  };
  EXPECT_EQ(child("mm_prefix"), "CPU");
  EXPECT_EQ(child("constant(0)"), "REFERENCE");
  EXPECT_EQ(child("constant(1)"), "CPU");
  EXPECT_EQ(child("max_query_len(3)"), "CPU");
  EXPECT_EQ(child("max_query_len(2)"), "REFERENCE");
  EXPECT_EQ(child("uniform(1)"), "REFERENCE");
  EXPECT_EQ(child("decode_only"), "REFERENCE");
  EXPECT_EQ(child("max_seq_len(9)"), "CPU");
  EXPECT_EQ(child("max_seq_len(8)"), "REFERENCE");
  EXPECT_EQ(child("supports"), "CPU");
}

TEST_F(RouteCase, WrongNamesAreTwo) {
  folder_.write("case", CountingCase().bytes());
  const std::pair<const char*, const char*> wrong[] = {
      {"REFERENCE", "REFERENCE is no composite"},
      {"NOBODY", "unknown backend"},
      {"COMPOSITE(CPU)", "fewer than 2 children"},
      {"COMPOSITE(CPU,CPU)", "has CPU twice"},
      {"COMPOSITE(REFERENCE,COMPOSITE(CPU,CPU))", "has CPU twice"},
      {"COMPOSITE(REFERENCE,NOBODY)", "unknown backend 'NOBODY'"},
      {"COMPOSITE(REFERENCE,FLASH_ATTN)", "FLASH_ATTN only describes; it cannot run"},
      {"COMPOSITE(REFERENCE, CPU)", "a backend expected"},
      {"COMPOSITE(REFERENCE,auto)", "a backend expected"},
      {"COMPOSITE(REFERENCE,CPU", "')' expected"},
      {"COMPOSITE(REFERENCE,CPU))", "the end expected"},
      {"COMPOSITE(REFERENCE,CPU)x", "the end expected"},
      {"COMPOSITE()", "a backend expected"},
      {"COMPOSITE(policy=mm_prefix)", "a backend expected"},
      {"COMPOSITE(REFERENCE,CPU,policy=)", "a policy expected"},
      {"COMPOSITE(REFERENCE,CPU,policy=best)", "'best' names no policy"},
      {"COMPOSITE(REFERENCE,CPU,policy=constant)", "'constant' names no policy"},
      {"COMPOSITE(REFERENCE,CPU,policy=supports(1))", "'supports(1)' names no policy"},
      {"COMPOSITE(REFERENCE,CPU,policy=constant(2))", "child 2 of 2"},
      {"COMPOSITE(REFERENCE,CPU,policy=constant(-1))", "a number expected"},
      {"COMPOSITE(REFERENCE,CPU,policy=constant(99999999999))", "a smaller number expected"},
      {"COMPOSITE(REFERENCE,policy=mm_prefix,CPU)", "')' expected"}};
  for (const auto& [name, says] : wrong) expect_refused(route("case", name), says);
  std::string deep;
  for (int level = 0; level < 1000; ++level) deep += "COMPOSITE(";
  expect_refused(route("case", deep), "no level beyond 8");
}

TEST_F(RouteCase, MissingChildIsThree) {
  folder_.write("case", CountingCase().bytes());
  for (const std::string& name : Words{"CUBLAS", "plugin:/no/such/kernel.so"}) {
    for (const std::string& form :
         Words{"COMPOSITE(REFERENCE,{})", "COMPOSITE({},CPU)",
               "COMPOSITE(CPU,COMPOSITE(REFERENCE,{},policy=supports))"}) {
      std::string backend = form;
      backend.replace(form.find("{}"), 2, name);
      const CommandOutput output = route("case", backend);
      EXPECT_EQ(output.exit, 3) << backend << output.err;
      EXPECT_EQ(document_of(output)["reasons"], Json::array({name + " is not in this build"}));
      EXPECT_EQ(
          attn_oracle({"run", "--case", "case", "--backend", backend, "--out", "y"}, setting_).exit,
          3)
          << backend;
    }
  }
  expect_refused(route("case", "COMPOSITE(plugin:a.so,plugin:a.so)"), "has plugin:a.so twice");
  expect_refused(route("case", "COMPOSITE(CPU,plugin:a.so"), "')' expected");
}

TEST_F(RouteCase, RunNamesTheChildThatAnswered) {
  const auto run = [&](const std::string& file) {
    const CommandOutput output = attn_oracle(
        {"run", "--case", file, "--backend", "COMPOSITE(REFERENCE,CPU)", "--out", "y", "--json"},
        setting_);
    EXPECT_EQ(output.exit, 0) << output.err;
    return document_of(output);
  };
  const Json general = run(image_);
  EXPECT_EQ(general["asked"], "COMPOSITE(REFERENCE,CPU)");
  EXPECT_EQ(general["backend"], "REFERENCE");
  EXPECT_EQ(general["outputs"]["out"]["dtype"], "f64");
  EXPECT_EQ(attn_oracle({"compare", "--case", image_, "--actual", "y"}, setting_).exit, 0);
  folder_.write("case", CountingCase().bytes());
  const Json causal = run("case");
  EXPECT_EQ(causal["backend"], "CPU");
  EXPECT_EQ(causal["contract"], "fp32");
}

TEST_F(RouteCase, ShowHasTheRoute) {
  const Words words = {"show", "--case", image_, "--backend", "COMPOSITE(REFERENCE,CPU)"};
  Words with_json = words;
  with_json.emplace_back("--json");
  const Json routing = document_of(attn_oracle(with_json, setting_))["routing"];
  EXPECT_EQ(routing["child"], "REFERENCE");
  EXPECT_EQ(routing["forced_by"], Json::parse("[0]"));
  const CommandOutput text = attn_oracle(words, setting_);
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_NE(text.out.find("REFERENCE answers (path 0)"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("request 0 forced it: tokens "), std::string::npos) << text.out;
  expect_refused(attn_oracle({"show", "--case", image_, "--backend", "CPU"}, setting_),
                 "CPU is no composite");
}

}  // namespace
}  // namespace attn
