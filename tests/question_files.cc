// Writes the questions of pack `core` as a folder of cases: question_files FOLDER. Of the index
// only what scripts/redraw_cases.py reads.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "attn/case_writer.h"
#include "attn/error.h"
#include "golden/questions/question.h"

namespace {

void write_questions(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream index(folder / "index.jsonl");
  for (const attn::questions::Question& question : attn::questions::core_questions().questions) {
    const std::string file = question.id + ".safetensors";
    attn::write_case(folder / file,
                     {.id = question.id,
                      .variant = question.variant,
                      .name = question.name,
                      .scenario = question.scenario,
                      .flags = question.flags,
                      .result = question.result},
                     question.operation);
    const auto kind = static_cast<attn::OpKind>(question.operation.index());
    index << nlohmann::json{{"id", question.id},
                            {"file", file},
                            {"op", attn::name(kind)},
                            {"result", attn::name(question.result)},
                            {"provenance", {{"where", question.where}}}}
                 .dump()
          << "\n";
  }
  if (!index.flush()) throw attn::Error("cannot write the index");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    write_questions(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
