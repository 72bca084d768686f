// plumb bench generate: continuation of prompts by a random language model, as large as GPT-2 by default.
#include <algorithm>

#include "bench.h"
#include "checks.h"
#include "declared_manual.h"
#include "plumb/base/machine.h"
#include "plumb/base/timing.h"
#include "plumb/decode/generate.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/position/position.h"
#include "plumb/ops/index.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/top_scores.h"

namespace plumb::app::bench {
namespace {

struct GenerateArguments {
  DecoderSizes model{768, 3072, 12, 12, 50257};
  int64_t length = 128, tokens = 64, runs = 3;
  std::string attention = "softmax";
  std::string positions = "learned";
  std::string precision = "float32";
  std::vector<int64_t> batches = {1, 8};
  std::vector<int64_t> contexts;
  std::string directory;  // to export to, if any
};

Json sizes_of(const GenerateArguments& a) {
  Json json = sizes_json(a.model);
  json.update({{"length", a.length},
               {"tokens", a.tokens},
               {"attention", a.attention},
               {"positions", a.positions},
               {"precision", a.precision},
               {"runs", a.runs}});
  return json;
}

std::unique_ptr<Model> model_of(const GenerateArguments& arguments, uint64_t seed) {
  int64_t longest = arguments.length;
  for (const int64_t context : arguments.contexts) longest = std::max(longest, context);
  ModelConfig config = decoder_config(arguments.model, std::max<int64_t>(1024, longest + arguments.tokens));
  config.attention = arguments.attention;
  config.positions = arguments.positions;
  std::unique_ptr<Model> model = make_model(config);
  model->initialize(seed);
  return model;
}

/// Prompts that are read together and continued greedily.
class Texts {
 public:
  Texts(Generates& model, const std::vector<std::vector<int32_t>>& prompts) : model_(model) {
    for (const std::vector<int32_t>& prompt : prompts) {
      tokens_.insert(tokens_.end(), prompt.begin(), prompt.end());
      layout_.append(std::ssize(prompt));
      last_.push_back(std::ssize(tokens_) - 1);
    }
  }

  /// Reads the prompts in one pass and chooses the first token of each continuation.
  void read() {
    const auto rows = static_cast<size_t>(layout_.sequences());
    state_ = model_.start(layout_.sequences());
    continuations_.assign(rows, {});
    log_probabilities_.assign(rows, 0);
    const Tensor hidden = model_.read(state_, tokens_, layout_);
    choose(model_.logits(hidden.index_select(0, ops::index_beside(hidden, last_))));
  }

  /// Reads the tokens chosen last and chooses the next ones.
  void step() { choose(model_.logits(model_.step(state_, next_))); }

  [[nodiscard]] int64_t state_bytes() const { return state_.self_bytes(); }
  [[nodiscard]] const std::vector<std::vector<int32_t>>& continuations() const { return continuations_; }
  [[nodiscard]] const std::vector<double>& log_probabilities() const { return log_probabilities_; }

 private:
  void choose(const Tensor& logits) {
    const ops::TopScores top = ops::top_scores(logits, 1, 0, /*normalize=*/true);
    next_.assign(top.ids.begin(), top.ids.end());
    for (size_t row = 0; row < next_.size(); ++row) {
      continuations_[row].push_back(top.ids[row]);
      log_probabilities_[row] += top.scores[row] - top.log_partition[row];
    }
  }

  Generates& model_;
  std::vector<int64_t> tokens_;
  Ragged layout_;
  std::vector<int64_t> last_;  // index of the last token of each prompt
  DecoderState state_;
  std::vector<int64_t> next_;
  std::vector<std::vector<int32_t>> continuations_;
  std::vector<double> log_probabilities_;  // per row: Σ log p of its continuation
};

std::vector<std::vector<int32_t>> random_prompts(int64_t rows, int64_t length, int64_t vocabulary, uint64_t seed) {
  Random random(seed, "bench");
  std::vector<std::vector<int32_t>> prompts;
  for (int64_t r = 0; r < rows; ++r) prompts.push_back(random_ids(random, length, vocabulary));
  return prompts;
}

/// The median time of `steps` steps over `runs` runs. The prompts are read again before each, which is not timed.
double decode_seconds(Texts& texts, int64_t steps, int64_t runs) {
  texts.read();
  texts.step();  // warm-up: anything compiled for these sizes
  std::vector<double> seconds;
  for (int64_t run = 0; run < runs; ++run) {
    texts.read();
    const Stopwatch watch;
    for (int64_t i = 0; i < steps; ++i) texts.step();
    seconds.push_back(watch.seconds());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// Times `rows` prompts at a time; adds them and their continuations to `work`.
Json measure_batch(Generates& model, const GenerateArguments& arguments, int64_t rows, uint64_t seed, Json& work) {
  const std::vector<std::vector<int32_t>> prompts =
      random_prompts(rows, arguments.length, arguments.model.vocabulary, seed);
  Texts texts(model, prompts);
  const int64_t steps = arguments.tokens - 1;
  const double prefill = median_seconds(arguments.runs, [&] { texts.read(); });
  const double decode = decode_seconds(texts, steps, arguments.runs);
  work["batches"].push_back({{"rows", rows},
                             {"prompts", prompts},
                             {"continuations", texts.continuations()},
                             {"log_probabilities", texts.log_probabilities()}});
  return {{"rows", rows},
          {"prefill_seconds", prefill},
          {"prefill_tokens_per_second", static_cast<double>(rows * arguments.length) / prefill},
          {"decode_seconds", decode},
          {"decode_tokens_per_second", static_cast<double>(rows * steps) / decode},
          {"state_bytes", texts.state_bytes()}};
}

/// Times one text, continued after `context` tokens.
Json measure_context(Generates& model, const GenerateArguments& arguments, int64_t context, uint64_t seed) {
  Texts texts(model, random_prompts(1, context, arguments.model.vocabulary, seed));
  const int64_t steps = arguments.tokens - 1;
  const double seconds = decode_seconds(texts, steps, arguments.runs);
  return {{"context", context},
          {"seconds_per_token", seconds / static_cast<double>(steps)},
          {"state_bytes", texts.state_bytes()}};
}

Json measure(const GenerateArguments& arguments, uint64_t seed) {
  const std::unique_ptr<Model> model = model_of(arguments, seed);
  Generates& generator = generator_of(*model);
  ops::MatrixPrecision precision(ops::precision_of(arguments.precision), /*weights_stay=*/true);
  const at::NoGradGuard no_graph;
  const ops::PrecisionGuard guard(precision);
  Json json = result_document("generate", sizes_of(arguments));
  Json work = {{"batches", Json::array()}};
  json["parameters"] = model->parameters().count();
  json["batches"] = Json::array();
  for (const int64_t rows : arguments.batches)
    json["batches"].push_back(measure_batch(generator, arguments, rows, seed, work));
  if (!arguments.contexts.empty()) json["contexts"] = Json::array();
  for (const int64_t context : arguments.contexts)
    json["contexts"].push_back(measure_context(generator, arguments, context, seed));
  json["peak_memory_bytes"] = peak_resident_memory();
  if (!arguments.directory.empty())
    export_work(arguments.directory, "generate", sizes_of(arguments), work, model.get());
  return json;
}

void add_generate(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<GenerateArguments>();
  CLI::App* verb =
      add_measurement(bench, globals, "generate", "Time reading and continuing prompts with a random language model",
                      [arguments, &globals] { return measure(*arguments, globals.seed); });
  add_sizes(*verb, arguments->model);
  add_size(*verb, "--length", arguments->length, "Tokens of a prompt");
  add_size(*verb, "--tokens", arguments->tokens, "Tokens that continue a prompt")->check(CLI::Range(2, 1000000));
  add_size(*verb, "--runs", arguments->runs, "Timed runs; the median is reported");
  verb->add_option("--batch", arguments->batches, "Prompts continued together, one or more numbers separated by commas")
      ->delimiter(',')
      ->check(positive());
  verb->add_option("--contexts", arguments->contexts,
                   "Also time one text after these numbers of tokens, separated by commas, and the memory of its state")
      ->delimiter(',')
      ->check(positive());
  suggest(verb->add_option("--attention", arguments->attention, "Attention")->type_name("NAME"), attentions().names());
  suggest(verb->add_option("--positions", arguments->positions, "Positions")->type_name("NAME"), positions().names());
  verb->add_option("--precision", arguments->precision, "Precision of matrix products")
      ->check(CLI::IsMember({"float32", "bf16", "int8"}));
  add_export_option(*verb, arguments->directory);
}

const bool kGenerateRegistered = register_verb({Heading::benchmarks, 50, add_generate});

}  // namespace
}  // namespace plumb::app::bench
