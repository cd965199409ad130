// docs/vllm_mapping.md: its backend table is what the selector's rows say, and that is what vLLM
// answered. ATTN_REWRITE_MAPPING=1 writes the table into the document.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "core/contains.h"
#include "tests/backend_table.h"

namespace attn {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr const char* kBegin = "<!-- backend table: generated -->\n";
constexpr const char* kEnd = "<!-- end of the backend table -->";

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Document {
  std::string before;
  std::string table;
  std::string behind;
};

Document committed() {
  const std::string text = text_of(ATTN_MAPPING);
  const std::size_t begin = text.find(kBegin);
  const std::size_t end = text.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos) return {};
  const std::size_t table = begin + std::string(kBegin).size();
  return {text.substr(0, table), text.substr(table, end - table), text.substr(end)};
}

TEST(VllmMapping, BackendTableIsGeneratedFromTheRows) {
  const Document document = committed();
  ASSERT_FALSE(document.before.empty()) << "no marks in " << ATTN_MAPPING;
  const std::string table = "\n" + backend_table(described_backend_lines()) + "\n";
  if (std::getenv("ATTN_REWRITE_MAPPING") != nullptr) {
    std::ofstream(ATTN_MAPPING) << document.before << table << document.behind;
    return;
  }
  EXPECT_EQ(document.table, table)
      << "rewrite it: ATTN_REWRITE_MAPPING=1 vllm_mapping_test "
         "--gtest_filter=VllmMapping.BackendTableIsGeneratedFromTheRows";
}

// The committed table's cells.
std::vector<BackendLine> committed_lines() {
  std::vector<BackendLine> lines;
  std::istringstream table(committed().table);
  std::string platform;
  for (std::string text; std::getline(table, text);) {
    for (const auto& [title, word] : {std::pair("### CUDA", "cuda"),
                                      {"### ROCm", "rocm"},
                                      {"### XPU", "xpu"},
                                      {"### CPU", "cpu"}}) {
      if (text.starts_with(title)) platform = word;
    }
    if (!text.starts_with("| ") || text.starts_with("| backend")) continue;
    Words cells;
    for (std::size_t at = 2; at < text.size();) {
      const std::size_t end = text.find(" |", at);
      cells.push_back(text.substr(at, end - at));
      at = end + 3;
    }
    if (cells.size() != 9) ADD_FAILURE() << "not 9 cells: " << text;
    cells.resize(9);
    lines.push_back({platform, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6],
                     cells[7], cells[8]});
  }
  return lines;
}

// A cell of head sizes, read back.
bool allows(const std::string& cell, int head_size) {
  int a = 0;
  int b = 0;
  if (cell == "any") return true;
  if (std::sscanf(cell.c_str(), "multiples of %d up to %d", &a, &b) == 2) {
    return head_size % a == 0 && head_size <= b;
  }
  if (std::sscanf(cell.c_str(), ">= %d", &a) == 1) return head_size >= a;
  return fmt::format(", {},", cell).find(fmt::format(" {},", head_size)) != std::string::npos;
}

std::string word_of(const Json& entry) {
  if (entry.is_null()) return "none";
  if (entry.is_number()) return fmt::to_string(entry.get<int>());
  if (entry.is_object()) return fmt::format("multiples of {}", entry["multiple_of"].get<int>());
  return entry.get<std::string>();
}

std::string words_of(const Json& list) {
  Words words;
  for (const Json& entry : list) words.push_back(word_of(entry));
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
}

bool is_yes(const Json& answer) { return answer.is_boolean() && answer.get<bool>(); }

std::string features_of(const Json& base) {
  const std::pair<const char*, const char*> kYes[] = {
      {"is_mla", "MLA"},
      {"is_sparse", "sparse"},
      {"supports_sink", "sinks"},
      {"supports_alibi_sqrt", "ALiBi sqrt"},
      {"supports_mm_prefix", "mm prefix"},
      {"supports_per_head_quant_scales", "per-head scales"},
      {"supports_sliding_window", "sliding window"},
      {"supports_rswa", "R-SWA"},
      {"supports_non_causal", "non-causal"},
      {"supports_non_causal_dcp", "non-causal with DCP"},
      {"supports_batch_invariance", "batch invariance"},
      {"supports_pcp", "PCP"},
      {"supports_dcp", "DCP"}};
  Words words;
  for (const auto& [key, word] : kYes) {
    if (is_yes(base[key])) words.emplace_back(word);
  }
  if (!is_yes(base["supports_kv_connector"])) words.emplace_back("**no** KV connector");
  if (!is_yes(base["supports_device_cpu_query_lens_mismatch"])) {
    words.emplace_back("**no** adaptive verification");
  }
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ", "));
}

void expect_as_recorded(const BackendLine& line, const Json& base) {
  const std::string where = line.platform + " " + line.member;
  for (const int head_size : {8,   16,  24,  32,  40,  48,  64,  72,  80,  96,  100, 112, 128,
                              160, 192, 224, 256, 264, 288, 320, 384, 512, 520, 576, 640, 1024}) {
    const Json& accepted = base["supports_head_size"];
    const bool recorded = contains(accepted, head_size);
    EXPECT_EQ(allows(line.heads, head_size), recorded) << where << " " << head_size;
  }
  EXPECT_EQ(line.dtypes, words_of(base["supports_dtype"])) << where;
  EXPECT_EQ(line.kv_cache_dtypes, words_of(base["supports_kv_cache_dtype"])) << where;
  EXPECT_EQ(line.kernel_blocks, words_of(base["get_supported_kernel_block_sizes"])) << where;
  const Json& types = base["supports_attn_type"];
  EXPECT_EQ(line.attn_types, types.size() == 4 ? "all" : words_of(types)) << where;
  EXPECT_EQ(line.features, features_of(base)) << where;
  const Json& layouts = base["supported_kv_cache_layouts"];
  EXPECT_EQ(line.layouts, layouts.is_null() ? "any" : words_of(layouts)) << where;
}

// Every backend that vLLM was asked about is in the committed document, as vLLM answered.
TEST(VllmMapping, BackendTableSaysWhatVllmAnswered) {
  const Json recorded = Json::parse(text_of(ATTN_SELECTOR_TABLES "/capabilities.json"));
  const std::vector<BackendLine> lines = committed_lines();
  int compared = 0;
  for (const auto& [platform, backends] : recorded["capabilities"].items()) {
    if (platform == "mamba") continue;
    for (const auto& [key, answers] : backends.items()) {
      const std::string member = key.starts_with("XPU:") ? key.substr(4) : key;
      const auto line = std::find_if(lines.begin(), lines.end(), [&, p = platform](const auto& l) {
        return l.platform == p && l.member == member;
      });
      if (line == lines.end()) {
        ADD_FAILURE() << platform << " " << member << " is missing";
        continue;
      }
      expect_as_recorded(*line, answers["base"]);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 53);
}

}  // namespace
}  // namespace attn
