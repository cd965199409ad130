// Backends that a file describes: what is refused, and how they join selection.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attn/error.h"
#include "attn/selector.h"

namespace attn {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::string>;

Json example() {
  return Json::parse(R"({"format":"attn-backend-file/1","name":"MY_ATTN","module":"my.attn",
    "class":"MyBackend","priority":0,"platforms":["cuda"],"dtypes":["bfloat16"],
    "head_rule":{"min":64,"max":256,"multiple_of":8},"kernel_block_sizes":[{"multiple_of":16}],
    "flags":{"supports_sink":true},
    "combination_rules":[{"field":"has_sink","equals":true,"reason":"no sinks yet"}]})");
}

Json with(const std::string& key, const Json& value) {
  Json file = example();
  file[key] = value;
  return file;
}

AddedBackend added(const Json& file) { return parse_backend_file(file.dump(), "my.json"); }

std::string refusal(const std::string& text) {
  try {
    parse_backend_file(text, "my.json");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

SelectorFacts hopper() { return {Platform::kCuda, DeviceCapability{9, 0}, {}}; }

BackendSelector selector_with(const SelectorFacts& facts, std::vector<AddedBackend> backends) {
  return {facts, BackendRegistry(RegistryKind::kAttention), std::move(backends)};
}

SelectionRequest layer(int head_size, DType dtype = DType::kBF16) {
  SelectionRequest request;
  request.config.head_size = head_size;
  request.config.dtype = dtype;
  return request;
}

Texts candidates_of(const Selection& selection) {
  Texts names;
  for (const Candidate& candidate : selection.candidates) names.push_back(candidate.name);
  return names;
}

TEST(BackendFile, SaysWhatItIs) {
  const AddedBackend mine = added(example());
  EXPECT_EQ(mine.name, "MY_ATTN");
  EXPECT_EQ(mine.path, "my.attn.MyBackend");
  EXPECT_EQ(mine.priority, 0);
  EXPECT_EQ(mine.platforms, std::vector{Platform::kCuda});
  const AddedBackend least =
      added(Json::parse(R"({"format":"attn-backend-file/1","name":"A","module":"m","class":"C"})"));
  EXPECT_EQ(least.priority, std::nullopt);
  EXPECT_EQ(least.platforms.size(), 4U);
  EXPECT_EQ(least.describe(hopper()).dtypes, (std::vector{DType::kF16, DType::kBF16}));
}

struct Refused {
  std::string key;
  Json value;
  std::string says;  // in the message
};

TEST(BackendFile, RefusesValuesOfTheWrongTypeOrRange) {
  const Refused refused[] = {
      {"format", "attn-backend-file/2", "my.json.format"},
      {"priorty", 0, "priorty"},
      {"name", 7, "my.json.name"},
      {"name", "", "my.json.name"},
      {"module", "", "my.json.module"},
      {"class", Json(nullptr), "my.json.class"},
      {"priority", -1, "my.json.priority is -1"},
      {"priority", 0.5, "my.json.priority"},
      {"priority", true, "my.json.priority"},
      {"priority", 1001, "my.json.priority is 1001"},
      {"platforms", Json::array(), "my.json.platforms"},
      {"platforms", Json::array({"tpu"}), "tpu"},
      {"platforms", "cuda", "my.json.platforms"},
      {"dtypes", Json::array({"bf16"}), "bf16"},
      {"kv_cache_dtypes", Json::array({"fp9"}), "fp9"},
      {"head_sizes", Json::array({0}), "my.json.head_sizes"},
      {"head_rule", Json{{"multiple_of", 0}}, "my.json.head_rule.multiple_of"},
      {"head_rule", Json{{"step", 8}}, "step"},
      {"kernel_block_sizes", Json::array({-16}), "my.json.kernel_block_sizes"},
      {"block_rule", "16", "my.json.block_rule"},
      {"min_capability", Json::array({9}), "my.json.min_capability"},
      {"flags", Json{{"supports_sinks", true}}, "supports_sinks"},
      {"flags", Json{{"supports_sink", 1}}, "my.json.flags.supports_sink"},
      {"combination_rules", Json::array({Json{{"field", "head_dim"}}}), "head_dim"},
      {"layouts", Json::array({"NHD"}), "NHD"},
      {"builder", Json{{"graphs", true}}, "graphs"},
      {"impl", Json{{"fused", true}}, "fused"}};
  for (const Refused& one : refused) {
    const std::string text = with(one.key, one.value).dump();
    EXPECT_NE(refusal(text).find(one.says), std::string::npos)
        << one.key << " " << one.value << ": " << refusal(text);
    EXPECT_EQ(refusal(text).find('\n'), std::string::npos) << refusal(text);
  }
}

TEST(BackendFile, RefusesWhatIsMissingOrNoObject) {
  for (const char* key : {"format", "name", "module", "class"}) {
    Json file = example();
    file.erase(key);
    EXPECT_NE(refusal(file.dump()).find(key), std::string::npos) << key << refusal(file.dump());
  }
  for (const char* text : {"", "[]", "7", "{", R"({"name":"A","name":"B"})"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
}

TEST(BackendFile, RefusesNamesThatAreTakenOrCannotBe) {
  for (const char* name : {"FLASH_ATTN", "CUSTOM", "get_path", "MY-ATTN", "7ATTN"}) {
    EXPECT_THROW(selector_with(hopper(), {added(with("name", name))}), Error) << name;
  }
  EXPECT_THROW(selector_with(hopper(), {added(example()), added(example())}), Error);
  // Taken by vLLM, although it would be no member here.
  Json elsewhere = with("name", "FLASH_ATTN");
  elsewhere["platforms"] = {"rocm"};
  EXPECT_THROW(selector_with(hopper(), {added(elsewhere)}), Error);
}

TEST(AddedBackend, LeadsAtPlaceZeroWithReasonsInOrder) {
  const BackendSelector selector = selector_with(hopper(), {added(example())});
  const Selection chosen = selector.select(layer(64));
  EXPECT_EQ(chosen.backend, "MY_ATTN");
  EXPECT_EQ(chosen.path, "my.attn.MyBackend");
  EXPECT_EQ(chosen.logs[0].text,
            "Using MY_ATTN attention backend out of potential backends: ['MY_ATTN', 'FLASH_ATTN', "
            "'FLASHINFER', 'TRITON_ATTN', 'FLEX_ATTENTION'].");
  SelectionRequest request = layer(260, DType::kF16);
  request.config.has_sink = true;
  request.config.use_mla = true;
  request.config.kv_cache_dtype = CacheDType::kFp8;
  request.config.block_size = 8;
  const Selection refused = selector.select(request);
  EXPECT_EQ(refused.candidates[0].name, "MY_ATTN");
  EXPECT_EQ(refused.candidates[0].reasons,
            (Texts{"head_size not supported", "dtype not supported", "kv_cache_dtype not supported",
                   "block_size not supported", "MLA not supported", "no sinks yet"}));
}

TEST(AddedBackend, ChangesNothingAboutTheOthers) {
  const Selection without = selector_with(hopper(), {}).select(layer(512));
  const Selection beside = selector_with(hopper(), {added(example())}).select(layer(512));
  EXPECT_EQ(beside.backend, without.backend);
  ASSERT_EQ(beside.candidates.size(), without.candidates.size() + 1);
  for (std::size_t index = 0; index < without.candidates.size(); ++index) {
    EXPECT_EQ(beside.candidates[index + 1].name, without.candidates[index].name);
    EXPECT_EQ(beside.candidates[index + 1].reasons, without.candidates[index].reasons);
  }
}

TEST(AddedBackend, StandsAtItsPlace) {
  const auto place = [](const char* name, const Json& priority) {
    Json file = with("name", name);
    file["priority"] = priority;
    return added(file);
  };
  const BackendSelector selector = selector_with(
      hopper(), {place("C", 2), place("A", 0), place("Z", 99), place("B", 0), place("N", nullptr)});
  EXPECT_EQ(candidates_of(selector.select(layer(64))),
            (Texts{"A", "B", "C", "FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION",
                   "TURBOQUANT", "Z"}));
  SelectionRequest request = layer(64);
  request.backend = "N";
  EXPECT_EQ(selector.select(request).backend, "N");
}

TEST(AddedBackend, RequestedIsValidated) {
  const BackendSelector selector = selector_with(hopper(), {added(with("priority", nullptr))});
  EXPECT_EQ(selector.select(layer(64)).backend, "FLASH_ATTN");
  SelectionRequest request = layer(64);
  request.backend = "MY_ATTN";
  EXPECT_EQ(selector.select(request).logs[0].text, "Using AttentionBackendEnum.MY_ATTN backend.");
  request.config.head_size = 63;
  EXPECT_STREQ(selector.select(request).error->what(),
               "Selected backend AttentionBackendEnum.MY_ATTN is not valid for this "
               "configuration. Reason: ['head_size not supported']");
}

TEST(AddedBackend, IsDescribedForTheDevice) {
  Json file = example();
  file["min_capability"] = {9, 0};
  file["max_capability"] = {10, 3};
  for (const auto& [capability, valid] :
       {std::pair(DeviceCapability{8, 9}, false), std::pair(DeviceCapability{9, 0}, true),
        std::pair(DeviceCapability{10, 3}, true), std::pair(DeviceCapability{11, 0}, false)}) {
    const BackendSelector selector =
        selector_with({Platform::kCuda, capability, {}}, {added(file)});
    EXPECT_EQ(selector.select(layer(64)).candidates[0].reasons,
              valid ? Texts{} : Texts{"compute capability not supported"})
        << capability.major;
  }
}

TEST(AddedBackend, IsAMemberOnItsPlatformsOnly) {
  Json file = example();
  file["platforms"] = {"rocm", "xpu", "cpu"};
  SelectionRequest request = layer(64);
  request.backend = "MY_ATTN";
  EXPECT_THROW(selector_with(hopper(), {added(file)}).select(request), Error);
  for (const Platform platform : {Platform::kRocm, Platform::kXpu, Platform::kCpu}) {
    const BackendSelector selector = selector_with({platform, std::nullopt, {}}, {added(file)});
    EXPECT_EQ(selector.select(layer(64)).backend, "MY_ATTN") << name(platform);
    EXPECT_EQ(selector.select(request).backend, "MY_ATTN") << name(platform);
    EXPECT_NE(selector.select(layer(512)).backend, "MY_ATTN") << name(platform);
    request.config.head_size = 512;
    EXPECT_TRUE(selector.select(request).error.has_value()) << name(platform);
    request.config.head_size = 64;
  }
}

TEST(AddedBackend, IsItsOwnEvenWithAClassOfVllm) {
  Json file = example();
  file["module"] = "vllm.v1.attention.backends.flash_attn";
  file["class"] = "FlashAttentionBackend";
  const BackendSelector selector = selector_with(hopper(), {added(file)});
  EXPECT_EQ(selector.check("MY_ATTN").backend().name, "MY_ATTN");
  EXPECT_EQ(selector.check("FLASH_ATTN").backend().name, "FLASH_ATTN");
}

}  // namespace
}  // namespace attn
