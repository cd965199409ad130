// Batches as the answers of tables write them.
#include <string_view>

#include "composite/batch_json.h"

namespace attn {
namespace {

using nlohmann::json;
using Batch = CommonAttentionMetadata;

template <class T>
struct Field {
  const char* name;
  std::optional<T> Batch::*member;
};

constexpr Field<std::vector<std::int32_t>> kLists[] = {
    {"seq_lens_cpu_upper_bound", &Batch::seq_lens_cpu_upper_bound},
    {"logits_indices_padded", &Batch::logits_indices_padded},
    {"encoder_seq_lens", &Batch::encoder_seq_lens},
    {"encoder_seq_lens_cpu", &Batch::encoder_seq_lens_cpu},
    {"dcp_local_seq_lens", &Batch::dcp_local_seq_lens},
    {"dcp_local_seq_lens_cpu_upper_bound", &Batch::dcp_local_seq_lens_cpu_upper_bound},
    {"req_idx", &Batch::req_idx},
    {"rswa_prefix_lens", &Batch::rswa_prefix_lens}};
constexpr Field<std::int32_t> kCounts[] = {{"num_logits_indices", &Batch::num_logits_indices},
                                           {"max_logits_per_req", &Batch::max_logits_per_req}};

template <class T>
void write(const Batch& batch, const Field<T>& field, json& value) {
  const std::optional<T>& given = batch.*field.member;
  if (given) value[field.name] = *given;
}

json images_json(const std::vector<RowImages>& images) {
  json rows = json::array();
  for (const RowImages& row : images) rows.push_back({row.row, to_json_value(row.ranges)});
  return rows;
}

}  // namespace

json to_json_value(const std::vector<ImageRange>& ranges) {
  json list = json::array();
  for (const ImageRange& range : ranges) list.push_back({range.start, range.end});
  return list;
}

json to_json_value(const BlockTable& table) {
  json rows = json::array();
  const std::int64_t num_rows =
      table.width == 0 ? 0 : static_cast<std::int64_t>(table.entries.size()) / table.width;
  for (std::int64_t row = 0; row < num_rows; ++row) {
    rows.push_back(std::vector(table.row(row).begin(), table.row(row).end()));
  }
  return rows;
}

json to_json_value(const Batch& batch) {
  json value = {{"query_start_loc", batch.query_start_loc},
                {"query_start_loc_cpu", batch.query_start_loc_cpu},
                {"seq_lens", batch.seq_lens},
                {"num_reqs", batch.num_reqs},
                {"num_actual_tokens", batch.num_actual_tokens},
                {"max_query_len", batch.max_query_len},
                {"max_seq_len", batch.max_seq_len},
                {"block_table", to_json_value(batch.block_table)},
                {"slot_mapping", batch.slot_mapping},
                {"causal", batch.causal}};
  if (batch.causal_per_req) value["causal"] = *batch.causal_per_req;
  for (const auto& field : kLists) write(batch, field, value);
  for (const auto& field : kCounts) write(batch, field, value);
  if (batch.is_prefilling) value["is_prefilling"] = *batch.is_prefilling;
  if (batch.positions) value["positions"] = *batch.positions;
  if (batch.mm_req_doc_ranges) value["mm_req_doc_ranges"] = images_json(*batch.mm_req_doc_ranges);
  return value;
}

}  // namespace attn
