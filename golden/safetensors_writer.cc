#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attn/error.h"
#include "core/strict_json.h"
#include "golden/safetensors.h"

namespace attn::golden {
namespace {

using Entry = const StoredTensors::value_type*;

std::vector<Entry> file_order(const StoredTensors& tensors) {
  std::vector<Entry> order;
  for (const auto& entry : tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](Entry a, Entry b) {
    return unit_bytes(a->second.storage) > unit_bytes(b->second.storage);
  });
  return order;
}

void expect_writable(const std::string& name, const StoredTensor& tensor) {
  std::int64_t bytes = unit_bytes(tensor.storage);
  for (const std::int64_t axis : tensor.shape) bytes *= axis;
  if (name == "__metadata__" || bytes != static_cast<std::int64_t>(tensor.data.size())) {
    throw Error(fmt::format("tensor {} of {} [{}] with {} bytes cannot be written", in_quotes(name),
                            storage_name(tensor.storage), fmt::join(tensor.shape, ","),
                            tensor.data.size()));
  }
}

std::string header_text(const Metadata& metadata, const std::vector<Entry>& order) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  std::size_t begin = 0;
  for (const Entry entry : order) {
    expect_writable(entry->first, entry->second);
    const std::size_t end = begin + entry->second.data.size();
    header[entry->first] = {{"dtype", storage_name(entry->second.storage)},
                            {"shape", entry->second.shape},
                            {"data_offsets", {begin, end}}};
    begin = end;
  }
  try {
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
  } catch (const nlohmann::json::exception&) {
    throw Error("a name or text for the header is not UTF-8");
  }
}

}  // namespace

std::vector<std::byte> to_safetensors(const Metadata& metadata, const StoredTensors& tensors) {
  const std::vector<Entry> order = file_order(tensors);
  const std::string header = header_text(metadata, order);

  std::vector<std::byte> bytes(8);
  store_code(DType::kI64, header.size(), bytes.data());
  const auto append = [&](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  append(std::as_bytes(std::span(header)));
  for (const Entry entry : order) append(entry->second.data);
  return bytes;
}

}  // namespace attn::golden
