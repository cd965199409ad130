#include "golden/file_descriptor.h"

#include <unistd.h>

#include <system_error>

namespace attn::golden {

FileDescriptor::~FileDescriptor() { close(); }

bool FileDescriptor::close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 || ::close(fd) == 0;
}

std::string system_message(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace attn::golden
