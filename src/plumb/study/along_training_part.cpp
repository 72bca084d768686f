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
#include "plumb/base/text.h"
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
  std::string scheme;
  Duration warm_up;
  Planned<TrainedRun> trained;

  [[nodiscard]] std::string name() const { return display_name(scheme) + ", " + warm_up_name(warm_up); }
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

/// Starts at step 1: before training there is no preconditioner and no update. A value missing between two others
/// leaves a gap; trailing missing values are dropped, since a line that ends in a gap marks a diverged run.
Series series_along(const WatchedTraining& run, const std::string& name, const std::string& group,
                    const RecordValue& value) {
  Series series{name, group};
  series.style = run.warm_up.is_zero() ? "dashed" : "solid";
  std::vector<int64_t> missing;  // steps since the last value
  for (const WatchRecord& record : run.trained->result.watched) {
    const double y = value(record);
    if (record.step == 0) continue;
    if (std::isnan(y)) {
      missing.push_back(record.step);
      continue;
    }
    for (const int64_t step : missing) {
      if (!series.x.empty()) series.point(step, std::nan(""));
    }
    missing.clear();
    series.point(record.step, y);
  }
  if (run.trained->diverged()) series.point(run.trained->result.steps, std::nan(""));
  return series;
}

Figure figure_along(const std::string& id, const std::string& title, const std::string& caption,
                    const std::string& axis, bool log = true) {
  Figure figure{
      "along_" + id, title,
      caption +
          " One run each; lines connect the steps that were measured. Dashed: without warm-up; a cross marks a run "
          "that diverged.",
      "line"};
  figure.x = {"step", true};
  figure.y = {axis, log};
  return figure;
}

RunRequest watched_run(const StudyContext& context, const AlongTrainingStudy& part, const std::string& scheme,
                       const Duration& warm_up) {
  RunRequest request;
  request.name = fmt::format("along-{}-warmup{}", file_name(scheme), warm_up.text());
  request.label = display_name(scheme) + ", " + warm_up_name(warm_up);
  request.config = run_config(context, model_for(context, scheme, part.layers));
  request.config.train = with_warm_up(request.config.train, warm_up, part.warm_ups);
  WatchConfig& watch = request.config.watch;
  CurvatureWatchOptions curvature;
  curvature.reference_products = part.reference_products;
  watch.options["curvature"] = Options(curvature);
  watch.every = part.every;
  watch.what.emplace_back("critical_rate");
  watch.examples = part.examples;
  return request;
}

/// A line at 1 over all measurements after step 0.
Series line_at_one(const std::vector<WatchedTraining>& runs, const std::string& name) {
  Series line{name, "threshold"};
  for (const WatchedTraining& run : runs) {
    for (const WatchRecord& record : run.trained->result.watched) {
      if (record.step > 0 && (line.x.empty() || record.step > line.x.back().get<int64_t>())) line.point(record.step, 1);
    }
  }
  return line;
}

/// number(λ_max(P⁻¹H)).
RecordValue preconditioned(const std::function<double(const Sharpness&)>& number) {
  return value_of<CurvatureMeasurement>([number](const CurvatureMeasurement& curvature) {
    return curvature.preconditioned ? number(*curvature.preconditioned) : std::nan("");
  });
}

std::vector<Figure> curvature_figures(const std::vector<WatchedTraining>& runs,
                                      const std::vector<std::string>& schemes) {
  std::vector<Figure> figures;
  for (const std::string& scheme : schemes) {
    Figure figure = figure_along(
        "preconditioned_" + file_name(scheme), "Preconditioned sharpness, " + display_name(scheme),
        "λ_max(P⁻¹H), P Adam's divisor, and the threshold of stability at the learning rate of the step, "
        "(2 + 2β₁)/((1 − β₁)η): above it, oscillations along the eigenvector grow while P and H stay the same.",
        "λ_max(P⁻¹H)");
    for (const WatchedTraining& run : runs) {
      if (run.scheme != scheme) continue;
      const Series measured =
          series_along(run, warm_up_name(run.warm_up), scheme,
                       preconditioned([](const Sharpness& sharpness) { return sharpness.found.value; }));
      if (measured.x.empty()) continue;
      figure.series.push_back(measured);
      figure.series.push_back(
          series_along(run, "threshold, " + warm_up_name(run.warm_up), "threshold",
                       preconditioned([](const Sharpness& sharpness) { return as_number(sharpness.threshold); })));
    }
    if (!figure.series.empty()) figures.push_back(figure);
  }
  Figure ratio = figure_along("stability", "Sharpness as a share of the stability threshold",
                              "The largest eigenvalue that the optimizer sees over its threshold: "
                              "η·λ_max(P⁻¹H)·(1 − β₁)/(2 + 2β₁) for Adam, η·λ_max(H)/2 for gradient descent.",
                              "share of the threshold");
  Figure hessian = figure_along("hessian", "Sharpness", "λ_max(H) on the same examples throughout.", "λ_max(H)");
  for (const WatchedTraining& run : runs) {
    ratio.series.push_back(series_along(run, run.name(), run.scheme, value_of<CurvatureMeasurement>(stability_ratio)));
    hessian.series.push_back(series_along(
        run, run.name(), run.scheme,
        value_of<CurvatureMeasurement>([](const CurvatureMeasurement& each) { return each.hessian.found.value; })));
  }
  ratio.series.push_back(line_at_one(runs, "threshold"));
  figures.push_back(ratio);
  figures.push_back(hessian);
  return figures;
}

std::vector<Figure> critical_rate_figures(const std::vector<WatchedTraining>& runs,
                                          const std::vector<std::string>& schemes, const AlongTrainingStudy& part) {
  const std::string meaning = fmt::format(
      "The critical learning rate of a step is the one above which the same step would have raised the loss of the {} "
      "watched examples, found by forward passes along the step that the optimizer took. Gaps: the step leads uphill "
      "on these examples from the start, or no rise was found.",
      part.examples);
  std::vector<Figure> figures;
  for (const std::string& scheme : schemes) {
    Figure figure = figure_along("critical_" + file_name(scheme), "Critical learning rate, " + display_name(scheme),
                                 meaning + " Beside it, the learning rate of the step.", "learning rate");
    for (const WatchedTraining& run : runs) {
      if (run.scheme != scheme) continue;
      figure.series.push_back(series_along(run, "critical, " + warm_up_name(run.warm_up), scheme,
                                           value_of<CriticalRateMeasurement>(&CriticalRateMeasurement::value)));
      figure.series.push_back(series_along(run, "of the run, " + warm_up_name(run.warm_up), "threshold",
                                           value_of<CriticalRateMeasurement>(&CriticalRateMeasurement::learning_rate)));
    }
    figures.push_back(figure);
  }
  Figure share = figure_along("critical_share", "Learning rate as a share of the critical one",
                              meaning + " Above 1, the step raised the loss of these examples.", "share");
  for (const WatchedTraining& run : runs)
    share.series.push_back(
        series_along(run, run.name(), run.scheme, value_of<CriticalRateMeasurement>(&CriticalRateMeasurement::share)));
  share.series.push_back(line_at_one(runs, "critical"));
  figures.push_back(share);
  return figures;
}

std::vector<Figure> gradient_figures(const std::vector<WatchedTraining>& runs,
                                     const std::vector<std::string>& schemes) {
  std::vector<Figure> figures;
  Figure noise = figure_along("noise", "Gradient noise scale",
                              "tr Σ/‖G‖² in labels: the batch at which noise and signal of the gradient are of equal "
                              "size. Gaps: the estimate of ‖G‖² is not positive.",
                              "batch size (labels)");
  for (const WatchedTraining& run : runs)
    noise.series.push_back(series_along(run, run.name(), run.scheme,
                                        value_of<GradientNoiseMeasurement>(&GradientNoiseMeasurement::tokens)));
  figures.push_back(noise);
  for (const std::string& scheme : schemes) {
    Figure squares =
        figure_along("gradients_" + file_name(scheme), "Mean square and square mean, " + display_name(scheme),
                     "E‖g‖² over mini-batches, and ‖E g‖² of their mean.", "squared norm");
    for (const WatchedTraining& run : runs) {
      if (run.scheme != scheme) continue;
      squares.series.push_back(
          series_along(run, "E‖g‖², " + warm_up_name(run.warm_up), "E‖g‖²",
                       value_of<GradientNoiseMeasurement>(&GradientNoiseMeasurement::mean_square_norm)));
      squares.series.push_back(
          series_along(run, "‖E g‖², " + warm_up_name(run.warm_up), "‖E g‖²",
                       value_of<GradientNoiseMeasurement>(&GradientNoiseMeasurement::square_norm_of_mean)));
    }
    figures.push_back(squares);
  }
  return figures;
}

std::vector<Figure> update_figures(const std::vector<WatchedTraining>& runs, const std::vector<std::string>& schemes,
                                   const std::vector<StackKind>& stacks, int64_t layers) {
  std::vector<Figure> figures;
  for (const std::string& scheme : schemes) {
    Figure figure = figure_along("updates_" + file_name(scheme), "Update-to-weight ratio, " + display_name(scheme),
                                 "‖Δθ‖/‖θ‖ of single steps, by layer.", "‖Δθ‖/‖θ‖");
    for (const WatchedTraining& run : runs) {
      if (run.scheme != scheme) continue;
      for (const StackKind stack : stacks) {
        for (int64_t layer = 0; layer < layers; ++layer) {
          const LayerId id{stack, layer};
          figure.series.push_back(
              series_along(run, fmt::format("{} {}, {}", to_string(stack), id.number(), warm_up_name(run.warm_up)),
                           fmt::format("{} {}", to_string(stack), id.number()),
                           value_of<UpdateMeasurement>([name = to_string(id)](const UpdateMeasurement& each) {
                             return number_named(each.ratio, name);
                           })));
        }
      }
    }
    figures.push_back(figure);
  }
  return figures;
}

std::vector<Figure> activation_figures(const std::vector<WatchedTraining>& runs, const std::vector<StackKind>& stacks) {
  std::vector<Figure> figures;
  for (const StackKind stack : stacks) {
    Figure figure = figure_along(
        "similarity_" + to_string(stack), "Similarity of tokens, " + to_string(stack),
        "Mean cosine between different tokens of a sentence in the result of the stack, which is what is read from it.",
        "cosine", false);
    const RecordValue cosine = value_of<ActivationMeasurement>(
        [name = to_string(stack)](const ActivationMeasurement& each) { return number_named(each.token_cosine, name); });
    for (const WatchedTraining& run : runs) figure.series.push_back(series_along(run, run.name(), run.scheme, cosine));
    figures.push_back(figure);
  }
  Figure entropy =
      figure_along("entropy", "Attention entropy",
                   "The lowest of all heads of all attentions, each the mean over queries, divided by the largest "
                   "possible: 1 if all keys have equal weights, 0 if one has all.",
                   "entropy / ln(keys)", false);
  Figure logit = figure_along("logit", "Largest attention logit", "Over all heads of all attentions.", "logit");
  const RecordValue lowest = value_of<ActivationMeasurement>(
      [](const ActivationMeasurement& each) { return extreme_of(each.lowest_relative_entropy, false); });
  const RecordValue largest = value_of<ActivationMeasurement>(
      [](const ActivationMeasurement& each) { return extreme_of(each.largest_logit, true); });
  for (const WatchedTraining& run : runs) {
    entropy.series.push_back(series_along(run, run.name(), run.scheme, lowest));
    logit.series.push_back(series_along(run, run.name(), run.scheme, largest));
  }
  for (Figure* figure : {&entropy, &logit}) {
    const bool measured = std::any_of(figure->series.begin(), figure->series.end(),
                                      [](const Series& series) { return !series.x.empty(); });
    if (measured) figures.push_back(*figure);
  }
  return figures;
}

double watch_seconds(const WatchedTraining& run) {
  double seconds = 0;
  for (const WatchRecord& record : run.trained->result.watched) {
    for (const auto& [name, measurement] : record.watches) seconds += measurement.seconds;
  }
  return seconds;
}

Table watched_runs_table(const std::vector<WatchedTraining>& runs) {
  Table table{
      "along_training",
      "Runs that were measured along the way",
      "Shares of the stability threshold: after the first step, when single elements of P that have seen hardly "
      "any gradient can exceed it by far (the parameter with the largest part of the eigenvector, and this part "
      "of its square), the largest later, and the last; the seconds include those of the measurements.",
      {"scheme", "warm-up", "outcome", "steps", "validation loss", "share after step 1", "parameter", "its part",
       "largest share later", "at step", "last share", "measurements", "their seconds", "seconds"}};
  for (const WatchedTraining& run : runs) {
    double first = std::nan(""), largest = std::nan(""), last = std::nan("");
    Json parameter, part;
    int64_t at = 0;
    for (const WatchRecord& record : run.trained->result.watched) {
      const auto* curvature = record.find<CurvatureMeasurement>();
      if (record.step == 0 || curvature == nullptr || std::isnan(stability_ratio(*curvature))) continue;
      const double ratio = stability_ratio(*curvature);
      if (record.step == 1) {
        first = ratio;
        const Sharpness& seen = curvature->seen();
        if (!seen.parameter.empty()) parameter = seen.parameter;
        part = finite_or_null(seen.share);
        continue;
      }
      last = ratio;
      if (ratio <= largest) continue;
      largest = ratio;
      at = record.step;
    }
    const TrainResult& result = run.trained->result;
    table.row(run.scheme, as_cell(run.warm_up), to_string(result.outcome), result.steps, run.trained->loss(), first,
              parameter, part, largest, at, last, result.watched.size(), watch_seconds(run), result.seconds);
  }
  return table;
}

/// Results of the searches for the critical learning rate, by run.
Table critical_rate_table(const std::vector<WatchedTraining>& runs, const AlongTrainingStudy& part) {
  Table table{
      "along_training_critical",
      "Critical learning rate along training",
      fmt::format("Of single steps, on {} examples that are always the same. Shares: the learning rate over the "
                  "critical one, after the first step, the largest later, and the last. Uphill: steps that lead "
                  "uphill on these examples from the start, so that any rate is too large; raised: steps after "
                  "which their loss was higher than before. A step is computed from its own mini-batch, with "
                  "dropout and momentum, so that some steps are uphill even where training is stable.",
                  part.examples),
      {"scheme", "warm-up", "outcome", "steps measured", "share after step 1", "largest share later", "at step",
       "last share", "uphill", "none found", "raised", "forward passes"}};
  for (const WatchedTraining& run : runs) {
    double first = std::nan(""), largest = std::nan(""), last = std::nan(""), passes = 0;
    int64_t measured = 0, at = 0, uphill = 0, none = 0, raised = 0;
    for (const WatchRecord& record : run.trained->result.watched) {
      const auto* rate = record.find<CriticalRateMeasurement>();
      if (rate == nullptr || std::isnan(rate->slope)) continue;
      ++measured;
      raised += rate->loss_after > rate->loss_before ? 1 : 0;
      if (!rate->share) {
        ++(rate->slope > 0 ? none : uphill);
        continue;
      }
      const double share = *rate->share;
      passes += static_cast<double>(rate->passes.value_or(0));
      if (record.step == 1) {
        first = share;
        continue;
      }
      last = share;
      if (share <= largest) continue;
      largest = share;
      at = record.step;
    }
    const int64_t found = measured - uphill - none;
    table.row(run.scheme, as_cell(run.warm_up), to_string(run.trained->result.outcome), measured, first, largest,
              at > 0 ? Json(at) : Json(), last, uphill, none, raised,
              found > 0 ? Json(passes / static_cast<double>(found)) : Json());
  }
  return table;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Searches that start from the last eigenvector compared with long ones from a random vector.
Table reference_table(const std::vector<WatchedTraining>& runs) {
  Table table{"along_training_reference",
              "Warm-started searches against long ones",
              "The relative difference of the two eigenvalues over the measurements after the first, and the "
              "Hessian-vector products that each search took.",
              {"scheme", "warm-up", "matrix", "measurements", "median difference", "largest difference", "at step",
               "median products", "products of the long search"}};
  for (const WatchedTraining& run : runs) {
    for (const char* which : {"hessian", "preconditioned"}) {
      std::vector<double> differences, products, long_products;
      double largest = -1;
      int64_t at = 0;
      bool first = true;
      for (const WatchRecord& record : run.trained->result.watched) {
        const auto* curvature = record.find<CurvatureMeasurement>();
        if (curvature == nullptr) continue;
        const bool of_hessian = which == std::string("hessian");
        if (!of_hessian && !curvature->preconditioned) continue;
        const Sharpness& sharpness = of_hessian ? curvature->hessian : *curvature->preconditioned;
        if (!sharpness.reference) continue;
        const double difference = std::abs(sharpness.found.value / sharpness.reference->value - 1);
        if (std::isnan(difference)) continue;
        if (std::exchange(first, false)) continue;  // without a warm start
        differences.push_back(difference);
        products.push_back(static_cast<double>(sharpness.found.products));
        long_products.push_back(static_cast<double>(sharpness.reference->products));
        if (difference <= largest) continue;
        largest = difference;
        at = record.step;
      }
      if (differences.empty()) continue;
      table.row(run.scheme, as_cell(run.warm_up), which, differences.size(), median_of(differences), largest, at,
                median_of(products), median_of(long_products));
    }
  }
  return table;
}

PartResult report_along(const StudyContext& context, const AlongTrainingStudy& part,
                        const std::vector<WatchedTraining>& runs) {
  const std::vector<std::string>& schemes = context.config.study.schemes;
  const std::vector<StackKind> stacks = stacks_of(context);
  PartResult result;
  for (const std::vector<Figure>& figures :
       {curvature_figures(runs, schemes), critical_rate_figures(runs, schemes, part), gradient_figures(runs, schemes),
        update_figures(runs, schemes, stacks, part.layers), activation_figures(runs, stacks)}) {
    result.figures.insert(result.figures.end(), figures.begin(), figures.end());
  }
  const auto diverged =
      std::count_if(runs.begin(), runs.end(), [](const WatchedTraining& run) { return run.trained->diverged(); });
  result.summary.push_back(
      fmt::format("{} training runs, one for each scheme and warm-up ({} layers, {}, learning rate {:g}), measured "
                  "after the first step and every {} on the same {} training examples; {} diverged. Single "
                  "runs: a difference between two of them may be chance.",
                  runs.size(), part.layers, context.config.train.optimizer, context.config.train.learning_rate,
                  part.every.text() + (part.every.unit() == Duration::Unit::steps ? " steps" : ""), part.examples,
                  diverged == 0 ? "none" : std::to_string(diverged)));
  result.tables.push_back(watched_runs_table(runs));
  result.tables.push_back(critical_rate_table(runs, part));
  if (part.reference_products > 0) result.tables.push_back(reference_table(runs));
  return result;
}

PartPlan plan(StudyContext& context, const AlongTrainingStudy& part) {
  PartPlan plan(context);
  std::vector<WatchedTraining> runs;
  for (const std::string& scheme : context.config.study.schemes) {
    for (const Duration& warm_up : part.warm_ups)
      runs.push_back({scheme, warm_up, planned_run(plan, context, watched_run(context, part, scheme, warm_up))});
  }
  plan.report = [&context, part, runs] { return report_along(context, part, runs); };
  return plan;
}

[[maybe_unused]] const bool kAlongTraining = add_part<AlongTrainingStudy>(
    "along_training", "curvature, gradient noise, updates and attention along training, with and without warm-up",
    "Cohen et al. 2022, arXiv 2207.14484", {.place = 16, .plan = plan, .trains = kAlways, .check = check});

}  // namespace
}  // namespace plumb
