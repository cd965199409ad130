#include "reference/contract.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "reference/gather.h"
#include "reference/partition.h"

namespace attn::reference {
namespace {

// "name":value, of a JSON object.
std::string member(std::string_view name, std::string_view value) {
  std::string text = "\"";
  text += name;
  text += "\":";
  text += value;
  return text;
}

// A code of at most 24 bits times its scales is exact in double; 53 bits times a scale are rounded.
void add_operand(std::string_view name, DType type, const TensorView& scale,
                 std::vector<std::string>& members) {
  if (type != DType::kF64 || !scale.present()) return;
  members.push_back(member(name, R"("f64")"));
}

std::int64_t number_of_parts(const ExecSpec& exec, const TensorView& seq_lens) {
  int parts = 1;
  for (std::int64_t r = 0; r < seq_lens.shape[0]; ++r) {
    for (const int part : partition_keys(exec, int_at(seq_lens, r))) {
      parts = std::max(parts, part + 1);
    }
  }
  return parts;
}

// Parts are finished outputs and their lse, joined one after the other, the sink at the end.
void add_merge(const ExecSpec& exec, const TensorView& seq_lens, bool sinks,
               std::vector<std::string>& members) {
  if (!exec.any()) return;
  const std::int64_t states = number_of_parts(exec, seq_lens) + (sinks ? 1 : 0);
  if (states == 1) return;
  members.push_back(member("splits", std::to_string(states)));
  std::string merge = R"({"kind":"lse","depth":)";
  merge += std::to_string(states - 1);
  merge += '}';
  members.push_back(member("merge", merge));
}

struct Members {
  std::vector<std::string> operator()(const AttentionOp& op) const {
    std::vector<std::string> members;
    add_operand("query", op.query.dtype, op.q_scale, members);
    add_operand("key", op.kv.key.dtype, op.kv.k_scale, members);
    add_operand("value", op.kv.value.dtype, op.kv.v_scale, members);
    add_merge(op.exec, op.seq_lens, op.sinks.present(), members);
    return members;
  }
  std::vector<std::string> operator()(const DifferentialOp& op) const {
    return (*this)(op.attention);
  }
  std::vector<std::string> operator()(const MlaOp& op) const {
    std::vector<std::string> members;
    add_operand("key", op.kv_cache.dtype, op.k_scale, members);
    add_operand("value", op.kv_cache.dtype, op.k_scale, members);
    add_merge(op.exec, op.seq_lens, false, members);
    if (op.form == MlaForm::kExpanded) {
      std::string project = R"({"sum":{"type":"f64","fused":false,"lanes":)";
      project += std::to_string(kLanes);
      project += R"(},"round":"exact"})";
      members.push_back(member("project", project));
    }
    return members;
  }
  std::vector<std::string> operator()(const MlaSparseOp& op) const { return (*this)(op.mla); }
  std::vector<std::string> operator()(const IndexerOp& op) const {
    std::vector<std::string> members;
    add_operand("key", op.key.dtype, op.k_scale, members);
    return members;
  }
  // Parts are the keys of one softmax. Those in base 2 are multiplied by ln 2, itself rounded.
  std::vector<std::string> operator()(const MergeStatesOp& op) const {
    std::vector<std::string> members = {R"("scale_roundings":0)"};
    if (op.lse_base_2) members.emplace_back(R"("logit_roundings":2)");
    return members;
  }
  std::vector<std::string> operator()(const CacheWriteOp&) const { return {}; }
  std::vector<std::string> operator()(const MlaCacheWriteOp&) const { return {}; }
};

}  // namespace

PrecisionContract declared_contract(const AttentionProblem& problem) {
  const std::vector<std::string> members = std::visit(Members(), problem.operation());
  std::string object = "{";
  for (const std::string& one : members) {
    if (object.size() > 1) object += ',';
    object += one;
  }
  object += '}';
  return {"reference", object};
}

}  // namespace attn::reference
