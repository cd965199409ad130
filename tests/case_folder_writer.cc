#include "tests/case_folder_writer.h"

#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <stdexcept>

#include "tests/damaged_file.h"

namespace attn {

namespace fs = std::filesystem;

std::string sha256_hex(const std::string& bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned int length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("libcrypto fails");
  }
  std::string hex;
  for (const unsigned char byte : digest) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

CaseFolderWriter::CaseFolderWriter(fs::path path) : path_(std::move(path)) {
  fs::create_directories(path_);
  append("index.jsonl", "");
}

void CaseFolderWriter::append(const std::string& file, const std::string& text) const {
  std::ofstream stream(path_ / file, std::ios::binary | std::ios::app);
  stream << text;
  if (!stream.flush()) throw std::runtime_error("cannot write " + (path_ / file).string());
}

void CaseFolderWriter::add_third_party(const std::string& source, const std::string& id) {
  const fs::path from = fs::path(ATTN_TEST_DATA) / "third_party" / source;
  std::ifstream index(from / "index.jsonl");
  for (std::string line; std::getline(index, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (row.at("id") != id) continue;
    const std::string file = row.at("file");
    fs::copy_file(from / file, path_ / file);
    append("index.jsonl", line + "\n");
    return;
  }
  throw std::runtime_error(source + " has no case " + id);
}

void CaseFolderWriter::add(const CountingCase& made) { add(made, made.bytes()); }

void CaseFolderWriter::add(const CountingCase& made, const std::string& bytes) {
  const std::string file = made.id + ".safetensors";
  append(file, bytes);
  append_row(made, file, bytes);
}

void CaseFolderWriter::add_many(CountingCase made, int count) {
  const std::string bytes = made.bytes();
  const std::string file = made.id + ".safetensors";
  append(file, bytes);
  for (int i = 0; i < count; ++i) {
    made.id = "many-" + std::to_string(i);
    append_row(made, file, bytes);
  }
}

void CaseFolderWriter::append_row(const CountingCase& made, const std::string& file,
                                  const std::string& bytes) {
  std::int32_t largest = 0;
  for (const CountingCase::Request& r : made.requests) largest = std::max(largest, r.seq_len);
  const nlohmann::json row = {{"id", made.id},
                              {"file", file},
                              {"op", "attention"},
                              {"variant", "causal"},
                              {"result", made.result},
                              {"flags", nlohmann::json::array()},
                              {"tolerance", {{"out", {0.0, 0.0}}, {"lse", {0.0, 0.0}}}},
                              {"vmax", static_cast<double>(largest)},
                              {"precision", "f64"},
                              {"provenance", {{"source", "test"}}},
                              {"rulings", nlohmann::json::array()},
                              {"sha256", sha256_hex(bytes)}};
  append("index.jsonl", row.dump() + "\n");
}

void CaseFolderWriter::add_relation(const nlohmann::json& rows) {
  const nlohmann::json line = {{"kind", "bitwise"}, {"about", "the same rows"}, {"rows", rows}};
  append("relations.jsonl", line.dump() + "\n");
}

}  // namespace attn
