#include "cli/show_case.h"

#include <fmt/format.h>

#include <vector>

#include "attn/case_file.h"
#include "attn/error.h"
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/mask_picture.h"
#include "cli/output_path.h"
#include "cli/route_case.h"

namespace attn::cli {
namespace {

std::vector<RequestMask> masks_of(const AttentionOp& op, const ShowFlags& flags) {
  if (flags.request && (*flags.request < 0 || *flags.request >= op.num_reqs())) {
    throw Error(fmt::format("--request {} is outside [0, {})", *flags.request, op.num_reqs()));
  }
  if (flags.head < 0 || flags.head >= op.num_heads()) {
    throw Error(fmt::format("--head {} is outside [0, {})", flags.head, op.num_heads()));
  }
  const std::int64_t first = flags.request.value_or(0);
  const std::int64_t end = flags.request ? first + 1 : op.num_reqs();
  std::vector<RequestMask> masks;
  for (std::int64_t r = first; r < end; ++r) {
    RequestMask mask{r, op.query_len(r), op.seq_len(r), {}};
    for (std::int64_t row = 0; row < mask.query_len; ++row) {
      mask.visible.push_back(visible_ranges(op, r, flags.head, row));
    }
    masks.push_back(std::move(mask));
  }
  return masks;
}

Json requests_json(const std::vector<RequestMask>& masks) {
  Json requests = Json::array();
  for (const RequestMask& mask : masks) {
    Json visible = Json::array();
    for (const std::vector<KeyRange>& row : mask.visible) {
      Json ranges = Json::array();
      for (const KeyRange& range : row) ranges.push_back({range.begin, range.end});
      visible.push_back(ranges);
    }
    requests.push_back({{"request", mask.request},
                        {"query_len", mask.query_len},
                        {"seq_len", mask.seq_len},
                        {"visible", visible}});
  }
  return requests;
}

}  // namespace

std::shared_ptr<ShowFlags> add_show_flags(const Parser& command) {
  auto flags = std::make_shared<ShowFlags>();
  command.integer("--request", flags->request, "only this request");
  command.integer("--head", flags->head, "query head, for masks that differ by head");
  command.text("--svg", flags->svg, "also draw a picture into this file").not_empty();
  return flags;
}

int show_case(const GlobalOptions& options, Json doc, const std::string& path,
              const ShowFlags& flags) {
  expect_other_place(path, flags.svg);
  const CaseFile file = CaseFile::read(path);
  const AttentionProblem problem = problem_of(file, path);
  CaseRouting routing;
  if (!flags.backend.empty()) routing = route_problem(flags.backend, problem);
  const int exit = routing.reasons.empty() ? kPassed : kNothingRan;
  const AttentionOp* op = problem.attention();
  if (op == nullptr) {
    if (options.json) {
      doc["id"] = file.id();
      doc["op"] = name(file.op());
      doc["requests"] = nullptr;
      doc["routing"] = nullptr;
      doc["exit"] = kNothingRan;
      write_json(doc);
    }
    write_error(fmt::format("{} skipped: no mask to show for operation {}", file.id(),
                            name(problem.kind())));
    return kNothingRan;
  }
  const std::vector<RequestMask> masks = masks_of(*op, flags);
  if (!flags.svg.empty()) {
    const std::string picture = mask_svg(file.id(), masks);
    write_file_atomically(flags.svg, std::as_bytes(std::span(picture)));
  }
  if (exit == kNothingRan) {
    write_error(fmt::format("{} skipped: {}", file.id(), fmt::join(routing.reasons, "; ")));
  }
  if (options.json) {
    doc["id"] = file.id();
    doc["op"] = name(file.op());
    doc["requests"] = requests_json(masks);
    doc["routing"] = flags.backend.empty() ? Json() : routing.document;
    doc["exit"] = exit;
    write_json(doc);
    return exit;
  }
  if (!options.quiet) write_line(fmt::format("{}: {}", file.id(), to_string(problem)));
  for (const RequestMask& mask : masks) {
    std::string text = mask_text(mask);
    text.pop_back();
    write_line(text);
  }
  if (!routing.text.empty()) write_line(routing.text);
  return exit;
}

}  // namespace attn::cli
