// Makes folders of cases: of third parties' files, and of cases made in a test.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/counting_case.h"

namespace attn {

class CaseFolderWriter {
 public:
  explicit CaseFolderWriter(std::filesystem::path path);

  // A row of tests/data/third_party/<source>, as it is, with its file.
  void add_third_party(const std::string& source, const std::string& id);

  // Its row demands the exact answer, up to the backend's own arithmetic.
  void add(const CountingCase& made);
  void add(const CountingCase& made, const std::string& bytes);  // of the file

  // The same file as so many cases.
  void add_many(CountingCase made, int count);

  // Rows that must be the same bits: [[id, first token, count], ...].
  void add_relation(const nlohmann::json& rows);

  const std::filesystem::path& path() const { return path_; }

 private:
  void append(const std::string& file, const std::string& text) const;
  void append_row(const CountingCase& made, const std::string& file, const std::string& bytes);

  std::filesystem::path path_;
};

std::string sha256_hex(const std::string& bytes);

}  // namespace attn
