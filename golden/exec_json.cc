#include "golden/exec_json.h"

#include <fmt/core.h>

#include "attn/case_file.h"
#include "attn/error.h"

namespace attn {
namespace golden {

ExecSpec parse_exec(const JsonNode& node) {
  node.expect_only({"num_splits", "kv_chunk", "common_prefix_len", "dcp_size", "dcp_interleave"});
  ExecSpec exec;
  if (node.has("num_splits")) exec.num_splits = node.at("num_splits").integer(1);
  if (node.has("kv_chunk")) exec.kv_chunk = node.at("kv_chunk").integer(1);
  if (node.has("common_prefix_len")) {
    exec.common_prefix_len = node.at("common_prefix_len").integer(0);
    exec.has_common_prefix = true;
  }
  if (node.has("dcp_size")) exec.dcp_size = node.at("dcp_size").integer(1);
  if (node.has("dcp_interleave")) exec.dcp_interleave = node.at("dcp_interleave").integer(1);
  if (exec.num_splits != 0 && exec.kv_chunk != 0) {
    throw Error(fmt::format("{} has num_splits {} and kv_chunk {}, one excludes the other",
                            node.path(), exec.num_splits, exec.kv_chunk));
  }
  if (exec.dcp_interleave != 0 && exec.dcp_size == 0) {
    throw Error(
        fmt::format("{} has dcp_interleave {} without dcp_size", node.path(), exec.dcp_interleave));
  }
  return exec;
}

}  // namespace golden

std::string to_json(const ExecSpec& exec) {
  std::string fields;
  const auto add = [&](std::string_view key, std::int64_t value) {
    fields += fmt::format("{}\"{}\":{}", fields.empty() ? "" : ",", key, value);
  };
  if (exec.has_common_prefix) add("common_prefix_len", exec.common_prefix_len);
  if (exec.dcp_interleave != 0) add("dcp_interleave", exec.dcp_interleave);
  if (exec.dcp_size != 0) add("dcp_size", exec.dcp_size);
  if (exec.kv_chunk != 0) add("kv_chunk", exec.kv_chunk);
  if (exec.num_splits != 0) add("num_splits", exec.num_splits);
  return "{" + fields + "}";
}

}  // namespace attn
