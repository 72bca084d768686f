// plumb bench: how fast this machine trains, differentiates twice and decodes, beside the rate of its matrix products.
#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "plumb/analysis/attention_cost.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/base/progress.h"
#include "plumb/base/random.h"
#include "plumb/decode/translate.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/ops/kernels/gemm.h"
#include "plumb/optim/optimizer.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct Sizes {
  int64_t d_model, feed_forward, heads, layers, vocabulary, sentences, length, runs = 5;
  std::string residual = "pre-ln";
  double dropout = 0.1;
  std::string kind = "softmax";  // of attention
};

/// Seconds of one call: the median of several after one that warms up.
template <typename Work>
double median_seconds(int64_t runs, const Work& work) {
  work();
  std::vector<double> seconds;
  for (int64_t i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// The rate of a large square matrix product, the ceiling of everything else; GFLOP/s, the best of several.
double ceiling_gflops() {
  constexpr int64_t kSize = 2048;
  const Tensor a = at::ones({kSize, kSize});
  const Tensor b = at::ones({kSize, kSize});
  const Tensor c = at::empty({kSize, kSize});
  double best = 0;
  for (int i = 0; i < 8; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    kernels::gemm(false, false, kSize, kSize, kSize, 1.0F, a.data_ptr<float>(), kSize, b.data_ptr<float>(), kSize, 0.0F,
                  c.data_ptr<float>(), kSize);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 2e-9 * kSize * kSize * kSize / seconds);
  }
  return best;
}

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

std::vector<int32_t> random_ids(Random& random, int64_t count, int64_t vocabulary) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(4 + random.below(static_cast<uint64_t>(vocabulary - 4)));
  return ids;
}

/// Pairs of `length` tokens on either side, specials included.
Batch random_batch(const Sizes& sizes, uint64_t seed) {
  Random random(seed, "bench");
  Batch batch;
  for (int64_t i = 0; i < sizes.sentences; ++i) {
    const auto source = random_ids(random, sizes.length - 1, sizes.vocabulary);
    append(batch, source, random_ids(random, sizes.length - 1, sizes.vocabulary), i);
  }
  return batch;
}

EncoderDecoder random_model(const Sizes& sizes, uint64_t seed) {
  ModelConfig config;
  config.residual = sizes.residual;
  config.d_model = sizes.d_model;
  config.feed_forward = sizes.feed_forward;
  config.heads = sizes.heads;
  config.encoder_layers = config.decoder_layers = sizes.layers;
  config.source_vocabulary = config.target_vocabulary = sizes.vocabulary;
  EncoderDecoder model(config);
  model.initialise(seed);
  return model;
}

/// Multiplications and additions of a forward pass in matrix products, attention's among them; a gradient takes three
/// times as many.
double forward_flops(const Sizes& s) {
  const auto d = static_cast<double>(s.d_model);
  const auto f = static_cast<double>(s.feed_forward);
  const auto tokens = static_cast<double>(s.sentences * s.length);
  const double attention = 4 * d * static_cast<double>(s.length);  // a token: scores and their product with the values
  const double encoder = 2 * (4 * d * d + 2 * d * f) + attention;
  const double decoder = 2 * (8 * d * d + 2 * d * f) + 1.5 * attention;  // causal attention sees half
  return tokens * (static_cast<double>(s.layers) * (encoder + decoder) + 2 * d * static_cast<double>(s.vocabulary));
}

Json sizes_json(const Sizes& s) {
  return {{"d_model", s.d_model}, {"feed_forward", s.feed_forward}, {"heads", s.heads},
          {"layers", s.layers},   {"vocabulary", s.vocabulary},     {"sentences", s.sentences},
          {"length", s.length},   {"residual", s.residual},         {"runs", s.runs}};
}

Json result_document(const std::string& what, const Sizes& sizes) {
  Json json = make_document("bench", 1);
  json["what"] = what;
  json["sizes"] = sizes_json(sizes);
  json["threads"] = omp_get_max_threads();
  return json;
}

Json bench_train(const Sizes& sizes, uint64_t seed) {
  EncoderDecoder model = random_model(sizes, seed);
  const Batch batch = random_batch(sizes, seed);
  const auto optimizer = optimizers().at("adam").make(model.parameters(), {});
  LossOptions options;
  options.label_smoothing = 0.1;
  int64_t step = 0;
  const double seconds = median_seconds(sizes.runs, [&] {
    ForwardContext context(sizes.dropout, seed, ++step);
    const Loss loss = model.loss(batch, options, context);
    optimizer->step(gradients({loss.value}, model.parameters().values(), {}), 1e-4, 1.0);
  });
  Json json = result_document("train", sizes);
  const double ceiling = ceiling_gflops();
  const double rate = 3e-9 * forward_flops(sizes) / seconds;
  json["parameters"] = model.parameters().count();
  json["seconds_per_step"] = seconds;
  json["target_tokens_per_second"] = static_cast<double>(sizes.sentences * sizes.length) / seconds;
  json["gflops"] = rate;
  json["ceiling_gflops"] = ceiling;
  json["ceiling_fraction"] = rate / ceiling;
  json["peak_memory_bytes"] = peak_memory_bytes();
  return json;
}

Json bench_hvp(const Sizes& sizes, uint64_t seed) {
  EncoderDecoder model = random_model(sizes, seed);
  const std::vector<Batch> batches = {random_batch(sizes, seed)};
  const double gradient = median_seconds(sizes.runs, [&] { mean_loss(model, batches); });
  HessianOperator hessian(model, batches);
  const Tensor v = at::ones({hessian.size()}) / std::sqrt(static_cast<double>(hessian.size()));
  const double product = median_seconds(sizes.runs, [&] { hessian(v); });
  Json json = result_document("hvp", sizes);
  const double ceiling = ceiling_gflops();
  json["parameters"] = hessian.size();
  json["gradient_seconds"] = gradient;
  json["hvp_seconds"] = product;
  json["ratio"] = product / gradient;
  json["ceiling_gflops"] = ceiling;
  json["ceiling_fraction"] = 6e-9 * forward_flops(sizes) / product / ceiling;
  json["peak_memory_bytes"] = peak_memory_bytes();
  return json;
}

Json bench_decode(const Sizes& sizes, const std::vector<int64_t>& beams, uint64_t seed) {
  EncoderDecoder model = random_model(sizes, seed);
  Random random(seed, "bench");
  std::vector<std::vector<int32_t>> sources;
  for (int64_t i = 0; i < sizes.sentences; ++i) sources.push_back(random_ids(random, sizes.length, sizes.vocabulary));
  Json json = result_document("decode", sizes);
  json["beams"] = Json::array();
  for (const int64_t beam : beams) {
    DecodeOptions options;
    options.beam = beam;
    options.length_factor = 1.0;
    options.length_extra = 3;
    int64_t tokens = 0;
    const double seconds = median_seconds(
        1, [&] { translate(model, sources, options, [&](int64_t, int64_t so_far) { tokens = so_far; }); });
    json["beams"].push_back({{"beam", beam},
                             {"seconds", seconds},
                             {"sentences_per_second", static_cast<double>(sizes.sentences) / seconds},
                             {"decode_tokens_per_second", static_cast<double>(tokens) / seconds}});
  }
  json["decode_tokens_per_second"] = json["beams"].back()["decode_tokens_per_second"];
  json["peak_memory_bytes"] = peak_memory_bytes();
  return json;
}

Json bench_attention(const Sizes& sizes, uint64_t seed) {
  Json json = result_document("attention", sizes);
  json["kind"] = sizes.kind;
  json["lengths"] = Json::array();
  for (int64_t length = 64; length <= sizes.length; length *= 2) {
    const AttentionCost cost =
        measure_attention_cost(sizes.kind, {}, sizes.d_model, sizes.heads, length, sizes.runs, seed);
    json["lengths"].push_back({{"length", length},
                               {"forward_seconds", cost.forward_seconds},
                               {"gradient_seconds", cost.gradient_seconds},
                               {"held_bytes", cost.held_bytes}});
  }
  json["peak_memory_bytes"] = peak_memory_bytes();
  return json;
}

/// The measured figures of a document as a table of name and value.
std::string human(const Json& json) {
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

void add_sizes(CLI::App& verb, Sizes& sizes) {
  verb.add_option("--d-model", sizes.d_model, "Width of the model")->capture_default_str()->check(CLI::PositiveNumber);
  verb.add_option("--feed-forward", sizes.feed_forward, "Width of the feed-forward sub-layers")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb.add_option("--heads", sizes.heads, "Attention heads")->capture_default_str()->check(CLI::PositiveNumber);
  verb.add_option("--layers", sizes.layers, "Layers of encoder and decoder each")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb.add_option("--vocabulary", sizes.vocabulary, "Size of both vocabularies")
      ->capture_default_str()
      ->check(CLI::Range(16, 10000000));
  verb.add_option("--sentences", sizes.sentences, "Sentence pairs")->capture_default_str()->check(CLI::PositiveNumber);
  verb.add_option("--length", sizes.length, "Tokens a sentence")->capture_default_str()->check(CLI::Range(2, 1000000));
  verb.add_option("--runs", sizes.runs, "Timed runs, of which the median counts")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb.add_option("--residual", sizes.residual, "Residual scheme")->capture_default_str();
}

}  // namespace

void add_bench(CLI::App& app, Globals& globals) {
  CLI::App* bench = app.add_subcommand(
      "bench", "Measure the speed of training, Hessian-vector products, decoding and attention here");
  bench->require_subcommand(1);
  const auto add = [&](const std::string& name, const std::string& description, Sizes defaults,
                       std::function<Json(const Sizes&)> measure) {
    auto sizes = std::make_shared<Sizes>(std::move(defaults));
    CLI::App* verb = add_verb(*bench, globals, name, description, "plumb bench " + name,
                              [sizes, measure = std::move(measure), &globals] {
                                const Json result = measure(*sizes);
                                emit(globals, result, human(result));
                              });
    add_json_option(*verb, globals);
    add_seed_option(*verb, globals);
    add_sizes(*verb, *sizes);
    if (name == "attention") {
      verb->add_option("--kind", sizes->kind, "Kind of attention")
          ->capture_default_str()
          ->check(CLI::IsMember(attentions().names()));
    }
  };
  add("train", "A training step: forward, backward, Adam", {512, 1024, 4, 6, 10000, 64, 32},
      [&globals](const Sizes& sizes) { return bench_train(sizes, globals.seed); });
  add("hvp", "A gradient, and a Hessian-vector product with the gradient's graph kept",
      {256, 1024, 4, 6, 10000, 16, 24}, [&globals](const Sizes& sizes) { return bench_hvp(sizes, globals.seed); });
  add("decode", "Translation of random sentences with beams 5 and 1", {512, 1024, 4, 6, 10000, 200, 12, 1},
      [&globals](const Sizes& sizes) {
        return bench_decode(sizes, {1, 5}, globals.seed);
      });
  add("attention", "Causal self-attention over growing length", {256, 1024, 4, 1, 10000, 1, 4096, 3},
      [&globals](const Sizes& sizes) { return bench_attention(sizes, globals.seed); });
}

}  // namespace plumb::app
