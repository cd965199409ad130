#include "property_tests/selector_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "core/contains.h"
#include "property_tests/selector_cuda_classes.h"
#include "property_tests/selector_priorities.h"
#include "selector/vllm_backends.h"

namespace attn::property_tests {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kTurboquantReason = "no KV cache layout in common with TURBOQUANT";
constexpr const char* kUltraquantReason = "no KV cache layout in common with ULTRAQUANT";

void info(Selection& out, std::string text) {
  out.logs.push_back({LogLevel::kInfo, std::move(text)});
}

std::string python_string(const std::string& text) {
  const bool apostrophe = text.find('\'') != std::string::npos;
  return apostrophe ? '"' + text + '"' : '\'' + text + '\'';
}

std::string python_strings(const Texts& texts) {
  std::string list;
  for (const std::string& text : texts) {
    list += (list.empty() ? "" : ", ") + python_string(text);
  }
  return '[' + list + ']';
}

// `except ImportError`, `except (ImportError, OSError)`.
bool is_import(const VllmError& error) {
  return error.type() == "ImportError" || error.type() == "ModuleNotFoundError";
}
bool is_import_or_os(const VllmError& error) {
  return is_import(error) || error.type() == "OSError" || error.type() == "PermissionError" ||
         error.type() == "FileNotFoundError";
}
std::string printed(const VllmError& error) {
  return fmt::format("{}: {}", error.type(), error.what());
}

[[noreturn]] void value_error(const std::string& text) { throw VllmError("ValueError", text); }

[[noreturn]] void refuse(std::string_view member, const std::string& reason) {
  value_error(fmt::format(
      "Selected backend AttentionBackendEnum.{} is not valid for this configuration. Reason: {}",
      member, reason));
}

Texts names_of(const std::vector<Candidate>& candidates, bool valid) {
  Texts names;
  for (const Candidate& candidate : candidates) {
    if (candidate.reasons.empty() == valid) names.push_back(candidate.name);
  }
  return names;
}

std::string refusals(const std::vector<Candidate>& candidates) {
  Texts texts;
  for (const Candidate& candidate : candidates) {
    if (candidate.reasons.empty()) continue;
    texts.push_back(fmt::format("{}: [{}]", candidate.name, fmt::join(candidate.reasons, ", ")));
  }
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

bool starts_with(std::optional<CacheDType> dtype, std::string_view prefix) {
  return dtype && name(*dtype).starts_with(prefix);
}

bool share_a_layout(const std::optional<CacheLayouts>& layouts) {  // with TURBOQUANT, ULTRAQUANT
  return !layouts || contains(*layouts, CacheLayout::kLBNHC);
}

}  // namespace

WrittenSelector::WrittenSelector(const SelectorFacts& facts, const PathOverrides& overrides)
    : facts_(facts), overrides_(overrides) {
  const BackendRegistry registry(RegistryKind::kAttention);
  for (const BackendRegistry::Member& member : registry.members()) {
    defaults_[member.name] = member.value.value_or("");
    const BackendRow* row = find_backend_row(member.name);
    if (row == nullptr) continue;
    Entry& entry = by_path_[defaults_[member.name]];
    entry.row = row->describe(facts_);
    if (facts_.platform == Platform::kCuda) entry.answers = written_class(member.name, facts_);
    if (!entry.answers) entry.answers = std::make_unique<ListedClass>(entry.row, facts_);
  }
}

std::string WrittenSelector::path(std::string_view member) const {
  const auto override_found = overrides_.find(std::string(member));
  const std::string& path =
      override_found != overrides_.end() ? override_found->second : defaults_.find(member)->second;
  if (path.empty()) {
    value_error(
        fmt::format("Backend {} must be registered before use. Use "
                    "register_backend(Backend.{}, 'your.module.YourClass')",
                    member, member));
  }
  return path;
}

const WrittenSelector::Entry& WrittenSelector::entry(std::string_view member) const {
  const auto error = facts_.environment.import_errors.find(std::string(member));
  if (error != facts_.environment.import_errors.end()) {
    const std::size_t end = error->second.find(": ");
    throw VllmError(error->second.substr(0, end), error->second.substr(end + 2));
  }
  const std::string wanted = path(member);
  const auto found = by_path_.find(wanted);
  if (found != by_path_.end()) return found->second;
  const std::string module = wanted.substr(0, wanted.rfind('.'));
  const bool inside = module.starts_with("vllm.");
  throw VllmError(
      "ModuleNotFoundError",
      fmt::format("No module named '{}'", inside ? module : module.substr(0, module.find('.'))));
}

const BackendClass& WrittenSelector::get_class(std::string_view member) const {
  return *entry(member).answers;
}

void WrittenSelector::answer(std::string_view member, Selection& out) const {
  out.path = path(member);
  out.backend = std::string(member);
}

Selection WrittenSelector::select(const SelectionRequest& request) const {
  Selection out;
  try {
    if (facts_.platform == Platform::kCuda) on_cuda(request, out);
    if (facts_.platform == Platform::kRocm) on_rocm(request, out);
    if (facts_.platform == Platform::kXpu) on_xpu(request, out);
    if (facts_.platform == Platform::kCpu) on_cpu(request, out);
  } catch (const VllmError& error) {
    out.error = error;
  }
  return out;
}

void WrittenSelector::on_cuda(const SelectionRequest& request, Selection& out) const {
  const AttentionSelectorConfig& config = request.config;
  if (request.backend) {
    Texts reasons;
    try {
      reasons = found_texts(get_class(*request.backend), config);
    } catch (const VllmError& error) {
      if (!is_import_or_os(error)) throw;
      refuse(*request.backend, '[' + printed(error) + ']');
    }
    if (!reasons.empty()) refuse(*request.backend, python_strings(reasons));
    info(out, fmt::format("Using AttentionBackendEnum.{} backend.", *request.backend));
    return answer(*request.backend, out);
  }
  for (const std::string_view member :
       written_cuda_priorities(facts_.capability.value_or(DeviceCapability{}), request)) {
    Candidate candidate{std::string(member), {}};
    try {
      candidate.reasons = found_texts(get_class(member), config);
    } catch (const VllmError& error) {
      if (!is_import_or_os(error)) throw;
      candidate.reasons = {printed(error)};
    }
    out.candidates.push_back(std::move(candidate));
  }
  const Texts valid = names_of(out.candidates, true);
  if (valid.empty()) {
    value_error(fmt::format("No valid attention backend found for cuda with {}. Reasons: {}.",
                            repr(config), refusals(out.candidates)));
  }
  Texts precluded;
  for (const Candidate& candidate : out.candidates) {
    if (candidate.name == valid[0]) break;
    if (candidate.reasons == Texts{"block_size not supported"}) precluded.push_back(candidate.name);
  }
  if (config.block_size && !precluded.empty()) {
    out.logs.push_back(
        {LogLevel::kWarning,
         fmt::format("--block-size {} precluded higher-priority backend(s) {}. Using {} instead, "
                     "which may result in reduced performance. Consider removing --block-size to "
                     "auto-select the optimal block size.",
                     *config.block_size, fmt::join(precluded, ", "), valid[0])});
  }
  info(out, fmt::format("Using {} attention backend out of potential backends: {}.", valid[0],
                        python_strings(valid)));
  answer(valid[0], out);
}

Texts WrittenSelector::rocm_reasons(std::string_view member, bool requested,
                                    const AttentionSelectorConfig& config) const {
  try {
    const BackendClass& backend = get_class(member);
    Texts reasons = found_texts(backend, config);
    if (!reasons.empty() || share_a_layout(backend.supported_layouts())) return reasons;
    const CacheDType run = facts_.environment.cache_dtype;
    if (starts_with(run, "turboquant_")) return {kTurboquantReason};
    if (requested && run == CacheDType::kUltraquant4Bit) return {kUltraquantReason};
    return {};
  } catch (const VllmError& error) {
    if (!is_import(error)) throw;
    return {"ImportError"};
  }
}

// True when the request is the answer; false when automatic selection goes on.
bool WrittenSelector::rocm_requested(const std::string& member,
                                     const AttentionSelectorConfig& config, Selection& out) const {
  const Texts reasons = rocm_reasons(member, true, config);
  if (reasons.empty()) {
    info(out, fmt::format("Using {} backend (selected via --attention-backend).", member));
    answer(member, out);
    return true;
  }
  const CacheDType run = facts_.environment.cache_dtype;
  const bool ultraquant = run == CacheDType::kUltraquant4Bit;
  const bool special_run = starts_with(run, "turboquant_") || ultraquant ||
                           starts_with(config.kv_cache_dtype, "turboquant");
  const bool layer_only = reasons == Texts{"kv_cache_dtype not supported"} ||
                          reasons == Texts{kTurboquantReason} ||
                          reasons == Texts{kUltraquantReason};
  if (!special_run || !layer_only) refuse(member, python_strings(reasons));
  info(out, fmt::format("Selected backend {} is incompatible with this layer ({}) of the {} run; "
                        "using the auto-selected per-layer backend. Reason: {}",
                        member, repr(config.attn_type), ultraquant ? "ultraquant" : "turboquant",
                        python_strings(reasons)));
  return false;
}

std::string WrittenSelector::rocm_hint(const std::vector<Candidate>& candidates) const {
  std::set<std::string> values;
  for (const Candidate& candidate : candidates) {
    for (const std::string& reason : candidate.reasons) {
      if (reason.find("kv_cache_dtype") == std::string::npos) continue;
      for (const CacheDType d : entry(candidate.name).row.kv.declared) values.emplace(name(d));
    }
  }
  if (values.empty()) return {};
  return fmt::format(" Supported kv_cache_dtype values: {}.", fmt::join(values, ", "));
}

void WrittenSelector::on_rocm(const SelectionRequest& request, Selection& out) const {
  if (request.backend && rocm_requested(*request.backend, request.config, out)) return;
  for (const std::string_view member :
       written_rocm_priorities(facts_.environment, request.config)) {
    out.candidates.push_back({std::string(member), rocm_reasons(member, false, request.config)});
  }
  const Texts valid = names_of(out.candidates, true);
  const Texts refused = names_of(out.candidates, false);
  if (valid.empty()) {
    value_error(fmt::format("No valid attention backend found for rocm with {}. Reasons: {}.{}",
                            repr(request.config), refusals(out.candidates),
                            rocm_hint(out.candidates)));
  }
  if (refused.empty()) {
    info(out, fmt::format("Using {} backend out of potential backends: {}.", valid[0],
                          python_strings(valid)));
  } else {
    info(out, fmt::format("Found incompatible backend(s) [{}] with {}. Overriding with {} out of "
                          "potential backends: {}.",
                          fmt::join(refused, ", "), repr(request.config.attn_type), valid[0],
                          python_strings(valid)));
  }
  answer(valid[0], out);
}

void WrittenSelector::on_cpu(const SelectionRequest& request, Selection& out) const {
  const AttentionSelectorConfig& c = request.config;
  const std::string asked = request.backend.value_or("");
  const auto ignored = [&] {
    info(out, fmt::format("Cannot use AttentionBackendEnum.{} backend on CPU.", asked));
  };
  const auto kv_error = [&](const char* by) {
    value_error(fmt::format("--kv-cache-dtype {} is not supported by {}.",
                            c.kv_cache_dtype ? name(*c.kv_cache_dtype) : "None", by));
  };
  if (c.use_sparse) {
    throw VllmError("NotImplementedError", "Sparse Attention is not supported on CPU.");
  }
  if (!c.use_mla) {
    if (!asked.empty() && asked != "CPU_ATTN") ignored();
    if (!get_class("CPU_ATTN").supports_kv_cache_dtype(c.kv_cache_dtype)) {
      kv_error("the CPU attention backend on this host");
    }
    return answer("CPU_ATTN", out);
  }
  if (!BackendClass().supports_kv_cache_dtype(c.kv_cache_dtype)) kv_error("MLA attention on CPU");
  const bool amx =
      facts_.environment.cpu_arch == "X86" && facts_.environment.cpu_amx_tile && asked != "CPU_MLA";
  const bool known = asked.empty() || asked == "AMX_MLA" || asked == "CPU_MLA";
  if (!known) ignored();
  info(out, amx ? "Using AMX_MLA backend." : "Using CPU_MLA backend.");
  answer(amx ? "AMX_MLA" : "CPU_MLA", out);
}

std::string difference(const Selection& expected, const Selection& actual) {
  const auto error = [](const Selection& s) { return s.error ? printed(*s.error) : "none"; };
  if (error(expected) != error(actual)) {
    return fmt::format("error {}, expected {}", error(actual), error(expected));
  }
  if (expected.path != actual.path || expected.backend != actual.backend) {
    return fmt::format("chose {} {}, expected {} {}", actual.backend.value_or("none"), actual.path,
                       expected.backend.value_or("none"), expected.path);
  }
  if (expected.logs.size() != actual.logs.size()) {
    return fmt::format("{} log lines, expected {}", actual.logs.size(), expected.logs.size());
  }
  for (std::size_t i = 0; i < expected.logs.size(); ++i) {
    if (expected.logs[i] == actual.logs[i]) continue;
    return fmt::format("log {} \"{}\", expected {} \"{}\"", name(actual.logs[i].level),
                       actual.logs[i].text, name(expected.logs[i].level), expected.logs[i].text);
  }
  const auto listed = [](const Selection& s) {
    std::string text;
    for (const Candidate& c : s.candidates) {
      text += fmt::format("{}: [{}]; ", c.name, fmt::join(c.reasons, ", "));
    }
    return text;
  };
  if (listed(expected) != listed(actual)) {
    return fmt::format("candidates {}, expected {}", listed(actual), listed(expected));
  }
  return {};
}

}  // namespace attn::property_tests
