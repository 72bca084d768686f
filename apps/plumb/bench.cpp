// plumb bench: how fast this machine trains, differentiates twice and decodes, beside the rate of its matrix products.
#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "plumb/analysis/attention_cost.h"
#include "plumb/analysis/curvature/basis.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/curvature/lanczos.h"
#include "plumb/base/progress.h"
#include "plumb/base/random.h"
#include "plumb/base/timing.h"
#include "plumb/data/batches.h"
#include "plumb/data/directory.h"
#include "plumb/decode/translate.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/optimizer.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct Sizes {
  int64_t d_model, feed_forward, heads, layers, vocabulary, sentences, length, runs = 5;
  std::string residual = "pre-ln";
  double dropout = 0.1;
  std::string precision = "float32";
  std::string data = {};  // a data directory: batches of its lengths
  int64_t batch_tokens = 4096;
  std::string kind = "softmax";  // of attention
};

/// The rate of matrix products, the ceiling of everything else: GFLOP/s, the best over shapes as they stand in a model
/// and several runs.
double ceiling_gflops() {
  double best = 0;
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{2048, 2048, 2048}, {2048, 1536, 512}, {2048, 512, 512}}) {
    const Tensor a = at::ones({m, k});
    const Tensor b = at::ones({k, n});
    const double seconds = median_seconds(9, [&] { ops::gemm(a, b); });
    best = std::max(best, 2e-9 * static_cast<double>(m * n * k) / seconds);
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
  model.initialize(seed);
  return model;
}

/// Batches of real lengths from all over the training split; the vocabularies become those of the data.
std::vector<Batch> real_batches(Sizes& sizes, uint64_t seed) {
  constexpr size_t kBatches = 8;
  const DataDirectory data = DataDirectory::open(sizes.data);
  sizes.vocabulary = std::max(data.source_vocabulary(), data.target_vocabulary());
  const ParallelSplit& split = data.split("train");
  std::vector<Batch> batches;
  for (const auto& examples : plan_batches(split, sizes.batch_tokens, seed, 0)) {
    if (batches.size() == kBatches) break;
    batches.push_back(make_batch(split, examples));
  }
  return batches;
}

/// Multiplications and additions of a forward pass in matrix products, attention's among them; a gradient takes three
/// times as many.
double forward_flops(const Sizes& s, const Batch& batch) {
  const auto d = static_cast<double>(s.d_model);
  const auto f = static_cast<double>(s.feed_forward);
  const auto layers = static_cast<double>(s.layers);
  const auto source = static_cast<double>(batch.source_layout.tokens());
  const auto target = static_cast<double>(batch.target_layout.tokens());
  double total = layers * (source * (8 * d * d + 4 * d * f) + target * (12 * d * d + 4 * d * f) + source * 4 * d * d);
  for (int64_t i = 0; i < batch.source_layout.sequences(); ++i) {
    const auto m = static_cast<double>(batch.source_layout.length(i));
    const auto n = static_cast<double>(batch.target_layout.length(i));
    total += layers * 4 * d * (m * m + m * n + n * n / 2);  // scores and their products; causal ones are half
  }
  return total + target * 2 * d * static_cast<double>(s.vocabulary);
}

Json sizes_json(const Sizes& s) {
  return {{"d_model", s.d_model}, {"feed_forward", s.feed_forward}, {"heads", s.heads},
          {"layers", s.layers},   {"vocabulary", s.vocabulary},     {"sentences", s.sentences},
          {"length", s.length},   {"residual", s.residual},         {"precision", s.precision},
          {"runs", s.runs}};
}

Json result_document(const std::string& what, const Sizes& sizes) {
  Json json = make_document("bench", 1);
  json["what"] = what;
  json["sizes"] = sizes_json(sizes);
  json["threads"] = omp_get_max_threads();
  return json;
}

Json bench_train(const Sizes& given, uint64_t seed) {
  Sizes sizes = given;
  std::vector<Batch> batches;
  if (sizes.data.empty()) {
    batches.push_back(random_batch(sizes, seed));
  } else {
    batches = real_batches(sizes, seed);
  }
  EncoderDecoder model = random_model(sizes, seed);
  const auto optimizer = optimizers().at("adam").make(model.parameters(), {});
  LossOptions options;
  options.label_smoothing = 0.1;
  ops::MatrixPrecision precision(ops::precision_of(sizes.precision));
  const ops::PrecisionGuard guard(precision);
  int64_t step = 0;
  const double seconds = median_seconds(sizes.runs, [&] {
    for (const Batch& batch : batches) {
      ForwardContext context(sizes.dropout, seed, ++step);
      const Loss loss = model.loss(batch, options, context);
      optimizer->step(gradients({loss.value}, model.parameters().values(), {}), 1e-4, 1.0);
    }
  });
  Json json = result_document("train", sizes);
  const double ceiling = ceiling_gflops();
  double flops = 0;
  int64_t tokens = 0;
  for (const Batch& batch : batches) {
    flops += 3 * forward_flops(sizes, batch);
    tokens += batch.target_layout.tokens();
  }
  json["parameters"] = model.parameters().count();
  json["batches"] = batches.size();
  json["seconds_per_step"] = seconds / static_cast<double>(batches.size());
  json["target_tokens_per_second"] = static_cast<double>(tokens) / seconds;
  json["gflops"] = 1e-9 * flops / seconds;
  json["ceiling_gflops"] = ceiling;
  json["ceiling_fraction"] = 1e-9 * flops / seconds / ceiling;
  json["peak_memory_bytes"] = peak_memory_bytes();
  return json;
}

/// One Lanczos step with its orthogonalization against 50 vectors, the middle of 100 steps; the rate at which memory is
/// read by it, and by nothing but sums.
Json lanczos_seconds(HessianOperator& hessian, const Tensor& v, double product, int64_t runs) {
  constexpr int64_t kVectors = 50;
  Basis basis(kVectors, v.numel(), v.scalar_type());
  for (int64_t i = 0; i < kVectors; ++i) basis.append(random_probe(v.numel(), v.scalar_type(), 1, i), 1.0);
  const Tensor w = hessian(v);
  const double seconds = median_seconds(runs, [&] {
    Tensor copy = w.clone();
    (void)basis.orthogonalize(copy);
  });
  const double reading = median_seconds(runs, [&] {
    for (int64_t i = 0; i < kVectors; ++i) (void)basis[i].sum();
  });
  const auto bytes = static_cast<double>(kVectors * v.numel()) * 4;
  return {{"lanczos_step_seconds", product + seconds},
          {"orthogonalize_seconds", seconds},
          {"orthogonalize_gigabytes_per_second", 1e-9 * 3 * bytes / seconds},  // V is read three times
          {"reading_gigabytes_per_second", 1e-9 * bytes / reading}};
}

/// Four vectors at once against one at a time, with graphs that are not kept.
Json block_seconds(EncoderDecoder& model, const std::vector<Batch>& batches, const Tensor& v, int64_t runs) {
  HessianOptions options;
  options.graph_memory = 0;
  HessianOperator hessian(model, batches, options);
  const double one = median_seconds(runs, [&] { hessian(v); });
  const double four = median_seconds(runs, [&] { hessian.multiply({v, v, v, v}); });
  return {
      {"hvp_seconds_graph_not_kept", one}, {"hvp_seconds_four_at_once", four / 4}, {"block_factor", 4 * one / four}};
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
  json["ceiling_fraction"] = 6e-9 * forward_flops(sizes, batches.front()) / product / ceiling;
  json["peak_memory_bytes"] = peak_memory_bytes();
  const std::vector<ParameterBlock> layers = layer_blocks(model.parameters());
  std::vector<Tensor> directions;
  for (const ParameterBlock& layer : layers) directions.push_back(v.narrow(0, 0, layer.size));
  const double by_layer = median_seconds(sizes.runs, [&] { hessian.multiply_blocks(layers, directions); });
  json["layers_seconds"] = by_layer;
  json["layers"] = layers.size();
  json["layers_ratio"] = by_layer / product;
  json.update(lanczos_seconds(hessian, v, product, sizes.runs));
  json.update(block_seconds(model, batches, v, sizes.runs));
  return json;
}

/// About as many multiplications and additions as there are in the matrix products of a search that put out `tokens`
/// tokens, EOS counted, for sentences of `source` tokens in all: at a sentence's first token one hypothesis, `beam` at
/// the others.
double decode_flops(const Sizes& s, int64_t beam, int64_t source, int64_t tokens) {
  const auto d = static_cast<double>(s.d_model);
  const auto f = static_cast<double>(s.feed_forward);
  const auto layers = static_cast<double>(s.layers);
  const double encoded = layers * static_cast<double>(source) * (12 * d * d + 4 * d * f);
  const double a_token = layers * (12 * d * d + 4 * d * f) + 2 * d * static_cast<double>(s.vocabulary);
  return encoded + static_cast<double>(s.sentences + beam * (tokens - s.sentences)) * a_token;
}

/// Sentences of a data directory's training split, the vocabularies becoming those of the data, or random ones.
std::vector<std::vector<int32_t>> bench_sources(Sizes& sizes, uint64_t seed) {
  std::vector<std::vector<int32_t>> sources;
  if (sizes.data.empty()) {
    Random random(seed, "bench");
    for (int64_t i = 0; i < sizes.sentences; ++i) sources.push_back(random_ids(random, sizes.length, sizes.vocabulary));
    return sources;
  }
  const DataDirectory data = DataDirectory::open(sizes.data);
  sizes.vocabulary = std::max(data.source_vocabulary(), data.target_vocabulary());
  const ParallelSplit& split = data.split("train");
  sizes.sentences = std::min(sizes.sentences, split.size());
  for (int64_t i = 0; i < sizes.sentences; ++i) sources.emplace_back(split.source(i).begin(), split.source(i).end());
  return sources;
}

Json bench_decode(const Sizes& given, const std::vector<int64_t>& beams, uint64_t seed) {
  Sizes sizes = given;
  const std::vector<std::vector<int32_t>> sources = bench_sources(sizes, seed);
  EncoderDecoder model = random_model(sizes, seed);
  int64_t source_tokens = 0;
  for (const auto& source : sources) source_tokens += static_cast<int64_t>(source.size()) + 1;
  Json json = result_document("decode", sizes);
  json["beams"] = Json::array();
  const double ceiling = ceiling_gflops();
  json["ceiling_gflops"] = ceiling;
  for (const int64_t beam : beams) {
    DecodeOptions options;
    options.beam = beam;
    options.precision = sizes.precision;
    options.batch_tokens = sizes.batch_tokens;
    options.length_factor = 1.0;
    options.length_extra = 3;
    int64_t tokens = 0;
    const double seconds = median_seconds(
        sizes.runs, [&] { translate(model, sources, options, [&](int64_t, int64_t so_far) { tokens = so_far; }); });
    const double gflops = 1e-9 * decode_flops(sizes, beam, source_tokens, tokens) / seconds;
    json["beams"].push_back({{"beam", beam},
                             {"seconds", seconds},
                             {"sentences_per_second", static_cast<double>(sizes.sentences) / seconds},
                             {"decode_tokens_per_second", static_cast<double>(tokens) / seconds},
                             {"gflops", gflops},
                             {"ceiling_fraction", gflops / ceiling}});
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
    if (name == "train" || name == "decode") {
      verb->add_option("--data", sizes->data,
                       name == "train" ? "Batches of a data directory's training split, of --batch-tokens each"
                                       : "The first sentences of a data directory's training split")
          ->type_name("DIR");
      verb->add_option("--batch-tokens", sizes->batch_tokens,
                       name == "train" ? "Tokens of such a batch" : "Source tokens times beam of a batch")
          ->capture_default_str()
          ->check(CLI::PositiveNumber);
      verb->add_option("--precision", sizes->precision, "Of matrix products")
          ->check(name == "train" ? CLI::IsMember({"float32", "bf16"}) : CLI::IsMember({"float32", "bf16", "int8"}))
          ->capture_default_str();
    }
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
  add("decode", "Translation with beams 1 and 5 by a random model", {512, 1024, 4, 6, 10000, 1000, 12, 1},
      [&globals](const Sizes& sizes) {
        return bench_decode(sizes, {1, 5}, globals.seed);
      });
  add("attention", "Causal self-attention over growing length", {256, 1024, 4, 1, 10000, 1, 4096, 3},
      [&globals](const Sizes& sizes) { return bench_attention(sizes, globals.seed); });
}

}  // namespace plumb::app
