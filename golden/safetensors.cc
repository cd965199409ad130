#include "golden/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>
#include <tuple>
#include <utility>

#include "attn/error.h"
#include "core/contains.h"
#include "core/strict_json.h"
#include "golden/input_file.h"

static_assert(std::endian::native == std::endian::little, "tensors are used as they lie in files");

namespace attn::golden {
namespace {

constexpr std::int64_t kLengthBytes = 8;

constexpr DType kStorages[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                               DType::kI32, DType::kI8,  DType::kU8,  DType::kBool};
constexpr std::string_view kStorageNames[] = {"F64", "F32", "F16", "BF16", "I64",
                                              "I32", "I8",  "U8",  "BOOL"};

// Length of the header in a file of `file_bytes` whose first 8 bytes are `first`.
std::int64_t header_length(std::span<const std::byte> first, std::int64_t file_bytes) {
  const std::uint64_t length = load_code(DType::kI64, first.data());
  const std::int64_t room = file_bytes - kLengthBytes;
  if (length > static_cast<std::uint64_t>(room)) {
    throw Error(fmt::format("header length is {}, but only {} bytes follow", length, room));
  }
  if (length > static_cast<std::uint64_t>(kMaxHeaderBytes)) {
    throw Error(fmt::format("header length is {}, at most {} is allowed", length, kMaxHeaderBytes));
  }
  if (length % 8 != 0) {
    throw Error(fmt::format("header length is {}, not a multiple of 8", length));
  }
  return static_cast<std::int64_t>(length);
}

std::unique_ptr<std::byte[]> allocate(std::int64_t bytes) {
  try {
    return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
  } catch (const std::bad_alloc&) {
    throw Error(fmt::format("holds {} bytes, more than there is memory for", bytes));
  }
}

// The header without its padding.
std::string_view unpadded(std::string_view header) {
  const std::size_t last = header.find_last_not_of(' ');
  const std::string_view text =
      last == std::string_view::npos ? std::string_view() : header.substr(0, last + 1);
  if (!text.starts_with('{') || !text.ends_with('}')) {
    throw Error("header is not a JSON object padded with spaces");
  }
  return text;
}

// Bytes that `shape` takes; also checks that no product of its non-zero axes overflows, so that
// strides of an empty tensor are safe to compute.
std::int64_t bytes_of_shape(const JsonNode& node, const std::vector<std::int64_t>& shape,
                            DType storage) {
  std::int64_t bytes = unit_bytes(storage);
  bool empty = false;
  for (const std::int64_t axis : shape) {
    empty = empty || axis == 0;
    if (axis != 0 && __builtin_mul_overflow(bytes, axis, &bytes)) {
      throw Error(fmt::format("{} [{}] of {} is too large to address", node.path(),
                              fmt::join(shape, ","), storage_name(storage)));
    }
  }
  return empty ? 0 : bytes;
}

// Bytes [begin, end) of what follows the header.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

Range parse_range(const JsonNode& node, std::int64_t data_bytes) {
  const std::vector<JsonNode> ends = node.elements();
  if (ends.size() != 2) node.fail("two offsets");
  const Range range = {ends[0].integer(0), ends[1].integer(0)};
  if (range.end < range.begin || range.end > data_bytes) {
    throw Error(fmt::format("{} is [{},{}], not within the {} bytes of data", node.path(),
                            range.begin, range.end, data_bytes));
  }
  return range;
}

// A tensor of the header, still without data, and where its data lie.
std::pair<StoredTensor, Range> parse_tensor(const JsonNode& node, std::int64_t data_bytes) {
  node.expect_only({"dtype", "shape", "data_offsets"});
  StoredTensor tensor;
  tensor.storage = kStorages[node.at("dtype").choice(kStorageNames)];
  const JsonNode shape = node.at("shape");
  for (const JsonNode& axis : shape.elements()) tensor.shape.push_back(axis.integer(0));

  const JsonNode offsets = node.at("data_offsets");
  const Range range = parse_range(offsets, data_bytes);
  const std::int64_t bytes = bytes_of_shape(shape, tensor.shape, tensor.storage);
  if (range.end - range.begin != bytes) {
    throw Error(fmt::format("{} is [{},{}], but {} [{}] takes {} bytes", offsets.path(),
                            range.begin, range.end, storage_name(tensor.storage),
                            fmt::join(tensor.shape, ","), bytes));
  }
  if (range.begin % unit_bytes(tensor.storage) != 0) {
    throw Error(fmt::format("{} begins at {}, not aligned for {}", offsets.path(), range.begin,
                            storage_name(tensor.storage)));
  }
  return {std::move(tensor), range};
}

using Ranges = std::map<std::string, Range>;

// Throws unless the tensors lie behind one another and fill the data.
void expect_cover(const Ranges& ranges, std::int64_t data_bytes) {
  std::vector<std::pair<std::string, Range>> order(ranges.begin(), ranges.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.begin, a.second.end) < std::pair(b.second.begin, b.second.end);
  });
  std::int64_t covered = 0;
  for (const auto& [name, range] : order) {
    if (range.begin != covered) {
      throw Error(fmt::format(
          "tensor {} begins at {}, {} {}", in_quotes(name), range.begin,
          range.begin < covered ? "inside the tensor that ends at" : "leaving a gap after",
          covered));
    }
    covered = range.end;
  }
  if (covered != data_bytes) {
    throw Error(fmt::format("{} bytes follow the last tensor", data_bytes - covered));
  }
}

}  // namespace

DType storage_of(DType logical) {
  return bits(logical) <= 8 && logical != DType::kI8 && logical != DType::kBool ? DType::kU8
                                                                                : logical;
}

std::string_view storage_name(DType logical) {
  const auto* found = std::find(std::begin(kStorages), std::end(kStorages), storage_of(logical));
  return kStorageNames[found - kStorages];
}

Safetensors Safetensors::read(const std::filesystem::path& path) {
  InputFile file(path);
  return load(file.size(), [&](std::span<std::byte> to) { file.read(to); });
}

Safetensors Safetensors::parse(std::span<const std::byte> bytes) {
  return load(static_cast<std::int64_t>(bytes.size()), [&](std::span<std::byte> to) {
    std::copy_n(bytes.begin(), to.size(), to.begin());
    bytes = bytes.subspan(to.size());
  });
}

// Memory for the data is taken only when the header accounts for every byte of them.
Safetensors Safetensors::load(std::int64_t file_bytes, const ReadNext& read_next) {
  if (file_bytes < kLengthBytes) {
    throw Error(fmt::format("has {} bytes, too few for a safetensors file", file_bytes));
  }
  std::byte first[kLengthBytes];
  read_next(first);
  const std::int64_t header_bytes = header_length(first, file_bytes);
  const std::int64_t data_bytes = file_bytes - kLengthBytes - header_bytes;
  std::string header(static_cast<std::size_t>(header_bytes), '\0');
  read_next(std::as_writable_bytes(std::span(header)));

  Safetensors result;
  Ranges ranges;
  const JsonDocument document(unpadded(header), "header");
  for (const auto& [name, node] : document.root().members()) {
    if (name == "__metadata__") {
      for (const auto& [key, text] : node.members()) result.metadata_[key] = text.string();
    } else {
      std::tie(result.tensors_[name], ranges[name]) = parse_tensor(node, data_bytes);
    }
  }
  expect_cover(ranges, data_bytes);

  result.bytes_ = allocate(data_bytes);
  const std::span<std::byte> data(result.bytes_.get(), static_cast<std::size_t>(data_bytes));
  read_next(data);
  for (auto& [name, tensor] : result.tensors_) {
    const Range range = ranges[name];
    tensor.data = data.subspan(static_cast<std::size_t>(range.begin),
                               static_cast<std::size_t>(range.end - range.begin));
  }
  return result;
}

void expect_metadata(const Safetensors& file, std::string_view expected,
                     std::initializer_list<std::string_view> keys) {
  const Metadata& metadata = file.metadata();
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != expected) {
    throw Error(fmt::format("is not a file of format {}: __metadata__.format is {}", expected,
                            format == metadata.end() ? "missing" : in_quotes(format->second)));
  }
  for (const std::string_view key : keys) {
    if (!metadata.contains(std::string(key))) {
      throw Error(fmt::format("__metadata__.{} is missing", key));
    }
  }
  for (const auto& [key, text] : metadata) {
    if (key != "format" && !contains(keys, key)) {
      throw Error(fmt::format("__metadata__ has the unknown key {}", in_quotes(key)));
    }
  }
}

void expect_viewable(std::string_view tensor, std::span<const std::int64_t> shape) {
  if (shape.empty() || shape.size() > kMaxRank) {
    throw Error(fmt::format("tensor {} has {} axes, expected 1 to {}", in_quotes(tensor),
                            shape.size(), kMaxRank));
  }
}

}  // namespace attn::golden
