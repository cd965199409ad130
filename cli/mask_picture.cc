#include "cli/mask_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace attn::cli {
namespace {

constexpr std::int64_t kWidestRow = 128;

std::string cells(const std::vector<KeyRange>& ranges, std::int64_t seq_len) {
  std::string line(static_cast<std::size_t>(seq_len), '.');
  for (const KeyRange& range : ranges) {
    std::fill(line.begin() + range.begin, line.begin() + range.end, '#');
  }
  return line;
}

std::string range_list(const std::vector<KeyRange>& ranges) {
  if (ranges.empty()) return "nothing";
  std::string line;
  for (const KeyRange& range : ranges) {
    line += fmt::format("{}[{},{})", line.empty() ? "" : " ", range.begin, range.end);
  }
  return line;
}

std::string xml_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// Sizes in pixels.
constexpr std::int64_t kMargin = 16;
constexpr std::int64_t kTitle = 24;
constexpr std::int64_t kLargestSide = 1600;

std::int64_t cell_size(const std::vector<RequestMask>& masks) {
  std::int64_t longest = 1;
  for (const RequestMask& m : masks) longest = std::max({longest, m.query_len, m.seq_len});
  return std::clamp<std::int64_t>(kLargestSide / longest, 1, 14);
}

void draw_request(std::string& svg, const RequestMask& mask, std::int64_t top, std::int64_t cell) {
  const auto out = std::back_inserter(svg);
  fmt::format_to(out, "<text x=\"{}\" y=\"{}\">request {}: query_len {}, seq_len {}</text>\n",
                 kMargin, top + kTitle - 8, mask.request, mask.query_len, mask.seq_len);
  fmt::format_to(out, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#e8e8e8\"/>\n",
                 kMargin, top + kTitle, mask.seq_len * cell, mask.query_len * cell);
  for (std::size_t row = 0; row < mask.visible.size(); ++row) {
    for (const KeyRange& range : mask.visible[row]) {
      fmt::format_to(out, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#1f6feb\"/>\n",
                     kMargin + range.begin * cell,
                     top + kTitle + static_cast<std::int64_t>(row) * cell,
                     (range.end - range.begin) * cell, cell);
    }
  }
}

}  // namespace

std::string mask_text(const RequestMask& mask) {
  std::string text = fmt::format("request {}: query_len {}, seq_len {}\n", mask.request,
                                 mask.query_len, mask.seq_len);
  for (std::size_t row = 0; row < mask.visible.size(); ++row) {
    const std::int64_t q = mask.seq_len - mask.query_len + static_cast<std::int64_t>(row);
    const auto& ranges = mask.visible[row];
    text +=
        fmt::format("{:>6} {}\n", q,
                    mask.seq_len <= kWidestRow ? cells(ranges, mask.seq_len) : range_list(ranges));
  }
  return text;
}

std::string mask_svg(const std::string& title, const std::vector<RequestMask>& masks) {
  const std::int64_t cell = cell_size(masks);
  std::int64_t width = 320;
  std::int64_t height = kTitle + kMargin;
  for (const RequestMask& m : masks) {
    width = std::max(width, m.seq_len * cell);
    height += kTitle + m.query_len * cell + kMargin;
  }
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"monospace\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"{}\" y=\"16\" font-weight=\"bold\">{}</text>\n",
      width + 2 * kMargin, height, kMargin, xml_escaped(title));
  std::int64_t top = kTitle;
  for (const RequestMask& m : masks) {
    draw_request(svg, m, top, cell);
    top += kTitle + m.query_len * cell + kMargin;
  }
  return svg + "</svg>\n";
}

}  // namespace attn::cli
