// Along training, with and without warm-up: the preconditioned curvature compared with the stability threshold, the
// critical learning rate of steps, gradient noise, update sizes, and attention. There are no verdicts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "plumb/base/text.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct WatchedTraining {
  std::string scheme;
  Duration warm_up;
  TrainedRun trained;

  [[nodiscard]] std::string name() const { return display_name(scheme) + ", " + warm_up_name(warm_up); }
};

/// The value at a path such as "/curvature/hessian/value"; null if it was not measured.
Json at_path(const WatchRecord& record, const std::string& path) {
  const Json::json_pointer pointer(path);
  return record.values.contains(pointer) ? record.values.at(pointer) : Json();
}

double value_at(const WatchRecord& record, const std::string& path) {
  const Json found = at_path(record, path);
  return found.is_number() ? found.get<double>() : std::nan("");
}

/// λ_max over the stability threshold: above 1, oscillations grow. Of H if the optimizer has no preconditioner.
double stability_ratio(const WatchRecord& record) {
  for (const char* which : {"preconditioned", "hessian"}) {
    const std::string path = fmt::format("/curvature/{}/", which);
    const double ratio = value_at(record, path + "value") / value_at(record, path + "threshold");
    if (!std::isnan(ratio)) return ratio;
  }
  return std::nan("");
}

/// The largest or smallest number in an object with one number per layer.
double extreme_at(const WatchRecord& record, const std::string& path, bool largest) {
  double found = std::nan("");
  const Json by_layer = at_path(record, path);
  for (const auto& [layer, value] : by_layer.items()) {
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (std::isnan(found) || (largest ? number > found : number < found)) found = number;
  }
  return found;
}

using RecordValue = std::function<double(const WatchRecord&)>;

RecordValue path_value(const std::string& path) {
  return [path](const WatchRecord& record) { return value_at(record, path); };
}

/// Starts at step 1: before training there is no preconditioner and no update. A value missing between two others
/// leaves a gap; trailing missing values are dropped, since a line that ends in a gap marks a diverged run.
Series series_along(const WatchedTraining& run, const std::string& name, const std::string& group,
                    const RecordValue& value) {
  Series series{name, group};
  series.style = run.warm_up.is_zero() ? "dashed" : "solid";
  std::vector<int64_t> missing;  // steps since the last value
  for (const WatchRecord& record : run.trained.result.watched) {
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
  if (run.trained.diverged()) series.point(run.trained.result.steps, std::nan(""));
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
  request.label = WatchedTraining{scheme, warm_up, {}}.name();
  request.config = run_config(context, model_for(context, scheme, part.layers));
  request.config.train = with_warm_up(request.config.train, warm_up, part.warm_ups);
  WatchConfig& watch = request.config.watch;
  Config::from_string(fmt::format("[watch.curvature]\nreference_products = {}\n", part.reference_products),
                      "along_training")
      .read("watch", watch);
  watch.every = part.every;
  watch.what.emplace_back("critical_rate");
  watch.examples = part.examples;
  return request;
}

/// A line at 1 over all measurements after step 0.
Series line_at_one(const std::vector<WatchedTraining>& runs, const std::string& name) {
  Series line{name, "threshold"};
  for (const WatchedTraining& run : runs) {
    for (const WatchRecord& record : run.trained.result.watched) {
      if (record.step > 0 && (line.x.empty() || record.step > line.x.back().get<int64_t>())) line.point(record.step, 1);
    }
  }
  return line;
}

std::vector<Figure> curvature_figures(const std::vector<WatchedTraining>& runs,
                                      const std::vector<std::string>& schemes) {
  std::vector<Figure> figures;
  for (const std::string& scheme : schemes) {
    Figure figure = figure_along(
        "preconditioned_" + file_name(scheme), "Preconditioned sharpness, " + display_name(scheme),
        "λ_max(P⁻¹H), P Adam's divisor, and the threshold of stability at the learning rate of the step, (2 + 2β₁)/((1 "
        "− β₁)η): above it, oscillations along the eigenvector grow while P and H stay the same.",
        "λ_max(P⁻¹H)");
    for (const WatchedTraining& run : runs) {
      if (run.scheme != scheme) continue;
      Series measured =
          series_along(run, warm_up_name(run.warm_up), scheme, path_value("/curvature/preconditioned/value"));
      if (measured.x.empty()) continue;
      figure.series.push_back(measured);
      figure.series.push_back(series_along(run, "threshold, " + warm_up_name(run.warm_up), "threshold",
                                           path_value("/curvature/preconditioned/threshold")));
    }
    if (!figure.series.empty()) figures.push_back(figure);
  }
  Figure ratio = figure_along("stability", "Sharpness as a share of the stability threshold",
                              "The largest eigenvalue that the optimizer sees over its threshold: η·λ_max(P⁻¹H)·(1 − "
                              "β₁)/(2 + 2β₁) for Adam, η·λ_max(H)/2 for gradient descent.",
                              "share of the threshold");
  Figure hessian = figure_along("hessian", "Sharpness", "λ_max(H) on the same examples throughout.", "λ_max(H)");
  for (const WatchedTraining& run : runs) {
    ratio.series.push_back(series_along(run, run.name(), run.scheme, stability_ratio));
    hessian.series.push_back(series_along(run, run.name(), run.scheme, path_value("/curvature/hessian/value")));
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
      figure.series.push_back(
          series_along(run, "critical, " + warm_up_name(run.warm_up), scheme, path_value("/critical_rate/value")));
      figure.series.push_back(series_along(run, "of the run, " + warm_up_name(run.warm_up), "threshold",
                                           path_value("/critical_rate/learning_rate")));
    }
    figures.push_back(figure);
  }
  Figure share = figure_along("critical_share", "Learning rate as a share of the critical one",
                              meaning + " Above 1, the step raised the loss of these examples.", "share");
  for (const WatchedTraining& run : runs)
    share.series.push_back(series_along(run, run.name(), run.scheme, path_value("/critical_rate/share")));
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
    noise.series.push_back(series_along(run, run.name(), run.scheme, path_value("/gradient_noise/tokens")));
  figures.push_back(noise);
  for (const std::string& scheme : schemes) {
    Figure squares =
        figure_along("gradients_" + file_name(scheme), "Mean square and square mean, " + display_name(scheme),
                     "E‖g‖² over mini-batches, and ‖E g‖² of their mean.", "squared norm");
    for (const WatchedTraining& run : runs) {
      if (run.scheme != scheme) continue;
      squares.series.push_back(series_along(run, "E‖g‖², " + warm_up_name(run.warm_up), "E‖g‖²",
                                            path_value("/gradient_noise/mean_square_norm")));
      squares.series.push_back(series_along(run, "‖E g‖², " + warm_up_name(run.warm_up), "‖E g‖²",
                                            path_value("/gradient_noise/square_norm_of_mean")));
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
          figure.series.push_back(series_along(
              run, fmt::format("{} {}, {}", to_string(stack), id.number(), warm_up_name(run.warm_up)),
              fmt::format("{} {}", to_string(stack), id.number()), path_value("/updates/ratio/" + to_string(id))));
        }
      }
    }
    figures.push_back(figure);
  }
  return figures;
}

std::vector<Figure> activation_figures(const std::vector<WatchedTraining>& runs,
                                       const std::vector<StackKind>& stacks) {
  std::vector<Figure> figures;
  for (const StackKind stack : stacks) {
    Figure figure = figure_along(
        "similarity_" + to_string(stack), "Similarity of tokens, " + to_string(stack),
        "Mean cosine between different tokens of a sentence in the result of the stack, which is what is read from it.",
        "cosine", false);
    const std::string path = "/activations/token_cosine/" + to_string(stack);
    for (const WatchedTraining& run : runs)
      figure.series.push_back(series_along(run, run.name(), run.scheme, path_value(path)));
    figures.push_back(figure);
  }
  Figure entropy =
      figure_along("entropy", "Attention entropy",
                   "The lowest of all heads of all attentions, each the mean over queries, divided by the largest "
                   "possible: 1 if all keys have equal weights, 0 if one has all.",
                   "entropy / ln(keys)", false);
  Figure logit = figure_along("logit", "Largest attention logit", "Over all heads of all attentions.", "logit");
  for (const WatchedTraining& run : runs) {
    entropy.series.push_back(series_along(run, run.name(), run.scheme, [](const WatchRecord& record) {
      return extreme_at(record, "/activations/lowest_relative_entropy", false);
    }));
    logit.series.push_back(series_along(run, run.name(), run.scheme, [](const WatchRecord& record) {
      return extreme_at(record, "/activations/largest_logit", true);
    }));
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
  for (const WatchRecord& record : run.trained.result.watched) {
    for (const Json& values : record.values) seconds += values.value("seconds", 0.0);
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
    double largest = std::nan(""), last = std::nan("");
    double first = std::nan("");
    Json parameter, part;
    int64_t at = 0;
    for (const WatchRecord& record : run.trained.result.watched) {
      const double ratio = stability_ratio(record);
      if (record.step == 0 || std::isnan(ratio)) continue;
      if (record.step == 1) {
        first = ratio;
        const bool preconditioned = at_path(record, "/curvature/preconditioned").is_object();
        const std::string path = preconditioned ? "/curvature/preconditioned" : "/curvature/hessian";
        parameter = at_path(record, path + "/parameter");
        part = at_path(record, path + "/share");
        continue;
      }
      last = ratio;
      if (ratio <= largest) continue;
      largest = ratio;
      at = record.step;
    }
    table.rows.push_back({run.scheme, as_cell(run.warm_up), run.trained.result.outcome, run.trained.result.steps,
                          finite_or_null(run.trained.loss()), finite_or_null(first), parameter, part,
                          finite_or_null(largest), at, finite_or_null(last), run.trained.result.watched.size(),
                          finite_or_null(watch_seconds(run)), finite_or_null(run.trained.result.seconds)});
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
    for (const WatchRecord& record : run.trained.result.watched) {
      const double slope = value_at(record, "/critical_rate/slope");
      if (std::isnan(slope)) continue;
      ++measured;
      raised += value_at(record, "/critical_rate/loss_after") > value_at(record, "/critical_rate/loss_before") ? 1 : 0;
      const double share = value_at(record, "/critical_rate/share");
      if (std::isnan(share)) {
        ++(slope > 0 ? none : uphill);
        continue;
      }
      passes += value_at(record, "/critical_rate/passes");
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
    table.rows.push_back({run.scheme, as_cell(run.warm_up), run.trained.result.outcome, measured, finite_or_null(first),
                          finite_or_null(largest), at > 0 ? Json(at) : Json(), finite_or_null(last), uphill, none,
                          raised, found > 0 ? Json(passes / static_cast<double>(found)) : Json()});
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
      const std::string path = fmt::format("/curvature/{}/", which);
      std::vector<double> differences, products, long_products;
      double largest = -1;
      int64_t at = 0;
      bool first = true;
      for (const WatchRecord& record : run.trained.result.watched) {
        const double reference = value_at(record, path + "reference/value");
        const double difference = std::abs(value_at(record, path + "value") / reference - 1);
        if (std::isnan(difference)) continue;
        if (std::exchange(first, false)) continue;  // without a warm start
        differences.push_back(difference);
        products.push_back(value_at(record, path + "products"));
        long_products.push_back(value_at(record, path + "reference/products"));
        if (difference <= largest) continue;
        largest = difference;
        at = record.step;
      }
      if (differences.empty()) continue;
      table.rows.push_back({run.scheme, as_cell(run.warm_up), which, differences.size(), median_of(differences),
                            largest, at, median_of(products), median_of(long_products)});
    }
  }
  return table;
}

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const AlongTrainingStudy& part) {
  std::vector<MeasurementRequest> list;
  for (const std::string& scheme : context.config.study.schemes) {
    for (const Duration& warm_up : part.warm_ups)
      list.push_back(run_measurement(context, watched_run(context, part, scheme, warm_up)));
  }
  return list;
}

PartResult measure(StudyContext& context, const AlongTrainingStudy& part) {
  const std::vector<std::string>& schemes = context.config.study.schemes;
  std::vector<WatchedTraining> runs;
  for (const std::string& scheme : schemes) {
    for (const Duration& warm_up : part.warm_ups)
      runs.push_back({scheme, warm_up, trained_run(context, watched_run(context, part, scheme, warm_up))});
  }
  const std::vector<StackKind> stacks = stacks_of(context);
  PartResult result;
  for (const std::vector<Figure>& figures :
       {curvature_figures(runs, schemes), critical_rate_figures(runs, schemes, part), gradient_figures(runs, schemes),
        update_figures(runs, schemes, stacks, part.layers), activation_figures(runs, stacks)}) {
    result.figures.insert(result.figures.end(), figures.begin(), figures.end());
  }
  const auto diverged =
      std::count_if(runs.begin(), runs.end(), [](const WatchedTraining& run) { return run.trained.diverged(); });
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

}  // namespace plumb
