// Training with and without warm-up: Xiong et al. 2020, sections 3.2 and 4.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/base/text.h"
#include "plumb/decode/translate.h"
#include "plumb/metrics/bleu.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct SchemeRun {
  std::string scheme;
  int64_t layers;
  int64_t warm_up;
  double learning_rate;
  TrainedRun trained;
  std::optional<double> bleu;

  [[nodiscard]] double loss() const { return trained.loss(); }
  [[nodiscard]] std::string name() const {
    return fmt::format("{}, {}+{} layers, {}, lr {:g}", display_name(scheme), layers, layers,
                       warm_up == 0 ? "no warm-up" : fmt::format("warm-up {}", warm_up), learning_rate);
  }
  [[nodiscard]] std::string summary() const {
    return trained.summary() + (bleu ? fmt::format(", BLEU {:.1f}", *bleu) : "");
  }
};

/// BLEU of the translations of the first pairs of a split; null if the study does not ask for it.
Json score(Model& model, const StudyContext& context, const TrainingStudy& part) {
  if (part.bleu_pairs == 0) return nullptr;
  std::vector<std::string> source = context.data.raw_source(part.bleu_split);
  std::vector<std::string> reference = context.data.raw_target(part.bleu_split);
  const auto count = static_cast<size_t>(std::min<int64_t>(part.bleu_pairs, std::ssize(source)));
  source.resize(count);
  reference.resize(count);
  DecodeOptions options;
  options.beam = part.beam;
  const auto hypotheses = translate(translator_of(model), context.data.source_tokenizer(),
                                    context.data.target_tokenizer(), source, options);
  return corpus_bleu(hypotheses, {reference}).score;
}

SchemeRun train_run(StudyContext& context, const std::string& scheme, int64_t layers, int64_t warm_up,
                    double learning_rate, const TrainingStudy& part) {
  SchemeRun run{scheme, layers, warm_up, learning_rate, {}, {}};
  RunRequest request;
  request.name = fmt::format("train-{}-layers{}-warmup{}-lr{:g}", file_name(scheme), layers, warm_up, learning_rate);
  request.label = run.name();
  request.config = run_config(context, model_for(context, scheme, layers));
  request.config.train.warm_up = warm_up;
  request.config.train.learning_rate = learning_rate;
  request.more_settings = {{"bleu", {part.bleu_pairs, part.bleu_split, part.beam}}};
  request.question = "test_bleu";
  request.ask = [&](Model& model) { return score(model, context, part); };
  run.trained = trained_run(context, request);
  if (run.trained.answer.is_number()) run.bleu = run.trained.answer.get<double>();
  return run;
}

std::string curves_id(double learning_rate, int64_t layers) {
  return fmt::format("loss_lr{:g}_layers{}", learning_rate, layers);
}

Figure curves(const std::vector<SchemeRun>& runs, double learning_rate, int64_t layers) {
  Figure figure{
      curves_id(learning_rate, layers),
      fmt::format("Validation loss during training, {0}+{0} layers, learning rate {1:g}", layers, learning_rate)};
  figure.caption =
      "Negative log-likelihood per target token of the validation split; solid: with warm-up, dashed: without. A cross "
      "marks a run that diverged.";
  figure.kind = "line";
  figure.x = {"step"};
  figure.y = {"validation loss (nats per token)", true};
  for (const SchemeRun& run : runs) {
    if (run.learning_rate != learning_rate || run.layers != layers) continue;
    const std::string warm_up = run.warm_up == 0 ? "no warm-up" : fmt::format("warm-up {}", run.warm_up);
    Series series = run.trained.validation_curve(fmt::format("{}, {}", display_name(run.scheme), warm_up), run.scheme);
    series.style = run.warm_up == 0 ? "dashed" : "solid";
    figure.series.push_back(series);
  }
  return figure;
}

const SchemeRun* find(const std::vector<SchemeRun>& runs, const std::string& scheme, int64_t layers, bool warmed,
                      double learning_rate) {
  for (const SchemeRun& run : runs) {
    const bool same = run.scheme == scheme && run.layers == layers && run.learning_rate == learning_rate;
    if (same && (run.warm_up > 0) == warmed) return &run;
  }
  return nullptr;
}

/// What counts as "clearly worse": a tenth of a nat per token, or divergence.
constexpr double kClearlyBetter = 0.1;

/// What a paper claims about training its scheme without warm-up.
struct WarmUpClaim {
  const char* scheme;
  bool needed;
  const char* claim;
  const char* source;
};
constexpr WarmUpClaim kClaims[] = {
    {"post-ln", true, "Post-LN: training without warm-up is clearly worse, or fails", "Xiong et al. 2020, Figure 2"},
    {"pre-ln", false, "Pre-LN: trains without warm-up", "Xiong et al. 2020, section 4"},
    {"residual-dual", false, "ResiDual: trains without warm-up", "Xie et al. 2023, arXiv 2304.14802"},
    {"rezero", false, "ReZero: trains without warm-up", "Bachlechner et al. 2020, arXiv 2003.04887"},
};

/// Compares training with and without warm-up for one scheme, for all depths and learning rates; one row per
/// comparison, and a verdict if a paper makes a claim.
void judge_warm_up(const std::vector<SchemeRun>& runs, const std::string& scheme, const TrainingStudy& part,
                   Table& table, PartResult& result) {
  std::vector<std::string> evidence;
  int64_t needed = 0;
  int64_t compared = 0;
  for (const int64_t layers : part.layers) {
    for (const double learning_rate : part.learning_rates) {
      const SchemeRun* with = find(runs, scheme, layers, true, learning_rate);
      const SchemeRun* without = find(runs, scheme, layers, false, learning_rate);
      if (with == nullptr || without == nullptr) continue;
      ++compared;
      if (without->loss() > with->loss() + kClearlyBetter) ++needed;
      evidence.push_back(fmt::format("{0}+{0} layers, lr {1:g}: with warm-up {2}, without {3}.", layers, learning_rate,
                                     with->summary(), without->summary()));
      table.rows.push_back({scheme, layers, learning_rate, finite_or_null(with->loss()),
                            finite_or_null(without->loss()), finite_or_null(without->loss() - with->loss())});
    }
  }
  if (compared == 0) return;
  const std::string id = curves_id(part.learning_rates.back(), part.layers.back());
  for (const WarmUpClaim& claim : kClaims) {
    if (scheme != claim.scheme) continue;
    const bool holds = claim.needed ? needed == compared : needed == 0;
    const bool fails = claim.needed ? needed == 0 : needed == compared;
    std::string name = fmt::format("{}_warm_up", scheme);
    std::replace(name.begin(), name.end(), '-', '_');
    result.verdicts.push_back({name, claim.claim, claim.source,
                               holds   ? "confirmed"
                               : fails ? "contradicted"
                                       : "unclear",
                               join(evidence, " "), id});
  }
}

}  // namespace

PartResult measure(StudyContext& context, const TrainingStudy& part) {
  std::vector<SchemeRun> runs;
  for (const std::string& scheme : context.config.study.schemes) {
    for (const int64_t layers : part.layers) {
      for (const double learning_rate : part.learning_rates) {
        for (const int64_t warm_up : part.warm_ups)
          runs.push_back(train_run(context, scheme, layers, warm_up, learning_rate, part));
      }
    }
  }

  PartResult result;
  Table table{"runs",
              "Training runs",
              "Loss and perplexity on the validation split at the end.",
              {"scheme", "layers", "warm-up", "learning rate", "outcome", "steps", "validation loss", "perplexity",
               "BLEU", "seconds"}};
  for (const SchemeRun& run : runs) {
    table.rows.push_back({run.scheme, run.layers, run.warm_up, run.learning_rate, run.trained.result.outcome,
                          run.trained.result.steps, finite_or_null(run.loss()), finite_or_null(std::exp(run.loss())),
                          run.bleu ? Json(*run.bleu) : Json(nullptr), finite_or_null(run.trained.result.seconds)});
  }
  for (const int64_t layers : part.layers) {
    for (const double learning_rate : part.learning_rates)
      result.figures.push_back(curves(runs, learning_rate, layers));
  }
  if (part.bleu_pairs > 0) {
    Figure bleu{"bleu", "BLEU at the end of training"};
    bleu.caption = fmt::format("Detokenized, cased BLEU of {} pairs, beam width {}; runs that diverged have none.",
                               part.bleu_pairs, part.beam);
    bleu.kind = "bar";
    bleu.y = {"BLEU"};
    for (const std::string& scheme : context.config.study.schemes) {
      Series series{display_name(scheme), scheme};
      for (const SchemeRun& run : runs) {
        if (run.scheme != scheme) continue;
        series.point(fmt::format("{0}+{0}, lr {1:g}, {2}", run.layers, run.learning_rate,
                                 run.warm_up == 0 ? "none" : fmt::format("warm-up {}", run.warm_up)),
                     run.bleu.value_or(std::nan("")));
      }
      bleu.series.push_back(series);
    }
    result.figures.push_back(bleu);
  }
  result.tables.push_back(table);
  Table gains{"warm_up",
              "Effect of warm-up",
              "Validation loss, nats per token; empty if the run diverged.",
              {"scheme", "layers", "learning rate", "with warm-up", "without", "difference"}};
  for (const std::string& scheme : context.config.study.schemes) judge_warm_up(runs, scheme, part, gains, result);
  if (!gains.rows.empty()) result.tables.push_back(gains);

  const auto best = std::min_element(runs.begin(), runs.end(),
                                     [](const SchemeRun& a, const SchemeRun& b) { return a.loss() < b.loss(); });
  if (best != runs.end() && std::isfinite(best->loss())) {
    result.summary.push_back(
        fmt::format("The best of {} training runs is {}: {}.", runs.size(), best->name(), best->summary()));
  }
  if (const auto failed =
          std::count_if(runs.begin(), runs.end(), [](const SchemeRun& run) { return run.trained.diverged(); });
      failed > 0) {
    result.summary.push_back(fmt::format("{} of {} runs diverged.", failed, runs.size()));
  }
  return result;
}

}  // namespace plumb
