#include "attn/variant.h"

#include <utility>

namespace attn {
namespace {

using Names = std::vector<std::string_view>;

constexpr std::string_view kMasks = "Mask.RowsSeeExactlyTheKeysOfTheDefinition";
constexpr std::string_view kEveryMask = "Definition.EveryMaskIsThatOfTheFormula";
constexpr std::string_view kEveryBias = "Definition.EveryBiasIsThatOfTheFormula";
constexpr std::string_view kEverySink = "Definition.EverySinkIsThatOfTheFormula";
constexpr std::string_view kEveryCache = "Definition.EveryCacheFormatAndScaleIsThatOfTheFormula";
constexpr std::string_view kExec = "Partition.HonouredExecGivesTheAnswerOfOnePass";
constexpr std::string_view kReferences = "References.AgreeOnEveryOperation";

// Variants whose cases are attention.
Variant attention(std::string_view name, std::string_view switched_on_by, int pack_cases,
                  Names properties) {
  properties.push_back(kReferences);
  return {name, "attention", switched_on_by, pack_cases, true, true, true, properties, {}};
}

// Variants of another operation, which backend CPU does not answer whole.
Variant operation(std::string_view name, std::string_view op, std::string_view switched_on_by,
                  int pack_cases, Names properties) {
  properties.push_back(kReferences);
  return {name, op, switched_on_by, pack_cases, true, true, false, properties, {}};
}

// Cases of any operation that must be rejected, whoever is asked.
Variant rejected(std::string_view name, std::string_view switched_on_by, int pack_cases,
                 Names properties) {
  return {name, "any", switched_on_by, pack_cases, true, true, true, std::move(properties), {}};
}

// Variants that no case can express.
Variant tested(std::string_view name, std::string_view what, Names tests) {
  return {name, "", what, 0, false, false, false, {}, std::move(tests)};
}

std::vector<Variant> make_variants() {
  return {
      attention("full", "`causal` off", 2, {kEveryMask, kMasks}),
      attention("encoder", "`causal` off, varlen, query_len = seq_len", 2, {kEveryMask, kMasks}),
      attention("cross", "`causal` off, seq_len unrelated to query_len", 2, {kEveryMask, kMasks}),
      attention("causal", "`causal`: prefill, chunks, decode, mixed batches; every layout", 12,
                {kEveryMask, kMasks, "Partition.ChunkedPrefillGivesTheRowsOfOnePass",
                 "Partition.DecodeRowByRowGivesTheRowsOfOnePass",
                 "Invariance.LayoutAndBlockSizeKeepEveryBit"}),
      attention("non_causal_paged", "`causal` off, paged", 2, {kEveryMask, kMasks}),
      attention("causal_per_req", "`causal_per_req`", 2,
                {kEveryMask, kMasks, "Equivalence.EqualFlagsPerRequestAreOneFlag"}),
      attention("sliding_window", "`window_left`, `window_right`", 11,
                {kEveryMask, kMasks, "Mask.WindowIsWithinCausal",
                 "Mask.WindowOfWShowsTheLastWKeysWithTheRowsOwn",
                 "Equivalence.WindowOfAllKeysIsNoWindow", "Equivalence.RightBoundOfZeroIsCausal"}),
      attention("sink_tokens", "`sink_token_length`", 2,
                {kEveryMask, kMasks, "Equivalence.SinkTokensOfAllKeysAreNoWindow"}),
      attention("chunked_local", "`attention_chunk_size`, `attention_chunk_lookback`", 4,
                {kEveryMask, kMasks, "Equivalence.ChunkOfAllKeysIsCausal",
                 "Equivalence.LookbackOverAllChunksIsCausal"}),
      attention("rswa", "`rswa_window`, `rswa_prefix_lens`", 3,
                {kEveryMask, kMasks, "Equivalence.RswaWithAllKeysInThePrefixIsCausal",
                 "Equivalence.RswaWithoutAPrefixIsASlidingWindow"}),
      attention(
          "mm_prefix", "`mm_prefix_ranges`, `mm_prefix_clamp`", 10,
          {kEveryMask, kMasks, "Mask.ClampedRangesAreWithinUnclampedWithinNonCausal",
           "Mask.DisjointImagesNeverSeeALaterImage", "Equivalence.RangesThatHoldNothingAreNoRanges",
           "Equivalence.ClampWithoutAWindowChangesNothing",
           "Partition.ChunksThatCutNoImageRangeGiveTheRowsOfOnePass"}),
      attention("tree", "`qq_bias`", 3, {kEveryBias, kMasks, "Equivalence.ChainOfDraftsIsCausal"}),
      attention("masked", "`attn_mask`, `attn_bias`", 4,
                {kEveryBias, kMasks, "Equivalence.MaskOfTrueIsNoMask",
                 "Equivalence.BiasOfMinusInfinityIsAMask",
                 "Equivalence.AxesOfLengthOneStandForAllTheirIndices",
                 "Algebra.ConstantAddedToARowsScoresShiftsItsLseOnly"}),
      attention("sinks", "`sinks`, `lse_includes_sink`", 11,
                {kEverySink, "Algebra.SinkIsOneMoreKeyWithoutValue",
                 "Algebra.SinkTakesItsShareOfTheWeight", "Equivalence.SinkOfMinusInfinityIsNoSink",
                 "Equivalence.OutDoesNotDependOnWhetherLseCountsTheSink",
                 "SpecialValues.SinkOfPlusInfinityTakesAllTheWeight"}),
      attention("static_sink", "block tables that start with shared sink blocks", 2,
                {kEveryMask, "Equivalence.SinkTokensOfAllKeysAreNoWindow"}),
      attention("softcap", "`logits_soft_cap`", 5,
                {kEveryBias, "Equivalence.SoftCapFarAboveEveryScoreIsNoCap",
                 "SpecialValues.HugeScoresSaturateTheSoftCap"}),
      attention("alibi", "`alibi_form` (five), `alibi_slopes`", 6, {kEveryBias}),
      attention("diffkv", "head_size_v other than head_size", 3,
                {"Definition.EverythingTogetherIsThatOfTheFormula"}),
      attention("heads", "heads per KV head, head sizes, several requests", 8,
                {"Definition.EverythingTogetherIsThatOfTheFormula",
                 "Equivalence.GroupedHeadsAreHeadsWithCopiesOfTheirKeysAndValues"}),
      attention("quantised", "`kv_cache_dtype` fp8 forms, `k_scale`, `v_scale`", 6,
                {kEveryCache, "Equivalence.QuantisedCacheIsItsDecodedValues",
                 "Equivalence.PowersOfTwoAsScalesOfFp8AreUnquantisedValues",
                 "Equivalence.OneScaleIsTheSameForEveryHeadAndRequest"}),
      attention("quantised_per_token_head",
                "`kv_cache_dtype` int8_per_token_head, fp8_per_token_head", 3,
                {kEveryCache, "Equivalence.QuantisedCacheIsItsDecodedValues"}),
      attention("nvfp4", "`kv_cache_dtype` nvfp4", 2,
                {kEveryCache, "Equivalence.QuantisedCacheIsItsDecodedValues"}),
      attention("quantised_query", "`q_scale`, f8 query", 2, {kEveryCache}),
      attention("output_quantised", "`output_scale`: also `out_codes`", 2,
                {"Definition.OutputCodesAreTheNearestOfOutOverTheScale"}),
      attention("mixed_dtype", "cache type other than query type", 2, {kEveryCache}),
      attention("empty", "query_len > seq_len, seq_len 0, no rows, no requests, all masked", 6,
                {"Mask.RowsWithoutKeysAnswerZeroAndTheSink",
                 "Mask.RequestThatSeesNothingChangesNoBitOfTheOthers"}),
      attention("padding", "flag `padded_rows`", 2,
                {"Invariance.PaddingOfTensorsAndTableKeepsEveryBit"}),
      attention("poisoned", "flag `poisoned`", 8,
                {"Invariance.MemoryOutsideLiveSlotsNeverEntersTheAnswer",
                 "Mask.ChangingHiddenKeysNeverChangesABitOfARow"}),
      attention("kernel_blocks", "one cache under two block sizes", 2,
                {"Invariance.LayoutAndBlockSizeKeepEveryBit",
                 "Invariance.OrderOfPhysicalBlocksKeepsEveryBit"}),
      attention("batch_invariance", "relations: alone, in a batch, reordered", 3,
                {"Invariance.RequestAloneHasTheBitsItHasInTheBatch",
                 "Invariance.OrderOfRequestsKeepsEveryBit"}),
      attention("split_kv", "`exec.num_splits`, `exec.kv_chunk`", 5,
                {kExec, "Partition.PartsOfTheKeysMergeToTheWholeInAnyOrder"}),
      attention("cascade", "`exec.common_prefix_len`", 2,
                {kExec, "Partition.CommonPrefixThenTheRestGivesTheWhole"}),
      attention("dcp", "`exec.dcp_size`, `exec.dcp_interleave`", 3,
                {kExec, "Partition.PhysicalShardsMergeToTheWhole"}),
      rejected("invalid", "`result` invalid", 8,
               {"Definition.BadBlockIdsInLiveColumnsAreRejected",
                "Definition.HeadsThatAreNoMultipleOfTheKvHeadsAreRejected"}),
      operation("differential", "differential", "the operation; with and without norm", 2,
                {"Differential.WithoutLambdaAndNormItIsAttentionOfTheEvenHeads",
                 "Differential.LambdaInitMultipliesTheOutput",
                 "Differential.NormedRowsHaveTheRootMeanSquareOfTheirWeights",
                 "Differential.RequestAloneHasTheBitsItHasInTheBatch"}),
      operation("mla", "mla", "`mla_form`, caches f32, bf16, fp8_e4m3, fp8_ds_mla, `exec`", 9,
                {"Latent.AbsorbedQueryGivesTheAnswerOfTheExpandedForm",
                 "Latent.HonouredExecGivesTheAnswerOfOnePass",
                 "Latent.IsAttentionOfAllHeadsOverOneLatentHead",
                 "Latent.MemoryThatNoRowAddressesNeverEntersTheAnswer",
                 "Latent.OrderOfPhysicalBlocksKeepsEveryBit",
                 "Latent.RequestAloneHasTheBitsItHasInTheBatch"}),
      operation("mla_sparse", "mla_sparse", "`topk_indices`, `topk_lens`, index space, `sinks`", 4,
                {"Latent.ListIsAttentionWithTheLogarithmOfHowOftenAKeyIsListedAsBias",
                 "Latent.ListOfAllPositionsIsNonCausalAttention",
                 "Latent.ListingEveryPlaceTwiceAddsTheLogarithmOfTwo",
                 "Latent.MemoryThatNoListAddressesNeverEntersTheAnswer",
                 "Latent.MinusOneIsNoPlaceOfTheList", "Latent.OrderOfTheListChangesNothing",
                 "Latent.PartsOfTheListMergeToTheWhole", "Latent.SlotsAreThePositionsTheyHold",
                 "Latent.SparseRequestAloneHasTheBitsItHasInTheBatch"}),
      operation("indexer", "indexer", "the operation", 2,
                {"Indexer.RangeShowsItsKeysAndHidesTheRest", "Indexer.LogitsOfSingleHeadsAddUp",
                 "Indexer.PositiveScaleOfAKeyMultipliesItsLogits"}),
      operation("merge", "merge_states", "`lse_base`, empty parts", 14,
                {"Partition.EmptyPartIsTheIdentityWhateverItsOutHolds",
                 "Merge.EmptyPartIsTheIdentityWhateverItsOutHolds",
                 "Merge.BaseTwoIsNaturalOverTheLogarithmOfTwo", "Merge.EmptyPartsAloneAreEmpty",
                 "Merge.OnePartIsItself", "Merge.OrderOfPartsChangesNothing",
                 "Merge.PartsOfPartsAreParts"}),
      operation("cache_write", "cache_write", "`kv_cache_dtype`, slots", 7,
                {"CacheWrite.AttentionAfterwardsSeesTheRoundedValues",
                 "CacheWrite.NumbersOfAnFp8TypeTimesAPowerOfTwoComeBackExactly",
                 "CacheWrite.OnlyAddressedSlotsChange",
                 "CacheWrite.TokensWithoutASlotAndRowsBehindAreNotThere",
                 "CacheWrite.WritingTwiceIsWritingOnce"}),
      operation("mla_cache_write", "mla_cache_write", "`kv_cache_dtype`, slots", 3,
                {"LatentWrite.AttentionAfterwardsSeesTheRoundedValues",
                 "LatentWrite.OnlyAddressedSlotsChange", "LatentWrite.WritingTwiceIsWritingOnce"}),
      tested("nvfp4_write", "writes of NVFP4 caches; rounding of the block scale is contested",
             {"Nvfp4Write.RoundTripsValuesOnWhichEveryReadingAgrees",
              "Nvfp4Write.StaysWithinHalfAStepElsewhere", "Nvfp4Write.TiesOfTheBlockScaleGoToEven",
              "Nvfp4Write.BlocksOfZerosAndOfLessThanTheLeastScaleAreZero"}),
      tested("int4_per_token_head",
             "i4 caches, two codes a byte; order of nibbles not written down",
             {"Int4PerTokenHead.EveryCodeIsTwosComplementBothWays",
              "Int4PerTokenHead.LowNibbleIsTheEvenElement",
              "Int4PerTokenHead.AttentionIsThatOverTheDecodedValues"}),
      tested(
          "output_group_fp8", "outputs in groups of fp8; scale rule open",
          {"OutputGroupFp8.StaysWithinHalfAStep",
           "OutputGroupFp8.StaysWithinHalfAStepUnderAPowerOfTwoAsScale",
           "OutputGroupFp8.NaNStaysNaNAndInfinitiesSaturate", "OutputGroupFp8.GroupOfZerosIsZero"}),
      tested("output_nvfp4", "outputs in blocks of NVFP4",
             {"OutputNvfp4.StaysWithinHalfAStep", "OutputNvfp4.NaNStaysNaN",
              "OutputNvfp4.InfinitiesSaturate"}),
      tested("v4_mla", "MLA rows of 584 bytes, scales e8m0 at the end of the page",
             {"V4MlaCache.DecodesARowMadeByHand", "V4MlaCache.ScaleCode255IsNaNForItsGroupOnly"}),
      tested("v41_mla", "MLA rows of 528 bytes, scales e8m0 for 32",
             {"V41MlaCache.DecodesARowMadeByHand"}),
      tested("nvfp4_ds_mla", "MLA rows of 352 bytes, e2m1 under permuted e4m3 scales",
             {"Nvfp4DsMlaCache.DecodesARowMadeByHand",
              "Nvfp4DsMlaCache.PlacesOfTheScalesAreAPermutation"}),
      tested("nvfp4_swizzle", "NVFP4 scales in tiles of 4 by 4",
             {"Nvfp4Swizzle.EqualsTheFormulaWorkedByHand", "Nvfp4Swizzle.IsABijectionOfThePage"}),
      tested("joint_two_caches", "one softmax over a window cache and a compressed one",
             {"JointTwoCaches.IsMlaSparseOverTheCachesBehindOneAnother",
              "JointTwoCaches.IsTheMergeOfBothWithTheSinkInOne"}),
      tested("static_sink_setup", "tables with shared sink blocks put before them",
             {"StaticSinkSetup.PrependsBlocksAndGrowsLengthsButThoseOfZero",
              "StaticSinkSetup.EveryRowSeesTheSinkTokensAndItsOwnKeys"}),
      tested("chunked_local_rewrite", "chunks as virtual requests of a causal batch",
             {"ChunkedLocalRewrite.HasTheLengthsAndBlocksOfTheExample",
              "ChunkedLocalRewrite.AnswersAsTheMaskDoes"}),
      tested("kv_sharing", "layers that read the cache of another and write none",
             {"KvSharing.OwnKeysAndValuesOfASharingLayerChangeNoBit"}),
      tested("adaptive_verification", "lengths on the device other than the host's copy",
             {"AdaptiveVerification.RowsBelongToTheRequestOfTheTensorsNotOfTheTotals"}),
      tested("pcp", "rows of a request partitioned over ranks",
             {"Pcp.RowsAnsweredApartAreThoseAnsweredTogether"}),
      tested("topk_selection", "choice of keys by indexer logits; ties may fall either way",
             {"TopkSelection.AcceptsExactlyTheChoicesThatLeaveNothingHigher",
              "TopkSelection.TiesOfTheIndexerMayFallEitherWay",
              "TopkSelection.FewerThanKKeysArePaddedWithMinusOne"}),
      tested("lse_forms", "base, layout, empty value and sink of a log-sum-exp",
             {"LseForms.EveryFormTranslatesToTheReferences",
              "LseForms.EmptyRowsAreMinusInfinityOrTheSink",
              "LseForms.SinkAddedAfterwardsIsTheSinkTheReferenceCounts"}),
      tested("nope_layers", "no rotary; attention unchanged",
             {"NopeLayers.ARowThatSeesAllKeysDoesNotKnowTheirOrder"}),
      tested("prefix_lm", "`mm_prefix_ranges` from 0, no window",
             {"PrefixLm.PrefixSeesItselfBothWaysAndTheRestIsCausal"}),
  };
}

}  // namespace

std::span<const Variant> all_variants() {
  static const std::vector<Variant> variants = make_variants();
  return variants;
}

}  // namespace attn
