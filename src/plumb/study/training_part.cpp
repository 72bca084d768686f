// Training with and without warm-up, each arm with its own sweep of the learning rate: Xiong et al. 2020, sections 3.2
// and 4.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "plumb/analysis/sweep.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/decode/beam_search.h"
#include "plumb/decode/translate.h"
#include "plumb/metrics/bleu_interval.h"
#include "plumb/optim/optimizer.h"
#include "plumb/study/initial_loss.h"
#include "plumb/study/training_arms.h"
#include "plumb/task/label_entropy.h"

namespace plumb {

void describe(Fields& field, TrainingArm& arm) {
  field("optimizer", arm.optimizer, "as `train.optimizer`", name_in(optimizers()));
  field("learning_rates", arm.learning_rates, "values of `train.learning_rate`", above(0).each_once());
  field("clip_norm", arm.clip_norm, "as `train.clip_norm`", at_least(0));
  field("schemes", arm.schemes, "those of `study.schemes` that it trains; empty: all");
}

std::string TrainingArm::name() const {
  return clip_norm > 0 ? fmt::format("{}, clipped at {:g}", optimizer, clip_norm) : optimizer;
}

std::string ArmId::name() const { return fmt::format("{}, {}", display_name(scheme), warm_up_name(warm_up)); }

std::string ArmId::optimizer_id() const {
  return optimizer.clip_norm > 0 ? fmt::format("{}-clipped{:g}", optimizer.optimizer, optimizer.clip_norm)
                                 : optimizer.optimizer;
}

bool same_figure(const ArmId& a, const ArmId& b) {
  return a.layers == b.layers && a.optimizer_id() == b.optimizer_id();
}

bool is_swept(const std::vector<Arm>& arms, const ArmId& shown) {
  return std::any_of(arms.begin(), arms.end(), [&](const Arm& arm) {
    return same_figure(arm.id, shown) && arm.id.optimizer.learning_rates.size() > 1;
  });
}

std::string figure_name(const char* what, const ArmId& arm) {
  return fmt::format("{}_{}_layers{}", what, arm.optimizer_id(), arm.layers);
}

namespace {

struct TrainingStudy {
  std::vector<Duration> warm_ups = {0, 400};
  std::vector<double> learning_rates = {1e-3, 3e-3};
  std::vector<int64_t> layers = {6};
  int64_t seeds = 1;
  int64_t bleu_pairs = 0;
  std::string bleu_split = "test";
  int64_t beam = 1;
  std::vector<TrainingArm> arms{};
};

void describe(Fields& field, TrainingStudy& part) {
  field("warm_ups", part.warm_ups, "values of `train.warm_up`, all in the same unit", count_from(0).each_once());
  field("learning_rates", part.learning_rates, "values of `train.learning_rate`, unless there are arms",
        above(0).each_once());
  field("layers", part.layers, kLayersMeaning, count_from(1).each_once());
  field("seeds", part.seeds, "runs of each kind", count_from(1));
  field("bleu_pairs", part.bleu_pairs,
        "pairs to translate and score at the end of the best runs, with a bootstrap interval over sentences for each "
        "run, and over seeds if there are several; 0: none",
        count_from(0));
  field("bleu_split", part.bleu_split,
        "the split to take them from; data built from your own files have no `test` unless `data.test` is given");
  field("beam", part.beam, "beam width", within(1, kLargestBeam));
  field.sections("arm", part.arms);
}

void check(const StudyConfig& study, const TrainingStudy& part) {
  check_warm_ups("training", part.warm_ups, study.train);
  check_rates("training.learning_rates", part.learning_rates);
  std::set<std::pair<std::string, std::string>> trained;
  for (const TrainingArm& arm : part.arms) {
    check_rates("training.arm.learning_rates", arm.learning_rates);
    const std::vector<std::string>& all = study.study.schemes;
    for (const std::string& scheme : arm.schemes.empty() ? all : arm.schemes) {
      if (std::find(all.begin(), all.end(), scheme) == all.end())
        throw Error(fmt::format("training.arm.schemes: {} is not among study.schemes", scheme));
      if (!trained.emplace(arm.name(), scheme).second)
        throw Error(fmt::format("[[training.arm]]: two arms train {} with {}", scheme, arm.name()));
    }
  }
}

std::vector<TrainingArm> optimizers_of(const StudyContext& context, const TrainingStudy& part) {
  if (!part.arms.empty()) return part.arms;
  return {{context.config.train.optimizer, part.learning_rates, context.config.train.clip_norm}};
}

std::vector<ArmId> arms_of(const StudyContext& context, const TrainingStudy& part) {
  std::vector<ArmId> arms;
  for (const std::string& scheme : context.config.study.schemes) {
    for (const int64_t layers : part.layers) {
      for (TrainingArm optimizer : optimizers_of(context, part)) {
        const std::vector<std::string>& only = optimizer.schemes;
        if (!only.empty() && std::find(only.begin(), only.end(), scheme) == only.end()) continue;
        std::sort(optimizer.learning_rates.begin(), optimizer.learning_rates.end());
        for (const Duration& warm_up : part.warm_ups) arms.push_back({scheme, layers, optimizer, warm_up});
      }
    }
  }
  return arms;
}

RunRequest arm_run(const StudyContext& context, const TrainingStudy& part, const ArmId& arm, double learning_rate,
                   int64_t seed) {
  RunRequest request;
  request.name = fmt::format("train-{}-layers{}-{}-warmup{}-lr{:g}-seed{}", file_name(arm.scheme), arm.layers,
                             arm.optimizer_id(), arm.warm_up.text(), learning_rate, context.config.study.seed + seed);
  request.label = fmt::format("{}, {}, lr {:g}", arm.name(), arm.optimizer.name(), learning_rate);
  request.config = run_config(context, model_for(context, arm.scheme, arm.layers));
  TrainConfig& train = request.config.train;
  train = with_warm_up(train, arm.warm_up, part.warm_ups);
  train.optimizer = arm.optimizer.optimizer;
  train.clip_norm = arm.optimizer.clip_norm;
  train.learning_rate = learning_rate;
  train.seed += seed;
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

/// The score of a run at its arm's best learning rate; empty if it diverged. Which rate that is, is known only after
/// training, so it is not planned.
std::optional<BleuAnswer> bleu_of(StudyContext& context, const TrainingStudy& part, const Arm& arm, int64_t seed) {
  const RunQuestion question{"bleu",
                             {{"pairs", part.bleu_pairs},
                              {"split", part.bleu_split},
                              {"beam", part.beam},
                              {"samples", kBleuSamples.samples},
                              {"seed", kBleuSamples.seed}},
                             [&](Model& model) { return described_json(measured_bleu(context, part, model)); }};
  return result_of<std::optional<BleuAnswer>>(context.measurements.get(
      question_measurement(context, arm_run(context, part, arm.id, arm.sweep.best().learning_rate, seed), question)));
}

/// `failed_at`: the loss from which a run has failed.
Sweep sweep_of(const Arm& arm, double failed_at) {
  Sweep sweep;
  sweep.failed_at = failed_at;
  for (size_t i = 0; i < arm.runs.size(); ++i)
    sweep.points.push_back({arm.id.optimizer.learning_rates[i], final_losses(arm.runs[i])});
  return sweep;
}

/// The title of a figure: "WHAT, 6+6 layers, adam".
std::string titled(const char* what, const StudyContext& context, const ArmId& arm) {
  return fmt::format("{}, {}, {}", what, layers_in_words(model_for(context, arm.scheme, arm.layers)),
                     arm.optimizer.name());
}

/// Final loss by learning rate: the mean of the finished runs, each run as a point, and diverged runs above all others.
Figure sweep_figure(const StudyContext& context, const std::vector<Arm>& arms, const ArmId& shown) {
  const bool one_seed =
      std::all_of(arms.begin(), arms.end(), [](const Arm& arm) { return arm.sweep.points.front().losses.size() == 1; });
  Figure figure{figure_name("sweep", shown),
                titled("Final validation loss by learning rate", context, shown),
                fmt::format("{} Points on the top edge are runs that diverged. Solid: with warm-up, dashed: without.",
                            one_seed ? "One run at each learning rate: no intervals."
                                     : "Means over seeds of the runs that finished; points are single runs."),
                "line",
                {"learning rate", true},
                {"validation loss (nats per token)"}};
  double highest = 0;
  for (const Arm& arm : arms) {
    for (const Sweep::Point& point : arm.sweep.points) {
      for (const double loss : point.losses) highest = std::isfinite(loss) ? std::max(highest, loss) : highest;
    }
  }
  for (const Arm& arm : arms) {
    if (!same_figure(arm.id, shown)) continue;
    Series means{arm.id.name(), arm.id.scheme};
    means.style = arm.id.warm_up.is_zero() ? "dashed" : "solid";
    Series runs{arm.id.name() + ", runs", arm.id.scheme};
    runs.style = "points";
    for (const Sweep::Point& point : arm.sweep.points) {
      double sum = 0;
      int64_t finished = 0;
      for (const double loss : point.losses) {
        // With one seed, a finished run is the mean itself.
        if (!one_seed || !std::isfinite(loss))
          runs.point(point.learning_rate, std::isfinite(loss) ? loss : 1.05 * highest);
        if (!std::isfinite(loss)) continue;
        sum += loss;
        ++finished;
      }
      means.point(point.learning_rate, finished > 0 ? sum / static_cast<double>(finished) : std::nan(""));
    }
    figure.series.push_back(means);
    if (!runs.x.empty()) figure.series.push_back(runs);
  }
  return figure;
}

Figure curves_figure(const StudyContext& context, const std::vector<Arm>& arms, const ArmId& shown) {
  Figure figure{
      figure_name("loss", shown),
      titled("Validation loss during training", context, shown),
      "Negative log-likelihood per target token of the validation split, each arm at its best learning rate, first "
      "seed. Solid: with warm-up, dashed: without. A cross marks a run that diverged.",
      "line",
      {"step"},
      {"validation loss (nats per token)", true}};
  for (const Arm& arm : arms) {
    if (!same_figure(arm.id, shown)) continue;
    Series series = arm.best().front()->validation_curve(
        fmt::format("{}, lr {:g}", arm.id.name(), arm.sweep.best().learning_rate), arm.id.scheme);
    series.style = arm.id.warm_up.is_zero() ? "dashed" : "solid";
    figure.series.push_back(series);
  }
  return figure;
}

/// BLEU of each arm: with one seed, its interval over sentences; with several, the mean and its interval over seeds.
/// The table has every run with its interval over sentences.
void report_bleu(StudyContext& context, const std::vector<Arm>& arms, const TrainingStudy& part, PartResult& result) {
  const bool one_seed = part.seeds == 1;
  const std::string over_sentences = fmt::format(
      "95% bootstrap interval over sentences ({} samples), which says how much the score of the same model "
      "would vary over other sentences of the same kind",
      with_thousands(kBleuSamples.samples));
  Figure figure{"bleu", "BLEU at the end of training"};
  Table table{
      "bleu",
      "BLEU by run",
      fmt::format("At the best learning rate of each arm, by validation loss; with the {}. How much another "
                  "initialization and data order would change it takes several seeds to tell.",
                  over_sentences),
      {"scheme", "layers", "optimizer", "warm-up", "learning rate", "seed", "BLEU", "low", "high", "sentences"}};
  figure.kind = "bar";
  figure.y = {"BLEU"};
  std::string signature;
  int64_t sentences = part.bleu_pairs;
  int64_t without = 0;
  for (const std::string& scheme : context.config.study.schemes) {
    Series series{display_name(scheme), scheme};
    for (const Arm& arm : arms) {
      if (arm.id.scheme != scheme) continue;
      std::vector<double> scores;
      Interval shown;
      for (int64_t seed = 0; seed < part.seeds; ++seed) {
        const std::optional<BleuAnswer> run = bleu_of(context, part, arm, seed);
        const Interval over_sentences{0, run ? run->low.value_or(std::nan("")) : std::nan(""),
                                      run ? run->high.value_or(std::nan("")) : std::nan("")};
        table.row(scheme, arm.id.layers, arm.id.optimizer.name(), as_cell(arm.id.warm_up),
                  arm.sweep.best().learning_rate, context.config.study.seed + seed,
                  run ? Json(run->score) : Json("diverged"), over_sentences.low, over_sentences.high,
                  run ? Json(run->sentences) : Json());
        if (!run) {
          ++without;
          continue;
        }
        scores.push_back(run->score);
        signature = run->signature;
        sentences = run->sentences;
        if (one_seed) shown = {run->score, over_sentences.low, over_sentences.high};
      }
      if (scores.empty()) {
        shown = {std::nan(""), std::nan(""), std::nan("")};
      } else if (!one_seed) {
        shown = confidence_interval(scores);
      }
      series.point(
          fmt::format("{0}+{0}, {1}, {2}", arm.id.layers, arm.id.optimizer.name(), warm_up_name(arm.id.warm_up)),
          shown);
    }
    figure.series.push_back(series);
  }
  figure.caption = fmt::format(
      "Detokenized, cased BLEU of {} pairs of the split '{}', beam width {}, at each arm's best learning rate, {}.{}{}",
      sentences, part.bleu_split, part.beam,
      one_seed ? "one seed, with the " + over_sentences +
                     "; one seed cannot tell how much another initialization would change it"
               : fmt::format("mean over {} seeds with its 95% interval by Student's t", part.seeds),
      without == 0
          ? std::string()
          : fmt::format(" {} run{} diverged and {} no BLEU{}.", without, without == 1 ? "" : "s",
                        without == 1 ? "has" : "have",
                        one_seed ? "" : "; the means are over the runs that finished, which flatters their arms"),
      signature.empty() ? std::string() : " Signature: " + signature + ".");
  result.figures.push_back(figure);
  result.tables.push_back(table);
}

Table runs_table(const std::vector<Arm>& arms) {
  Table table{"runs",
              "Training runs",
              "Loss and perplexity on the validation split at the end.",
              {"scheme", "layers", "optimizer", "warm-up", "learning rate", "seed", "outcome", "steps",
               "validation loss", "perplexity", "seconds"}};
  for (const Arm& arm : arms) {
    for (const auto& at_rate : arm.runs) {
      for (const Planned<TrainedRun>& run : at_rate) {
        table.row(arm.id.scheme, arm.id.layers, arm.id.optimizer.name(), as_cell(arm.id.warm_up),
                  run->config.train.learning_rate, run->config.train.seed, to_string(run->result.outcome),
                  run->result.steps, run->loss(), std::exp(run->loss()), run->result.seconds);
      }
    }
  }
  return table;
}

/// The learning rates that all arms with this arm's optimizer and depth have in common.
std::vector<double> common_rates(const std::vector<ArmId>& arms, const ArmId& id) {
  std::vector<double> rates = id.optimizer.learning_rates;
  for (const ArmId& other : arms) {
    if (!same_figure(id, other)) continue;
    const std::vector<double>& theirs = other.optimizer.learning_rates;
    std::erase_if(rates, [&](double rate) { return std::find(theirs.begin(), theirs.end(), rate) == theirs.end(); });
  }
  return rates;
}

/// NaN if there are fewer than two rates at which all arms that it is compared with were trained.
double sensitivity_of(const Arm& arm, const std::vector<double>& rates) {
  return rates.size() < 2 ? std::nan("") : arm.sweep.among(rates).sensitivity(**arm.initial).mean;
}

Table sweeps_table(const std::vector<Arm>& arms) {
  Table table{"sweeps",
              "Best learning rates",
              "At the best rate of each sweep: the mean loss over the seeds that finished, with its 95% interval. "
              "Sensitivity (Wortsman et al. 2023): how much larger the loss is on average over the rates than at the "
              "best one of them, where no loss counts for more than that before training; over the rates that all arms "
              "with the same optimizer and depth have in common.",
              {"scheme", "layers", "optimizer", "warm-up", "best learning rate", "loss", "low", "high", "diverged",
               "failed", "sensitivity", "note"}};
  if (!arms.empty()) {
    table.caption += fmt::format(
        " A run has failed if it diverged or ended at {:.2f} or more: no model that ignores its input can have a "
        "smaller "
        "loss on this split.",
        arms.front().sweep.failed_at);
  }
  std::vector<ArmId> ids;
  for (const Arm& arm : arms) ids.push_back(arm.id);
  for (const Arm& arm : arms) {
    const Sweep::Point& best = arm.sweep.best();
    int64_t diverged = 0;
    int64_t failed = 0;
    int64_t runs = 0;
    for (const Sweep::Point& point : arm.sweep.points) {
      for (const double loss : point.losses) {
        ++runs;
        diverged += std::isinf(loss) ? 1 : 0;
        failed += loss < arm.sweep.failed_at ? 0 : 1;
      }
    }
    table.row(arm.id.scheme, arm.id.layers, arm.id.optimizer.name(), as_cell(arm.id.warm_up), best.learning_rate,
              judge(best.losses, {}).effect, fmt::format("{} of {}", diverged, runs),
              fmt::format("{} of {}", failed, runs), sensitivity_of(arm, common_rates(ids, arm.id)),
              arm.sweep.open_end());
  }
  return table;
}

/// How many runs diverged, and which is the best.
void summarize_runs(const std::vector<Arm>& arms, PartResult& result) {
  int64_t runs = 0;
  int64_t diverged = 0;
  const TrainedRun* best = nullptr;
  const Arm* best_arm = nullptr;
  for (const Arm& arm : arms) {
    for (const auto& at_rate : arm.runs) {
      for (const Planned<TrainedRun>& run : at_rate) {
        ++runs;
        diverged += run->diverged() ? 1 : 0;
        if (run->diverged() || (best != nullptr && !(run->loss() < best->loss()))) continue;
        best = &*run;
        best_arm = &arm;
      }
    }
  }
  if (best != nullptr) {
    result.summary.push_back(fmt::format(
        "The smallest final validation loss of {} training runs is that of {}, {}, lr {:g}: {:.2f}. As the best of "
        "many it is no estimate of what that arm would reach again.",
        runs, best_arm->id.name(), best_arm->id.optimizer.name(), best->config.train.learning_rate, best->loss()));
  }
  if (diverged > 0) result.summary.push_back(fmt::format("{} of {} training runs diverged.", diverged, runs));
}

PartResult report_training(StudyContext& context, const TrainingStudy& part, std::vector<Arm> arms) {
  const double failed_at = context.data.has_split("valid") ? label_entropy(*context.task.dataset("valid"))
                                                           : std::numeric_limits<double>::infinity();
  for (Arm& arm : arms) arm.sweep = sweep_of(arm, failed_at);
  PartResult result;
  std::vector<ArmId> shown;
  for (const Arm& arm : arms) {
    if (std::any_of(shown.begin(), shown.end(), [&](const ArmId& id) { return same_figure(id, arm.id); })) continue;
    shown.push_back(arm.id);
    if (is_swept(arms, arm.id)) result.figures.push_back(sweep_figure(context, arms, arm.id));
    result.figures.push_back(curves_figure(context, arms, arm.id));
  }
  result.tables = {runs_table(arms), sweeps_table(arms)};
  if (part.bleu_pairs > 0) report_bleu(context, arms, part, result);
  judge_warm_up(context, arms, result);
  summarize_runs(arms, result);
  return result;
}

PartPlan plan(StudyContext& context, const TrainingStudy& part) {
  if (part.bleu_pairs > 0) require_split(context, part.bleu_split);
  PartPlan plan(context);
  std::vector<Arm> arms;
  const std::vector<ArmId> ids = arms_of(context, part);
  for (const ArmId& id : ids) {
    Arm& arm = arms.emplace_back(Arm{id, {}, {}});
    for (const double learning_rate : id.optimizer.learning_rates) {
      auto& at_rate = arm.runs.emplace_back();
      for (int64_t seed = 0; seed < part.seeds; ++seed)
        at_rate.push_back(planned_run(plan, context, arm_run(context, part, id, learning_rate, seed)));
    }
    if (common_rates(ids, id).size() < 2) continue;
    arm.initial = plan.add<std::vector<double>>(
        initial_loss_request(context, fmt::format("{}-layers{}", file_name(id.scheme), id.layers),
                             model_for(context, id.scheme, id.layers), part.seeds));
  }
  plan.report = [&context, part, arms] { return report_training(context, part, arms); };
  return plan;
}

[[maybe_unused]] const bool kTraining = add_part<TrainingStudy>(
    "training", "training with and without warm-up, each arm with its own sweep of the learning rate",
    "Xiong et al. 2020, arXiv 2002.04745", {.place = 5, .plan = plan, .trains = kAlways, .check = check});

}  // namespace
}  // namespace plumb
