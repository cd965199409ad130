// A POSIX file descriptor with an owner.
#pragma once

#include <string>
#include <utility>

namespace attn::golden {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }

  // Closes now; false, with errno set, when the system reports a late failure.
  bool close();

 private:
  int fd_;
};

// What the system says about an errno.
std::string system_message(int error_number);

}  // namespace attn::golden
