// A folder of cases that is not what its index says: 2 before anything runs.
#include "tests/case_folder_writer.h"
#include "tests/cli_expectations.h"

namespace attn {
namespace {

namespace fs = std::filesystem;

struct Damage {
  const char* name;
  void (*spoil)(const fs::path& folder);
  const char* says;
};

std::string index_of(const fs::path& folder) { return text_of(folder / "index.jsonl"); }

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// Changes one field of the first row.
void change(const fs::path& folder, const std::string& field, const Json& value) {
  const std::string index = index_of(folder);
  Json row = Json::parse(lines_of(index)[0]);
  row[field] = value;
  write(folder / "index.jsonl", row.dump() + "\n" + lines_of(index)[1] + "\n");
}

void remove_field(const fs::path& folder, const std::string& field) {
  const std::string index = index_of(folder);
  Json row = Json::parse(lines_of(index)[0]);
  row.erase(field);
  write(folder / "index.jsonl", row.dump() + "\n" + lines_of(index)[1] + "\n");
}

const Damage kDamages[] = {
    {"NoIndex", [](const fs::path& f) { fs::remove(f / "index.jsonl"); }, "index.jsonl"},
    {"IndexIsAFolder",
     [](const fs::path& f) {
       fs::remove(f / "index.jsonl");
       fs::create_directory(f / "index.jsonl");
     },
     "index.jsonl"},
    {"MissingFile", [](const fs::path& f) { fs::remove(f / "b.safetensors"); }, "b.safetensors"},
    {"FlippedBit",
     [](const fs::path& f) {
       std::string bytes = text_of(f / "b.safetensors");
       bytes.back() = static_cast<char>(bytes.back() ^ 1);
       write(f / "b.safetensors", bytes);
     },
     "sha256"},
    {"MissingByte",
     [](const fs::path& f) {
       std::string bytes = text_of(f / "b.safetensors");
       bytes.pop_back();
       write(f / "b.safetensors", bytes);
     },
     "sha256"},
    {"ExtraByte",
     [](const fs::path& f) { write(f / "b.safetensors", text_of(f / "b.safetensors") + "x"); },
     "sha256"},
    {"EmptyFile", [](const fs::path& f) { write(f / "b.safetensors", ""); }, "sha256"},
    {"WrongDigest", [](const fs::path& f) { change(f, "sha256", std::string(64, '0')); }, "sha256"},
    {"NoDigest", [](const fs::path& f) { change(f, "sha256", "none"); }, "sha256"},
    {"TornLine",
     [](const fs::path& f) {
       const std::string index = index_of(f);
       write(f / "index.jsonl", index.substr(0, index.size() - 20));
     },
     "index.jsonl:2"},
    {"NotJson", [](const fs::path& f) { write(f / "index.jsonl", "what\n"); }, "index.jsonl:1"},
    {"NotAnObject", [](const fs::path& f) { write(f / "index.jsonl", "[]\n"); }, "index.jsonl:1"},
    {"NoId", [](const fs::path& f) { remove_field(f, "id"); }, "id"},
    {"NoFile", [](const fs::path& f) { remove_field(f, "file"); }, "file"},
    {"NoResult", [](const fs::path& f) { remove_field(f, "result"); }, "result"},
    {"IdOfAnother", [](const fs::path& f) { change(f, "id", "b"); }, "id"},
    {"IdIsAPath", [](const fs::path& f) { change(f, "id", "../a"); }, "id"},
    {"IdIsANumber", [](const fs::path& f) { change(f, "id", 7); }, "id"},
    {"FileIsOutside", [](const fs::path& f) { change(f, "file", "../in/a.safetensors"); }, "file"},
    {"FileIsAbsolute", [](const fs::path& f) { change(f, "file", "/dev/null"); }, "file"},
    {"UnknownResult", [](const fs::path& f) { change(f, "result", "perhaps"); }, "result"},
    {"UnknownOperation", [](const fs::path& f) { change(f, "op", "magic"); }, "op"},
    {"ToleranceIsText",
     [](const fs::path& f) {
       change(f, "tolerance", {{"out", {"a", "b"}}});
     },
     "tolerance"},
    {"NegativeTolerance",
     [](const fs::path& f) {
       change(f, "tolerance", {{"out", {-1.0, 0.0}}});
     },
     "tolerance"},
    {"RelationOfAStranger",
     [](const fs::path& f) {
       write(f / "relations.jsonl",
             R"({"kind":"bitwise","about":"x","rows":[["a",0,1],["stranger",0,1]]})"
             "\n");
     },
     "relations.jsonl:1"},
    {"RelationOfUnknownKind",
     [](const fs::path& f) {
       write(f / "relations.jsonl", "{\"kind\":\"nearly\",\"about\":\"x\",\"rows\":[]}\n");
     },
     "relations.jsonl:1"},
};

class FolderDamage : public testing::TestWithParam<Damage> {};

TEST_P(FolderDamage, IsTwoBeforeAnythingRuns) {
  const TemporaryFolder folder;
  CaseFolderWriter in(folder.path() / "in");
  for (const char* id : {"a", "b"}) {
    CountingCase made;
    made.id = id;
    in.add(made);
  }
  CommandSetting setting;
  setting.folder = folder.path();
  const std::vector<std::string> run = {"run", "--cases", "in",   "--backend",
                                        "CPU", "--out",   "out2", "--json"};
  ASSERT_EQ(attn_oracle(run, setting).exit, 0) << "sound before it is damaged";
  std::filesystem::remove_all(folder.path() / "out2");

  GetParam().spoil(in.path());
  expect_refused(attn_oracle(run, setting), GetParam().says);
  EXPECT_FALSE(fs::exists(folder.path() / "out2"));
  expect_refused(attn_oracle({"compare", "--cases", "in", "--json"}, setting), GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(By, FolderDamage, testing::ValuesIn(kDamages),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace attn
