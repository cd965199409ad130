// A small pack in a folder of its own, and what tests do to it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attn/golden.h"
#include "tests/case_folder_writer.h"
#include "tests/command_runner.h"
#include "tests/damaged_file.h"
#include "tests/small_pack.h"

namespace attn {

inline std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename()] = text_of(entry.path());
  }
  return files;
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << text;
  ASSERT_TRUE(stream.flush()) << path;
}

// SHA256SUMS as sha256sum writes it, of what is there now.
inline void seal(const std::filesystem::path& folder) {
  std::string sums;
  for (const auto& [name, text] : files_of(folder)) {
    if (name != "SHA256SUMS") sums += sha256_hex(text) + "  " + name + "\n";
  }
  write_text(folder / "SHA256SUMS", sums);
}

inline std::string to_string(const std::vector<PackDamage>& damage) {
  std::string text;
  for (const PackDamage& one : damage) text += one.file + ": " + one.reason + "\n";
  return text;
}

class SmallPack : public testing::Test {
 protected:
  SmallPack() : pack_(folder_.path() / "pack") { make_small_pack(pack_); }

  std::string verdict() const { return to_string(verify_pack(pack_).damage); }

  nlohmann::json manifest() const {
    return nlohmann::json::parse(text_of(pack_ / "manifest.json"));
  }
  std::vector<nlohmann::json> index() const {
    std::vector<nlohmann::json> rows;
    for (const std::string& line : lines_of(text_of(pack_ / "index.jsonl"))) {
      rows.push_back(nlohmann::json::parse(line));
    }
    return rows;
  }
  void write_index(const std::vector<nlohmann::json>& rows) const {
    std::string text;
    for (const nlohmann::json& row : rows) text += row.dump() + "\n";
    write_text(pack_ / "index.jsonl", text);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path pack_;
};

}  // namespace attn
