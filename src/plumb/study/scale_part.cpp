// Models of growing size, trained on the same number of tokens: power laws of their losses in parameters and compute,
// whose predictions for the largest model are compared with its loss (Hoffmann et al. 2022, arXiv 2203.15556).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/analysis/power_law.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/plan/model_cost.h"
#include "plumb/report/display_name.h"
#include "plumb/study/scale_family.h"

namespace plumb {

void describe(Fields& field, ScaleStudy& part) {
  field("widths", part.widths, "`d_model` of each model, from the smallest model to the largest; at least four",
        count_from(1));
  field("layers", part.layers, "layers of each model, in each of encoder and decoder", count_from(1));
  field("seeds", part.seeds, "runs of each model", count_from(1));
  field("tasks", part.tasks,
        "files of tasks with an accuracy or texts to be read, on which the models of the first scheme are evaluated "
        "after training; empty: none");
  field("items", part.items, "items of each task, the first ones; 0: all", count_from(0));
}

namespace {

void check(const StudyConfig& study, const ScaleStudy& part) {
  for (const StudyArm& arm : study.arms()) {
    if (arm.settings.contains("model.d_model"))
      throw Error(fmt::format("[scale] sets the width itself, and so does the arm '{}' of the study", arm.name),
                  "leave model.d_model out of the study's axes: scale.widths has the widths");
  }
  if (part.layers.size() != part.widths.size()) {
    throw Error(fmt::format("scale.widths has {} models and scale.layers {}", part.widths.size(), part.layers.size()),
                "list the width and the layers of each model");
  }
  if (part.widths.size() < 4) {
    throw Error(fmt::format("scale.widths has {} models", part.widths.size()),
                "list at least four: a law with three parameters needs three, and one more is held out");
  }
}

struct TrainedMember {
  ScaleMember member;
  plan::ModelCost cost;
  double flops = 0;  // of its training, once it is trained
  std::vector<Planned<TrainedRun>> by_seed{};

  [[nodiscard]] double parameters() const { return static_cast<double>(cost.parameters); }
  [[nodiscard]] Interval loss() const { return judge(fitted_losses(by_seed), {}).effect; }
};

/// The models of one arm, by size.
struct ArmFamily {
  std::string arm;
  std::vector<TrainedMember> members;
};

/// A size in which a power law of the losses is fitted.
struct SizeAxis {
  const char* id;
  const char* name;    // in tables
  const char* words;   // on the axis
  const char* symbol;  // in captions
  double (*size)(const TrainedMember&);
};
constexpr SizeAxis kSizeAxes[] = {
    {"scale_parameters", "parameters", "parameters", "N",
     [](const TrainedMember& member) { return member.parameters(); }},
    {"scale_compute", "compute", "floating-point operations of training", "C",
     [](const TrainedMember& member) { return member.flops; }},
};

/// The law of one family, fitted for each seed to the models that are not held out.
struct FamilyLaw {
  std::vector<PowerLaw> by_seed;

  /// Over the seeds that have the number. The scale varies by orders of magnitude, so its mean is geometric.
  [[nodiscard]] Interval of(double PowerLaw::*number) const {
    return judge(numbers_in(by_seed, number), {}, number == &PowerLaw::scale ? Scale::logarithmic : Scale::linear)
        .effect;
  }
  /// Whether the losses of any seed fall with size.
  [[nodiscard]] bool falls() const {
    return std::any_of(by_seed.begin(), by_seed.end(), [](const PowerLaw& law) { return std::isfinite(law.exponent); });
  }
  /// "the exponent of 1 of 3 seeds is at a bound, 0.01 or 5"; empty if none is.
  [[nodiscard]] std::string bounds_in_words() const {
    const auto at_bound =
        std::count_if(by_seed.begin(), by_seed.end(), [](const PowerLaw& law) { return law.at_bound; });
    if (at_bound == 0) return "";
    return fmt::format("the exponent of {} of {} seeds is at a bound, {:g} or {:g}", at_bound, by_seed.size(),
                       PowerLaw::kSmallestExponent, PowerLaw::kLargestExponent);
  }
  [[nodiscard]] std::vector<double> predictions(double size) const {
    return numbers_in(by_seed, [size](const PowerLaw& law) { return law.at(size); });
  }
};

size_t fitted_models(const ScaleStudy& part) { return part.widths.size() - 1; }

/// Throws Error unless the models have growing numbers of parameters.
void require_growth(const std::vector<TrainedMember>& members) {
  int64_t before = 0;
  for (const auto& [member, cost, flops, by_seed] : members) {
    if (cost.parameters <= before) {
      throw Error(fmt::format("the model of width {} with {} layers has {} parameters, the one before it {}",
                              member.width, member.layers, with_thousands(cost.parameters), with_thousands(before)),
                  "list scale.widths and scale.layers so that the models grow");
    }
    before = cost.parameters;
  }
}

/// The mean number of tokens per training sequence.
int64_t mean_length(const StudyContext& context) {
  double sum = 0;
  const std::vector<ExampleCost> costs = context.task.dataset("train")->costs();
  for (const ExampleCost& cost : costs) sum += static_cast<double>(cost.larger());
  return costs.empty() ? 1 : std::max<int64_t>(std::llround(sum / static_cast<double>(costs.size())), 1);
}

double trained_tokens(const TrainedRun& run) {
  const auto& history = run.result.history;
  if (!history.empty()) return static_cast<double>(history.back().tokens);
  return static_cast<double>(run.result.steps * run.config.train.batch_tokens);
}

FamilyLaw fitted_law(const ArmFamily& family, const ScaleStudy& part, const SizeAxis& axis) {
  FamilyLaw law;
  for (size_t seed = 0; seed < static_cast<size_t>(part.seeds); ++seed) {
    std::vector<double> sizes;
    std::vector<double> losses;
    for (size_t i = 0; i < fitted_models(part); ++i) {
      sizes.push_back(axis.size(family.members[i]));
      losses.push_back(family.members[i].by_seed[seed]->fitted_loss());
    }
    law.by_seed.push_back(fit_power_law(sizes, losses));
  }
  return law;
}

void add_law_line(Figure& figure, const ArmFamily& family, const FamilyLaw& law, const SizeAxis& axis, double largest) {
  constexpr int kPoints = 24;
  Series& line = figure.add(fmt::format("{}, fitted", display_name(family.arm)), family.arm, "dashed");
  const double smallest = axis.size(family.members.front());
  for (int k = 0; k <= kPoints; ++k) {
    const double size = smallest * std::pow(largest / smallest, static_cast<double>(k) / kPoints);
    line.point(size, judge(law.predictions(size), {}).effect);
  }
}

/// Losses and laws of all arms against one size.
Figure losses_figure(const std::vector<ArmFamily>& families, const std::vector<FamilyLaw>& laws, const ScaleStudy& part,
                     const SizeAxis& axis) {
  Figure figure{axis.id,
                fmt::format("Final validation loss by {}", axis.words),
                fmt::format("At equal tokens and one learning rate; {0}. Dashed: L_inf + ({1}_c/{1})^α, fitted to all "
                            "models but the largest, if losses fall.",
                            seeds_in_words(part.seeds), axis.symbol),
                "line",
                {axis.words, true},
                {"validation loss (nats per token)"}};
  const double largest = axis.size(families.front().members.back());
  for (size_t i = 0; i < families.size(); ++i) {
    const ArmFamily& family = families[i];
    Series& points = figure.add(display_name(family.arm), family.arm, "points");
    for (const TrainedMember& member : family.members) points.point(axis.size(member), member.loss());
    if (laws[i].falls()) add_law_line(figure, family, laws[i], axis, largest);
  }
  return figure;
}

Table models_table(const std::vector<ArmFamily>& families, const ScaleStudy& part) {
  Table table{"scale_models",
              "Models by size",
              "On the validation split at the end of training; FLOPs of training as `plumb plan` counts them.",
              {"arm", "width", "layers", "parameters", "of them in tables", "FLOPs", "seed", "outcome", "loss",
               "perplexity", "seconds", "held out"}};
  for (const ArmFamily& family : families) {
    for (size_t i = 0; i < family.members.size(); ++i) {
      const TrainedMember& member = family.members[i];
      for (const Planned<TrainedRun>& run : member.by_seed) {
        table.row(family.arm, member.member.width, member.member.layers, member.cost.parameters, member.cost.embeddings,
                  member.flops, run->config.train.seed, to_string(run->result.outcome), run->loss(),
                  std::exp(run->loss()), run->result.seconds, i == fitted_models(part) ? "yes" : "no");
      }
    }
  }
  return table;
}

/// The numbers of a law as rows: exponent, limit, scale and residual, with their intervals over seeds, and how many
/// seeds have them.
void add_law(const ArmFamily& family, const FamilyLaw& law, const SizeAxis& axis, Table& table) {
  for (const auto& [name, number] : {std::pair{"α", &PowerLaw::exponent},
                                     {"L_inf", &PowerLaw::limit},
                                     {"scale", &PowerLaw::scale},
                                     {"residual", &PowerLaw::residual}}) {
    const Interval value = law.of(number);
    table.row(family.arm, axis.name, name, value, value.count,
              number == &PowerLaw::exponent ? law.bounds_in_words() : "");
  }
}

/// How each arm's loss differs from the first one's, by size.
Table schemes_table(const StudyContext& context, const std::vector<ArmFamily>& families, const ScaleStudy& part) {
  const ArmFamily& first = families.front();
  Table table{"scale_schemes",
              fmt::format("Loss by scheme and size, compared with {}", display_name(first.arm)),
              fmt::format("Final validation loss − that of {}, seed by seed; {}; at one learning rate. No run counts "
                          "with more than a model that ignores its input, {:.2f}.",
                          display_name(first.arm), seeds_in_words(part.seeds), label_frequencies(context)),
              {"arm", "parameters", "difference", "low", "high", "note"}};
  for (size_t k = 1; k < families.size(); ++k) {
    for (size_t i = 0; i < families[k].members.size(); ++i) {
      const TrainedMember& member = families[k].members[i];
      const Judgment difference =
          judge_difference(counted_losses(context, member.by_seed), counted_losses(context, first.members[i].by_seed),
                           {}, kConfidence, label_frequencies(context));
      table.row(families[k].arm, member.cost.parameters, difference.effect, difference.reason);
    }
  }
  return table;
}

/// [seed]: the measured losses minus those that the laws predict for this size.
std::vector<double> beyond(const FamilyLaw& law, double size, const std::vector<double>& measured) {
  return seed_by_seed(measured, law.predictions(size), std::minus<>());
}

/// "predicted 4.31, measured 4.32; measured − predicted, seed by seed: 0.01 (0.001 to 0.019)". The two means have no
/// common interval, but their difference has one.
std::string prediction_in_words(const FamilyLaw& law, double size, const std::vector<double>& measured) {
  Interval predicted = judge(law.predictions(size), {}).effect, mean = judge(measured, {}).effect;
  predicted.low = mean.low = std::nan("");  // the means alone
  return fmt::format("predicted {}, measured {}; measured − predicted, seed by seed: {}", with_interval(predicted, 4),
                     with_interval(mean, 4), with_interval(judge(beyond(law, size, measured), {}).effect));
}

/// The families with the operations that their training took.
std::vector<ArmFamily> with_flops(const StudyContext& context, std::vector<ArmFamily> families) {
  const int64_t length = mean_length(context);
  for (ArmFamily& family : families) {
    for (TrainedMember& member : family.members) {
      double tokens = 0;  // a run that diverged ended early
      for (const Planned<TrainedRun>& run : member.by_seed) tokens = std::max(tokens, trained_tokens(*run));
      member.flops = tokens * member.cost.training_flops(length);
    }
  }
  return families;
}

/// How far the law against parameters is off for the largest model of the first arm, for claims: it has to predict that
/// better than no law would.
void add_prediction(PartPlan& plan, const StudyContext& context, const ScaleStudy& part, const ArmFamily& family) {
  plan.arms = std::make_shared<const std::vector<StudyArm>>(1, context.arms.front());
  const auto errors = [part, family] {
    const TrainedMember& largest = family.members.back();
    return beyond(fitted_law(family, part, kSizeAxes[0]), largest.parameters(), fitted_losses(largest.by_seed));
  };
  const auto doubt = [family, errors](const std::string&, const std::string&, const Region& region, double confidence) {
    const std::vector<double> measured = fitted_losses(family.members.back().by_seed);
    const std::vector<double> before = fitted_losses(family.members[family.members.size() - 2].by_seed);
    const Judgment judged = judge_prediction(errors(), seed_by_seed(measured, before, std::minus<>()),
                                             "\"the same loss as the next smaller model\"", region.high, confidence);
    return judged.outcome == Outcome::undecided ? judged.reason : std::string();
  };
  Quantity& added = plan.quantity(
      "scale_prediction_error",
      "measured − predicted final validation loss of the largest model (nats per token), each seed's law fitted to "
      "that seed's smaller models",
      Scale::linear, family.arm, errors, doubt);
  added.in_comparison_table = false;
  added.figure = kSizeAxes[0].id;
  added.untestable = [&context] { return training_not_testable(context); };
  added.setting = [&context, largest = family.members.back().member](const std::string&) {
    return setting_of(context, scale_model(context, largest));
  };
  added.evidence = [&context, part, family](const std::string&) {
    const ArmFamily trained = with_flops(context, {family}).front();
    const TrainedMember& largest = trained.members.back();
    const auto by = [&](const SizeAxis& axis) {
      return prediction_in_words(fitted_law(trained, part, axis), axis.size(largest), fitted_losses(largest.by_seed));
    };
    return fmt::format("By parameters {}; by compute {}.", by(kSizeAxes[0]), by(kSizeAxes[1]));
  };
}

PartResult report_scale(const StudyContext& context, const ScaleStudy& part, const std::vector<ArmFamily>& families) {
  PartResult result;
  Table numbers{
      "scale_laws",
      "Fitted power laws",
      fmt::format("L_inf + (scale/size)^α, size the parameters or the FLOPs of training; {}. The residual is a "
                  "root mean square, the scale a geometric mean. Seeds whose losses do not fall have neither α "
                  "nor a scale.",
                  seeds_in_words(part.seeds)),
      {"arm", "against", "number", "value", "low", "high", "seeds", "note"}};
  std::vector<std::vector<FamilyLaw>> laws;  // [axis][arm]
  for (const SizeAxis& axis : kSizeAxes) {
    laws.emplace_back();
    for (const ArmFamily& family : families) {
      laws.back().push_back(fitted_law(family, part, axis));
      add_law(family, laws.back().back(), axis, numbers);
    }
    result.figures.push_back(losses_figure(families, laws.back(), part, axis));
  }
  result.tables = {models_table(families, part), numbers};
  if (families.size() > 1) result.tables.push_back(schemes_table(context, families, part));
  const TrainedMember& largest = families.front().members.back();
  result.summary.push_back(
      fmt::format("Final validation loss of the largest model, by a power law of the smaller ones: {}.",
                  prediction_in_words(laws[0].front(), largest.parameters(), fitted_losses(largest.by_seed))));
  return result;
}

PartPlan plan(StudyContext& context, const ScaleStudy& part) {
  PartPlan plan(context);
  std::vector<ArmFamily> families;
  for (const std::string& arm : arm_names(context)) {
    ArmFamily& family = families.emplace_back(ArmFamily{arm, {}});
    for (const ScaleMember& member : scale_members(context, part, arm))
      family.members.push_back({member, plan::cost_of(scale_model(context, member))});
    require_growth(family.members);
    // Longest runs first, so that none runs alone at the end.
    for (auto each = family.members.rbegin(); each != family.members.rend(); ++each)
      each->by_seed = planned_runs(plan, context, scale_run(context, each->member), part.seeds);
  }
  add_prediction(plan, context, part, families.front());
  const auto report_evaluation =
      plan_scale_evaluation(plan, context, part, scale_members(context, part, context.arms.front().name));
  plan.report = [&context, part, families, report_evaluation] {
    PartResult result = report_scale(context, part, with_flops(context, families));
    LossesBySize losses;  // of the first arm
    for (const TrainedMember& member : families.front().members)
      losses.push_back(numbers_in(member.by_seed, [](const Planned<TrainedRun>& run) { return run->loss(); }));
    report_evaluation(losses, result);
    return result;
  };
  return plan;
}

[[maybe_unused]] const bool kScale = add_part<ScaleStudy>(
    "scale", "models of growing size, and a power law fitted to their losses", "Hoffmann et al. 2022, arXiv 2203.15556",
    {.order = 18, .plan = plan, .trains = kTrainsAlways, .check = check});

}  // namespace
}  // namespace plumb
