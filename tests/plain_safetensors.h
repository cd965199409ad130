// Reads and writes .safetensors files with nothing of the product, for tests from the outside.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace attn {

struct PlainTensor {
  std::string storage;  // "F64", "I32", ...
  std::vector<std::int64_t> shape;
  std::string bytes;
};

template <class T>
PlainTensor plain_tensor(const std::string& storage, const std::vector<std::int64_t>& shape,
                         const std::vector<T>& values) {
  return {storage, shape,
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}
inline PlainTensor f64_tensor(const std::vector<std::int64_t>& shape,
                              const std::vector<double>& values) {
  return plain_tensor("F64", shape, values);
}
inline PlainTensor f32_tensor(const std::vector<std::int64_t>& shape,
                              const std::vector<float>& values) {
  return plain_tensor("F32", shape, values);
}
inline PlainTensor i32_tensor(const std::vector<std::int64_t>& shape,
                              const std::vector<std::int32_t>& values) {
  return plain_tensor("I32", shape, values);
}

template <class T>
std::vector<T> values_of(const PlainTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

struct PlainFile {
  std::map<std::string, std::string> metadata;
  std::map<std::string, PlainTensor> tensors;

  // Wider elements first, then by name: so every tensor is aligned.
  std::string bytes() const {
    nlohmann::ordered_json header;
    header["__metadata__"] = metadata;
    std::string data;
    for (const char* width : {"64", "32", "16", ""}) {
      for (const auto& [name, tensor] : tensors) {
        if (header.contains(name) || tensor.storage.find(width) == std::string::npos) continue;
        header[name] = {{"dtype", tensor.storage},
                        {"shape", tensor.shape},
                        {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
        data += tensor.bytes;
      }
    }
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    const std::uint64_t length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + text + data;
  }

  static PlainFile read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot open " + path.string());
    const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::uint64_t length = 0;
    std::memcpy(&length, all.substr(0, 8).data(), 8);
    const nlohmann::json header = nlohmann::json::parse(all.substr(8, length));
    PlainFile result;
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") {
        result.metadata = value.get<std::map<std::string, std::string>>();
        continue;
      }
      const std::size_t begin = value["data_offsets"][0];
      const std::size_t end = value["data_offsets"][1];
      result.tensors[name] = {value["dtype"], value["shape"],
                              all.substr(8 + length + begin, end - begin)};
    }
    return result;
  }
};

}  // namespace attn
