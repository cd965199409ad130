// libFuzzer target: any text is a manifest, a line of an index, relations or sums, or an
// attn::Error. The first byte says which. Seeds are the files of a pack behind one byte each.
#include <cstdint>
#include <string_view>

#include "attn/error.h"
#include "golden/case_index.h"
#include "golden/pack_index.h"
#include "golden/pack_manifest.h"
#include "golden/pack_sums.h"

namespace {

using namespace attn::golden;

void read(unsigned char kind, std::string_view text) {
  switch (kind % 4) {
    case 0:
      to_text(parse_sums(text));
      break;
    case 1:
      to_text(parse_manifest(attn::JsonDocument(text, "manifest").root()));
      break;
    case 2:
      for_each_line(text, "index", [](const attn::JsonNode& line) {
        to_line(parse_pack_line(line, "1.0.0"), "1.0.0");
      });
      break;
    default:
      for_each_line(text, "relations", [](const attn::JsonNode& line) {
        to_line(parse_relation(line, {"a", "b"}));
      });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const attn::Error&) {
  }
  return 0;
}
