#include "plumb/decode/classify.h"

#include <fmt/format.h>

#include <mutex>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/data/batches.h"
#include "plumb/data/prepare_labels.h"
#include "plumb/data/sequences.h"
#include "plumb/decode/errors.h"
#include "plumb/ops/precision.h"

namespace plumb {
namespace {

void validate(const ClassifyOptions& options) {
  if (options.length_limit < 0)
    throw Error(fmt::format("the length limit must be at least 0, not {}", options.length_limit));
  if (options.batch_tokens < 1)
    throw Error(fmt::format("batch_tokens must be at least 1, not {}", options.batch_tokens));
}

/// exp(z) / Σ exp(z) for each row of (rows, labels).
std::vector<std::vector<double>> softmax_rows(const Tensor& logits) {
  const Tensor probabilities = at::softmax(logits.to(at::kDouble), 1).cpu().contiguous();
  if (!at::isfinite(probabilities).all().item<bool>())
    throw Error("the model has no finite score for any label", kBrokenModel);
  std::vector<std::vector<double>> rows;
  const int64_t labels = probabilities.size(1);
  for (int64_t r = 0; r < probabilities.size(0); ++r) {
    const double* row = probabilities.data_ptr<double>() + r * labels;
    rows.emplace_back(row, row + labels);
  }
  return rows;
}

}  // namespace

Classifies& classifier_of(Model& model) {
  if (Classifies* classifier = model.classifies()) return *classifier;
  throw Error(fmt::format("the model, of kind \"{}\", was not trained to classify", model.config().kind),
              "fine-tune an encoder or a language model with `plumb finetune`; `plumb generate` continues text, `plumb "
              "translate` translates it");
}

std::vector<std::vector<double>> classify(Classifies& model, const Tokenizer& tokenizer,
                                          const std::vector<TextExample>& examples, const ClassifyOptions& options,
                                          const ClassifyProgress& progress) {
  validate(options);
  struct Encoded {
    std::vector<int32_t> first, second;
  };
  std::vector<Encoded> encoded;
  std::vector<ExampleCost> costs;
  int64_t truncated = 0;
  for (const TextExample& example : examples) {
    Encoded ids{tokenizer.encode(example.first), tokenizer.encode(example.second)};
    if (options.length_limit > 0) truncated += cut_to_limit(ids.first, ids.second, options.length_limit) ? 1 : 0;
    costs.push_back({labeled_length(std::ssize(ids.first), std::ssize(ids.second), tokenizer.specials()), 0});
    encoded.push_back(std::move(ids));
  }
  if (truncated > 0) {
    say(fmt::format("{} of {} texts were truncated to {} tokens", with_thousands(truncated),
                    with_thousands(std::ssize(examples)), options.length_limit));
  }
  const std::vector<std::vector<int64_t>> batches = plan_evaluation_batches(costs, options.batch_tokens);
  ops::MatrixPrecision precision(ops::precision_of(options.precision), /*weights_stay=*/true);
  std::vector<std::vector<double>> results(examples.size());
  std::mutex mutex;
  int64_t done = 0;
  parallel_items(std::ssize(batches), [&](int64_t b) {
    const std::vector<int64_t>& members = batches[static_cast<size_t>(b)];
    Batch batch;
    for (const int64_t i : members) {
      const Encoded& ids = encoded[static_cast<size_t>(i)];
      append_labeled(batch, ids.first, ids.second, tokenizer.specials(), /*label=*/0, i, options.backward);
    }
    if (model.reads_target()) move_to_target(batch);
    const at::NoGradGuard no_graph;
    const ops::PrecisionGuard guard(precision);
    std::vector<std::vector<double>> rows = softmax_rows(model.class_logits(batch));
    const std::scoped_lock lock(mutex);
    for (size_t r = 0; r < members.size(); ++r) results[static_cast<size_t>(members[r])] = std::move(rows[r]);
    done += std::ssize(members);
    if (progress) progress(done);
  });
  return results;
}

}  // namespace plumb
