// The four components that a Transformer is said to need (Adam, residual connections, norms and warm-up), removed one
// at a time and in pairs.
#include <fmt/format.h>

#include <cmath>

#include "plumb/base/text.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct TricksStudy {
  int64_t layers = 3;
  double sgd_learning_rate = 0.1;
  int64_t seeds = 1;
};

void describe(Fields& field, TricksStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("sgd_learning_rate", part.sgd_learning_rate, "`train.learning_rate` where SGD replaces Adam", above(0));
  field("seeds", part.seeds, "runs of each combination", count_from(1));
}

struct Trick {
  const char* id;
  const char* name;
  const char* short_name;  // where space is limited
  const char* source;
};
constexpr Trick kTricks[] = {
    {"adam", "Adam", "Adam", "Zhang et al. 2020, arXiv 1912.03194"},
    {"residual", "residual connections", "residuals", "Dong et al. 2021, arXiv 2103.03404"},
    {"norm", "norms", "norms", "Xiong et al. 2020, arXiv 2002.04745"},
    {"warm_up", "warm-up", "warm-up", "Popel & Bojar 2018, arXiv 1804.00247"},
};

/// Runs without some of the tricks; bit i of `without` is kTricks[i].
struct TrickRuns {
  unsigned without = 0;
  std::vector<Planned<TrainedRun>> by_seed{};

  [[nodiscard]] const TrainedRun& first() const { return *by_seed.front(); }
};

constexpr unsigned kTrickCount = std::size(kTricks);

std::vector<std::string> left_out(unsigned without, const char* Trick::*name) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < kTrickCount; ++i) {
    if ((without >> i & 1U) != 0) names.emplace_back(kTricks[i].*name);
  }
  return names;
}

std::string name_without(unsigned without) {
  return without == 0 ? "all four" : "no " + join(left_out(without, &Trick::name), ", no ");
}

/// The run with the study's seed, which its name leaves out.
RunRequest trick_run(const StudyContext& context, unsigned without, const TricksStudy& part) {
  const auto has = [&](unsigned trick) { return (without >> trick & 1U) == 0; };
  RunRequest request{
      "tricks", name_without(without),
      run_config(context, model_for(context, has(1) ? "post-ln" : "no-residual", part.layers), context.config.train)};
  for (const std::string& id : left_out(without, &Trick::id)) request.name += "-no-" + id;
  RunConfig& config = request.config;
  if (!has(2)) config.model.norm = "none";
  if (!has(0)) {
    config.train.optimizer = "sgd";
    config.train.learning_rate = part.sgd_learning_rate;
  }
  if (!has(3)) {
    // The decay begins at the same step as with warm-up, so that only the first steps differ.
    if (config.train.decay_start.is_zero())
      config.train.decay_start = config.train.warm_up.is_zero() ? Duration(1) : config.train.warm_up;
    config.train.warm_up = 0;
  }
  return request;
}

/// All tricks kept, each left out, and each pair left out.
std::vector<unsigned> combinations() {
  std::vector<unsigned> list = {0};
  for (unsigned i = 0; i < kTrickCount; ++i) list.push_back(1U << i);
  for (unsigned i = 0; i < kTrickCount; ++i) {
    for (unsigned j = i + 1; j < kTrickCount; ++j) list.push_back(1U << i | 1U << j);
  }
  return list;
}

PartResult report_tricks(const StudyContext& context, const TricksStudy& part, const std::vector<TrickRuns>& all) {
  PartResult result;
  const ModelConfig model = model_for(context, "post-ln", part.layers);
  const double uniform = std::log(static_cast<double>(context.data.target_vocabulary()));
  Figure curves{"tricks_loss",
                "Validation loss during training, with one component removed",
                fmt::format("Post-LN, {}, first seed; a cross marks a run that diverged. A uniform guess has {:.2f}.",
                            layers_in_words(model), uniform),
                "line",
                {"step"},
                {"validation loss (nats per token)"}};
  Figure bars{"tricks_final",
              "Final validation loss, by removed components",
              fmt::format("Means ({}); no run counts with more than a model that ignores its input, {:.2f}.",
                          seeds_in_words(part.seeds), label_frequencies(context)),
              "bar",
              {"removed"},
              {"validation loss (nats per token)"}};
  Series& bar_series = bars.add("validation loss", "tricks");
  Table table{"tricks",
              "Training without",
              "Validation loss at the end of training.",
              {"removed", "seed", "outcome", "steps", "validation loss"}};
  for (size_t i = 0; i < all.size(); ++i) {
    const TrickRuns& runs = all[i];
    const auto removed = [&](const char* Trick::*name) {
      return runs.without == 0 ? "nothing" : join(left_out(runs.without, name), ", ");
    };
    const std::string bar = removed(&Trick::short_name);
    bar_series.point(bar, judge(counted_losses(context, runs.by_seed), {}).effect);
    for (const Planned<TrainedRun>& run : runs.by_seed) {
      table.row(removed(&Trick::name), run->config.train.seed, to_string(run->result.outcome), run->result.steps,
                run->loss());
    }
    // The group gives the curve the bar's color.
    if (i <= kTrickCount) curves.series.push_back(runs.first().validation_curve(name_without(runs.without), bar));
  }
  result.figures = {curves, bars};
  result.tables = {table};

  for (unsigned i = 0; i < kTrickCount; ++i) {
    const TrickRuns& without = all[i + 1];
    result.verdicts.push_back(
        {fmt::format("needs_{}", kTricks[i].id),
         fmt::format("Without {} training is clearly worse, or fails", kTricks[i].name), kTricks[i].source,
         setting_of(context, model),
         fmt::format("final validation loss without {} − with all four (nats per token), at one learning rate per "
                     "optimizer",
                     kTricks[i].name),
         judge_at_one_rate(context, without.by_seed, all[0].by_seed, Region::above(0.1, 0)),
         fmt::format("With all four {}, without {} {} (first seeds).", all[0].first().summary(), kTricks[i].name,
                     without.first().summary()),
         "tricks_loss"});
  }
  return result;
}

PartPlan plan(StudyContext& context, const TricksStudy& part) {
  PartPlan plan(context);
  std::vector<TrickRuns> all;
  for (const unsigned without : combinations())
    all.push_back({without, planned_runs(plan, context, trick_run(context, without, part), part.seeds)});
  plan.report = [&context, part, all] { return report_tricks(context, part, all); };
  return plan;
}

[[maybe_unused]] const bool kTricksPart =
    add_part<TricksStudy>("tricks", "Adam, residual connections, norms and warm-up, removed singly and in pairs",
                          "Xiong et al. 2020, arXiv 2002.04745", {.place = 11, .plan = plan, .trains = kAlways});

}  // namespace
}  // namespace plumb
