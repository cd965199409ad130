// Packs as they are made, and what flags and rulings mean.
#include <algorithm>
#include <set>

#include "golden/pack_notes.h"
#include "tests/error_text.h"
#include "tests/pack_fixture.h"
#include "tests/scoped_workers.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST_F(SmallPack, VerifiesAndSaysWhatItHolds) {
  const PackReport report = verify_pack(pack_);
  ASSERT_EQ(to_string(report.damage), "");
  EXPECT_EQ(report.case_files, 9);
  const Pack pack = open_pack(pack_);
  ASSERT_EQ(pack.cases.size(), 9U);
  EXPECT_EQ(pack.cases[0].row.id, "cache_write-hnd");
  EXPECT_EQ(pack.cases[5].row.id, "invalid-heads");
  EXPECT_EQ(pack.relations.size(), 1U);
  EXPECT_EQ(pack.manifest.check_bits, 800);
  const json manifest = this->manifest();
  EXPECT_EQ(manifest["counts"]["by_result"], (json{{"valid", 8}, {"invalid", 1}}));
  EXPECT_EQ(manifest["counts"]["by_variant"]["causal"], 2);
  EXPECT_EQ(manifest["withdrawn"][0]["superseded_by"], "causal-first");
  const std::set<std::string> words = {
      "bottom_right", "gqa_floor",          "q_len_gt_seq_len", "empty_row_zero",        "poisoned",
      "rejects",      "window_counts_self", "merge_natural",    "slot_minus_one_skipped"};
  std::set<std::string> noted;
  for (const auto& [word, note] : manifest["notes"].items()) noted.insert(word);
  EXPECT_EQ(noted, words);
  std::int64_t bytes = 0;
  for (const auto& [name, text] : files_of(pack_)) {
    if (name.ends_with(".safetensors")) bytes += static_cast<std::int64_t>(text.size());
  }
  EXPECT_EQ(manifest["counts"]["bytes"], bytes);
}

TEST_F(SmallPack, IndexRowsSayThatValuesAreExact) {
  for (const json& row : index()) {
    SCOPED_TRACE(row["id"]);
    EXPECT_EQ(row["precision"], "exact");
    EXPECT_EQ(row["sha256"], sha256_hex(text_of(pack_ / row["file"].get<std::string>())));
    EXPECT_TRUE(row["vmax"].is_number_unsigned());
    EXPECT_EQ(row["provenance"], (json{{"license", "CC0-1.0"},
                                       {"package", "attention-oracle"},
                                       {"version", "0.2.0"},
                                       {"op", row["op"]},
                                       {"source", "pack"},
                                       {"where", "by hand"}}));
    for (const auto& [tensor, limits] : row["tolerance"].items()) {
      EXPECT_EQ(limits, json::array({0, 0})) << tensor;
    }
    const bool valid = row["result"] == "valid";
    EXPECT_EQ(row["tolerance"].empty(), !valid);
    if (row["op"] == "attention") {
      EXPECT_EQ(row["vmax"], valid ? 1 : 0);  // values are below 1
    }
  }
}

// What the sums are, said by the program that reads them.
TEST_F(SmallPack, Sha256sumTakesTheSums) {
  const CommandOutput output = shell("sha256sum --strict --quiet -c SHA256SUMS", {pack_, {}, {}});
  EXPECT_EQ(output.exit, 0) << output.out << output.err;
  EXPECT_EQ(lines_of(text_of(pack_ / "SHA256SUMS")).size() + 1, files_of(pack_).size());
}

TEST_F(SmallPack, IsAFolderOfCasesLikeAnyOther) {
  const CaseFolder folder = CaseFolder::open(pack_);
  EXPECT_EQ(folder.rows.size(), 9U);
  EXPECT_EQ(folder.relations.size(), 1U);
}

TEST_F(SmallPack, HasTheSameBytesForAnyNumberOfThreads) {
  const auto first = files_of(pack_);
  for (const int workers : {1, 2, 7}) {
    const ScopedWorkers scope(workers);
    const fs::path again = folder_.path() / std::to_string(workers);
    make_small_pack(again);
    EXPECT_TRUE(files_of(again) == first) << workers;
  }
}

TEST_F(SmallPack, TextsNameNothingOfThisMachine) {
  for (const auto& [name, text] : files_of(pack_)) {
    EXPECT_EQ(text.find(folder_.path().string()), std::string::npos) << name;
  }
  EXPECT_EQ(text_of(pack_ / "LICENSE"),
            text_of(fs::path(ATTN_TEST_DATA) / "third_party/hand_made/LICENSE"));
}

TEST_F(SmallPack, UnfinishedFoldersAreRefused) {
  const fs::path unfinished = folder_.path() / "small-0.2.0.partial-123";
  fs::rename(pack_, unfinished);
  fs::create_directory_symlink(unfinished, folder_.path() / "link");
  for (const fs::path& path :
       {unfinished, unfinished / "", unfinished / ".", folder_.path() / "link"}) {
    const std::string refusal = error_of([&] { verify_pack(path); });
    EXPECT_EQ(refusal, path.string() + ": is an unfinished pack");
    EXPECT_EQ(error_of([&] { open_pack(path); }), refusal);
    EXPECT_EQ(error_of([&] { CaseFolder::open(path); }), refusal);
  }
  EXPECT_EQ(error_of([&] { make_small_pack(folder_.path() / "a.partial-7"); }),
            (folder_.path() / "a.partial-7").string() + ": is an unfinished pack");
}

TEST(Pack, AFolderThatIsNoneIsAnError) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  EXPECT_NE(error_of([&] { verify_pack(folder.path() / "nothing"); }), "");
  EXPECT_NE(error_of([&] { verify_pack(folder.path() / "file"); }), "");
  EXPECT_EQ(to_string(verify_pack(folder.path()).damage), "SHA256SUMS: is missing\n");
}

// Every word that third parties' cases are labelled with, and every flag, has a note.
TEST(PackNotes, SayWhatFlagsAndRulingsMean) {
  std::set<std::string> words = {"poisoned", "padded_rows", "q_len_gt_seq_len", "seq_len_zero"};
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(ATTN_TEST_DATA) / "third_party")) {
    if (entry.path().filename() != "index.jsonl") continue;
    for (const std::string& line : lines_of(text_of(entry.path()))) {
      const json row = json::parse(line);
      for (const json& word : row["rulings"]) words.insert(word);
    }
  }
  EXPECT_GT(words.size(), 50U);
  for (const std::string& word : words) EXPECT_TRUE(golden::all_notes().contains(word)) << word;
  for (const auto& [word, note] : golden::all_notes()) {
    EXPECT_TRUE(note.description.ends_with('.') && note.effect.ends_with('.')) << word;
  }
}

}  // namespace
}  // namespace attn
