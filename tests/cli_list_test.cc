// attn-oracle list
#include <set>

#include "attn/arithmetic.h"
#include "tests/cli_expectations.h"

namespace attn {
namespace {

Json listed(const std::string& topic) {
  const CommandOutput output = attn_oracle({"list", topic, "--json"});
  EXPECT_EQ(output.exit, 0) << output.err;
  const Json document = document_of(output);
  expect_document_form(document, "list", 0);
  std::vector<std::string> keys = {"format", "version", "replay", "topic"};
  if (topic == "facts") keys.insert(keys.end(), {"platform", "capability"});
  keys.insert(keys.end(), {"items", "exit"});
  EXPECT_EQ(keys_of(document), keys);
  EXPECT_EQ(document["topic"], topic);
  EXPECT_TRUE(document["items"].is_array());
  return document["items"];
}

TEST(ListCommand, AnswersEveryTopic) {
  for (const char* topic :
       {"backends", "described", "variants", "families", "faults", "contracts", "facts"}) {
    listed(topic);
    EXPECT_EQ(attn_oracle({"list", topic}).exit, 0) << topic;
  }
  EXPECT_EQ(attn_oracle({"list", "faults"}).out, "no faults in this version\n");
}

TEST(ListCommand, VariantsSayWhatBacksThem) {
  bool found = false;
  for (const Json& item : listed("variants")) {
    EXPECT_EQ(keys_of(item),
              (std::vector<std::string>{"name", "op", "reference", "second_reference", "cpu",
                                        "pack_cases", "properties", "tests"}));
    found = found || (item["name"] == "mla" && item["op"] == "mla" && item["pack_cases"] == 9);
  }
  EXPECT_TRUE(found);
}

TEST(ListCommand, DefaultTopicIsBackends) {
  EXPECT_EQ(attn_oracle({"list"}).out, attn_oracle({"list", "backends"}).out);
}

TEST(ListCommand, BackendsSayWhatTheyAre) {
  std::set<std::string> names;
  for (const Json& item : listed("backends")) {
    const std::vector<std::string> keys = keys_of(item);
    ASSERT_GE(keys.size(), 5U);
    EXPECT_EQ(std::vector<std::string>(keys.begin(), keys.begin() + 5),
              (std::vector<std::string>{"name", "usable", "reason", "ops", "contracts"}));
    EXPECT_EQ(item["usable"].get<bool>(), item["reason"] == "") << item;
    EXPECT_EQ(item["usable"].get<bool>(), !item["ops"].empty()) << item;
    EXPECT_EQ(item["usable"].get<bool>(), !item["contracts"].empty()) << item;
    names.insert(item["name"]);
  }
  for (const char* name : {"REFERENCE", "REFERENCE_FAST", "CPU", "SIMT_FLASH", "SIMT_DECODE",
                           "SIMT_MLA", "CUDA_FLASH", "CUDA_DECODE", "CUDA_MLA", "CUBLAS"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(ListCommand, ReferenceAndCpuAreAlwaysUsable) {
  for (const Json& item : listed("backends")) {
    const bool is_cpu = item["name"] == "CPU";
    EXPECT_TRUE((!is_cpu && item["name"] != "REFERENCE") || item["usable"].get<bool>());
    if (!is_cpu) continue;
    const auto isas = item["isas"].get<std::set<std::string>>();
    EXPECT_TRUE(isas.contains("portable"));
    EXPECT_TRUE(isas.contains(item["isa"]));
    EXPECT_EQ(item["contracts"], Json::array({"fp32"}));
  }
}

TEST(ListCommand, ContractsHaveParametersThatReadBack) {
  std::vector<std::string> names;
  for (const Json& item : listed("contracts")) {
    EXPECT_EQ(keys_of(item), (std::vector<std::string>{"name", "params"}));
    names.push_back(item["name"]);
    Arithmetic arithmetic = resolve(parse_contract(item["params"].dump(), "params"));
    arithmetic.name = names.back();  // a text has none
    EXPECT_TRUE(arithmetic == resolve({names.back()})) << item;
  }
  EXPECT_EQ(names,
            std::vector<std::string>({"fp32", "fp32_lanes", "fp32_split", "bf16_flash", "bf16_vdp",
                                      "bf16_mma", "f16_flash", "fp8_flash", "tf32", "bf16_unfused",
                                      "f64", "f64_flash", "reference"}));
}

TEST(ListCommand, ContractsHaveEveryField) {
  const Json fp32 = listed("contracts")[0]["params"];
  EXPECT_EQ(keys_of(fp32), (std::vector<std::string>{"vector",
                                                     "flush",
                                                     "query",
                                                     "key",
                                                     "value",
                                                     "dot",
                                                     "scale_roundings",
                                                     "cap",
                                                     "bias_rel",
                                                     "logit",
                                                     "logit_roundings",
                                                     "exp",
                                                     "tile",
                                                     "max_lag",
                                                     "p",
                                                     "sum",
                                                     "pv",
                                                     "splits",
                                                     "merge",
                                                     "normalize_roundings",
                                                     "log",
                                                     "project",
                                                     "out",
                                                     "lse"}));
  EXPECT_EQ(fp32["exp"]["rel"], "0x1p-21");
  EXPECT_NE(attn_oracle({"list", "contracts"}).out.find("fp32            {\"vector\":\"f32\","),
            std::string::npos);
}

TEST(ListCommand, TextNamesEveryBackendWithItsReason) {
  const std::string text = attn_oracle({"list"}).out;
  for (const Json& item : listed("backends")) {
    EXPECT_NE(text.find(item["name"].get<std::string>()), std::string::npos);
    EXPECT_NE(text.find(item["reason"].get<std::string>()), std::string::npos);
  }
}

}  // namespace
}  // namespace attn
