// What was damaged does not verify, and the report says where.
#include <algorithm>
#include <functional>
#include <random>

#include "tests/pack_fixture.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST_F(SmallPack, EveryFlippedBitIsNoticed) {
  std::vector<std::pair<std::string, std::size_t>> bytes;  // every byte of the folder
  const auto files = files_of(pack_);
  for (const auto& [name, text] : files) {
    for (std::size_t i = 0; i < text.size(); ++i) bytes.emplace_back(name, i);
  }
  std::mt19937_64 random(20261130);
  std::map<std::string, int> flips;
  for (int i = 0; i < 1000; ++i) {
    const auto& [name, at] = bytes[random() % bytes.size()];
    std::string flipped = files.at(name);
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (random() % 8)));
    write_text(pack_ / name, flipped);
    const PackReport report = verify_pack(pack_);
    ASSERT_FALSE(report.damage.empty()) << name << " byte " << at;
    EXPECT_FALSE(report.pack.has_value());
    if (name != "SHA256SUMS") {
      EXPECT_EQ(to_string(report.damage), name + ": sha256 differs\n");
    }
    write_text(pack_ / name, files.at(name));
    ++flips[name];
  }
  EXPECT_EQ(flips.size(), files.size());
  EXPECT_EQ(verdict(), "");
}

TEST_F(SmallPack, EveryByteOfTheSumsMatters) {
  const std::string sums = text_of(pack_ / "SHA256SUMS");
  for (std::size_t at = 0; at < sums.size(); ++at) {
    std::string flipped = sums;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    write_text(pack_ / "SHA256SUMS", flipped);
    ASSERT_NE(verdict(), "") << at;
  }
}

TEST_F(SmallPack, FilesThatAreMissingOrTooManyAreNamed) {
  const auto expect = [&](const std::string& expected) { EXPECT_EQ(verdict(), expected); };
  fs::rename(pack_ / "merge-two_parts.safetensors", folder_.path() / "moved");
  expect("merge-two_parts.safetensors: is missing\n");
  fs::rename(folder_.path() / "moved", pack_ / "merge-two_parts.safetensors");

  write_text(pack_ / "notes.txt", "hello");
  expect("notes.txt: is not in SHA256SUMS\n");
  seal(pack_);
  expect("notes.txt: is no file of a pack\n");
  fs::remove(pack_ / "notes.txt");

  fs::create_directory(pack_ / "sub");
  expect("sub: is not a regular file\n");
  fs::remove(pack_ / "sub");

  fs::rename(pack_ / "LICENSE", folder_.path() / "moved");
  fs::create_symlink(folder_.path() / "moved", pack_ / "LICENSE");
  expect("LICENSE: is not a regular file\n");
  fs::remove(pack_ / "LICENSE");
  seal(pack_);
  expect("LICENSE: is not in SHA256SUMS\n");

  fs::remove(pack_ / "SHA256SUMS");
  expect("SHA256SUMS: is missing\n");
}

TEST_F(SmallPack, SumsHaveOneForm) {
  const std::string good = text_of(pack_ / "SHA256SUMS");
  const std::string digest(64, 'a');
  const std::pair<std::string, std::string> kBad[] = {
      {good + good, "line 15 names LICENSE after sliding_window-hnd.safetensors"},
      {good.substr(0, good.size() - 1),
       "line 14 is \"" + good.substr(good.rfind('\n', good.size() - 2) + 1).substr(0, 64) +
           "...\", expected a digest, two spaces and a name"},
      {digest + " *a\n",
       "line 1 is \"" + digest + "...\", expected a digest, two spaces and a name"},
      {digest + "  ../a\n",
       "line 1 is \"" + digest + "...\", expected a digest, two spaces and a name"},
      {digest + "  \n",
       "line 1 is \"" + digest + "...\", expected a digest, two spaces and a name"},
      {"\n", "line 1 is \"\", expected a digest, two spaces and a name"}};
  for (const auto& [text, reason] : kBad) {
    write_text(pack_ / "SHA256SUMS", text);
    EXPECT_EQ(verdict(), "SHA256SUMS: " + reason + "\n");
  }
  write_text(pack_ / "SHA256SUMS", "");
  EXPECT_NE(verdict(), "");
}

// From here on digests are put right again, so that only the content gives it away.

TEST_F(SmallPack, ManifestsThatLieAreNoticed) {
  const json good = manifest();
  const auto with = [&](const std::string& pointer, const json& value) {
    json changed = good;
    changed[json::json_pointer(pointer)] = value;
    write_text(pack_ / "manifest.json", changed.dump());
    seal(pack_);
    return verdict();
  };
  const std::string at = "manifest.json: ";
  EXPECT_EQ(with("/counts/cases", 8), at + "counts.cases is 8, the folder has 9\n");
  EXPECT_EQ(with("/counts/relations", 0), at + "counts.relations is 0, the folder has 1\n");
  EXPECT_EQ(with("/counts/bytes", 1),
            at + "counts.bytes is 1, the folder has " + good["counts"]["bytes"].dump() + "\n");
  EXPECT_EQ(with("/counts/by_op/mla", 2), at + "counts.by_op.mla is 2, the folder has 1\n");
  EXPECT_EQ(with("/counts/by_variant/tree", 1),
            at + "counts.by_variant.tree is 1, the folder has 0\n");
  EXPECT_EQ(with("/counts/by_result/valid", 9),
            at + "counts.by_result.valid is 9, the folder has 8\n");
  EXPECT_EQ(with("/more", 1), at + "manifest has the unknown key \"more\"\n");
  EXPECT_EQ(with("/license", "MIT"), at + "manifest.license is \"MIT\", expected CC0-1.0\n");
  EXPECT_EQ(with("/withdrawn/0/id", "mla-absorbed"),
            at + "withdrawn mla-absorbed is in index.jsonl\n");
  EXPECT_EQ(
      with("/version", "0.3.0"),
      "index.jsonl: index.jsonl:1: line.provenance.version is \"0.2.0\", expected \"0.3.0\"\n");
  json changed = good;
  changed["notes"].erase("poisoned");
  changed["notes"].erase("rejects");
  write_text(pack_ / "manifest.json", changed.dump());
  seal(pack_);
  EXPECT_EQ(verdict(), at + "notes has nothing about \"poisoned\"\n" + at +
                           "notes has nothing about \"rejects\"\n");
  write_text(pack_ / "manifest.json", "{}{}");
  seal(pack_);
  EXPECT_EQ(verdict(), at + "manifest is not JSON: at byte 2\n");
}

TEST_F(SmallPack, IndexesThatLieAreNoticed) {
  const std::vector<json> good = index();
  const auto with = [&](std::size_t row, const std::string& pointer, const json& value) {
    std::vector<json> changed = good;
    changed[row][json::json_pointer(pointer)] = value;
    write_index(changed);
    seal(pack_);
    return verdict();
  };
  const std::string at = "index.jsonl: index.jsonl:2: line.";
  const std::string id = good[1]["id"];
  EXPECT_EQ(id, "causal-again");
  EXPECT_EQ(with(1, "/sha256", std::string(64, '0')),
            at + "sha256 is \"" + std::string(64, '0') + "\", expected \"" +
                good[1]["sha256"].get<std::string>() + "\", that of the file\n");
  EXPECT_EQ(with(1, "/file", "causal-first.safetensors"),
            at + "file is \"causal-first.safetensors\", expected \"causal-again.safetensors\"\n");
  EXPECT_EQ(with(1, "/precision", "f32"), at + "precision is \"f32\", expected exact\n");
  EXPECT_EQ(with(1, "/vmax", 1.5), at + "vmax is 1.5, expected an integer >= 0\n");
  EXPECT_EQ(with(1, "/tolerance/out", json::array({0, 1})),
            at + "tolerance.out[1] is 1, expected 0\n");
  EXPECT_EQ(with(1, "/provenance/license", "MIT"),
            at + "provenance.license is \"MIT\", expected \"CC0-1.0\"\n");
  EXPECT_EQ(with(1, "/result", "acceptable"),
            at + "result is \"acceptable\", expected one of valid, invalid\n");
  EXPECT_EQ(with(1, "/more", 1), "index.jsonl: index.jsonl:2: line has the unknown key \"more\"\n");
  EXPECT_EQ(with(1, "/flags", json::array({"poisoned"})),
            id + ".safetensors: flags are not those of index.jsonl\n");
  EXPECT_EQ(with(1, "/tolerance", json{{"out", {0, 0}}}),
            id + ".safetensors: index.jsonl has no tolerance for output lse\n");
  EXPECT_EQ(with(1, "/rulings", json::array({"unheard_of"})),
            "manifest.json: notes has nothing about \"unheard_of\"\n");
  // Names that lead out of the folder.
  EXPECT_EQ(with(1, "/file", "../x"),
            at + "file is \"../x\", expected the plain name of a file in the folder\n");
  EXPECT_EQ(with(1, "/id", "../x"), at + "id is \"../x\", expected [A-Za-z0-9][A-Za-z0-9_.-]*\n");

  std::vector<json> changed = good;
  std::swap(changed[1], changed[2]);
  write_index(changed);
  seal(pack_);
  EXPECT_EQ(verdict(),
            "index.jsonl: index.jsonl:3: line.id is \"causal-again\", expected an id after "
            "causal-first\n");
  changed = good;
  changed.pop_back();
  write_index(changed);
  seal(pack_);
  EXPECT_EQ(verdict(), "sliding_window-hnd.safetensors: is not in index.jsonl\n");
}

TEST_F(SmallPack, RelationsThatDoNotHoldAreNoticed) {
  const auto with = [&](const json& rows) {
    write_text(pack_ / "relations.jsonl",
               json{{"kind", "bitwise"}, {"about", "x"}, {"rows", rows}}.dump() + "\n");
    seal(pack_);
    return verdict();
  };
  const std::string at = "relations.jsonl: ";
  EXPECT_EQ(with({{"causal-first", 0, 2}, {"causal-again", 0, 2}}), "");
  EXPECT_EQ(
      with({{"causal-first", 0, 2}, {"nobody", 0, 2}}),
      at + "relations.jsonl:1: line.rows[1][0] is \"nobody\", expected an id of index.jsonl\n");
  EXPECT_EQ(with({{"causal-first", 1, 2}, {"causal-again", 1, 2}}),
            at + "rows [1, 1+2) of causal-first do not exist, out is f64[2,2,3]\n");
  EXPECT_EQ(with({{"causal-first", 0, 1}, {"cache_write-hnd", 0, 1}}),
            at + "cache_write-hnd has no out\n");
  EXPECT_EQ(with({{"causal-first", 0, 1}, {"causal-again", 1, 1}}),
            at + "\"x\": rows of causal-again differ from those of causal-first\n");
  // Nothing to compare: it could not fail.
  for (const char* hollow :
       {"[]", "[[\"causal-first\",0,2]]", "[[\"causal-first\",0,0],[\"causal-again\",0,0]]"}) {
    EXPECT_EQ(with(json::parse(hollow)), at + "\"x\": compares no rows\n") << hollow;
  }
}

TEST_F(SmallPack, WhatARelationIsAboutStaysOneLine) {
  write_text(pack_ / "relations.jsonl",
             "{\"kind\":\"bitwise\",\"about\":\"a\\nb\\u001b[31m\",\"rows\":"
             "[[\"causal-first\",0,2],[\"causal-again\",0,2]]}\n");
  seal(pack_);
  ASSERT_EQ(verdict(), "");
  EXPECT_EQ(open_pack(pack_).relations.at(0).about, "a?b?[31m");
}

// Case files that fit their digests but not what a pack promises about them.
TEST_F(SmallPack, CaseFilesThatLieAreNoticed) {
  const std::vector<json> good = index();
  const auto with_file = [&](std::size_t row, const std::string& bytes) {
    const std::string file = good[row]["file"];
    const std::string before = text_of(pack_ / file);
    const std::string manifest_before = text_of(pack_ / "manifest.json");
    write_text(pack_ / file, bytes);
    std::vector<json> changed = good;
    changed[row]["sha256"] = sha256_hex(bytes);
    write_index(changed);
    json manifest = json::parse(manifest_before);
    manifest["counts"]["bytes"] = manifest["counts"]["bytes"].get<std::int64_t>() +
                                  static_cast<std::int64_t>(bytes.size()) -
                                  static_cast<std::int64_t>(before.size());
    write_text(pack_ / "manifest.json", manifest.dump());
    seal(pack_);
    const std::string result = verdict();
    write_text(pack_ / file, before);
    write_text(pack_ / "manifest.json", manifest_before);
    return result;
  };
  const auto changed_case = [&](std::size_t row, const std::function<void(json & object)>& change,
                                const std::function<void(PlainFile & file)>& change_file) {
    PlainFile file = PlainFile::read(pack_ / good[row]["file"].get<std::string>());
    json object = json::parse(file.metadata.at("case"));
    change(object);
    file.metadata["case"] = object.dump();
    change_file(file);
    return with_file(row, file.bytes());
  };
  const std::string name = "causal-again.safetensors: ";
  const auto same = [](PlainFile&) {};
  EXPECT_EQ(with_file(1, text_of(pack_ / "causal-first.safetensors")),
            name + "id is \"causal-first\", index.jsonl says \"causal-again\"\n");
  EXPECT_EQ(with_file(1, "short"),
            name + "case file: has 5 bytes, too few for a safetensors file\n");
  EXPECT_EQ(changed_case(
                1, [](json& object) { object["result"] = "invalid"; }, same),
            name + "result is \"invalid\", index.jsonl says \"valid\"\n");
  EXPECT_EQ(changed_case(
                1, [](json&) {},
                [](PlainFile& file) {
                  file.tensors.erase("out");
                  file.tensors.erase("lse");
                }),
            name + "output lse is not stored\n");
  EXPECT_EQ(changed_case(
                1, [](json& object) { object["attrs"]["scale"] = "nan"; }, same),
            name + "scale is nan, must be finite\n");
  EXPECT_EQ(changed_case(
                1,
                [](json& object) {
                  object["outputs"]["lse"]["dtype"] = "f32";
                  object["outputs"]["lse"]["storage"] = "F32";
                },
                [](PlainFile& file) {
                  file.tensors["lse"] = f32_tensor({2, 2}, std::vector<float>(4, 0.0F));
                }),
            name + "output lse is stored as f32, expected f64\n");
  EXPECT_EQ(
      changed_case(
          1,
          [](json& object) {
            object["cond"]["row"] = {{"dtype", "f64"}, {"storage", "F64"}, {"shape", {1}}};
          },
          [](PlainFile& file) { file.tensors["cond_row"] = f64_tensor({1}, {0.0}); }),
      name + "\"cond_row\" is no conditioning sum of the case, or has another type or shape\n");
  EXPECT_EQ(changed_case(
                5, [](json&) {}, [](PlainFile&) {}),
            "");  // nothing but another spelling of the same JSON
}

}  // namespace
}  // namespace attn
