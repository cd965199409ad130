// attn-case/1: one problem in one .safetensors file, and attn-result/1: an answer to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attn/problem.h"
#include "attn/view.h"

namespace attn {

enum class CaseResult : std::uint8_t { kValid, kInvalid, kAcceptable };
std::string_view name(CaseResult result);

// Logical type and shape of a tensor in the case object. `shape` is as stored (f4: bytes).
struct TensorDescription {
  DType dtype = DType::kF64;
  std::vector<std::int64_t> shape;
};

// A case read from a file or from bytes. Owns the bytes; views point into them. Reading is strict:
// every length is checked before use, an unknown key, attribute, tensor or type is an Error, and
// nothing larger than the file justifies is allocated. Whether the *problem* is valid is decided by
// problem().
class CaseFile {
 public:
  static CaseFile read(const std::filesystem::path& path);
  static CaseFile parse(std::span<const std::byte> bytes,
                        const std::string& where);  // copies; `where` names the source in errors

  CaseFile(CaseFile&&) noexcept;
  CaseFile& operator=(CaseFile&&) noexcept;
  ~CaseFile();

  const std::string& id() const;
  OpKind op() const;
  const std::string& variant() const;
  CaseResult result() const;
  const std::vector<std::string>& flags() const;

  // Axes, attributes and inputs put together and validated; throws Error when the case is invalid.
  AttentionProblem problem() const;

  // What must be answered.
  const std::map<std::string, TensorDescription>& outputs() const;

  // A stored answer: of `outputs` (stored form only); absent views when there is none.
  TensorView stored_output(const std::string& name) const;

  // A stored conditioning sum ("cond_pv", ...); absent when there is none.
  TensorView stored_sum(const std::string& name) const;

 private:
  struct Data;
  explicit CaseFile(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

// A tensor of a file, by its name there.
struct NamedTensor {
  std::string name;
  TensorView view;  // contiguous, unless it is said otherwise
};

// The JSON object of an exec, only what is set: {"num_splits":2}.
std::string to_json(const ExecSpec& exec);

// Writes an attn-result/1 file atomically and deterministically. Throws Error when the target
// cannot be written; then nothing is left behind.
void write_result(const std::filesystem::path& path, const std::string& backend,
                  const ExecSpec& exec, const std::vector<NamedTensor>& tensors);

class ResultFile {
 public:
  static ResultFile read(const std::filesystem::path& path);

  ResultFile(ResultFile&&) noexcept;
  ResultFile& operator=(ResultFile&&) noexcept;
  ~ResultFile();

  const std::string& backend() const;
  TensorView tensor(const std::string& name) const;  // absent when there is none

 private:
  struct Data;
  explicit ResultFile(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

// One line of a folder's index.jsonl; only the fields that running and comparing need are kept.
struct CaseIndexRow {
  std::string id;
  std::string file;
  OpKind op = OpKind::kAttention;
  std::string variant;
  CaseResult result = CaseResult::kValid;
  std::map<std::string, std::pair<double, double>>
      tolerance;          // tensor -> (atol, rtol), of the source
  double vmax = 0.0;      // largest |value| of the case
  std::string precision;  // of the source's arithmetic: f64, f32, f16, bf16, exact
  std::string source;     // provenance.source
  std::string sha256;
};

// Rows that must be the same bits in every listed case.
struct CaseRelation {
  struct Rows {
    std::string id;
    std::int64_t first_token = 0;
    std::int64_t count = 0;
  };
  std::string about;
  std::vector<Rows> rows;
};

// A folder of cases, checked on opening: index, files, SHA-256 of every file. Damage is an Error.
struct CaseFolder {
  std::filesystem::path path;
  std::vector<CaseIndexRow> rows;
  std::vector<CaseRelation> relations;

  static CaseFolder open(const std::filesystem::path& path);
};

// Replaces `path` by `bytes`: temporary name in the same folder, fsync, rename. Throws Error, with
// nothing left behind, when that is not possible.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);

// Path of the temporary file that write_file_atomically has open, or null. Async-signal-safe: for a
// handler that unlinks it before the process ends.
const char* temporary_in_flight();

}  // namespace attn
