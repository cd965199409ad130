// What every command promises about its documents and refusals.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/command_runner.h"
#include "tests/damaged_file.h"

namespace attn {

using Json = nlohmann::ordered_json;

inline std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// The one document on standard output.
inline Json document_of(const CommandOutput& output) {
  EXPECT_EQ(lines_of(output.out).size(), 1U) << output.out << output.err;
  EXPECT_TRUE(output.out.ends_with('\n'));
  return Json::parse(output.out);
}

// format, version and replay come first, exit comes last and is the exit code.
inline void expect_document_form(const Json& document, const std::string& command, int exit) {
  const std::vector<std::string> keys = keys_of(document);
  ASSERT_GE(keys.size(), 4U);
  EXPECT_EQ(std::vector<std::string>(keys.begin(), keys.begin() + 3),
            (std::vector<std::string>{"format", "version", "replay"}));
  EXPECT_EQ(document["format"], "attn-" + command + "/1");
  EXPECT_EQ(document["version"], ATTN_VERSION);
  EXPECT_EQ(keys.back(), "exit");
  EXPECT_EQ(document["exit"], exit);
}

// Exit 2, one line on standard error that holds `says`, nothing on standard output.
inline void expect_refused(const CommandOutput& output, const std::string& says) {
  EXPECT_EQ(output.exit, 2) << output.err;
  EXPECT_EQ(output.out, "");
  EXPECT_EQ(lines_of(output.err).size(), 1U) << output.err;
  EXPECT_TRUE(output.err.starts_with("attn-oracle: ") && output.err.ends_with('\n')) << output.err;
  EXPECT_NE(output.err.find(says), std::string::npos) << output.err;
}

inline std::string without_seconds(const Json& document) {
  Json rest = document;
  rest.erase("seconds");
  return rest.dump();
}

// The document's replay line, given to a shell, makes the same document.
inline void expect_replays(const Json& document, const CommandSetting& setting) {
  const CommandOutput again = shell(document["replay"], setting);
  EXPECT_EQ(again.exit, document["exit"]) << again.err;
  EXPECT_EQ(without_seconds(document_of(again)), without_seconds(document));
}

inline std::string third_party(const std::string& file) {
  return std::string(ATTN_TEST_DATA) + "/third_party/" + file;
}

// Every file of a folder by name.
inline std::map<std::string, std::string> contents_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    contents[entry.path().filename()] = text_of(entry.path());
  }
  return contents;
}

}  // namespace attn
