#include "cli/select_request.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

#include "attn/environment.h"
#include "attn/error.h"
#include "attn/layer_request.h"
#include "cli/selector_listing.h"
#include "core/strict_json.h"
#include "core/text_file.h"
#include "selector/environment_json.h"
#include "selector/json_values.h"

namespace attn::cli {
namespace {

constexpr std::pair<const char*, const char*> kValueFlags[] = {
    {"--platform", "cuda, rocm, xpu or cpu; own: the backends of this build, here; required"},
    {"--capability", "M.m, on cuda"},
    {"--backend", "requested backend; auto: automatic"},
    {"--num-heads", "default none"},
    {"--head-size", "required"},
    {"--dtype", "float16, bfloat16 or float32; required"},
    {"--kv-cache-dtype", "default none"},
    {"--block-size", "default none"},
    {"--attn-type", "decoder, encoder, encoder_only or encoder_decoder"}};

constexpr const char* kSwitchFlags[] = {"--attn-type-plain",
                                        "--use-mla",
                                        "--has-sink",
                                        "--use-sparse",
                                        "--use-mm-prefix",
                                        "--use-per-head-quant-scales",
                                        "--has-sliding-window",
                                        "--use-non-causal",
                                        "--use-batch-invariant",
                                        "--use-kv-connector",
                                        "--use-pcp",
                                        "--use-dcp",
                                        "--use-adaptive-verification",
                                        "--use-rswa"};

// Fields of the config that a run decides, and facts that follow it.
constexpr const char* kConfigOfRun[] = {
    "block_size", "use_non_causal", "use_batch_invariant",       "use_kv_connector",
    "use_pcp",    "use_dcp",        "use_adaptive_verification", "use_rswa"};
constexpr const char* kFactsOfRun[] = {"cache_dtype", "batch_invariant", "pcp_size", "dcp_size"};

std::string member_of(std::string_view flag) {
  if (flag == "--platform" || flag == "--capability") return fmt::format("/{}", flag.substr(2));
  if (flag == "--backend") return "/requested";
  if (flag == "--num-heads") return "/num_heads";
  std::string field(flag.substr(2));
  for (char& c : field) c = c == '-' ? '_' : c;
  return "/config/" + field;
}

Json integer_or_null(const std::string& flag, const std::string& text) {
  if (text == "none") return nullptr;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw Error(fmt::format("{} is {}, expected an integer or none", flag, in_quotes(text)));
  }
  return value;
}

Json capability_value(const std::string& text) {
  const std::size_t dot = text.find('.');
  if (text == "none") return nullptr;
  if (dot == std::string::npos) {
    throw Error(fmt::format("--capability is {}, expected M.m", in_quotes(text)));
  }
  return {integer_or_null("--capability", text.substr(0, dot)),
          integer_or_null("--capability", text.substr(dot + 1))};
}

Json value_of(const SelectFlags::Value& value) {
  if (value.flag == "--capability") return capability_value(value.text);
  if (value.flag == "--backend") return value.text == "auto" ? Json(nullptr) : Json(value.text);
  const bool integer =
      value.flag == "--num-heads" || value.flag == "--head-size" || value.flag == "--block-size";
  if (integer) return integer_or_null(value.flag, value.text);
  return value.flag == "--kv-cache-dtype" && value.text == "none" ? Json(nullptr)
                                                                  : Json(value.text);
}

std::pair<std::string, std::string> assignment(const char* flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(fmt::format("{} is {}, expected NAME=VALUE", flag, in_quotes(word)));
  }
  return {word.substr(0, equals), word.substr(equals + 1)};
}

// JSON if it is, else text.
Json json_or_text(const std::string& text) {
  try {
    const JsonDocument strict(text, "value");
  } catch (const Error&) {
    return text;
  }
  return Json::parse(text);
}

// Puts FACT=VALUE into an object; dots in the name nest.
void assign(Json& object, const char* flag, const std::string& word) {
  auto [name, text] = assignment(flag, word);
  Json* place = &object;
  for (std::size_t dot; (dot = name.find('.')) != std::string::npos; name.erase(0, dot + 1)) {
    place = &(*place)[name.substr(0, dot)];
    if (place->is_null()) *place = Json::object();
    if (!place->is_object()) {
      throw Error(fmt::format("{} {} goes into what is no object", flag, in_quotes(word)));
    }
  }
  (*place)[name] = json_or_text(text);
}

Json config_file(const std::string& path) {
  const std::string text = text_of_file(path);
  const JsonDocument strict(text, path);
  strict.root().expect_object();
  return Json::parse(text);
}

void expect_known_cache_dtype(const Json& document) {
  const auto config = document.find("config");
  if (config == document.end() || !config->is_object()) return;
  const Json dtype = config->value("kv_cache_dtype", Json());
  if (!dtype.is_string()) return;
  try {
    build_layer_request({.head_size = 0,
                         .dtype = DType::kBF16,
                         .kv_cache_dtype = dtype.get<std::string>(),
                         .attn_type = {},
                         .num_heads = {}},
                        RunConfig{});
  } catch (const VllmError& error) {
    throw Error(error.what());
  }
}

LayerArguments layer_of(const AttentionSelectorConfig& config, std::optional<int> num_heads) {
  LayerArguments layer;
  layer.head_size = config.head_size;
  layer.dtype = config.dtype;
  if (config.kv_cache_dtype) layer.kv_cache_dtype = std::string(name(*config.kv_cache_dtype));
  layer.use_mla = config.use_mla;
  layer.has_sink = config.has_sink;
  layer.use_sparse = config.use_sparse;
  layer.use_mm_prefix = config.use_mm_prefix;
  layer.use_per_head_quant_scales = config.use_per_head_quant_scales;
  layer.attn_type = config.attn_type;
  layer.num_heads = num_heads;
  layer.has_sliding_window = config.has_sliding_window;
  return layer;
}

void follow_run(const Json& document, const RunConfig& run, SelectQuestion& question) {
  for (const char* field : kConfigOfRun) {
    const Json given = document["config"].value(field, Json());
    if (!given.is_null()) throw Error(fmt::format("{} comes from the run", field));
  }
  for (const char* fact : kFactsOfRun) {
    if (document.contains("env") && document["env"].contains(fact)) {
      throw Error(fmt::format("the fact {} comes from the run", fact));
    }
  }
  const std::optional<CacheDType> cache_dtype = cache_dtype_from_name(run.cache_dtype);
  if (!cache_dtype) {
    throw Error(fmt::format("run.cache_dtype is {}, no cache dtype", in_quotes(run.cache_dtype)));
  }
  SelectorEnvironment& environment = question.facts.environment;
  environment.cache_dtype = *cache_dtype;
  environment.batch_invariant = run.batch_invariant;
  environment.pcp_size = run.pcp_size;
  environment.dcp_size = run.dcp_size;
  question.request =
      build_layer_request(layer_of(question.request.config, question.request.num_heads), run)
          .request;
}

// The run's configuration; without one, only its requests matter.
RunConfig run_of(const JsonNode& root, const std::optional<std::string>& requested) {
  RunConfig run;
  if (root.has("run")) run = run_config_from(root.at("run"), run);
  if (requested && run.backend) throw Error("both a requested backend and run.backend are given");
  if (requested) run.backend = requested;
  if (root.has("backend_per_kind")) {
    if (!run.backend_per_kind.empty()) throw Error("backend_per_kind is given twice");
    run.backend_per_kind = backend_per_kind_from(root.at("backend_per_kind"));
  }
  return run;
}

}  // namespace

void add_select_flags(const Parser& command, SelectFlags& flags) {
  for (const auto& [flag, help] : kValueFlags) flags.values.push_back({flag, member_of(flag)});
  for (const char* flag : kSwitchFlags) flags.switches.push_back({flag, member_of(flag)});
  for (std::size_t index = 0; index < flags.values.size(); ++index) {
    command.text(flags.values[index].flag, flags.values[index].text, kValueFlags[index].second);
  }
  for (SelectFlags::Switch& one : flags.switches) command.flag(one.flag, one.on);
  command.list("--env", flags.env, "FACT=VALUE, a fact of the environment (list facts)");
  command.list("--run", flags.run, "FIELD=VALUE of the run's configuration");
  command.list("--backend-per-kind", flags.backend_per_kind, "KIND=NAME");
  command.text("--config", flags.config_path, "a request as JSON; flags override it");
  command.list("--backend-file", flags.backend_files, "a third party's backend as JSON");
}

void note_given(const Parser& command, SelectFlags& flags) {
  for (SelectFlags::Value& one : flags.values) one.given = command.given(one.flag);
  for (SelectFlags::Switch& one : flags.switches) one.given = command.given(one.flag);
}

Json select_document(const SelectFlags& flags) {
  Json document = flags.config_path.empty() ? Json::object() : config_file(flags.config_path);
  for (const char* object : {"config", "env"}) {
    if (!document.contains(object)) document[object] = Json::object();
    if (!document[object].is_object()) {
      throw Error(fmt::format("{}.{} is not an object", flags.config_path, object));
    }
  }
  const auto put = [&](const std::string& member, Json value) {
    document[Json::json_pointer(member)] = std::move(value);
  };
  for (const SelectFlags::Value& one : flags.values) {
    if (one.given) put(one.member, value_of(one));
  }
  for (const SelectFlags::Switch& one : flags.switches) {
    if (one.given) put(one.member, one.on);
  }
  for (const std::string& word : flags.env) assign(document["env"], "--env", word);
  for (const std::string& word : flags.run) assign(document["run"], "--run", word);
  for (const std::string& word : flags.backend_per_kind) {
    const auto [kind, backend] = assignment("--backend-per-kind", word);
    document["backend_per_kind"][kind] = backend;
  }
  return document;
}

SelectQuestion question_of(const Json& document) {
  expect_known_cache_dtype(document);
  nlohmann::json value = document;
  for (const char* field : {"kv_cache_dtype", "block_size"}) {
    if (!value["config"].contains(field)) value["config"][field] = nullptr;
  }
  const JsonNode root(value, "select");
  root.expect_only({"platform", "capability", "requested", "num_heads", "config", "env", "run",
                    "backend_per_kind"});
  SelectQuestion question;
  question.facts.platform = platform_from(root.at("platform"));
  if (root.has("capability")) question.facts.capability = capability_from(root.at("capability"));
  question.facts.environment = EnvironmentReader().read(root.at("env"));
  if (root.has("num_heads")) question.request.num_heads = optional_int_from(root.at("num_heads"));
  question.request.config = selector_config_from(root.at("config"));
  std::optional<std::string> requested;
  if (root.has("requested")) requested = optional_string_from(root.at("requested"));
  const RunConfig run = run_of(root, requested);
  if (run.backend) question.named.push_back(*run.backend);
  for (const auto& [kind, backend] : run.backend_per_kind) question.named.push_back(backend);
  if (root.has("run")) {
    follow_run(document, run, question);
  } else {
    question.request.backend = requested_backend(question.request.config, run);
  }
  return question;
}

bool asks_for_own(const Json& document) {
  return document.contains("platform") && document["platform"] == "own";
}

Json on_this_machine(Json document, const SelectorFacts& detected) {
  if (document.contains("capability") && !document["capability"].is_null()) {
    throw Error("platform own takes no capability: this machine's is detected");
  }
  add_machine(document, detected);
  for (const std::string_view fact_name : kDetectedFacts) {
    if (document["env"].contains(fact_name)) continue;
    for (const Fact& fact : facts()) {
      if (fact.name == fact_name) {
        document["env"][std::string(fact_name)] = Json(fact.write(detected.environment));
      }
    }
  }
  return document;
}

std::vector<AddedBackend> added_backends(const SelectFlags& flags) {
  std::vector<AddedBackend> added;
  for (const std::string& path : flags.backend_files) {
    added.push_back(parse_backend_file(text_of_file(path), path));
  }
  return added;
}

bool batch_invariant_of(const Json& document) {
  const nlohmann::json env = document["env"];
  const JsonNode node(env, "select.env");
  node.expect_only({"batch_invariant"});
  return node.has("batch_invariant") && node.at("batch_invariant").boolean();
}

}  // namespace attn::cli
