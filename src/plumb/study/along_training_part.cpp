// Along training, with and without warm-up: the preconditioned curvature compared with the stability threshold, the
// critical learning rate of steps, gradient noise, update sizes, and attention. There are no verdicts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "plumb/analysis/watch/activations.h"
#include "plumb/analysis/watch/critical_rate.h"
#include "plumb/analysis/watch/curvature.h"
#include "plumb/analysis/watch/gradient_noise.h"
#include "plumb/analysis/watch/updates.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct AlongTrainingStudy {
  int64_t layers = 3;
  std::vector<Duration> warm_ups = {0, 400};
  Duration every = 50;
  int64_t examples = 64;
  int64_t reference_products = 0;
};

void describe(Fields& field, AlongTrainingStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("warm_ups", part.warm_ups, "values of `train.warm_up`, all in the same unit", count_from(0).each_once());
  field("every", part.every, "duration between measurements", count_from(1));
  field("examples", part.examples, "examples of the training set that are measured", count_from(1));
  field("reference_products", part.reference_products,
        "Hessian-vector products of a second search for each eigenvalue, from a random vector, with which the first is "
        "compared; 0: none",
        count_from(0));
}

void check(const StudyConfig& study, const AlongTrainingStudy& part) {
  check_warm_ups("along_training", part.warm_ups, study.train);
}

struct WatchedTraining {
  std::string arm;
  Duration warm_up;
  Planned<TrainedRun> trained;

  [[nodiscard]] std::string name() const { return display_name(arm) + ", " + warm_up_name(warm_up); }
};

double as_number(const std::optional<double>& value) { return value.value_or(std::nan("")); }
double as_number(double value) { return value; }

using RecordValue = std::function<double(const WatchRecord&)>;

/// number(measurement) of the watch with results of this type, or NaN.
template <typename Measurement, typename Number>
RecordValue value_of(Number number) {
  return [number](const WatchRecord& record) {
    const auto* measurement = record.find<Measurement>();
    return measurement == nullptr ? std::nan("") : as_number(std::invoke(number, *measurement));
  };
}

/// number(λ_max(P⁻¹H)).
template <typename Number>
RecordValue preconditioned(Number number) {
  return value_of<CurvatureMeasurement>([number](const CurvatureMeasurement& curvature) {
    return curvature.preconditioned ? as_number(number(*curvature.preconditioned)) : std::nan("");
  });
}

/// λ_max over the stability threshold: above 1, oscillations grow.
double stability_ratio(const CurvatureMeasurement& curvature) {
  return curvature.seen().found.value / as_number(curvature.seen().threshold);
}

/// Of the numbers by name, this one; NaN without it.
double number_named(const NamedNumbers& numbers, const std::string& name) {
  const auto found = std::find_if(numbers.begin(), numbers.end(), [&](const auto& each) { return each.first == name; });
  return found == numbers.end() ? std::nan("") : found->second;
}

/// The largest or smallest, or NaN without values.
double extreme_of(const NamedNumbers& numbers, bool largest) {
  double found = std::nan("");
  for (const auto& [name, number] : numbers) {
    if (std::isnan(found) || (largest ? number > found : number < found)) found = number;
  }
  return found;
}

/// Adds the line of a run, if it has values. It starts at step 1: before training there is no preconditioner and no
/// update. A value missing between two others leaves a gap; trailing missing values are dropped, since a line that ends
/// in a gap marks a diverged run.
void add_line(Figure& figure, const WatchedTraining& run, const std::string& name, const std::string& group,
              const RecordValue& value) {
  Series line{name, group};
  line.style = run.warm_up.is_zero() ? "dashed" : "solid";
  std::vector<int64_t> missing;  // steps since the last value
  for (const WatchRecord& record : run.trained->result.watched) {
    const double y = value(record);
    if (record.step == 0) continue;
    if (std::isnan(y)) {
      if (!line.x.empty()) missing.push_back(record.step);
      continue;
    }
    for (const int64_t step : std::exchange(missing, {})) line.point(step, std::nan(""));
    line.point(record.step, y);
  }
  if (run.trained->diverged()) line.point(run.trained->result.steps, std::nan(""));
  if (!line.x.empty()) figure.series.push_back(std::move(line));
}

Figure figure_along(const std::string& id, const std::string& title, const std::string& caption,
                    const std::string& axis, bool log = true) {
  return {"along_" + id, title,          caption + " Dashed: without warm-up; a cross marks a run that diverged.",
          "line",        {"step", true}, {axis, log}};
}

/// What a figure of one arm shows of its runs: `name` precedes the warm-up, and without a group a line has the
/// arm's color.
struct DrawnNumber {
  std::string name, group;
  RecordValue value;
};

/// The figures of a report.
struct Drawing {
  const std::vector<WatchedTraining>& runs;
  std::vector<std::string> arms;
  std::vector<Figure> figures{};

  /// A line for each run. `at_one`: the name of a line at 1 over all of them; "": none.
  void by_run(Figure figure, const RecordValue& value, const std::string& at_one = "") {
    for (const WatchedTraining& run : runs) add_line(figure, run, run.name(), run.arm, value);
    if (!at_one.empty()) {
      Series& line = figure.add(at_one, "threshold");
      for (const WatchedTraining& run : runs) {
        for (const WatchRecord& record : run.trained->result.watched) {
          if (record.step > 0 && (line.x.empty() || record.step > line.x.back().get<int64_t>()))
            line.point(record.step, 1);
        }
      }
    }
    if (!figure.series.empty()) figures.push_back(std::move(figure));
  }

  /// A figure for each arm, with a line for each run and quantity.
  void by_arm(const Figure& of_all, const std::vector<DrawnNumber>& quantities) {
    for (const std::string& arm : arms) {
      Figure figure = of_all;
      figure.id += "_" + file_name(arm);
      figure.title += ", " + display_name(arm);
      for (const WatchedTraining& run : runs) {
        if (run.arm != arm) continue;
        for (const auto& [name, group, value] : quantities)
          add_line(figure, run, name + warm_up_name(run.warm_up), group.empty() ? arm : group, value);
      }
      if (!figure.series.empty()) figures.push_back(std::move(figure));
    }
  }
};

RunRequest watched_run(const StudyContext& context, const AlongTrainingStudy& part, const std::string& arm,
                       const Duration& warm_up) {
  RunRequest request;
  request.name = fmt::format("along-{}-warmup{}", file_name(arm), warm_up.text());
  request.label = display_name(arm) + ", " + warm_up_name(warm_up);
  request.config = run_config(context, model_for(context, arm, part.layers), train_for(context, arm));
  request.config.train = with_warm_up(request.config.train, warm_up, part.warm_ups);
  WatchConfig& watch = request.config.watch;
  CurvatureWatchOptions curvature;
  curvature.reference_products = part.reference_products;
  watch.options["curvature"] = Options(curvature);
  watch.every = part.every;
  watch.what.emplace_back("critical_rate");
  watch.examples = part.examples;
  request.products = 2 * (curvature.products + part.reference_products);  // the Hessian's, and the preconditioned one's
  return request;
}

void draw_curvature(Drawing& drawing) {
  drawing.by_arm(
      figure_along("preconditioned", "Preconditioned sharpness",
                   "λ_max(P⁻¹H), P Adam's divisor, and the threshold of stability, (2 + 2β₁)/((1 − β₁)η): above it, "
                   "oscillations along the eigenvector grow while P and H stay the same.",
                   "λ_max(P⁻¹H)"),
      {{"", "", preconditioned([](const Sharpness& sharpness) { return sharpness.found.value; })},
       {"threshold, ", "threshold", preconditioned([](const Sharpness& sharpness) { return sharpness.threshold; })}});
  drawing.by_run(figure_along("stability", "Sharpness as a share of the stability threshold",
                              "η·λ_max(P⁻¹H)·(1 − β₁)/(2 + 2β₁) for Adam, η·λ_max(H)/2 for gradient descent.",
                              "share of the threshold"),
                 value_of<CurvatureMeasurement>(stability_ratio), "threshold");
  drawing.by_run(
      figure_along("hessian", "Sharpness", "λ_max(H) on the same examples throughout.", "λ_max(H)"),
      value_of<CurvatureMeasurement>([](const CurvatureMeasurement& each) { return each.hessian.found.value; }));
}

void draw_critical_rate(Drawing& drawing) {
  const std::string meaning =
      "Critical: above this learning rate, the step that the optimizer took would have raised the loss of the watched "
      "examples. Gaps: the step leads uphill from the start, or no rise was found.";
  drawing.by_arm(
      figure_along("critical", "Critical learning rate", meaning, "learning rate"),
      {{"critical, ", "", value_of<CriticalRateMeasurement>(&CriticalRateMeasurement::value)},
       {"of the run, ", "threshold", value_of<CriticalRateMeasurement>(&CriticalRateMeasurement::learning_rate)}});
  drawing.by_run(figure_along("critical_share", "Learning rate as a share of the critical one", meaning, "share"),
                 value_of<CriticalRateMeasurement>(&CriticalRateMeasurement::share), "critical");
}

void draw_gradients(Drawing& drawing) {
  using Noise = GradientNoiseMeasurement;
  drawing.by_run(figure_along("noise", "Gradient noise scale",
                              "tr Σ/‖G‖²: the batch at which noise and signal of the gradient are of equal size. Gaps: "
                              "the estimate of ‖G‖² is not positive.",
                              "batch size (labels)"),
                 value_of<Noise>(&Noise::tokens));
  drawing.by_arm(figure_along("gradients", "Mean square and square mean",
                              "E‖g‖² over mini-batches, and ‖E g‖² of their mean.", "squared norm"),
                 {{"E‖g‖², ", "E‖g‖²", value_of<Noise>(&Noise::mean_square_norm)},
                  {"‖E g‖², ", "‖E g‖²", value_of<Noise>(&Noise::square_norm_of_mean)}});
}

void draw_updates(Drawing& drawing, const std::vector<StackKind>& stacks, int64_t layers) {
  std::vector<DrawnNumber> by_layer;
  for (const StackKind stack : stacks) {
    for (int64_t layer = 0; layer < layers; ++layer) {
      const LayerId id{stack, layer};
      const std::string name = fmt::format("{} {}", to_string(stack), id.number());
      by_layer.push_back({name + ", ", name, value_of<UpdateMeasurement>([key = to_string(id)](const auto& each) {
                            return number_named(each.ratio, key);
                          })});
    }
  }
  drawing.by_arm(figure_along("updates", "Update-to-weight ratio", "‖Δθ‖/‖θ‖ of single steps, by layer.", "‖Δθ‖/‖θ‖"),
                 by_layer);
}

void draw_activations(Drawing& drawing, const std::vector<StackKind>& stacks) {
  using Measured = ActivationMeasurement;
  for (const StackKind stack : stacks) {
    const std::string name = to_string(stack);
    drawing.by_run(
        figure_along("similarity_" + name, "Similarity of tokens, " + name,
                     "Mean cosine between different tokens of a sentence in the result of the stack.", "cosine", false),
        value_of<Measured>([name](const Measured& each) { return number_named(each.token_cosine, name); }));
  }
  drawing.by_run(
      figure_along("entropy", "Attention entropy",
                   "The lowest of all heads, each the mean over queries: 1 if all keys have equal weights, 0 if one "
                   "has all.",
                   "entropy / ln(keys)", false),
      value_of<Measured>([](const Measured& each) { return extreme_of(each.lowest_relative_entropy, false); }));
  drawing.by_run(figure_along("logit", "Largest attention logit", "Over all heads.", "logit"),
                 value_of<Measured>([](const Measured& each) { return extreme_of(each.largest_logit, true); }));
}

/// A share along a run: after step 1, the largest later with its step, and the last.
struct Shares {
  double first = std::nan(""), largest = std::nan(""), last = std::nan("");
  Json at;
};
Shares shares_of(const WatchedTraining& run, const RecordValue& share) {
  Shares found;
  for (const WatchRecord& record : run.trained->result.watched) {
    const double value = share(record);
    if (record.step == 0 || std::isnan(value)) continue;
    if (record.step == 1) {
      found.first = value;
      continue;
    }
    found.last = value;
    if (value <= found.largest) continue;
    found.largest = value;
    found.at = record.step;
  }
  return found;
}

Table watched_runs_table(const std::vector<WatchedTraining>& runs) {
  Table table{
      "along_training",
      "Runs that were measured along the way",
      "Shares of the stability threshold: after the first step, when single elements of P that have seen hardly "
      "any gradient can exceed it by far (the parameter with the largest part of the eigenvector, and this "
      "part of its square), the largest later, and the last. The seconds include the measurements. A difference "
      "between two single runs may be chance.",
      {"arm", "warm-up", "outcome", "steps", "validation loss", "share after step 1", "parameter", "its part",
       "largest share later", "at step", "last share", "measurements", "their seconds", "seconds"}};
  for (const WatchedTraining& run : runs) {
    const Shares shares = shares_of(run, value_of<CurvatureMeasurement>(stability_ratio));
    Json parameter, part;
    double seconds = 0;  // of the measurements
    for (const WatchRecord& record : run.trained->result.watched) {
      for (const auto& [name, measurement] : record.watches) seconds += measurement.seconds;
      const auto* curvature = record.find<CurvatureMeasurement>();
      if (record.step != 1 || curvature == nullptr || std::isnan(shares.first)) continue;
      const Sharpness& seen = curvature->seen();
      if (!seen.parameter.empty()) parameter = seen.parameter;
      part = finite_or_null(seen.share);
    }
    const TrainResult& result = run.trained->result;
    table.row(run.arm, as_cell(run.warm_up), to_string(result.outcome), result.steps, run.trained->loss(), shares.first,
              parameter, part, shares.largest, shares.at, shares.last, result.watched.size(), seconds, result.seconds);
  }
  return table;
}

/// Results of the searches for the critical learning rate, by run.
Table critical_rate_table(const std::vector<WatchedTraining>& runs) {
  Table table{"along_training_critical",
              "Critical learning rate along training",
              "Shares: the learning rate over the critical one. Uphill: steps that lead uphill on these examples from "
              "the start; raised: steps after which their loss was higher. A step is computed from its own mini-batch, "
              "with dropout and momentum, so some are uphill even where training is stable.",
              {"arm", "warm-up", "outcome", "steps measured", "share after step 1", "largest share later", "at step",
               "last share", "uphill", "none found", "raised", "forward passes"}};
  for (const WatchedTraining& run : runs) {
    const Shares shares = shares_of(run, value_of<CriticalRateMeasurement>(&CriticalRateMeasurement::share));
    double passes = 0;
    int64_t found = 0, uphill = 0, none = 0, raised = 0;
    for (const WatchRecord& record : run.trained->result.watched) {
      const auto* rate = record.find<CriticalRateMeasurement>();
      if (rate == nullptr || std::isnan(rate->slope)) continue;
      raised += rate->loss_after > rate->loss_before ? 1 : 0;
      ++(rate->share ? found : rate->slope > 0 ? none : uphill);
      if (rate->share) passes += static_cast<double>(rate->passes.value_or(0));
    }
    table.row(run.arm, as_cell(run.warm_up), to_string(run.trained->result.outcome), found + uphill + none,
              shares.first, shares.largest, shares.at, shares.last, uphill, none, raised,
              passes / static_cast<double>(found));
  }
  return table;
}

/// Searches that start from the last eigenvector compared with long ones from a random vector.
Table reference_table(const std::vector<WatchedTraining>& runs) {
  Table table{"along_training_reference",
              "Warm-started searches against long ones",
              "The relative difference of the two eigenvalues over the measurements after the first, and the "
              "Hessian-vector products of each search.",
              {"arm", "warm-up", "matrix", "measurements", "median difference", "largest difference", "at step",
               "median products", "products of the long search"}};
  for (const WatchedTraining& run : runs) {
    for (const bool of_hessian : {true, false}) {
      std::vector<double> differences, products, long_products;
      double largest = -1;
      int64_t at = 0;
      bool first = true;
      for (const WatchRecord& record : run.trained->result.watched) {
        const auto* curvature = record.find<CurvatureMeasurement>();
        if (curvature == nullptr || (!of_hessian && !curvature->preconditioned)) continue;
        const Sharpness& sharpness = of_hessian ? curvature->hessian : *curvature->preconditioned;
        if (!sharpness.reference) continue;
        const double difference = std::abs(sharpness.found.value / sharpness.reference->value - 1);
        if (std::isnan(difference) || std::exchange(first, false)) continue;  // the first one has no warm start
        differences.push_back(difference);
        products.push_back(static_cast<double>(sharpness.found.products));
        long_products.push_back(static_cast<double>(sharpness.reference->products));
        if (difference <= largest) continue;
        largest = difference;
        at = record.step;
      }
      if (differences.empty()) continue;
      table.row(run.arm, as_cell(run.warm_up), of_hessian ? "hessian" : "preconditioned", differences.size(),
                median_of(differences), largest, at, median_of(products), median_of(long_products));
    }
  }
  return table;
}

PartResult report_along(const StudyContext& context, const AlongTrainingStudy& part,
                        const std::vector<WatchedTraining>& runs) {
  Drawing drawing{runs, arm_names(context)};
  const std::vector<StackKind> stacks = stacks_of(context);
  draw_curvature(drawing);
  draw_critical_rate(drawing);
  draw_gradients(drawing);
  draw_updates(drawing, stacks, part.layers);
  draw_activations(drawing, stacks);
  PartResult result;
  result.figures = std::move(drawing.figures);
  result.tables = {watched_runs_table(runs), critical_rate_table(runs)};
  if (part.reference_products > 0) result.tables.push_back(reference_table(runs));
  return result;
}

PartPlan plan(StudyContext& context, const AlongTrainingStudy& part) {
  PartPlan plan(context);
  std::vector<WatchedTraining> runs;
  for (const std::string& arm : arm_names(context)) {
    for (const Duration& warm_up : part.warm_ups)
      runs.push_back({arm, warm_up, planned_run(plan, context, watched_run(context, part, arm, warm_up))});
  }
  plan.report = [&context, part, runs] { return report_along(context, part, runs); };
  return plan;
}

[[maybe_unused]] const bool kAlongTraining = add_part<AlongTrainingStudy>(
    "along_training", "curvature, gradient noise, updates and attention along training, with and without warm-up",
    "Cohen et al. 2022, arXiv 2207.14484", {.place = 17, .plan = plan, .trains = kAlways, .check = check});

}  // namespace
}  // namespace plumb
