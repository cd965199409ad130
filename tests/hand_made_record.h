// Records of tests/data/third_party/hand_made/other.jsonl: public reports that are no case files.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "attn/block_sizes.h"

namespace attn {

inline nlohmann::json hand_made_record(const std::string& id) {
  std::ifstream file(ATTN_TEST_DATA "/third_party/hand_made/other.jsonl");
  for (std::string line; std::getline(file, line);) {
    nlohmann::json record = nlohmann::json::parse(line);
    if (record["id"] == id) return record;
  }
  throw std::runtime_error("no record " + id);
}

// {"multiple_of": n} or {"sizes": [...]}.
inline BlockSizes block_sizes_of(const nlohmann::json& entry) {
  if (entry.contains("multiple_of")) return {multiple_of(entry["multiple_of"])};
  BlockSizes sizes;
  for (const int size : entry["sizes"]) sizes.push_back({size, false});
  return sizes;
}

}  // namespace attn
