#include "plumb/decode/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/base/text.h"
#include "plumb/decode/errors.h"
#include "plumb/ops/index.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/top_scores.h"

namespace plumb {
namespace {

constexpr size_t kWorthThreads = 1 << 15;  // logits: fewer are processed by one thread

/// The number of tokens inserted before a prompt: one, or none before a whole text.
size_t tokens_before(const GenerateOptions& options) { return options.whole_texts ? 0 : 1; }

/// Samples of one prompt that are continued together.
struct SampleGroup {
  size_t prompt = 0;
  size_t first = 0;  // sample
  size_t samples = 0;
};

/// Batches of at most `batch_rows` samples whose prompts are not too long to read at once. They depend only on prompts
/// and options, not on the number of threads, and so do rounding errors.
std::vector<std::vector<SampleGroup>> sample_groups(const std::vector<std::vector<int32_t>>& prompts,
                                                    const GenerateOptions& options) {
  constexpr size_t kPromptTokens = 8192;
  const auto samples = static_cast<size_t>(options.samples);
  const auto rows = static_cast<size_t>(options.batch_rows);
  std::vector<std::vector<SampleGroup>> batches;
  size_t free_rows = 0;
  size_t free_tokens = 0;
  for (size_t p = 0; p < prompts.size(); ++p) {
    const size_t length = prompts[p].size() + tokens_before(options);
    for (size_t first = 0; first < samples;) {
      const size_t wanted = std::min(samples - first, rows);
      if (wanted > free_rows || length > free_tokens) {
        batches.emplace_back();
        free_rows = rows;
        free_tokens = std::max(kPromptTokens, length);
      }
      batches.back().push_back({p, first, wanted});
      first += wanted;
      free_rows -= wanted;
      free_tokens -= length;
    }
  }
  return batches;
}

/// A sample being generated.
struct Sample {
  size_t prompt = 0;
  size_t number = 0;
  std::vector<int32_t> sequence;  // BOS, prompt, and the tokens drawn so far
  int64_t limit = 0;              // maximum tokens to draw
  int64_t lines = 0;              // lines left to generate; below 1: unlimited
  int64_t row = 0;                // index of its row in the logits for the next token
  Generated* result = nullptr;
};

/// Tokens that are never output: the vocabulary's special tokens except EOS or, with whole texts, ids beyond the
/// tokenizer's.
std::vector<int32_t> never_put_out(const Generates& model, const GenerateOptions& options, const Specials& specials) {
  if (options.whole_texts) {
    std::vector<int32_t> beyond;
    for (int64_t id = options.vocabulary; options.vocabulary > 0 && id < model.vocabulary(); ++id)
      beyond.push_back(static_cast<int32_t>(id));
    return beyond;
  }
  std::vector<int32_t> ids = {specials.pad, specials.bos, specials.unknown, specials.mask};
  std::erase_if(ids, [](int32_t id) { return id < 0; });
  return ids;
}

/// State shared by all batches.
class Generation {
 public:
  Generation(Generates& model, const std::vector<std::vector<int32_t>>& prompts, const GenerateOptions& options,
             const GenerateHooks& hooks, const Specials& specials)
      : model_(model),
        prompts_(prompts),
        options_(options),
        hooks_(hooks),
        specials_(specials),
        sampler_(options.sampling, never_put_out(model, options, specials)),
        precision_(ops::precision_of(options.precision), /*weights_stay=*/true),
        results_(prompts.size() * static_cast<size_t>(options.samples)) {}

  void run(const std::vector<SampleGroup>& batch) {
    const at::NoGradGuard no_graph;
    const ops::PrecisionGuard guard(precision_);
    DecoderState state = model_.start(std::ssize(batch));
    Tensor logits = read_prompts(batch, state);
    std::vector<Sample> samples = begin(batch);
    while (true) {
      const std::vector<int32_t> drawn = draw(samples, logits);
      std::vector<Sample> active;
      std::vector<int64_t> order;
      std::vector<int64_t> tokens;
      for (size_t i = 0; i < samples.size(); ++i) {
        if (!accept(samples[i], drawn[i])) continue;
        order.push_back(samples[i].row);
        tokens.push_back(drawn[i]);
        active.push_back(std::move(samples[i]));
        active.back().row = std::ssize(active) - 1;
      }
      samples = std::move(active);
      if (samples.empty()) return;
      std::vector<int64_t> rows(static_cast<size_t>(logits.size(0)));
      std::iota(rows.begin(), rows.end(), int64_t{0});
      if (order != rows) state.reorder(order);
      logits = model_.logits(model_.step(state, tokens));
    }
  }

  std::vector<Generated> results() && { return std::move(results_); }

 private:
  /// Logits for the first token after each prompt, (prompts of the batch, vocabulary).
  Tensor read_prompts(const std::vector<SampleGroup>& batch, DecoderState& state) const {
    std::vector<int64_t> tokens;
    std::vector<int64_t> last;
    Ragged layout;
    for (const SampleGroup& group : batch) {
      const std::vector<int32_t>& prompt = prompts_[group.prompt];
      if (!options_.whole_texts) tokens.push_back(token_before_text(specials_));
      tokens.insert(tokens.end(), prompt.begin(), prompt.end());
      layout.append(static_cast<int64_t>(prompt.size() + tokens_before(options_)));
      last.push_back(std::ssize(tokens) - 1);
    }
    const Tensor hidden = model_.read(state, tokens, layout);
    return model_.logits(hidden.index_select(0, ops::index_beside(hidden, last)));
  }

  std::vector<Sample> begin(const std::vector<SampleGroup>& batch) {
    std::vector<Sample> samples;
    for (size_t row = 0; row < batch.size(); ++row) {
      const SampleGroup& group = batch[row];
      Sample sample;
      sample.prompt = group.prompt;
      sample.sequence = prompts_[group.prompt];
      if (!options_.whole_texts) sample.sequence.insert(sample.sequence.begin(), token_before_text(specials_));
      // The last token need not be read.
      sample.limit = std::min(options_.max_tokens, model_.longest() - std::ssize(sample.sequence) + 1);
      sample.lines = options_.lines;
      sample.row = static_cast<int64_t>(row);
      for (sample.number = group.first; sample.number < group.first + group.samples; ++sample.number) {
        sample.result = &results_[group.prompt * static_cast<size_t>(options_.samples) + sample.number];
        samples.push_back(sample);
      }
    }
    return samples;
  }

  /// Draws the next token of each sample and records its probability.
  std::vector<int32_t> draw(const std::vector<Sample>& samples, const Tensor& logits) const {
    const ops::TopScores top = ops::top_scores(logits, std::max<int64_t>(sampler_.deciding(), 1), 0, true);
    std::vector<int32_t> drawn(samples.size());
    if (sampler_.deciding() > 0 && draw_best(samples, top, drawn)) return drawn;
    const Tensor wide = logits.to(at::kCPU, at::kDouble).contiguous();
    const auto vocabulary = static_cast<size_t>(wide.size(1));
    const auto draw_one = [&](int64_t i) {
      const Sample& sample = samples[static_cast<size_t>(i)];
      const auto row = static_cast<size_t>(sample.row);
      const std::span<const double> scores(wide.data_ptr<double>() + row * vocabulary, vocabulary);
      const int32_t id =
          sampler_.draw(scores, sample.sequence, static_cast<int64_t>(sample.number), std::ssize(sample.sequence));
      drawn[static_cast<size_t>(i)] = id;
      sample.result->log_probability += scores[static_cast<size_t>(id)] - top.log_partition[row];
    };
    if (samples.size() * vocabulary >= kWorthThreads) {
      parallel_items(std::ssize(samples), draw_one);
    } else {
      for (int64_t i = 0; i < std::ssize(samples); ++i) draw_one(i);
    }
    return drawn;
  }

  /// The same from the top scores alone. Returns false and records nothing unless they suffice for every sample.
  bool draw_best(const std::vector<Sample>& samples, const ops::TopScores& top, std::vector<int32_t>& drawn) const {
    const auto k = static_cast<size_t>(top.k);
    std::vector<double> gains(samples.size());  // log p
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto row = static_cast<size_t>(samples[i].row);
      const std::span<const int32_t> ids(top.ids.data() + row * k, k);
      const std::span<const double> scores(top.scores.data() + row * k, k);
      const std::optional<int32_t> best = sampler_.best_of(ids, scores);
      if (!best) return false;
      drawn[i] = *best;
      const auto place = static_cast<size_t>(std::find(ids.begin(), ids.end(), *best) - ids.begin());
      gains[i] = scores[place] - top.log_partition[row];
    }
    for (size_t i = 0; i < samples.size(); ++i) samples[i].result->log_probability += gains[i];
    return true;
  }

  /// Appends a token to its sample. Returns false if the sample ends.
  bool accept(Sample& sample, int32_t id) {
    Generated& result = *sample.result;
    const bool ends_line = ends(id);
    if (ends_line && sample.lines == 1) return end(sample, Finish::end);
    if (ends_line) --sample.lines;
    result.ids.push_back(id);
    sample.sequence.push_back(id);
    if (!goes_on(sample, id)) return end(sample, Finish::stop);
    return std::ssize(result.ids) < sample.limit || end(sample, Finish::length);
  }

  [[nodiscard]] bool ends(int32_t id) const {
    if (options_.ends.empty()) return id == specials_.eos;
    return contains(options_.ends, id);
  }

  bool goes_on(const Sample& sample, int32_t id) {
    if (!hooks_.token) return true;
    const std::scoped_lock lock(mutex_);
    return hooks_.token(sample.prompt, sample.number, id);
  }

  /// Always returns false: the sample ends.
  bool end(const Sample& sample, Finish finish) {
    sample.result->finish = finish;
    if (hooks_.end) {
      const std::scoped_lock lock(mutex_);
      hooks_.end(sample.prompt, sample.number, *sample.result);
    }
    return false;
  }

  Generates& model_;
  const std::vector<std::vector<int32_t>>& prompts_;
  const GenerateOptions& options_;
  const GenerateHooks& hooks_;
  const Specials& specials_;
  Sampler sampler_;
  ops::MatrixPrecision precision_;
  std::vector<Generated> results_;
  std::mutex mutex_;
};

void require_room(const Generates& model, const std::vector<std::vector<int32_t>>& prompts,
                  const GenerateOptions& options) {
  for (size_t p = 0; p < prompts.size(); ++p) {
    const auto length = static_cast<int64_t>(prompts[p].size() + tokens_before(options));
    if (length == 0) throw Error(fmt::format("prompt {} has no tokens", p + 1), "give a prompt of at least one token");
    if (length <= model.longest()) continue;
    throw Error(fmt::format("prompt {} has {} tokens{}, but the model reads at most {}", p + 1, with_thousands(length),
                            options.whole_texts ? "" : " including BOS", with_thousands(model.longest())),
                "shorten it");
  }
}

}  // namespace

void validate(const GenerateOptions& options) {
  validate(options.sampling);
  require_count("generate", "samples", options.samples, 1);
  require_count("generate", "max_tokens", options.max_tokens, 1);
  require_count("generate", "lines", options.lines, 0);
  require_count("generate", "batch_rows", options.batch_rows, 1);
  (void)ops::precision_of(options.precision);
}

std::string name_of(Finish finish) {
  return finish == Finish::end ? "end" : finish == Finish::stop ? "stop" : "length";
}

Generates& generator_of(Model& model) {
  if (Generates* generator = model.generates()) return *generator;
  throw Error(fmt::format("a model of kind \"{}\" cannot generate text", model.config().kind),
              "a decoder and an AWD-LSTM can; `plumb translate` translates text, `plumb classify` labels it");
}

std::vector<Generated> generate(Generates& model, const std::vector<std::vector<int32_t>>& prompts,
                                const GenerateOptions& options, const GenerateHooks& hooks, const Specials& specials) {
  validate(options);
  if (!options.whole_texts) (void)token_before_text(specials);
  require_room(model, prompts, options);
  const std::vector<std::vector<SampleGroup>> batches = sample_groups(prompts, options);
  Generation generation(model, prompts, options, hooks, specials);
  parallel_items(std::ssize(batches), [&](int64_t b) { generation.run(batches[static_cast<size_t>(b)]); });
  return std::move(generation).results();
}

}  // namespace plumb
