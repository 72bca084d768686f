// The four components that a Transformer is said to need (Adam, residual connections, norms and warm-up), each removed,
// and each pair of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/text.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct Trick {
  const char* id;
  const char* name;
  const char* source;
};
constexpr Trick kTricks[] = {
    {"adam", "Adam", "Zhang et al. 2020, arXiv 1912.03194"},
    {"residual", "residual connections", "Dong et al. 2021, arXiv 2103.03404"},
    {"norm", "norms", "Xiong et al. 2020, arXiv 2002.04745"},
    {"warm_up", "warm-up", "Popel & Bojar 2018, arXiv 1804.00247"},
};

/// A run without some of the tricks, given as bits in the order of kTricks.
struct TrickRun {
  unsigned without = 0;
  TrainedRun trained{};

  [[nodiscard]] double loss() const { return trained.loss(); }
  [[nodiscard]] std::string name() const {
    if (without == 0) return "all four";
    std::vector<std::string> left_out;
    for (unsigned i = 0; i < std::size(kTricks); ++i) {
      if ((without >> i & 1U) != 0) left_out.emplace_back(kTricks[i].name);
    }
    return "no " + join(left_out, ", no ");
  }
};

TrickRun train_run(StudyContext& context, unsigned without, const TricksStudy& part) {
  const auto has = [&](unsigned trick) { return (without >> trick & 1U) == 0; };
  TrickRun run{without};
  RunRequest request;
  request.name = "tricks";
  for (unsigned i = 0; i < std::size(kTricks); ++i) request.name += has(i) ? "" : fmt::format("-no-{}", kTricks[i].id);
  request.label = run.name();
  RunConfig& config = request.config;
  config = run_config(context, model_for(context, has(1) ? "post-ln" : "no-residual", part.layers));
  if (!has(2)) config.model.norm = "none";
  if (!has(0)) {
    config.train.optimizer = "sgd";
    config.train.learning_rate = part.sgd_learning_rate;
  }
  if (!has(3)) {
    // The decay begins at the same step as with warm-up: the two differ only in the first steps.
    if (config.train.decay_start == 0) config.train.decay_start = std::max<int64_t>(config.train.warm_up, 1);
    config.train.warm_up = 0;
  }
  run.trained = trained_run(context, request);
  return run;
}

}  // namespace

PartResult measure(StudyContext& context, const TricksStudy& part) {
  constexpr unsigned kCount = std::size(kTricks);
  std::vector<TrickRun> runs = {train_run(context, 0, part)};
  for (unsigned i = 0; i < kCount; ++i) runs.push_back(train_run(context, 1U << i, part));
  for (unsigned i = 0; i < kCount; ++i) {
    for (unsigned j = i + 1; j < kCount; ++j) runs.push_back(train_run(context, 1U << i | 1U << j, part));
  }

  PartResult result;
  const double uniform = std::log(static_cast<double>(context.data.target_vocabulary()));
  Figure curves{"tricks_loss", "Validation loss during training, with one component removed"};
  curves.caption = fmt::format(
      "Post-LN, {0}+{0} layers. Negative log-likelihood per target token; a cross marks a run that diverged. A uniform "
      "guess has {1:.2f}.",
      part.layers, uniform);
  curves.kind = "line";
  curves.x = {"step"};
  curves.y = {"validation loss (nats per token)"};
  Figure bars{"tricks_final", "Final validation loss, by removed components"};
  bars.caption = "Singly and in pairs; runs that diverged have no bar.";
  bars.kind = "bar";
  bars.y = {"validation loss (nats per token)"};
  Series final_losses{"validation loss", "tricks"};
  Table table{
      "tricks", "Training without", "At the end of training.", {"removed", "outcome", "steps", "validation loss"}};
  for (size_t i = 0; i < runs.size(); ++i) {
    const TrickRun& run = runs[i];
    final_losses.point(run.name(), run.loss());
    table.rows.push_back({run.without == 0 ? "nothing" : run.name().substr(3), run.trained.result.outcome,
                          run.trained.result.steps, finite_or_null(run.loss())});
    if (i > kCount) continue;
    curves.series.push_back(run.trained.validation_curve(run.name(), run.name()));
  }
  bars.series.push_back(final_losses);
  result.figures = {curves, bars};
  result.tables = {table};

  constexpr double kClear = 0.1;  // nats per token
  int64_t needed = 0;
  for (unsigned i = 0; i < kCount; ++i) {
    const TrickRun& without = runs[i + 1];
    const bool worse = without.loss() > runs[0].loss() + kClear;
    needed += worse ? 1 : 0;
    result.verdicts.push_back({fmt::format("needs_{}", kTricks[i].id),
                               fmt::format("Without {} training is clearly worse, or fails", kTricks[i].name),
                               kTricks[i].source, confirmed_if(worse),
                               fmt::format("With all four {}, without {} {}.", runs[0].trained.summary(),
                                           kTricks[i].name, without.trained.summary()),
                               "tricks_loss"});
  }
  result.summary.push_back(
      fmt::format("Of the four components said to be necessary, {} {} necessary in a Post-LN model of {}+{} layers.",
                  needed, needed == 1 ? "is" : "are", part.layers, part.layers));
  return result;
}

}  // namespace plumb
