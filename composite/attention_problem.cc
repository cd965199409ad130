#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "attn/error.h"
#include "attn/executable_backend.h"
#include "core/checks.h"
#include "core/contains.h"

namespace attn {
namespace {

using checks::fail;

template <class Number>
HostTensor integers(DType dtype, std::vector<std::int64_t> shape,
                    const std::vector<Number>& values) {
  return {dtype, std::move(shape), std::vector<double>(values.begin(), values.end())};
}

HostTensor floats(const std::vector<float>& values) {
  if (values.empty()) return {};
  return {DType::kF32,
          {static_cast<std::int64_t>(values.size())},
          std::vector<double>(values.begin(), values.end())};
}

bool sees_this_step_only(AttentionType type) {
  return type == AttentionType::kEncoder || type == AttentionType::kEncoderOnly;
}

// Tensors of a batch and a layer as an AttentionOp views them.
class Conversion {
 public:
  Conversion(const CommonAttentionMetadata& batch, const ImplArguments& layer,
             const ForwardArguments& forward)
      : batch_(batch), layer_(layer), forward_(forward) {}

  BatchProblem convert() && {
    refuse_what_no_problem_expresses();
    expect_axis("query", forward_.query, 1, layer_.num_heads);
    expect_axis("query", forward_.query, 2, layer_.head_size);
    AttentionOp op;
    op.query = forward_.query;
    op.query_start_loc =
        memory_.keep(integers(DType::kI32, {batch_.num_reqs + 1}, batch_.query_start_loc));
    op.scale = layer_.scale;
    op.logits_soft_cap = layer_.logits_soft_cap;
    op.sinks = memory_.keep(floats(layer_.sinks));
    if (!layer_.alibi_slopes.empty()) {
      op.bias.alibi_form = AlibiForm::kRow;
      op.bias.alibi_slopes = memory_.keep(floats(layer_.alibi_slopes));
    }
    place_keys(op);
    place_mask(op.mask);
    if (forward_.output.dtype == DType::kF8E4M3FN) op.output_scale = forward_.output_scale;
    return {std::move(memory_), AttentionProblem(op)};
  }

 private:
  void refuse_what_no_problem_expresses() const {
    if (is_cross() && !batch_.encoder_seq_lens) fail("cross attention needs encoder_seq_lens");
    if (batch_.dcp_local_seq_lens) fail("dcp_local_seq_lens: context parallelism not supported");
    if (forward_.output_block_scale.present()) fail("output_block_scale not supported");
  }

  bool is_cross() const { return layer_.attn_type == AttentionType::kEncoderDecoder; }

  static void expect_axis(std::string_view what, const TensorView& view, int axis,
                          std::int64_t size) {
    if (view.rank != 3 || view.shape[axis] != size) {
      fail("{} is {}, axis {} must be {}", what, to_string(view), axis, size);
    }
  }

  void place_keys(AttentionOp& op) {
    if (sees_this_step_only(layer_.attn_type)) return place_rows_of_this_step(op);
    op.seq_lens = memory_.keep(integers(DType::kI32, {batch_.num_reqs},
                                        is_cross() ? *batch_.encoder_seq_lens : batch_.seq_lens));
    op.kv = forward_.kv_cache;
    op.kv.block_table = memory_.keep(integers(
        DType::kI32, {batch_.num_reqs, batch_.block_table.width}, batch_.block_table.entries));
    const TensorView& key = op.kv.key;
    if (!op.kv.paged() || key.rank != 4 || key.shape[2] != layer_.num_kv_heads) {
      fail("kv_cache has keys {}, they must be paged with {} heads", to_string(key),
           layer_.num_kv_heads);
    }
  }

  void place_rows_of_this_step(AttentionOp& op) {
    std::vector<std::int32_t> lengths;
    for (std::size_t r = 0; r + 1 < batch_.query_start_loc.size(); ++r) {
      lengths.push_back(batch_.query_start_loc[r + 1] - batch_.query_start_loc[r]);
    }
    const std::int32_t num_tokens = batch_.query_start_loc.back();
    const auto rows = [&](std::string_view what, const TensorView& view) {
      expect_axis(what, view, 1, layer_.num_kv_heads);
      if (view.shape[0] < num_tokens) fail("{} has {} rows of {}", what, view.shape[0], num_tokens);
      return slice(view, 0, 0, num_tokens);
    };
    op.seq_lens = memory_.keep(integers(DType::kI32, {batch_.num_reqs}, lengths));
    op.kv.layout = KvLayout::kVarlen;
    op.kv.key = rows("key", forward_.key);
    op.kv.value = rows("value", forward_.value);
    op.kv.kv_start_loc = op.query_start_loc;
  }

  void place_mask(MaskSpec& mask) {
    if (is_cross()) return;  // every key of the encoder
    mask.causal = batch_.causal && layer_.attn_type != AttentionType::kEncoder;
    bool all_causal = mask.causal;
    if (batch_.causal_per_req && layer_.attn_type != AttentionType::kEncoder) {
      const std::vector<bool>& causal = *batch_.causal_per_req;
      mask.causal_per_req = memory_.keep(integers(DType::kBool, {batch_.num_reqs}, causal));
      all_causal = !contains(causal, false);
    }
    if (batch_.rswa_prefix_lens && layer_.sliding_window) {
      mask.rswa_window = *layer_.sliding_window;
      mask.rswa_prefix_lens =
          memory_.keep(integers(DType::kI32, {batch_.num_reqs}, *batch_.rswa_prefix_lens));
    } else if (layer_.sliding_window) {
      mask.window_left = *layer_.sliding_window - 1;
      if (!all_causal) mask.window_right = mask.window_left;
    }
    place_ranges(mask);
  }

  void place_ranges(MaskSpec& mask) {
    if (!batch_.mm_req_doc_ranges) return;
    std::vector<std::vector<ImageRange>> rows(static_cast<std::size_t>(batch_.num_reqs));
    std::size_t most = 0;
    for (const RowImages& images : *batch_.mm_req_doc_ranges) {
      std::vector<ImageRange>& row = rows.at(static_cast<std::size_t>(images.row));
      std::copy_if(images.ranges.begin(), images.ranges.end(), std::back_inserter(row),
                   [](const ImageRange& range) { return range.start < range.end; });
      most = std::max(most, row.size());
    }
    if (most == 0) return;
    HostTensor ranges(DType::kI32,
                      {batch_.num_reqs, static_cast<std::int64_t>(most), 2});  // (0, 0): padding
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::size_t i = 0; i < rows[r].size(); ++i) {
        ranges.set(rows[r][i].start, r, i, 0);
        ranges.set(rows[r][i].end, r, i, 1);
      }
    }
    mask.mm_prefix_ranges = memory_.keep(std::move(ranges));
    mask.mm_prefix_clamp =
        layer_.mm_prefix_clamp_sliding_window && mask.window_left != MaskSpec::kUnbounded;
  }

  const CommonAttentionMetadata& batch_;
  const ImplArguments& layer_;
  const ForwardArguments& forward_;
  TensorStore memory_;
};

}  // namespace

BatchProblem attention_problem(const CommonAttentionMetadata& batch, const ImplArguments& layer,
                               const ForwardArguments& forward) {
  validate(batch);
  return Conversion(batch, layer, forward).convert();
}

}  // namespace attn
