// libFuzzer target: any bytes are a case file or an attn::Error. Seeds are case files:
//
//   case_file_fuzz -dict=tests/fuzz/case_file.dict CORPUS tests/data/third_party/hand_made
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "attn/case_file.h"
#include "attn/error.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const attn::CaseFile file = attn::CaseFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& [name, description] : file.outputs()) file.stored_output(name);
    to_string(file.problem());
  } catch (const attn::Error&) {
  }
  return 0;
}

// Most plain mutations break the header's length, or move the tensors. This one changes either the
// tensors, or the header's text and puts its length and padding right.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  uint64_t length = 0;
  if (size >= 8) std::memcpy(&length, data, 8);
  if (seed % 8 == 0 || size < 8 || length > size - 8) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  if (seed % 8 == 1) {
    const size_t begin = 8 + static_cast<size_t>(length);
    return begin + LLVMFuzzerMutate(data + begin, size - begin, size - begin);
  }
  std::string header(reinterpret_cast<const char*>(data) + 8, static_cast<size_t>(length));
  const std::string tensors(reinterpret_cast<const char*>(data) + 8 + length, size - 8 - length);
  header.erase(header.find_last_not_of(' ') + 1);
  const size_t text_size = header.size();
  header.resize(std::min(text_size + 64, max_size));
  header.resize(
      LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(header.data()), text_size, header.size()));
  header.append((8 - header.size() % 8) % 8, ' ');
  if (8 + header.size() + tensors.size() > max_size) return size;
  length = header.size();
  std::memcpy(data, &length, 8);
  std::memcpy(data + 8, header.data(), header.size());
  std::memcpy(data + 8 + header.size(), tensors.data(), tensors.size());
  return 8 + header.size() + tensors.size();
}
