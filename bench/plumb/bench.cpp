#include "bench.h"

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <omp.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "checks.h"
#include "declared_manual.h"
#include "plumb/base/error.h"
#include "plumb/base/machine.h"
#include "plumb/base/timing.h"
#include "plumb/data/sequences.h"
#include "plumb/model/flops.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/precision.h"

namespace plumb::app::bench {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

/// Formats a document as a table of names and values, for people.
std::string text_of(const Json& json) {
  std::string text;
  const auto value = [](const Json& v) {
    return v.is_number_float() ? fmt::format("{:.4g}", v.get<double>()) : v.dump();
  };
  for (const auto& [key, entry] : json.items()) {
    if (key == "schema" || key == "command" || key == "sizes") continue;
    if (!entry.is_array()) {
      text += fmt::format("{:<26} {}\n", key, entry.is_string() ? entry.get<std::string>() : value(entry));
      continue;
    }
    for (const Json& row : entry) {
      std::string line;
      for (const auto& [name, cell] : row.items()) line += fmt::format("{} {}  ", name, value(cell));
      text += fmt::format("  {}\n", line);
    }
  }
  return text;
}

std::string text_of(const StepProfile& profile) {
  size_t width = 16;
  for (const StepPart& part : profile) width = std::max(width, part.name.size());
  std::string text = fmt::format("{:<{}} {:>10}\n", "", width, "seconds");
  for (const StepPart& part : profile) text += fmt::format("{:<{}} {:>10.3g}\n", part.name, width, part.seconds);
  return text;
}

/// Adds up what LibTorch's recorder tells of this thread while it exists; an operation within another one is part of it.
/// There may be one at a time.
class StepRecorder {
 public:
  StepRecorder() {
    current_ = this;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::USER_SCOPE, at::RecordScope::BACKWARD_FUNCTION}));
  }
  ~StepRecorder() {
    at::removeCallback(handle_);
    current_ = nullptr;
  }
  StepRecorder(const StepRecorder&) = delete;
  StepRecorder& operator=(const StepRecorder&) = delete;

  [[nodiscard]] const std::map<std::string, double>& seconds() const { return seconds_; }

 private:
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& /*call*/) {
    if (current_->depth_++ == 0) current_->watch_ = Stopwatch();
    return nullptr;
  }
  static void end(const at::RecordFunction& call, at::ObserverContext* /*context*/) {
    if (--current_->depth_ == 0) current_->seconds_[name_of(call)] += current_->watch_.seconds();
  }
  /// Of a node of the graph, the name of its class: autograd wraps it in that of a template.
  static std::string name_of(const at::RecordFunction& call) {
    std::string name = call.name();
    if (call.scope() != at::RecordScope::BACKWARD_FUNCTION) return name;
    if (name.ends_with('>')) name.pop_back();
    const size_t colon = name.rfind(':');
    return "backward: " + (colon == std::string::npos ? name : name.substr(colon + 1));
  }

  static thread_local StepRecorder* current_;
  std::map<std::string, double> seconds_;
  int64_t depth_ = 0;
  Stopwatch watch_;
  at::CallbackHandle handle_ = 0;
};

thread_local StepRecorder* StepRecorder::current_ = nullptr;

/// Adds the size options that all models share.
template <class AnySizes>
void add_stack_sizes(CLI::App& verb, AnySizes& sizes, const char* layers, const char* vocabulary) {
  add_size(verb, "--d-model", sizes.d_model, "Width of the model");
  add_size(verb, "--feed-forward", sizes.feed_forward, "Width of the feed-forward sub-layers");
  add_size(verb, "--heads", sizes.heads, "Attention heads");
  add_size(verb, "--layers", sizes.layers, layers);
  add_size(verb, "--vocabulary", sizes.vocabulary, vocabulary)->check(CLI::Range(16, 10000000));
}

}  // namespace

Json sizes_json(const Sizes& s) {
  return {{"d_model", s.d_model}, {"feed_forward", s.feed_forward}, {"heads", s.heads},
          {"layers", s.layers},   {"vocabulary", s.vocabulary},     {"sentences", s.sentences},
          {"length", s.length},   {"residual", s.residual},         {"precision", s.precision},
          {"runs", s.runs}};
}

Json sizes_json(const DecoderSizes& s) {
  return {{"d_model", s.d_model},
          {"feed_forward", s.feed_forward},
          {"heads", s.heads},
          {"layers", s.layers},
          {"vocabulary", s.vocabulary}};
}

std::vector<int32_t> random_ids(Random& random, int64_t count, int64_t vocabulary) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(4 + random.below(static_cast<uint64_t>(vocabulary - 4)));
  return ids;
}

Batch random_batch(const Sizes& sizes, uint64_t seed) {
  Random random(seed, "bench");
  Batch batch;
  for (int64_t i = 0; i < sizes.sentences; ++i) {
    const auto source = random_ids(random, sizes.length - 1, sizes.vocabulary);
    append_pair(batch, source, {}, random_ids(random, sizes.length - 1, sizes.vocabulary), {}, i);
  }
  return batch;
}

std::unique_ptr<Model> random_model(const Sizes& sizes, uint64_t seed, const std::string& share_embeddings) {
  ModelConfig config;
  config.residual = sizes.residual;
  config.share_embeddings = share_embeddings;
  config.d_model = sizes.d_model;
  config.feed_forward = sizes.feed_forward;
  config.heads = sizes.heads;
  config.encoder_layers = config.decoder_layers = sizes.layers;
  config.source_vocabulary = config.target_vocabulary = sizes.vocabulary;
  std::unique_ptr<Model> model = make_model(config);
  model->initialize(seed);
  return model;
}

ModelConfig decoder_config(const DecoderSizes& sizes, int64_t positions) {
  ModelConfig config;
  config.kind = "decoder";
  config.positions = "learned";
  config.max_positions = positions;
  config.activation = "gelu-tanh";
  config.embedding_factor = 1;
  config.d_model = sizes.d_model;
  config.feed_forward = sizes.feed_forward;
  config.heads = sizes.heads;
  config.decoder_layers = sizes.layers;
  config.target_vocabulary = sizes.vocabulary;
  config.initialization = "gpt-2";
  config.dropout = 0;
  return config;
}

double ceiling_gflops() {
  double best = 0;
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{2048, 2048, 2048}, {2048, 1536, 512}, {2048, 512, 512}}) {
    const Tensor a = at::ones({m, k}, ops::default_device());
    const Tensor b = at::ones({k, n}, ops::default_device());
    const double seconds = device_seconds(9, a.device(), [&] { ops::gemm(a, b); });
    best = std::max(best, 2e-9 * static_cast<double>(m * n * k) / seconds);
  }
  return best;
}

Json result_document(const std::string& what, const Json& sizes) {
  Json json = make_document("bench", 1);
  json["what"] = what;
  json["sizes"] = sizes;
  json["threads"] = omp_get_max_threads();
  json["compiler"] = kCompiler;
  json["libtorch"] = TORCH_VERSION;
  json["device"] = ops::default_device().str();
  return json;
}

void add_step_figures(Json& json, const Model& model, const std::vector<Batch>& batches, double seconds) {
  const FlopCounter counter(model);
  double flops = 0;
  int64_t tokens = 0;
  for (const Batch& batch : batches) {
    flops += 3 * counter.forward(batch);
    tokens += std::ssize(batch.labels);
  }
  const double ceiling = ceiling_gflops();
  json["parameters"] = model.parameters().count();
  json["seconds_per_step"] = seconds / static_cast<double>(batches.size());
  json["target_tokens_per_second"] = static_cast<double>(tokens) / seconds;
  json["gflops"] = 1e-9 * flops / seconds;
  json["ceiling_gflops"] = ceiling;
  json["ceiling_fraction"] = 1e-9 * flops / seconds / ceiling;
  json["peak_memory_bytes"] = peak_resident_memory();
}

void require_profilable() {
  if (!ops::default_device().is_cpu())
    throw Error("operations on a GPU are not timed one by one", "leave out --profile, or use --device cpu");
}

StepProfile profile_of(int64_t runs, const std::function<void()>& step) {
  step();
  const auto count = static_cast<double>(runs);
  const StepRecorder recorder;
  const Stopwatch watch;
  for (int64_t i = 0; i < runs; ++i) step();
  double rest = watch.seconds() / count;
  StepProfile profile;
  for (const auto& [name, seconds] : recorder.seconds()) {
    profile.push_back({name, seconds / count});
    rest -= seconds / count;
  }
  std::stable_sort(profile.begin(), profile.end(),
                   [](const StepPart& a, const StepPart& b) { return a.seconds > b.seconds; });
  profile.push_back({"everything else", rest});
  return profile;
}

void add_profile_option(CLI::App& verb, bool& profile) {
  verb.add_flag("--profile", profile,
                "Also time each operation in further steps, forward and backward");
}

CLI::App* add_measurement(CLI::App& bench, Globals& globals, const std::string& name, const std::string& description,
                          const std::function<Measured()>& measure) {
  CLI::App* verb = add_verb(bench, globals, name, description, "plumb bench " + name, [measure, &globals] {
    Measured result = measure();
    std::string text = text_of(result.document);
    if (result.profile) {
      Json& parts = result.document["profile"];
      for (const StepPart& part : *result.profile) parts.push_back({{"name", part.name}, {"seconds", part.seconds}});
      text += '\n' + text_of(*result.profile);
    }
    emit(globals, result.document, text);
  });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  return verb;
}

CLI::Option* add_size(CLI::App& verb, const char* name, int64_t& value, const char* description) {
  return verb.add_option(name, value, description)->check(positive());
}

void add_precision_option(CLI::App& verb, std::string& precision) {
  verb.add_option("--precision", precision, "Precision of matrix products")->check(CLI::IsMember({"float32", "bf16"}));
}

void add_sizes(CLI::App& verb, DecoderSizes& sizes) {
  add_stack_sizes(verb, sizes, "Layers", "Size of the vocabulary");
}

void add_sizes(CLI::App& verb, Sizes& sizes) {
  add_stack_sizes(verb, sizes, "Layers in each of encoder and decoder", "Size of both vocabularies");
  add_size(verb, "--sentences", sizes.sentences, "Sentence pairs");
  add_size(verb, "--length", sizes.length, "Tokens per sentence")->check(CLI::Range(2, 1000000));
  add_size(verb, "--runs", sizes.runs, "Timed runs; the median is reported");
  suggest(verb.add_option("--residual", sizes.residual, "Residual scheme")->type_name("NAME"),
          residual_schemes().names());
}

}  // namespace plumb::app::bench
