// Selection as bug reports say it should have been: the records H07 to H09 of the hand-made cases.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "attn/selector.h"
#include "core/contains.h"
#include "tests/hand_made_record.h"

namespace attn {
namespace {

using Json = nlohmann::json;

// A backend that is only requested, on every platform.
AddedBackend synthetic(const DescribedBackend& backend) {
  return {"SYNTHETIC",
          "synthetic.Backend",
          std::nullopt,
          {Platform::kCuda, Platform::kRocm, Platform::kXpu, Platform::kCpu},
          [backend](const SelectorFacts&) { return backend; }};
}

BackendSelector selector_at(int major, int minor, std::vector<AddedBackend> added = {}) {
  return {{Platform::kCuda, DeviceCapability{major, minor}, {}},
          BackendRegistry(RegistryKind::kAttention),
          std::move(added)};
}

TEST(HandCase, H07AutomaticSelectionChecksTheBlockSize) {
  const Json one = hand_made_record("H07").at("cases")[0];
  SelectionRequest request;
  request.config.head_size = one["config"]["head_size"];
  request.config.kv_cache_dtype =
      cache_dtype_from_name(one["config"]["kv_cache_dtype"].get<std::string>());
  request.config.block_size = one["config"]["block_size"].get<int>();
  for (const int major : {8, 9, 10, 12}) {
    const Selection selection = selector_at(major, 0).select(request);
    EXPECT_TRUE(selection.error.has_value()) << major;
    EXPECT_EQ(selection.backend, std::nullopt) << major;
    EXPECT_FALSE(selection.candidates.empty());
    for (const Candidate& candidate : selection.candidates) {
      EXPECT_TRUE(contains(candidate.reasons, one["every_reason_list_has"].get<std::string>()))
          << major << " " << candidate.name;
    }
  }
}

TEST(HandCase, H07ARequestIsCheckedToo) {
  const Json cases = hand_made_record("H07").at("cases");
  for (const Json& one : {cases[1], cases[2]}) {
    DescribedBackend backend;
    backend.blocks.sizes = block_sizes_of(one["explicit"]);
    const BackendSelector selector = selector_at(9, 0, {synthetic(backend)});
    SelectionRequest request;
    request.backend = "SYNTHETIC";
    request.config.head_size = 128;
    if (!one["config"]["block_size"].is_null()) {
      request.config.block_size = one["config"]["block_size"].get<int>();
    }
    const Selection selection = selector.select(request);
    EXPECT_EQ(!selection.error.has_value(), one.value("valid", false)) << one;
    if (!selection.error) continue;
    const std::string text = selection.error->what();
    EXPECT_NE(text.find(one["error_has"].get<std::string>()), std::string::npos) << text;
    EXPECT_NE(text.find("SYNTHETIC"), std::string::npos) << text;
  }
}

// fp8 caches for some head sizes only.
class Fp8Heads final : public CombinationRules {
 public:
  explicit Fp8Heads(std::vector<int> heads) : heads_(std::move(heads)) {}
  std::uint32_t first_broken(const SelectorFacts&,
                             const AttentionSelectorConfig& config) const override {
    const bool reads = contains(heads_, config.head_size);
    return config.kv_cache_dtype == CacheDType::kFp8 && !reads ? 1 : 0;
  }
  std::string text(std::uint32_t, const SelectorFacts&,
                   const AttentionSelectorConfig&) const override {
    return "combination";
  }

 private:
  std::vector<int> heads_;
};

TEST(HandCase, H08ACapabilityOfTwoFieldsIsOneReason) {
  const Json record = hand_made_record("H08");
  DescribedBackend backend;
  backend.heads.only = record["backend"]["head_sizes"].get<std::vector<int>>();
  backend.kv = {CacheDType::kAuto, CacheDType::kFp8};
  auto heads = record["backend"]["fp8_head_sizes"].get<std::vector<int>>();
  heads.push_back(80);  // fp8 itself is fine there, the head size is not
  backend.combination = std::make_shared<Fp8Heads>(heads);
  const SelectorFacts facts = {Platform::kCuda, DeviceCapability{9, 0}, {}};
  const BackendCheck check(backend);
  for (const Json& one : record["cases"]) {
    AttentionSelectorConfig config;
    config.head_size = one["head_size"];
    config.kv_cache_dtype = cache_dtype_from_name(one["kv_cache_dtype"].get<std::string>());
    std::vector<std::string> expected;
    for (const std::string reason : one["reasons"]) {
      expected.push_back(reason == "head_size" ? "head_size not supported" : reason);
    }
    EXPECT_EQ(reason_texts(check.validate(Requirements(config), facts), check, facts, config),
              expected)
        << one;
  }
}

// FlashAttention 4 on Hopper reads an fp8 cache for head size 512 only.
TEST(HandCase, H08LayersOfOneModelGetDifferentBackends) {
  SelectorFacts facts = {Platform::kCuda, DeviceCapability{9, 0}, {}};
  facts.environment.flash_attn_version = 4;
  const BackendSelector selector(facts, BackendRegistry(RegistryKind::kAttention));
  SelectionRequest layer;
  layer.config.kv_cache_dtype = CacheDType::kFp8;
  layer.config.head_size = 512;
  EXPECT_EQ(selector.select(layer).backend, "FLASH_ATTN");
  layer.config.head_size = 256;
  const Selection other = selector.select(layer);
  EXPECT_EQ(other.backend, "FLASHINFER");
  ASSERT_FALSE(other.candidates.empty());
  EXPECT_EQ(other.candidates[0].name, "FLASH_ATTN");
  EXPECT_EQ(other.candidates[0].reasons,
            std::vector<std::string>{"FP8 KV cache requires FA3 on SM90, FA4 with head_size=512 on "
                                     "SM90, or FA4 on SM100"});
}

TEST(HandCase, H09CapabilitiesAreComparedAsPairs) {
  const Json cases = hand_made_record("H09").at("cases");
  ASSERT_FALSE(cases.empty());
  for (const Json& one : cases) {
    Json file = {{"format", "attn-backend-file/1"}, {"name", "X"}, {"module", "m"}, {"class", "C"}};
    if (one.contains("floor")) {
      file["min_capability"] = one["floor"];
    } else {
      file["min_capability"] = {one["major"], 0};
      file["max_capability"] = {one["major"], 99};
    }
    const DeviceCapability capability = {one["capability"][0], one["capability"][1]};
    const AddedBackend added = parse_backend_file(file.dump(), "file");
    EXPECT_EQ(added.describe({Platform::kCuda, capability, {}}).capability, one["ok"]) << one;
  }
}

}  // namespace
}  // namespace attn
