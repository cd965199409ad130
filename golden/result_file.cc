#include <fmt/core.h>

#include <algorithm>

#include "attn/case_file.h"
#include "core/strict_json.h"
#include "golden/error_source.h"
#include "golden/exec_json.h"
#include "golden/safetensors.h"

namespace attn {
namespace {

constexpr std::string_view kFormat = "attn-result/1";

// The format has no table of types: codes of out_codes have this one, all else is as stored.
DType logical_type(const std::string& name, DType storage) {
  return name == "out_codes" && storage == DType::kU8 ? DType::kF8E4M3FN : storage;
}

bool is_contiguous(const TensorView& view) {
  std::int64_t stride = unit_bytes(view.dtype);
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    if (view.shape[axis] != 1 && view.stride_bytes[axis] != stride) return false;
    stride *= view.shape[axis];
  }
  return true;
}

golden::StoredTensor stored(const NamedTensor& tensor) {
  const TensorView& view = tensor.view;
  if (!view.present() || !is_contiguous(view)) {
    throw Error(fmt::format("tensor {} is {}, must be contiguous", in_quotes(tensor.name),
                            to_string(view)));
  }
  const auto bytes = static_cast<std::size_t>(view.num_units() * unit_bytes(view.dtype));
  return {golden::storage_of(view.dtype),
          {view.shape, view.shape + view.rank},
          {static_cast<const std::byte*>(view.data), bytes}};
}

std::vector<std::byte> result_bytes(const std::string& backend, const ExecSpec& exec,
                                    const std::vector<NamedTensor>& tensors) {
  golden::StoredTensors table;
  for (const NamedTensor& tensor : tensors) {
    if (!table.emplace(tensor.name, stored(tensor)).second) {
      throw Error(fmt::format("tensor {} is given twice", in_quotes(tensor.name)));
    }
  }
  const golden::Metadata metadata = {
      {"format", std::string(kFormat)}, {"backend", backend}, {"exec", to_json(exec)}};
  return golden::to_safetensors(metadata, table);
}

}  // namespace

void write_result(const std::filesystem::path& path, const std::string& backend,
                  const ExecSpec& exec, const std::vector<NamedTensor>& tensors) {
  const std::vector<std::byte> bytes =
      golden::with_source(path.string(), [&] { return result_bytes(backend, exec, tensors); });
  write_file_atomically(path, bytes);
}

struct ResultFile::Data {
  golden::Safetensors file;
  std::string backend;
};

ResultFile::ResultFile(std::unique_ptr<Data> data) : data_(std::move(data)) {}
ResultFile::ResultFile(ResultFile&&) noexcept = default;
ResultFile& ResultFile::operator=(ResultFile&&) noexcept = default;
ResultFile::~ResultFile() = default;

ResultFile ResultFile::read(const std::filesystem::path& path) {
  return golden::with_source(path.string(), [&] {
    golden::Safetensors file = golden::Safetensors::read(path);
    golden::expect_metadata(file, kFormat, {"backend", "exec"});
    const JsonDocument exec(file.metadata().at("exec"), "exec");
    golden::parse_exec(exec.root());
    for (const auto& [name, tensor] : file.tensors()) golden::expect_viewable(name, tensor.shape);
    std::string backend = file.metadata().at("backend");
    return ResultFile(std::make_unique<Data>(Data{std::move(file), std::move(backend)}));
  });
}

const std::string& ResultFile::backend() const { return data_->backend; }

TensorView ResultFile::tensor(const std::string& name) const {
  const auto found = data_->file.tensors().find(name);
  if (found == data_->file.tensors().end()) return {};
  return found->second.view(logical_type(name, found->second.storage));
}

}  // namespace attn
