// plumb bench decode: translation by a random model.
#include <algorithm>

#include "bench.h"
#include "checks.h"
#include "plumb/base/machine.h"
#include "plumb/base/timing.h"
#include "plumb/data/directory.h"
#include "plumb/decode/translate.h"

namespace plumb::app::bench {
namespace {

struct DecodeArguments {
  Sizes sizes{512, 1024, 4, 6, 10000, 1000, 12, 1};
  std::string data;  // take sentences from this data directory; empty: random
  int64_t batch_tokens = 4096;
  std::string directory;  // to export to; empty: none
};

constexpr double kLengthFactor = 1.0;
constexpr int64_t kLengthExtra = 3;

/// Approximate number of multiplications and additions in the matrix products of a search that outputs `tokens` tokens,
/// including EOS, for `source` tokens in total: one hypothesis at the first token of each sentence, `beam` hypotheses
/// at the others.
double decode_flops(const Sizes& s, int64_t beam, int64_t source, int64_t tokens) {
  const auto d = static_cast<double>(s.d_model);
  const auto f = static_cast<double>(s.feed_forward);
  const auto layers = static_cast<double>(s.layers);
  const double encoded = layers * static_cast<double>(source) * (12 * d * d + 4 * d * f);
  const double a_token = layers * (12 * d * d + 4 * d * f) + 2 * d * static_cast<double>(s.vocabulary);
  return encoded + static_cast<double>(s.sentences + beam * (tokens - s.sentences)) * a_token;
}

/// Sentences from a data directory's training split, with its vocabulary size, or random sentences.
std::vector<std::vector<int32_t>> sources_of(const DecodeArguments& arguments, Sizes& sizes, uint64_t seed) {
  std::vector<std::vector<int32_t>> sources;
  if (arguments.data.empty()) {
    Random random(seed, "bench");
    for (int64_t i = 0; i < sizes.sentences; ++i) sources.push_back(random_ids(random, sizes.length, sizes.vocabulary));
    return sources;
  }
  const DataDirectory data = DataDirectory::open(arguments.data);
  sizes.vocabulary = std::max(data.source_vocabulary(), data.target_vocabulary());
  const Split& split = data.split("train");
  sizes.sentences = std::min(sizes.sentences, split.size());
  for (int64_t i = 0; i < sizes.sentences; ++i) sources.emplace_back(split.source(i).begin(), split.source(i).end());
  return sources;
}

Json measure(const DecodeArguments& arguments, const std::vector<int64_t>& beams, uint64_t seed) {
  Sizes sizes = arguments.sizes;
  const std::vector<std::vector<int32_t>> sources = sources_of(arguments, sizes, seed);
  // The output matrix is not shared: a random model that shares it with the embeddings repeats its input.
  const std::unique_ptr<Model> model = random_model(sizes, seed, "none");
  int64_t source_tokens = 0;
  for (const auto& source : sources) source_tokens += static_cast<int64_t>(source.size()) + 1;
  Json json = result_document("decode", sizes_json(sizes));
  json["beams"] = Json::array();
  const double ceiling = ceiling_gflops();
  json["ceiling_gflops"] = ceiling;
  Json work = {{"length_factor", kLengthFactor}, {"length_extra", kLengthExtra}, {"sources", sources}};
  for (const int64_t beam : beams) {
    DecodeOptions options;
    options.beam = beam;
    options.precision = sizes.precision;
    options.batch_tokens = arguments.batch_tokens;
    options.length_factor = kLengthFactor;
    options.length_extra = kLengthExtra;
    int64_t tokens = 0;
    std::vector<std::vector<int32_t>> translations;
    const double seconds = median_seconds(sizes.runs, [&] {
      translations =
          translate(translator_of(*model), sources, options, [&](int64_t, int64_t so_far) { tokens = so_far; });
    });
    work["beams"].push_back({{"beam", beam}, {"tokens", tokens}, {"translations", translations}});
    const double gflops = 1e-9 * decode_flops(sizes, beam, source_tokens, tokens) / seconds;
    json["beams"].push_back({{"beam", beam},
                             {"seconds", seconds},
                             {"sentences_per_second", static_cast<double>(sizes.sentences) / seconds},
                             {"decode_tokens_per_second", static_cast<double>(tokens) / seconds},
                             {"gflops", gflops},
                             {"ceiling_fraction", gflops / ceiling}});
  }
  if (!arguments.directory.empty()) export_work(arguments.directory, "decode", sizes_json(sizes), work, model.get());
  json["decode_tokens_per_second"] = json["beams"].back()["decode_tokens_per_second"];
  json["peak_memory_bytes"] = peak_resident_memory();
  return json;
}

void add_decode(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<DecodeArguments>();
  CLI::App* verb = add_measurement(
      bench, globals, "decode", "Time translation with beam widths 1 and 5 by a random model", [arguments, &globals] {
        return measure(*arguments, {1, 5}, globals.seed);
      });
  verb->add_option("--data", arguments->data, "Use the first sentences of this data directory's training split")
      ->type_name("DIR");
  verb->add_option("--batch-tokens", arguments->batch_tokens, "Source tokens per batch, times beam width")
      ->check(positive());
  verb->add_option("--precision", arguments->sizes.precision, "Precision of matrix products")
      ->check(CLI::IsMember({"float32", "bf16", "int8"}));
  add_export_option(*verb, arguments->directory);
  add_sizes(*verb, arguments->sizes);
}

const bool kDecodeRegistered = register_verb({Heading::benchmarks, 40, add_decode});

}  // namespace
}  // namespace plumb::app::bench
