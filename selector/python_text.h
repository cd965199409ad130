// Values as Python prints them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace attn {

std::string python_quoted(std::string_view text);              // 'a', or "it's"
std::string python_list(std::span<const std::string> texts);   // ['a', 'b']
std::string python_tuple(std::span<const std::string> texts);  // ('a',)
std::string joined(std::span<const std::string> texts);        // a, b

// Of "ExcType: message": Python's `except ImportError` (`except OSError`) catches it.
bool is_import_error(std::string_view exception_type);
bool is_os_error(std::string_view exception_type);

}  // namespace attn
