#include <gtest/gtest.h>

#include "attn/case_file.h"
#include "tests/damaged_file.h"
#include "tests/error_text.h"

namespace attn {
namespace {

// SHA-256 of "abc".
constexpr std::string_view kAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string row(const std::string& id, const std::string& file) {
  return "{\"id\":\"" + id + "\",\"file\":\"" + file +
         "\",\"op\":\"mla\",\"variant\":\"mla\",\"result\":\"valid\",\"flags\":[],\"rulings\":[],"
         "\"tolerance\":{\"out\":[1e-3,0],\"lse\":[0.5,2]},\"vmax\":32.5,\"precision\":\"bf16_"
         "kv8\","
         "\"provenance\":{\"source\":\"hand\",\"license\":\"CC0-1.0\"},\"new_key\":null,"
         "\"sha256\":\"" +
         std::string(kAbc) + "\"}\n";
}

// A folder with the files a and b of three bytes.
struct TwoFiles : TemporaryFolder {
  TwoFiles() {
    write("a", std::string_view("abc"));
    write("b", std::string_view("abc"));
  }

  // What opening says with this index and these relations, without the path before it.
  std::string error(const std::string& index, const std::string& relations = "") {
    write("index.jsonl", index);
    if (!relations.empty()) write("relations.jsonl", relations);
    const std::string text = error_of([&] { CaseFolder::open(path()); });
    return text.empty() ? text : text.substr(path().string().size() + 1);
  }
};

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CaseFolder, ReadsRowsAndRelations) {
  TwoFiles files;
  files.write("index.jsonl", row("one", "a") + row("two", "b"));
  files.write("relations.jsonl",
              std::string_view("{\"kind\":\"bitwise\",\"about\":\"same\",\"rows\":[[\"two\",1,2],"
                               "[\"one\",0,2]]}\n"));
  const CaseFolder folder = CaseFolder::open(files.path());
  EXPECT_EQ(folder.path, files.path());
  ASSERT_EQ(folder.rows.size(), 2u);
  const CaseIndexRow& second = folder.rows[1];
  EXPECT_EQ(second.id, "two");
  EXPECT_EQ(second.file, "b");
  EXPECT_EQ(second.op, OpKind::kMla);
  EXPECT_EQ(second.variant, "mla");
  EXPECT_EQ(second.result, CaseResult::kValid);
  EXPECT_EQ(second.tolerance.at("out"), std::pair(1e-3, 0.0));
  EXPECT_EQ(second.tolerance.at("lse"), std::pair(0.5, 2.0));
  EXPECT_EQ(second.vmax, 32.5);
  EXPECT_EQ(second.precision, "bf16_kv8");
  EXPECT_EQ(second.source, "hand");
  EXPECT_EQ(second.sha256, kAbc);
  ASSERT_EQ(folder.relations.size(), 1u);
  EXPECT_EQ(folder.relations[0].about, "same");
  EXPECT_EQ(folder.relations[0].rows[0].id, "two");
  EXPECT_EQ(folder.relations[0].rows[0].first_token, 1);
  EXPECT_EQ(folder.relations[0].rows[1].count, 2);
}

TEST(CaseFolder, RelationsAreOptional) {
  TwoFiles files;
  EXPECT_EQ(files.error(row("one", "a")), "");
  EXPECT_TRUE(CaseFolder::open(files.path()).relations.empty());
}

TEST(CaseFolder, NeedsItsFilesUndamaged) {
  TwoFiles files;
  EXPECT_EQ(files.error(row("one", "c")), "c: cannot open: No such file or directory");
  files.write("b", std::string_view("abd"));
  EXPECT_EQ(files.error(row("one", "a") + row("two", "b")),
            "b: sha256 is a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9, "
            "index.jsonl says " +
                std::string(kAbc));
  std::filesystem::create_directory(files.path() / "d");
  EXPECT_EQ(files.error(row("one", "d")), "d: is not a regular file");
  std::filesystem::remove(files.path() / "index.jsonl");
  EXPECT_EQ(error_of([&] { CaseFolder::open(files.path()); }),
            files.path().string() + "/index.jsonl: cannot open: No such file or directory");
}

TEST(CaseFolder, FilesLieInTheFolderItself) {
  TwoFiles files;
  for (const std::string file : {"", ".", "..", "../a", "/a", "d/a", "a\\u0000"}) {
    const std::string error = files.error(row("one", file));
    EXPECT_TRUE(error.starts_with("index.jsonl:1: line.file is \"") &&
                error.ends_with("\", expected the plain name of a file in the folder"))
        << error;
  }
}

TEST(CaseFolder, RejectsDamagedRows) {
  TwoFiles files;
  const std::string good = row("one", "a");
  const auto error = [&](const std::string& from, const std::string& to) {
    return files.error(good + changed(row("two", "b"), from, to));
  };
  EXPECT_EQ(files.error(good + row("one", "b")),
            "index.jsonl:2: line.id is \"one\", expected an id no other line has");
  EXPECT_EQ(error("\"id\":\"two\"", "\"id\":\"../two\""),
            "index.jsonl:2: line.id is \"../two\", expected [A-Za-z0-9][A-Za-z0-9_.-]*");
  EXPECT_EQ(error("\"vmax\":32.5,", ""), "index.jsonl:2: line.vmax is missing");
  EXPECT_EQ(error("32.5", "\"0x1p+5\""),
            "index.jsonl:2: line.vmax is \"0x1p+5\", expected a number");
  EXPECT_EQ(error("1e-3", "-1e-3"),
            "index.jsonl:2: line.tolerance.out[0] is -0.001, expected a number >= 0");
  EXPECT_EQ(error("[0.5,2]", "[0.5]"),
            "index.jsonl:2: line.tolerance.lse is an array, expected [atol, rtol]");
  EXPECT_EQ(error("\"op\":\"mla\"", "\"op\":\"mlx\""),
            "index.jsonl:2: line.op is \"mlx\", expected an operation of attn-case/1");
  EXPECT_EQ(error("\"source\"", "\"sauce\""), "index.jsonl:2: line.provenance.source is missing");
  EXPECT_EQ(error("ba7816bf", "BA7816BF"),
            "index.jsonl:2: line.sha256 is \"BA7816BF8f01cfea414140de5dae2223b00361a396177a9cb410ff"
            "61f20015ad\", expected 64 lower-case hex digits");
  EXPECT_EQ(error("ba7816bf", "ba7816b").substr(0, 29), "index.jsonl:2: line.sha256 is");
  EXPECT_EQ(error("\"vmax\"", "\"id\""),
            "index.jsonl:2: line has the key \"id\" twice in one object");
  EXPECT_EQ(files.error(good + "\n" + row("two", "b")),
            "index.jsonl:2: line is not JSON: at byte 0");
  EXPECT_EQ(files.error(good.substr(0, good.size() - 2)).substr(0, 29),
            "index.jsonl:1: line is not JS");
}

TEST(CaseFolder, RejectsDamagedRelations) {
  TwoFiles files;
  const std::string index = row("one", "a");
  const auto error = [&](const std::string& relation) { return files.error(index, relation); };
  EXPECT_EQ(error("{\"kind\":\"bitwise\",\"about\":\"\",\"rows\":[[\"one\",0,1]]}\n"), "");
  EXPECT_EQ(error("{\"kind\":\"close\",\"about\":\"\",\"rows\":[]}\n"),
            "relations.jsonl:1: line.kind is \"close\", expected bitwise");
  EXPECT_EQ(error("{\"kind\":\"bitwise\",\"about\":\"\",\"rows\":[[\"two\",0,1]]}\n"),
            "relations.jsonl:1: line.rows[0][0] is \"two\", expected an id of index.jsonl");
  EXPECT_EQ(error("{\"kind\":\"bitwise\",\"about\":\"\",\"rows\":[[\"one\",-1,1]]}\n"),
            "relations.jsonl:1: line.rows[0][1] is -1, expected an integer >= 0");
  EXPECT_EQ(error("{\"kind\":\"bitwise\",\"about\":\"\",\"rows\":[[\"one\",0]]}\n"),
            "relations.jsonl:1: line.rows[0] is an array, expected [id, first token, count]");
  EXPECT_EQ(error("{\"kind\":\"bitwise\",\"rows\":[]}\n"),
            "relations.jsonl:1: line.about is missing");
}

// The case folders of other people's software: all are read, and only what says so is invalid.
TEST(CaseFolder, ThirdPartyCasesAreTaken) {
  std::size_t valid = 0;
  std::size_t invalid = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ATTN_TEST_DATA "/third_party")) {
    if (!entry.is_directory()) continue;
    const CaseFolder folder = CaseFolder::open(entry.path());
    for (const CaseIndexRow& row : folder.rows) {
      const CaseFile file = CaseFile::read(folder.path / row.file);
      EXPECT_EQ(file.id(), row.id);
      EXPECT_EQ(file.op(), row.op) << row.id;
      EXPECT_EQ(file.variant(), row.variant) << row.id;
      EXPECT_EQ(file.result(), row.result) << row.id;
      for (const auto& [output, limits] : row.tolerance) {
        EXPECT_TRUE(file.stored_output(output).present()) << row.id << " " << output;
      }
      const std::string error = error_of([&] { to_string(file.problem()); });
      EXPECT_EQ(error.empty(), row.result == CaseResult::kValid) << row.id << ": " << error;
      (row.result == CaseResult::kInvalid ? invalid : valid) += 1;
    }
  }
  EXPECT_GE(valid, 200u);
  EXPECT_GE(invalid, 2u);
}

}  // namespace
}  // namespace attn
