#include "golden/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "attn/error.h"

namespace attn::golden {
namespace {

// O_NONBLOCK: opening a pipe must not wait for its writer.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

void expect_success(int openssl_result) {
  if (openssl_result != 1) throw Error("libcrypto cannot compute SHA-256");
}

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new()) {
    if (context_ == nullptr) throw Error("libcrypto is out of memory");
    expect_success(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  }

  void add(std::span<const std::byte> bytes) {
    expect_success(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
  }

  std::string finish() {
    std::array<unsigned char, 32> digest = {};
    expect_success(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
    return fmt::format("{:02x}", fmt::join(digest, ""));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, FreeDigest> context_;
};

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : fd_(::open(path.c_str(), kOpenFlags)) {
  if (!fd_.valid()) throw Error(fmt::format("cannot open: {}", system_message(errno)));
  struct stat status = {};
  if (::fstat(fd_.get(), &status) != 0) {
    throw Error(fmt::format("cannot inspect: {}", system_message(errno)));
  }
  if (!S_ISREG(status.st_mode)) throw Error("is not a regular file");
  size_ = status.st_size;
}

void InputFile::read(std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = ::read(fd_.get(), to.data(), to.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(fmt::format("cannot read: {}", system_message(errno)));
    if (got == 0) throw Error("became shorter while it was read");
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

std::string read_text(const std::filesystem::path& path) {
  InputFile file(path);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(std::as_writable_bytes(std::span(text)));
  return text;
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  InputFile file(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read(bytes);
  return bytes;
}

std::string sha256_of_file(const std::filesystem::path& path) {
  InputFile file(path);
  Digest digest;
  std::vector<std::byte> chunk(
      static_cast<std::size_t>(std::min<std::int64_t>(file.size(), std::int64_t{1} << 16)));
  for (std::int64_t left = file.size(); left > 0;) {
    const std::span<std::byte> part =
        std::span(chunk).first(std::min(chunk.size(), static_cast<std::size_t>(left)));
    file.read(part);
    digest.add(part);
    left -= static_cast<std::int64_t>(part.size());
  }
  return digest.finish();
}

std::string sha256_of(std::span<const std::byte> bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.finish();
}

}  // namespace attn::golden
