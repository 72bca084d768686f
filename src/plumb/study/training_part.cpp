// Training with and without warm-up, each arm with its own sweep of the learning rate: Xiong et al. 2020, sections 3.2
// and 4.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "plumb/analysis/sweep.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/decode/beam_search.h"
#include "plumb/decode/translate.h"
#include "plumb/metrics/bleu.h"
#include "plumb/report/display_name.h"
#include "plumb/study/training_arms.h"

namespace plumb {

std::string ArmOptimizer::name() const {
  return clip_norm > 0 ? fmt::format("{}, clipped at {:g}", optimizer, clip_norm) : optimizer;
}

std::string ArmId::warm_up_name() const {
  return groups_warm_up && warm_up.is_zero() ? "warm-up of its own" : plumb::warm_up_name(warm_up);
}

std::string ArmId::name() const {
  if (!warm_up_is_swept || (groups_warm_up && warm_up.is_zero())) return display_name(study_arm);
  return fmt::format("{}, {}", display_name(study_arm), warm_up_name());
}

std::string ArmId::optimizer_id() const {
  return optimizer.clip_norm > 0 ? fmt::format("{}-clipped{:g}", optimizer.optimizer, optimizer.clip_norm)
                                 : optimizer.optimizer;
}

bool same_figure(const ArmId& a, const ArmId& b) { return a.own_depth || a.layers == b.layers; }

bool is_swept(const std::vector<Arm>& arms, const ArmId& shown) {
  return std::any_of(arms.begin(), arms.end(), [&](const Arm& arm) {
    return same_figure(arm.id, shown) && arm.id.optimizer.learning_rates.size() > 1;
  });
}

std::string figure_name(const char* what, const ArmId& arm) {
  std::string name = what;
  if (!arm.own_optimizer) name += "_" + arm.optimizer_id();
  if (!arm.own_depth) name += fmt::format("_layers{}", arm.layers);
  return name;
}

void describe(Fields& field, TrainingStudy& part) {
  field("warm_ups", part.warm_ups,
        "values of `train.warm_up`, all in the same unit, with each of which every arm is trained; empty: each arm's "
        "own",
        count_from(0).no_two_equal());
  field("learning_rates", part.learning_rates,
        "values of `train.learning_rate`, for arms without `learning_rates` of their own", above(0).each_once());
  field("layers", part.layers, kLayersMeaning, count_from(1).each_once());
  field("seeds", part.seeds, "runs of each kind", count_from(1));
  field("bleu_pairs", part.bleu_pairs, "examples to translate and score with the best runs; 0: none", count_from(0));
  field("bleu_split", part.bleu_split,
        "the split to take them from; data built from your own files have no `test` unless `data.test` is given");
  field("beam", part.beam, "beam width", within(1, kLargestBeam));
}

namespace {

/// The warm-ups that are compared: those that [training] sweeps, or those of the arms.
std::vector<Duration> compared_warm_ups(const TrainingStudy& part, const std::vector<StudyArm>& arms) {
  if (!part.warm_ups.empty()) return part.warm_ups;
  std::vector<Duration> of_arms;
  for (const StudyArm& arm : arms) {
    if (!contains(of_arms, arm.train.warm_up)) of_arms.push_back(arm.train.warm_up);
  }
  return of_arms;
}

void check(const StudyConfig& study, const TrainingStudy& part) {
  const std::vector<StudyArm> arms = study.arms();
  const std::vector<Duration> warm_ups = compared_warm_ups(part, arms);
  check_rates("training.learning_rates", part.learning_rates);
  for (const StudyArm& arm : arms) {
    check_warm_ups(part.warm_ups.empty() ? "train.warm_up of the arms" : "training.warm_ups", warm_ups, arm.train);
    check_rates("study.arm.learning_rates", arm.learning_rates);
    if (arm.sets_depth && part.layers.size() > 1)
      throw Error("training.layers and an axis both set the number of layers", "leave out training.layers");
    if (arm.settings.contains("train.learning_rate")) {
      throw Error("[[study.axis]]: [training] sweeps train.learning_rate",
                  "give its values as training.learning_rates, or as learning_rates of a [[study.arm]]");
    }
    if (arm.settings.contains("train.warm_up") && !part.warm_ups.empty())
      throw Error("[[study.axis]]: [training] sweeps train.warm_up", "leave out training.warm_ups");
  }
}

std::vector<ArmId> arms_of(const StudyContext& context, const TrainingStudy& part) {
  std::vector<ArmId> arms;
  const std::vector<StudyArm> trained = context.config.trained_arms();
  for (size_t i = 0; i < context.arms.size(); ++i) {
    const StudyArm& study_arm = context.arms[i];
    const TrainConfig& train = study_arm.train;
    const bool groups_warm_up = std::any_of(train.groups.begin(), train.groups.end(), [](const ParameterGroup& group) {
      return !group.warm_up.is_zero() && group.warm_up != 1;
    });
    const ArmOptimizer optimizer{
        train.optimizer, sorted(study_arm.learning_rates.empty() ? part.learning_rates : study_arm.learning_rates),
        train.clip_norm};
    const bool swept = !part.warm_ups.empty();
    const std::vector<Duration> warm_ups = swept ? part.warm_ups : std::vector{train.warm_up};
    for (const int64_t layers : part.layers) {
      const ModelDepth of_model = depth_of(model_for(context, study_arm.name, layers));  // an axis may set it
      const int64_t depth = std::max(of_model.encoder_layers, of_model.decoder_layers);
      for (size_t k = 0; k < warm_ups.size(); ++k) {
        const std::string& own = trained[i * warm_ups.size() + k].name;
        arms.push_back({study_arm.name, own, depth, optimizer, warm_ups[k], swept, groups_warm_up});
      }
    }
  }
  const auto differ = [&](const auto& setting) {
    return std::any_of(arms.begin(), arms.end(),
                       [&](const ArmId& arm) { return setting(arm) != setting(arms.front()); });
  };
  const bool own_depth = part.layers.size() == 1 && differ([&](const ArmId& arm) {
                           return layers_in_words(model_for(context, arm.study_arm, arm.layers));
                         });
  const bool own_optimizer = differ([](const ArmId& arm) { return arm.optimizer_id(); });
  for (ArmId& arm : arms) {
    arm.own_depth = own_depth;
    arm.own_optimizer = own_optimizer;
  }
  return arms;
}

/// The run with the study's seed, which its name leaves out.
RunRequest arm_run(const StudyContext& context, const TrainingStudy& part, const ArmId& arm, double learning_rate) {
  RunRequest request{
      fmt::format("train-{}-layers{}-{}-warmup{}-lr{:g}", file_name(arm.study_arm), arm.layers, arm.optimizer_id(),
                  arm.warm_up.text(), learning_rate),
      fmt::format("{}, {}, lr {:g}", arm.name(), arm.optimizer.name(), learning_rate),
      run_config(context, model_for(context, arm.study_arm, arm.layers), arm_named(context, arm.study_arm).train)};
  TrainConfig& train = request.config.train;
  train = with_warm_up(train, arm.warm_up, compared_warm_ups(part, context.arms));
  train.learning_rate = learning_rate;
  request.config.watch = context.config.watch;
  return request;
}

/// The bootstrap for the interval of BLEU over sentences.
constexpr Resampling kBleuSamples{};

/// Of a run's translations.
struct BleuAnswer {
  double score = 0;
  std::optional<double> low, high;  // of the interval over sentences, if there are several
  int64_t sentences = 0;
  std::string signature;
};
void describe(Fields& field, BleuAnswer& answer) {
  field("score", answer.score);
  field("low", answer.low);
  field("high", answer.high);
  field("sentences", answer.sentences);
  field("signature", answer.signature);
}

BleuAnswer measured_bleu(const StudyContext& context, const TrainingStudy& part, Model& model) {
  std::vector<std::string> source = context.data.raw_source(part.bleu_split);
  std::vector<std::string> reference = context.data.raw_target(part.bleu_split);
  const int64_t count = std::min<int64_t>(part.bleu_pairs, std::ssize(source));
  source.resize(static_cast<size_t>(count));
  reference.resize(static_cast<size_t>(count));
  DecodeOptions options;
  options.beam = part.beam;
  const auto hypotheses = translate(translator_of(model), context.data.source_tokenizer(),
                                    context.data.target_tokenizer(), source, options);
  if (count < 2) {
    const BleuScore bleu = corpus_bleu(hypotheses, {reference});
    return {bleu.score, {}, {}, count, bleu.signature};
  }
  const BleuWithInterval bleu = bleu_with_interval(hypotheses, {reference}, {}, kBleuSamples);
  return {bleu.score, bleu.interval.low, bleu.interval.high, count, bleu.signature};
}

/// The score of a run; empty if it diverged. Which rate is an arm's best is known only after training, so all are
/// asked.
MeasurementRequest bleu_request(StudyContext& context, const TrainingStudy& part, const ArmId& arm, double rate,
                                int64_t seed) {
  const RunQuestion question{
      "bleu",
      {{"pairs", part.bleu_pairs},
       {"split", part.bleu_split},
       {"beam", part.beam},
       {"samples", kBleuSamples.samples},
       {"seed", kBleuSamples.seed}},
      [&context, part](Model& model) { return described_json(measured_bleu(context, part, model)); }};
  const RunRequest run = arm_run(context, part, arm, rate).with_seed(seed);
  MeasurementRequest request = question_measurement(context, run, question);
  constexpr int64_t kLength = 30;  // of a sentence, about
  request.work = work_of(run.config.model, static_cast<double>(kLength * part.bleu_pairs * part.beam));
  request.stage = 1;
  return request;
}

Sweep sweep_of(const StudyContext& context, const Arm& arm) {
  Sweep sweep;
  sweep.failed_at = label_frequencies(context);
  for (size_t i = 0; i < arm.runs.size(); ++i) {
    sweep.points.push_back({arm.id.optimizer.learning_rates[i],
                            numbers_in(arm.runs[i], [](const Planned<TrainedRun>& run) { return run->loss(); })});
  }
  return sweep;
}

/// BLEU of each arm: with one seed, its interval over sentences; with several, the mean and its interval over seeds.
/// The table has every run with its interval over sentences.
void report_bleu(StudyContext& context, const std::vector<Arm>& arms, const TrainingStudy& part, PartResult& result) {
  Figure figure{"bleu", "BLEU at the end of training"};
  Table table{
      "bleu",
      "BLEU by run",
      fmt::format("At the best learning rate of each arm, with 95% bootstrap intervals over sentences ({} samples), "
                  "which do not tell how much another seed would change.",
                  with_thousands(kBleuSamples.samples)),
      {"arm", "layers", "optimizer", "warm-up", "learning rate", "seed", "BLEU", "low", "high", "sentences"}};
  figure.kind = "bar";
  figure.y = {"BLEU"};
  std::string signature;
  int64_t without = 0;
  for (const std::string& study_arm : arm_names(context)) {
    Series& bars = figure.add(display_name(study_arm), study_arm);
    for (const Arm& arm : arms) {
      if (arm.id.study_arm != study_arm) continue;
      std::vector<double> scores;
      Interval over_sentences;
      for (int64_t seed = 0; seed < part.seeds; ++seed) {
        const auto run = result_of<std::optional<BleuAnswer>>(
            context.measurements.get(bleu_request(context, part, arm.id, arm.sweep.best().learning_rate, seed)));
        const double none = std::nan("");
        over_sentences =
            run ? Interval{run->score, run->low.value_or(none), run->high.value_or(none)} : Interval{none, none, none};
        table.row(study_arm, arm.id.layers, arm.id.optimizer.name(), as_cell(arm.id.warm_up),
                  arm.sweep.best().learning_rate, context.config.study.seed + seed,
                  run ? Json(run->score) : Json("diverged"), over_sentences.low, over_sentences.high,
                  run ? Json(run->sentences) : Json());
        scores.push_back(over_sentences.mean);
        if (run) signature = run->signature;
        without += run ? 0 : 1;
      }
      bars.point(fmt::format("{0}+{0}, {1}, {2}", arm.id.layers, arm.id.optimizer.name(), arm.id.warm_up_name()),
                 part.seeds == 1 ? over_sentences : judge(scores, {}).effect);
    }
  }
  figure.caption = fmt::format(
      "Detokenized, cased BLEU of the first {} pairs of the split '{}', beam width {}, at each arm's best learning "
      "rate; {}. {} run{} diverged. Signature: {}.",
      part.bleu_pairs, part.bleu_split, part.beam,
      part.seeds == 1 ? "one seed, 95% bootstrap intervals over sentences"
                      : fmt::format("means over {} seeds with 95% intervals by Student's t", part.seeds),
      without, without == 1 ? "" : "s", signature);
  result.figures.push_back(figure);
  result.tables.push_back(table);
}

/// How much pairing by seed helps; empty with fewer than three seeds or two arms whose runs all trained.
std::string correlation_in_words(const std::vector<Arm>& arms) {
  std::vector<std::vector<double>> losses;
  for (const Arm& arm : arms) losses.push_back(arm.sweep.best_losses());
  const double correlation = mean_correlation(losses);
  if (std::isnan(correlation)) return {};
  return fmt::format(
      "Over seeds, the final losses of two arms at their best learning rates correlate by {:.2f} on average: near 0, "
      "comparing them seed by seed is no better than comparing runs with different seeds.",
      correlation);
}

PartResult report_training(StudyContext& context, const TrainingStudy& part, std::vector<Arm> arms) {
  for (Arm& arm : arms) arm.sweep = sweep_of(context, arm);
  PartResult result;
  std::vector<ArmId> shown;
  for (const Arm& arm : arms) {
    if (std::any_of(shown.begin(), shown.end(), [&](const ArmId& id) { return same_figure(id, arm.id); })) continue;
    shown.push_back(arm.id);
    if (is_swept(arms, arm.id)) result.figures.push_back(sweep_figure(context, arms, arm.id));
    result.figures.push_back(curves_figure(context, arms, arm.id));
    if (context.config.watch.every.is_zero()) continue;
    for (Figure& figure : watch_figures(context, arms, arm.id)) result.figures.push_back(std::move(figure));
  }
  result.tables = {runs_table(arms), sweeps_table(arms)};
  if (part.bleu_pairs > 0) report_bleu(context, arms, part, result);
  if (const std::string correlation = correlation_in_words(arms); !correlation.empty())
    result.summary.push_back(correlation);
  return result;
}

/// "_layers6" if arms are trained with several depths.
std::string depth_suffix(const std::vector<Arm>& arms, const ArmId& id) {
  const bool several = std::any_of(arms.begin(), arms.end(), [&](const Arm& other) {
    return other.id.trained_arm == id.trained_arm && other.id.layers != id.layers;
  });
  return several ? fmt::format("_layers{}", id.layers) : "";
}

/// The final loss of an arm at each rate at which all arms are trained, as papers compare them.
void add_same_rates(PartPlan& plan, const StudyContext& context, const std::vector<Arm>& alike, const Arm& arm,
                    const std::string& suffix, const std::string& figure) {
  for (size_t i = 0; i < arm.runs.size(); ++i) {
    const double rate = arm.id.optimizer.learning_rates[i];
    const bool common = std::all_of(alike.begin(), alike.end(), [rate](const Arm& each) {
      const std::vector<double>& rates = each.id.optimizer.learning_rates;
      return contains(rates, rate);
    });
    if (!common) continue;
    Quantity& added = plan.quantity(fmt::format("validation_loss{}_rate{:g}", suffix, rate),
                                    fmt::format("final validation loss at a learning rate of {:g} (nats per token){}",
                                                rate, suffix.empty() ? "" : ", " + suffix.substr(1)),
                                    Scale::linear, arm.id.trained_arm,
                                    [&context, arm, i] { return sweep_of(context, arm).points[i].losses; });
    added.failed_at = [&context] { return label_frequencies(context); };
    added.untestable = [&context] { return training_not_testable(context); };
    added.in_comparison_table = arm.id.trained_arm != arm.id.study_arm;  // what a warm-up does at the same rate
    added.figure = figure;
  }
}

/// The best rate of each seed, between those of its sweep; NaN where the sweep does not enclose it.
std::vector<double> best_rates(const Arm& arm) {
  std::vector<double> rates;
  for (size_t seed = 0; seed < arm.runs.front().size(); ++seed) {
    Sweep sweep;
    for (size_t i = 0; i < arm.runs.size(); ++i)
      sweep.points.push_back({arm.id.optimizer.learning_rates[i], {arm.runs[i][seed]->fitted_loss()}});
    rates.push_back(sweep.best_between());
  }
  return rates;
}

/// The best learning rate of an arm, whose sweep has rates on both sides of one.
void add_best_rate(PartPlan& plan, const StudyContext& context, const std::vector<Arm>& alike, const Arm& arm,
                   const std::string& suffix, const std::string& figure) {
  if (arm.runs.size() < 3) return;
  const auto doubt = [&context, alike](const std::string& of, const std::string& against, const Region&, double) {
    std::vector<std::string> open;
    for (const Arm& each : alike) {
      if (each.id.trained_arm != of && each.id.trained_arm != against) continue;
      if (const std::string end = sweep_of(context, each).open_end(); !end.empty())
        open.push_back(display_name(each.id.trained_arm) + ": " + end);
    }
    return join(open, "; ");
  };
  Quantity& added = plan.quantity(
      "best_learning_rate" + suffix, "best learning rate" + (suffix.empty() ? "" : ", " + suffix.substr(1)),
      Scale::logarithmic, arm.id.trained_arm, [arm] { return best_rates(arm); }, doubt);
  added.in_comparison_table = false;
  added.figure = figure;
}

/// The final loss of each arm, and its best rate, for comparisons and claims.
void add_quantities(PartPlan& plan, const StudyContext& context, const std::vector<Arm>& arms) {
  std::map<std::string, std::vector<Arm>> by_suffix;
  for (const Arm& arm : arms) by_suffix[depth_suffix(arms, arm.id)].push_back(arm);
  plan.arms = std::make_shared<const std::vector<StudyArm>>(context.config.trained_arms());
  for (const auto& [suffix, alike] : by_suffix) {
    std::string meaning = "final validation loss at the best learning rate (nats per token)";
    if (!suffix.empty()) meaning += ", " + suffix.substr(1);
    const Quantity::Doubt doubt = doubt_of_sweeps([&context, alike = alike](const std::string& name) {
      return sweep_of(context, *std::find_if(alike.begin(), alike.end(),
                                             [&](const Arm& one) { return one.id.trained_arm == name; }));
    });
    for (const Arm& arm : alike) {
      const std::string figure = figure_name(is_swept(arms, arm.id) ? "sweep" : "loss", arm.id);
      Quantity& added = plan.quantity(
          "validation_loss" + suffix, meaning, Scale::linear, arm.id.trained_arm,
          [&context, arm] { return sweep_of(context, arm).best().losses; }, doubt);
      added.failed_at = [&context] { return label_frequencies(context); };
      added.untestable = [&context] { return training_not_testable(context); };
      added.figure = figure;
      added.telling = {meaning};
      add_same_rates(plan, context, alike, arm, suffix, figure);
      add_best_rate(plan, context, alike, arm, suffix, figure);
    }
  }
}

PartPlan plan(StudyContext& context, const TrainingStudy& part) {
  if (part.bleu_pairs > 0) {
    require_split(context, part.bleu_split);
    for (const std::string& arm : arm_names(context)) (void)translator_of(*make_model(model_for(context, arm, 1)));
  }
  PartPlan plan(context);
  std::vector<Arm> arms;
  const std::vector<ArmId> ids = arms_of(context, part);
  for (const ArmId& id : ids) {
    Arm& arm = arms.emplace_back(Arm{id, {}, {}});
    for (const double rate : id.optimizer.learning_rates) {
      arm.runs.push_back(planned_runs(plan, context, arm_run(context, part, id, rate), part.seeds));
      for (int64_t seed = 0; part.bleu_pairs > 0 && seed < part.seeds; ++seed)
        plan.add<std::optional<BleuAnswer>>(bleu_request(context, part, id, rate, seed));
    }
    if (common_rates(ids, id).size() < 2) continue;
    arm.initial = plan.add<std::vector<double>>(
        initial_loss_request(context, fmt::format("{}-layers{}", file_name(id.study_arm), id.layers),
                             model_for(context, id.study_arm, id.layers), part.seeds));
  }
  add_quantities(plan, context, arms);
  plan.report = [&context, part, arms] { return report_training(context, part, arms); };
  return plan;
}

[[maybe_unused]] const bool kTraining = add_part<TrainingStudy>(
    "training", "training with and without warm-up, each arm with its own sweep of the learning rate",
    "Xiong et al. 2020, arXiv 2002.04745",
    {.order = 6, .any_depth = true, .plan = plan, .trains = kTrainsAlways, .check = check});

}  // namespace
}  // namespace plumb
