// Case files put together in memory, for tests that then change a part.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attn/case_file.h"
#include "golden/safetensors.h"
#include "tests/damaged_file.h"
#include "tests/error_text.h"
#include "tests/tensor_pool.h"

namespace attn {

struct CaseBuilder {
  explicit CaseBuilder(const std::string& op) {
    object = {{"spec_version", 1},
              {"id", "case-1"},
              {"op", op},
              {"variant", "test"},
              {"name", "a case"},
              {"scenario", ""},
              {"flags", nlohmann::json::array()},
              {"result", "valid"},
              {"axes", nlohmann::json::object()},
              {"attrs", nlohmann::json::object()},
              {"inputs", nlohmann::json::object()},
              {"outputs", nlohmann::json::object()}};
  }

  // Describes `view` in `table` and stores it under `prefix` + `name`.
  void add(const std::string& table, const std::string& name, const TensorView& view,
           const std::string& prefix = "") {
    describe(table, name, view.dtype, {view.shape, view.shape + view.rank});
    tensors[prefix + name] = {
        golden::storage_of(view.dtype),
        {view.shape, view.shape + view.rank},
        {static_cast<const std::byte*>(view.data),
         static_cast<std::size_t>(view.num_units() * unit_bytes(view.dtype))}};
  }
  void describe(const std::string& table, const std::string& name, DType dtype,
                const std::vector<std::int64_t>& shape) {
    object[table][name] = {
        {"dtype", attn::name(dtype)}, {"storage", golden::storage_name(dtype)}, {"shape", shape}};
  }

  void input(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
             const std::vector<double>& elements = {}) {
    add("inputs", name,
        elements.empty() ? pool.zeros(dtype, shape) : pool.values(dtype, shape, elements));
  }
  void remove_input(const std::string& name) {
    object["inputs"].erase(name);
    tensors.erase(name);
  }

  std::vector<std::byte> bytes() const {
    return golden::to_safetensors({{"format", "attn-case/1"}, {"case", object.dump()}}, tensors);
  }
  CaseFile parse() const { return CaseFile::parse(bytes(), "f"); }

  nlohmann::json object;
  golden::StoredTensors tensors;
  TensorPool pool;
};

// What making the problem of a readable case says; empty when it is valid.
inline std::string problem_error(const CaseBuilder& builder) {
  const CaseFile file = builder.parse();
  return error_of([&] { file.problem(); });
}

// Two requests with 2 and 1 new tokens and lengths 3 and 2; 2 heads on 1 KV head; head size 4,
// values 2; float32; causal.
inline CaseBuilder varlen_case(const std::string& op = "attention") {
  CaseBuilder b(op);
  b.object["axes"] = {{"num_reqs", 2},     {"num_tokens", 3}, {"num_heads", 2},
                      {"num_kv_heads", 1}, {"head_size", 4},  {"head_size_v", 2}};
  b.object["attrs"] = {{"kv_layout", "varlen"}, {"scale", "0x1p-1"}, {"causal", true}};
  b.input("query", DType::kF32, {3, 2, 4});
  b.input("query_start_loc", DType::kI32, {3}, {0, 2, 3});
  b.input("seq_lens", DType::kI32, {2}, {3, 2});
  b.input("kv_start_loc", DType::kI32, {3}, {0, 3, 5});
  b.input("key", DType::kF32, {5, 1, 4});
  b.input("value", DType::kF32, {5, 1, 2});
  b.describe("outputs", "out", DType::kF64, {3, 2, 2});
  b.describe("outputs", "lse", DType::kF64, {2, 3});
  return b;
}

inline std::vector<double> counting(std::int64_t n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return values;
}

// The same batch on 4 blocks of 2 slots; 2 KV heads; every cache element is its place in memory.
inline CaseBuilder paged_case() {
  CaseBuilder b = varlen_case();
  for (const char* input : {"kv_start_loc", "key", "value"}) b.remove_input(input);
  b.object["axes"]["num_kv_heads"] = 2;
  b.object["attrs"]["kv_layout"] = "paged";
  b.object["attrs"]["kv_cache_layout"] = "NHD";
  b.object["attrs"]["block_size"] = 2;
  b.input("key_cache", DType::kF32, {4, 2, 2, 4}, counting(64));
  b.input("value_cache", DType::kF32, {4, 2, 2, 2}, counting(32));
  b.input("block_table", DType::kI32, {2, 3}, {3, 0, 2147480000, 1, 2147480000, 2147480000});
  return b;
}

}  // namespace attn
