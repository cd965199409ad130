// A case whose answer is known without computing attention: all scores are 0 and values count 1, 2,
// 3, ... in every request, so a row at position p averages 1 ... p + 1.
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tests/plain_safetensors.h"

namespace attn {

// Causal, contiguous, float32, one head of size 1.
struct CountingCase {
  struct Request {
    std::int32_t query_len = 1;
    std::int32_t seq_len = 1;
  };

  std::string id = "counting";
  std::vector<Request> requests = std::vector<Request>(1, Request{2, 3});
  std::string result = "valid";
  float query = 0.0F;                                 // of every row
  nlohmann::json attrs = nlohmann::json::object();    // added
  std::map<std::string, PlainTensor> masks;           // added to the inputs, bool
  std::map<std::string, PlainTensor> stored;          // answers
  std::vector<std::string> outputs = {"lse", "out"};  // asked for

  std::vector<double> expected_out() const {
    std::vector<double> out;
    for_each_row([&](std::int64_t p) { out.push_back(p < 0 ? 0.0 : (p + 2) / 2.0); });
    return out;
  }
  std::vector<double> expected_lse() const {
    std::vector<double> lse;
    for_each_row([&](std::int64_t p) {
      lse.push_back(p < 0 ? -std::numeric_limits<double>::infinity() : std::log(p + 1.0));
    });
    return lse;
  }
  std::int64_t num_tokens() const { return static_cast<std::int64_t>(expected_out().size()); }

  // The case file.
  std::string bytes() const {
    const std::int64_t tokens = num_tokens();
    std::vector<float> values;
    std::vector<std::int32_t> query_start = {0}, kv_start = {0}, seq_lens;
    for (const Request& r : requests) {
      query_start.push_back(query_start.back() + r.query_len);
      kv_start.push_back(kv_start.back() + r.seq_len);
      seq_lens.push_back(r.seq_len);
      for (std::int32_t k = 0; k < r.seq_len; ++k) values.push_back(static_cast<float>(k + 1));
    }
    const auto num_reqs = static_cast<std::int64_t>(requests.size());
    const auto rows = static_cast<std::int64_t>(values.size());
    PlainFile file;
    file.tensors["query"] =
        f32_tensor({tokens, 1, 1}, std::vector<float>(static_cast<std::size_t>(tokens), query));
    file.tensors["key"] = f32_tensor({rows, 1, 1}, std::vector<float>(values.size(), 0.0F));
    file.tensors["value"] = f32_tensor({rows, 1, 1}, values);
    file.tensors["query_start_loc"] = i32_tensor({num_reqs + 1}, query_start);
    file.tensors["kv_start_loc"] = i32_tensor({num_reqs + 1}, kv_start);
    file.tensors["seq_lens"] = i32_tensor({num_reqs}, seq_lens);
    file.tensors.insert(masks.begin(), masks.end());
    nlohmann::json object = {{"spec_version", 1},
                             {"id", id},
                             {"op", "attention"},
                             {"variant", "causal"},
                             {"name", "averages of counted values"},
                             {"scenario", ""},
                             {"flags", nlohmann::json::array()},
                             {"result", result},
                             {"axes",
                              {{"num_reqs", num_reqs},
                               {"num_tokens", tokens},
                               {"num_heads", 1},
                               {"num_kv_heads", 1},
                               {"head_size", 1},
                               {"head_size_v", 1}}},
                             {"attrs", {{"kv_layout", "varlen"}, {"scale", "0x1p+0"}}},
                             {"inputs", nlohmann::json::object()}};
    object["attrs"]["causal"] = true;
    object["attrs"].update(attrs);
    for (const auto& [name, tensor] : file.tensors) object["inputs"][name] = described(tensor);
    object["outputs"] = nlohmann::json::object();
    for (const std::string& name : outputs) {
      object["outputs"][name] =
          described({"F64",
                     name == "out" ? std::vector{tokens, std::int64_t{1}, std::int64_t{1}}
                                   : std::vector{std::int64_t{1}, tokens},
                     ""});
    }
    for (const auto& [name, tensor] : stored) {
      object["outputs"][name] = described(tensor);
      file.tensors[name] = tensor;
    }
    file.metadata = {{"format", "attn-case/1"}, {"case", object.dump()}};
    return file.bytes();
  }

  // A right answer to it, to be spoiled.
  PlainFile answer() const {
    PlainFile file;
    file.metadata = {{"format", "attn-result/1"}, {"backend", "MINE"}, {"exec", "{}"}};
    file.tensors["out"] = f64_tensor({num_tokens(), 1, 1}, expected_out());
    file.tensors["lse"] = f64_tensor({1, num_tokens()}, expected_lse());
    return file;
  }

 private:
  template <class Visit>
  void for_each_row(Visit visit) const {
    for (const Request& r : requests) {
      for (std::int32_t row = 0; row < r.query_len; ++row) visit(r.seq_len - r.query_len + row);
    }
  }

  static nlohmann::json described(const PlainTensor& tensor) {
    std::string dtype = tensor.storage;
    for (char& c : dtype) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return {{"dtype", dtype}, {"storage", tensor.storage}, {"shape", tensor.shape}};
  }
};

}  // namespace attn
