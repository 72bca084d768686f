#include "bench.h"

#include <fmt/format.h>
#include <omp.h>
#include <torch/version.h>

#include <algorithm>
#include <array>

#include "checks.h"
#include "declared_manual.h"
#include "plumb/base/error.h"
#include "plumb/base/machine.h"
#include "plumb/base/quantity.h"
#include "plumb/data/sequences.h"
#include "plumb/model/flops.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/peak_rate.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/profile.h"

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

/// A table with a line for each part: seconds, operations, bytes, and the share of the limit that binds it.
std::string text_of(const StepProfile& time) {
  size_t width = 16;
  for (const StepPart& part : time.parts) width = std::max(width, part.name.size());
  std::string text =
      fmt::format("{:<{}} {:>10}  {:>10}  {:>10}  {}\n", "", width, "seconds", "operations", "bytes", "of the limit");
  for (const StepPart& part : time.parts) {
    text += fmt::format("{:<{}} {:>10.3g}  {:>10}  {:>10}", part.name, width, part.seconds,
                        part.operations > 0 ? with_unit(part.operations) : "",
                        part.bytes > 0 ? with_bytes(part.bytes) : "");
    if (part.bytes > 0)
      text += fmt::format("  {:>4.0f}% of {}", 100 * time.share(part),
                          time.is_bound_by_memory(part) ? "memory" : "arithmetic");
    text += '\n';
  }
  text += fmt::format("{:<{}} {:>10.3g}  {:>10}  {:>10}  {:>4.0f}% of arithmetic\n", "step", width, time.seconds(),
                      with_unit(time.operations()), "", 100 * time.operations() / time.seconds() / time.peak_rate);
  return text + fmt::format("the limits are {} operations per second in matrix products, and {} per second\n",
                            with_unit(time.peak_rate), with_bytes(time.memory_rate));
}

Json to_json(const StepProfile& time) {
  Json json = {{"seconds", time.seconds()},
               {"operations", time.operations()},
               {"peak_rate", time.peak_rate},
               {"memory_rate", time.memory_rate}};
  for (const StepPart& part : time.parts) {
    Json& entry = json["parts"].emplace_back();
    entry = {{"name", part.name}, {"seconds", part.seconds}, {"operations", part.operations}, {"bytes", part.bytes}};
    if (part.bytes == 0) continue;
    entry["limit"] = time.is_bound_by_memory(part) ? "memory" : "arithmetic";
    entry["share"] = time.share(part);
  }
  return json;
}

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

double StepProfile::seconds() const {
  double sum = 0;
  for (const StepPart& part : parts) sum += part.seconds;
  return sum;
}

double StepProfile::operations() const {
  double sum = 0;
  for (const StepPart& part : parts) sum += part.operations;
  return sum;
}

void require_profilable() {
  if (!ops::default_device().is_cpu())
    throw Error("operations on a GPU are not timed one by one", "leave out --profile, or use --device cpu");
}

StepProfile profile_of(int64_t runs, const std::string& precision, const std::function<void()>& step) {
  StepProfile time;
  time.peak_rate = ops::peak_product_rate(ops::precision_of(precision));
  time.memory_rate = ops::peak_memory_rate();
  step();
  const auto count = static_cast<double>(runs);
  const ops::Profile profile;
  const Stopwatch watch;
  for (int64_t i = 0; i < runs; ++i) step();
  double rest = watch.seconds() / count;
  for (const ops::Profile::Operation& each : profile.operations()) {
    time.parts.push_back({each.name, each.seconds / count, each.operations / count, each.bytes / count});
    rest -= time.parts.back().seconds;
  }
  time.parts.push_back({"everything else", rest, 0, 0});
  return time;
}

void add_profile_option(CLI::App& verb, bool& profile) {
  verb.add_flag("--profile", profile,
                "Also time each operation in further steps, and compare it with the limit that binds it: the rate of "
                "matrix products, or that of memory");
}

CLI::App* add_measurement(CLI::App& bench, Globals& globals, const std::string& name, const std::string& description,
                          const std::function<Measured()>& measure) {
  CLI::App* verb = add_verb(bench, globals, name, description, "plumb bench " + name, [measure, &globals] {
    Measured result = measure();
    std::string text = text_of(result.document);
    if (result.profile) {
      result.document["profile"] = to_json(*result.profile);
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
