#include "golden/pack_notes.h"

#include <utility>
#include <vector>

namespace attn::golden {
namespace {

// How a kernel of somebody else went wrong, and how it shows, a line a word.
std::map<std::string, PackNote> make_notes() {
  std::map<std::string, PackNote> notes;
  const auto add = [&](const char* word, const char* kind, const char* description,
                       const char* effect, std::vector<std::string> links = {}) {
    notes[word] = {kind, description, effect, std::move(links)};
  };
  add("alibi_abs", "scores", "The absolute form lowers keys on both sides of the row.",
      "Keys after the row are raised in place of lowered.");
  add("alibi_anchor_context", "scores",
      "Anchored at the context the bias is slope times (k - (S - q_len)).",
      "The log-sum-exp is shifted by a constant a request.");
  add("alibi_anchor_zero", "scores", "Anchored at zero the bias is slope times k.",
      "The log-sum-exp is shifted by slope times q.");
  add("alibi_global_slopes", "heads",
      "Slopes belong to the heads of the whole model, also on a shard of it.",
      "Heads of a shard get the slopes of the first shard.");
  add("alibi_row", "scores", "The ALiBi bias is slope times (k - q).",
      "Without subtraction of q the log-sum-exp is shifted.", {"https://arxiv.org/abs/2108.12409"});
  add("alibi_slopes_non_pow2", "heads",
      "For head counts that are no power of two the published rule interleaves two sequences.",
      "Slopes of the heads beyond the last power of two are off.",
      {"https://arxiv.org/abs/2108.12409"});
  add("alibi_sqrt", "scores", "The square-root form is -slope sqrt(q - k), and 0 after the row.",
      "Distances weigh linearly, or a negative square root makes NaN.");
  add("batch_invariance", "invariance",
      "A request's answer is the same alone, in a batch, and at another place of it.",
      "The last bits depend on the batch.");
  add("bias_after_cap", "scores", "The order is scale, cap, bias.",
      "Biases come out smaller than they are.");
  add("block_permutation", "invariance", "Which physical blocks a request has changes nothing.",
      "Blocks are read in physical order.");
  add("bottom_right", "convention",
      "Row i of a request stands at position S - q_len + i; some interfaces align the mask at the "
      "top left.",
      "Every row of a request with context sees too few keys.");
  add("cache_dtype_converted_or_rejected", "quantisation",
      "A cache of another 16-bit type than the query is read as what it is.",
      "Its bits are taken for the query's type.");
  add("cascade_equals_plain", "invariance",
      "A shared prefix computed apart and merged equals plain attention.",
      "The prefix counts twice, or the mask of the rest starts at 0.");
  add("chunk_floor", "window", "Local chunks are floor(position / C) of absolute positions.",
      "Chunks begin at the context in place of multiples of C.");
  add("chunk_invariance", "invariance", "A prompt in chunks equals the prompt at once.",
      "Rows of later chunks are masked as if there were no context.");
  add("chunk_lookback", "window",
      "A lookback of b opens the b chunks before the row's own, and no more.",
      "One chunk too many or too few is visible.");
  add("cross_no_position_relation", "convention",
      "In cross attention q_len and S are unrelated and nothing is cut.",
      "Rows miss keys because a causal offset is applied.");
  add("dead_out_not_read", "merge",
      "The output of an empty part may hold anything and is never read.", "NaN from 0 times NaN.");
  add("differential_pairs", "heads",
      "Neighbouring heads make a pair, and the values of a pair are both heads' values.",
      "Heads h and h + H/2 are paired.", {"https://arxiv.org/abs/2410.05258"});
  add("diffkv_scale_from_dk", "scores",
      "With values of another size the scale comes from the size of the keys.",
      "All scores are off by one factor.");
  add("empty_row_with_sink", "empty",
      "A row without visible keys but with a sink has output 0 and the sink as log-sum-exp.",
      "NaN, or -inf although the sink is there.");
  add("empty_row_zero", "empty", "A row that sees no key is 0, with log-sum-exp -inf.",
      "NaN, an average of all values, or what the buffer held.",
      {"https://github.com/flashinfer-ai/flashinfer/issues/4452"});
  add("empty_shard", "merge", "A shard or part may own none of a request's keys.",
      "It answers NaN or a finite log-sum-exp, and spoils the merge.");
  add("every_dim", "numerics", "Every element of a head counts.",
      "The last elements of a vector or tile are left out.");
  add("explicit_scale", "scores", "The scale is what the caller says, not 1 / sqrt(head_size).",
      "Every score is off by one factor.");
  add("fp8_ds_mla_layout", "quantisation",
      "A row of 656 bytes: 512 e4m3 codes, four f32 scales of 128 each, 64 bf16.",
      "Scales are read from the wrong place or shared by the wrong elements.");
  add("fp8_formats", "quantisation", "Three 8-bit formats differ in bias, infinities and NaN.",
      "Values are off by factors of two, or 0x80 is -0 in place of NaN.",
      {"https://arxiv.org/abs/2209.05433"});
  add("gqa_floor", "heads", "Query head h reads KV head floor(h / (H / Hk)).",
      "Heads are interleaved: h mod Hk.", {"https://arxiv.org/abs/2305.13245"});
  add("head_size_not_power_of_two", "heads", "Head sizes such as 24, 80 or 112 need a masked tail.",
      "Elements beyond the head are read, or the tail is dropped.");
  add("hnd_layout", "addressing", "A cache may lie heads first; only strides differ.",
      "Slots and heads are exchanged.");
  add("indexer_k_end_exclusive", "addressing", "The end of a token's key range is exclusive.",
      "One logit too many or too few is finite.");
  add("indexer_own_token_included", "convention", "A token scores its own key.",
      "Its own logit is -inf.");
  add("kv_scales", "quantisation",
      "A cached code times its scale is the value; the scale multiplies on reading.",
      "Keys or values are off by the square of the scale, or unscaled.",
      {"https://arxiv.org/abs/2209.05433"});
  add("latent_first_rope_last", "addressing", "A cache row is the latent part, then the rope part.",
      "Scores are dot products of parts that do not belong together.");
  add("lse_excludes_sink", "lse",
      "The log-sum-exp leaves the sink out when a caller asks so, to add it later.",
      "The sink counts twice after a merge.");
  add("lse_heads_by_tokens", "lse", "The log-sum-exp is stored heads by tokens.",
      "It comes back transposed.");
  add("lse_includes_sink", "lse", "The log-sum-exp counts the sink.",
      "It is too small by log(1 + e^(sink - lse)), and merges with other parts go wrong.");
  add("lse_natural", "lse", "The log-sum-exp is a natural logarithm.",
      "It is off by the factor log2(e).");
  add("masked_never_read", "poison", "A masked key is absent: its memory is never part of a sum.",
      "NaN or infinity in it reaches the output.");
  add("merge_base2", "merge",
      "States in base 2 merge with exp2, and their union is given in base e.",
      "Weights come from exp, or the result stays in base 2.");
  add("merge_empty_side", "merge", "A part that saw nothing is the identity.",
      "NaN from -inf minus -inf.");
  add("merge_natural", "merge", "States in base e merge with exp.", "Weights come from exp2.",
      {"https://arxiv.org/abs/2307.08691"});
  add("mla_absorbed", "convention",
      "With absorbed projections, the latent row is key and value at once.",
      "Values come from the rope part, or keys miss it.", {"https://arxiv.org/abs/2405.04434"});
  add("mla_expanded", "convention",
      "Prefill expands the latent row by both projections; it must equal the absorbed form.",
      "Prefill and decode disagree.", {"https://arxiv.org/abs/2405.04434"});
  add("mla_scale", "scores",
      "Latent attention scales by the head size before absorption, not by the width of the latent "
      "row.",
      "All scores are too small.", {"https://arxiv.org/abs/2405.04434"});
  add("mla_write_layout", "quantisation",
      "A written row is latent codes, scales, rope, each where a reader looks for it.",
      "Reading back gives other values.");
  add("mm_absolute_positions", "ranges",
      "Ranges are absolute positions of the request, also when part of it is already in the cache.",
      "Ranges are taken relative to the chunk and land elsewhere.");
  add("mm_adjacent_not_merged", "ranges", "Ranges that touch stay two.",
      "Tokens of the first see the second, as if they were one.");
  add("mm_clamp", "ranges", "With clamping, a window also cuts the past side of a range.",
      "Tokens of a long range see further back than the window.",
      {"https://github.com/vllm-project/vllm/pull/47217"});
  add("mm_inclusive", "ranges", "Both ends of a bidirectional range belong to it.",
      "The last token of an image is causal.");
  add("mm_noclamp", "ranges",
      "Without clamping, a range is wholly visible to its tokens whatever the window is.",
      "Long ranges are cut, or dropped.", {"https://github.com/vllm-project/vllm/pull/47217"});
  add("mm_off", "ranges", "A request without ranges is plain causal, beside one with ranges.",
      "Its tokens see ahead.");
  add("mm_overlap_union", "ranges", "A token in two ranges sees both.",
      "Only the last or first range counts.");
  add("mm_range_past_S", "ranges",
      "A range may end beyond S; keys that do not exist stay invisible.",
      "Memory behind the last key is read.");
  add("mm_separate_groups", "ranges",
      "Two ranges do not see each other beyond what causality allows.",
      "Tokens of the first image see the second.",
      {"https://github.com/huggingface/transformers/issues/38053"});
  add("mm_single_token_ignored", "ranges", "A pair whose end is not after its start is padding.",
      "Padding pairs open keys, e.g. key 0.");
  add("noncausal_left_only", "window", "A left bound alone leaves everything to the right visible.",
      "Rows lose keys to the right, as if the window were causal or symmetric.");
  add("noncausal_sees_all", "convention",
      "Without causality every key below S is visible, also those after the row.",
      "Rows see a causal prefix.");
  add("noncausal_window_symmetric", "window",
      "Without causality a window of W keys reaches W - 1 to both sides.",
      "Rows miss the keys to their right.");
  add("nvfp4_group16", "quantisation",
      "Sixteen 4-bit codes share an 8-bit scale, and a tensor another.",
      "Scales of a neighbouring group are used.");
  add("nvfp4_low_nibble_even", "quantisation", "The low half of a byte is the even element.",
      "Neighbouring elements are exchanged.");
  add("output_fp8_static", "quantisation",
      "out_codes are the nearest codes of out / output_scale, ties to even, saturating.",
      "The scale multiplies, or a product with its rounded reciprocal crosses a tie.");
  add("padded_rows", "poison",
      "The query has more rows than tokens; the rest is padding as a captured graph leaves it.",
      "A kernel that takes the number of rows for the number of tokens reads or writes beyond the "
      "last token.");
  add("padding_rows_ignored", "poison", "Rows behind the last token are neither read nor written.",
      "They are answered as part of the last request.");
  add("per_head_scales", "quantisation", "Each KV head has a scale of its own.",
      "All heads use the first one's.");
  add("per_request_causal", "capability",
      "A batch may mix causal and non-causal requests; a kernel may take one flag for all.",
      "The requests of the other kind are masked wrongly.");
  add("per_request_offset", "addressing",
      "The offset S - q_len belongs to each request, not to the batch.",
      "Requests with another context than the first one see too many or too few keys.");
  add("per_token_head_scales", "quantisation", "Each cached token and head has a scale of its own.",
      "Scales of another slot or head are used.");
  add("poisoned", "poison",
      "Memory that nothing addresses holds NaN or infinities, and unused table entries point far "
      "outside.",
      "A kernel that multiplies before it masks, or loads whole blocks into a sum, answers NaN or "
      "crashes.");
  add("q_len_gt_S", "empty",
      "With more rows than keys the first rows have negative positions and see nothing.",
      "Rows before position 0 see keys, or every row is shifted.");
  add("q_len_gt_seq_len", "empty",
      "A request has more new tokens than keys, so its first rows stand before position 0.",
      "Those rows get an average of masked values or NaN in place of 0, and a finite log-sum-exp.",
      {"https://github.com/deepseek-ai/FlashMLA/issues/11"});
  add("q_len_zero", "empty",
      "A request without new tokens has no rows; its neighbours are where they were.",
      "Rows are given to the wrong request.");
  add("rejects", "convention", "A broken precondition is an error, not an answer.",
      "Memory outside is read, or numbers come back that mean nothing.");
  add("rswa_prefix_visible", "window", "The prompt stays visible while the generated part slides.",
      "The prompt leaves the window, or generated tokens never do.");
  add("seq_len_zero", "empty", "A request has no keys at all.",
      "Its rows keep what the buffer held before, or become NaN from 0 / 0.",
      {"https://github.com/flashinfer-ai/flashinfer/issues/4452"});
  add("sharded_equals_whole", "invariance",
      "Keys dealt out over devices and merged equal the whole.",
      "Local positions are used in the mask.");
  add("sink_huge", "sink",
      "A sink far above every score takes nearly all the weight; the maximum must include it.",
      "exp overflows, so the output is NaN or infinite.");
  add("sink_in_denominator", "sink", "A sink is one more term of the softmax without a value.",
      "Outputs are too large by the weight of the sink.",
      {"https://arxiv.org/abs/2309.17453", "https://github.com/ROCm/rocm-libraries/issues/12227"});
  add("sink_minus_inf_is_none", "sink", "A sink of -inf adds nothing.",
      "NaN from -inf minus -inf, or a finite stand-in that counts.");
  add("sink_not_capped", "sink", "The soft cap bends scores only, never the sink.",
      "A large sink weighs too little.");
  add("sink_once_over_splits", "sink", "With keys in parts the sink enters once, in the merge.",
      "It counts once a part, or never when the first part is empty.",
      {"https://github.com/ROCm/rocm-libraries/issues/12227"});
  add("sink_per_query_head", "sink",
      "Each query head has a sink of its own; there are more of them than KV heads.",
      "Heads of a group share one sink, so all but one are off.");
  add("slot_mapping_length", "addressing", "Only as many tokens are written as there are slots.",
      "Padding tokens are written too.");
  add("slot_minus_one_skipped", "addressing", "Slot -1 writes nothing.",
      "The last slot of the cache is overwritten.");
  add("smooth_softmax_is_sink_0", "sink", "Softmax with 1 added to the denominator is a sink of 0.",
      "The constant is taken after the maximum was subtracted, so its weight depends on the "
      "scores.",
      {"https://www.evanmiller.org/attention-is-off-by-one.html"});
  add("softcap_after_scale", "scores", "The cap takes the scaled score: c tanh(scale q k / c).",
      "Scores differ by the order of scale and cap.");
  add("softcap_before_bias", "scores", "Biases are added after the cap.", "Large biases are bent.");
  add("softcap_before_mask", "scores",
      "The cap bends scores before the mask; masked keys stay absent.",
      "Masked keys become -cap and get weight.", {"https://arxiv.org/abs/2408.00118"});
  add("softcap_saturates", "numerics",
      "Scores far beyond the cap become the cap, and tanh must not overflow.",
      "NaN or infinities for large scores.");
  add("sparse_duplicates_count", "convention", "A key listed twice counts twice.",
      "The weights are those of a set.");
  add("sparse_minus_one_skipped", "addressing", "Index -1 selects nothing.",
      "It addresses the last key, or memory before the first.");
  add("split_equals_one_pass", "invariance", "Splitting the keys of a request changes nothing.",
      "Keys at the borders count twice or never.", {"https://arxiv.org/abs/2307.08691"});
  add("table_row_per_request", "addressing",
      "Each request has a row of the block table, of one width for all.",
      "A request reads the blocks of another.");
  add("topk_length_prefix", "addressing", "Only the first topk_lens indices of a token count.",
      "Stale indices behind them take part.");
  add("tree_bias_added", "scores", "Finite entries of the tree bias are added; only -inf masks.",
      "The matrix is taken for booleans.");
  add("tree_bias_new_tokens_only", "scores",
      "The draft-tree bias covers the first n keys after the context.",
      "Keys of the context are masked or biased.");
  add("window_counts_self", "window",
      "A window of W keys includes the row's own; the distance to the left is at most W - 1.",
      "Rows see one key too many or too few.",
      {"https://arxiv.org/abs/2004.05150",
       "https://github.com/huggingface/transformers/issues/39408"});
  add("window_inclusive_both_sides", "window",
      "Left and right bounds are distances, and a key at exactly that distance is visible.",
      "One key is missing at an edge of the window.");
  return notes;
}

}  // namespace

const std::map<std::string, PackNote>& all_notes() {
  static const std::map<std::string, PackNote> notes = make_notes();
  return notes;
}

}  // namespace attn::golden
