// Norms over single tokens compared with norms over a batch: training with different batch sizes, and with different
// numbers of processes sharing a batch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "plumb/base/text.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct NormsStudy {
  std::vector<std::string> norms = {"layernorm", "rmsnorm", "batchnorm"};
  int64_t layers = 3;
  int64_t tokens = 300000;
  std::vector<int64_t> batch_tokens = {64, 256, 1024};
  int64_t seeds = 2;
  int64_t shared_batch_tokens = 256;
  std::vector<int64_t> processes = {1, 2, 4};
};

void describe(Fields& field, NormsStudy& part) {
  field("norms", part.norms, "the norms; `batchnorm` is also trained with separate statistics in each process",
        name_in(norms()));
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("tokens", part.tokens, "training tokens per run", within(1, 1e12));
  field("batch_tokens", part.batch_tokens, "batch sizes of the single-process runs", count_from(1).each_once());
  field("seeds", part.seeds, "seeds of the single-process runs", count_from(1));
  field("shared_batch_tokens", part.shared_batch_tokens, "batch size of the multi-process runs", count_from(1));
  field("processes", part.processes, "process counts", count_from(1).each_once());
}

/// A norm and, for BatchNorm in several processes, whether its statistics are exchanged.
struct NormVariant {
  std::string norm;
  bool synchronized = true;

  [[nodiscard]] std::string name() const { return norm + (synchronized ? "" : ", own statistics"); }
};

struct NormRun {
  int64_t batch_tokens = 0;
  int64_t processes = 1;
  Planned<TrainedRun> trained;

  [[nodiscard]] double loss() const { return trained->loss(); }
  /// The median of value(point) over the points of the history.
  template <typename Value>
  [[nodiscard]] double median(const Value& value) const {
    std::vector<double> all;
    for (const TrainPoint& point : trained->result.history) all.push_back(value(point));
    if (all.empty()) return std::nan("");
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
  }
  [[nodiscard]] double tokens_per_second() const {
    return median([](const TrainPoint& point) { return point.tokens_per_second; });
  }
  [[nodiscard]] double exchange_seconds() const {
    return median([](const TrainPoint& point) { return point.exchange_seconds.value_or(0); });
  }
  [[nodiscard]] double exchange_bytes() const {
    return median([](const TrainPoint& point) { return point.exchange_bytes.value_or(0); });
  }
};

RunRequest norm_run(const StudyContext& context, const NormsStudy& part, const NormVariant& variant,
                    int64_t batch_tokens, int64_t processes, int64_t seed) {
  const TrainConfig& given = context.config.train;
  RunRequest request;
  request.config = run_config(context, model_for(context, context.config.study.schemes.front(), part.layers));
  request.config.model.norm = variant.norm;
  TrainConfig& train = request.config.train;
  train.seed += seed;
  train.batch_tokens = batch_tokens;
  train.processes = processes;
  train.synchronize_norms = variant.synchronized;
  // [train] describes runs with its own batch size. Durations in steps are scaled to keep their share of the run; those
  // in tokens and epochs keep it unchanged.
  const double ratio = static_cast<double>(batch_tokens) / static_cast<double>(given.batch_tokens);
  const auto in_proportion = [&](const Duration& of_given) -> Duration {
    if (of_given.unit() != Duration::Unit::steps || of_given.is_zero()) return of_given;
    return std::max<int64_t>(std::llround(static_cast<double>(of_given.in_steps()) / ratio), 1);
  };
  train.learning_rate = given.learning_rate * std::sqrt(ratio);
  train.steps = std::max<int64_t>(part.tokens / batch_tokens, 1);
  train.warm_up = in_proportion(given.warm_up);
  train.decay_start = in_proportion(given.decay_start);
  if (train.warm_up == 1 && train.decay_start.is_zero()) train.decay_start = 1;  // the end of warm-up, as given
  train.validate_every = in_proportion(given.validate_every);
  train.log_every = in_proportion(given.log_every);
  request.name = fmt::format("norms-{}{}-batch{}-processes{}-seed{}", variant.norm, variant.synchronized ? "" : "-own",
                             batch_tokens, processes, train.seed);
  request.label = fmt::format("{}, batches of {} tokens{}", variant.name(), batch_tokens,
                              processes == 1 ? "" : fmt::format(", {} processes", processes));
  return request;
}

/// The variants trained in several processes: BatchNorm with and without exchanged statistics.
std::vector<NormVariant> shared_variants(const NormsStudy& part) {
  std::vector<NormVariant> variants;
  for (const std::string& norm : part.norms) {
    variants.push_back({norm});
    if (norm == "batchnorm") variants.push_back({norm, false});
  }
  return variants;
}

RunRequest shared_run(const StudyContext& context, const NormsStudy& part, const NormVariant& variant,
                      int64_t processes) {
  return norm_run(context, part, variant.synchronized || processes > 1 ? variant : NormVariant{variant.norm},
                  part.shared_batch_tokens, processes, 0);
}

/// [seed]: the final losses of the runs with one batch size.
std::vector<double> losses_at(const std::vector<NormRun>& runs, int64_t batch_tokens) {
  std::vector<double> losses;
  for (const NormRun& run : runs) {
    if (run.batch_tokens == batch_tokens) losses.push_back(run.loss());
  }
  return losses;
}

/// The mean of the runs that finished; NaN if none did.
double mean_loss(const std::vector<NormRun>& runs, int64_t batch_tokens) {
  return judge(losses_at(runs, batch_tokens), {}).effect.mean;
}

constexpr double kNormMargin = 0.05;  // nats per token

/// What papers claim of a norm compared with LayerNorm, by the final loss minus LayerNorm's.
struct NormClaim {
  const char* norm;
  const char* id;
  const char* claim;
  const char* source;
  Region region;
};
const NormClaim kNormClaims[] = {
    {"rmsnorm", "rmsnorm_as_good", "RMSNorm trains as well as LayerNorm, without subtracting the mean",
     "Zhang & Sennrich 2019, arXiv 1910.07467", Region::around(0, kNormMargin)},
    {"batchnorm", "batchnorm_worse", "BatchNorm trains worse than LayerNorm in a Transformer",
     "Shen et al. 2020, arXiv 2003.07845", Region::above(kNormMargin, 0)},
};

using NormRuns = std::map<std::string, std::vector<NormRun>>;  // by norm, or variant

/// Training with different batch sizes in one process.
void report_batches(const StudyContext& context, const NormsStudy& part, const NormRuns& runs, PartResult& result) {
  Figure figure{"norms_batch",
                "Final validation loss by batch size",
                fmt::format("Every run is trained on {} tokens, so larger batches take fewer steps; the learning rate "
                            "is proportional to the square root of the batch. {}; runs that diverged are omitted.",
                            with_thousands(part.tokens),
                            part.seeds == 1 ? "One run each"
                                            : fmt::format("Means over {} seeds, bands from the smallest to the largest",
                                                          part.seeds)),
                "line",
                {"tokens per batch", true},
                {"validation loss (nats per token)"}};
  Table table{
      "norms_batch",
      "Norms by batch size",
      "At the last training point and the last validation; BatchNorm normalizes the former by the batch and the "
      "latter by running averages.",
      {"norm", "tokens per batch", "seed", "outcome", "steps", "training loss", "validation loss"}};
  for (const std::string& norm : part.norms) {
    Series series{norm, norm};
    for (const int64_t batch : part.batch_tokens) {
      std::vector<double> finals;
      int64_t seed = context.config.study.seed;
      for (const NormRun& run : runs.at(norm)) {
        if (run.batch_tokens != batch) continue;
        if (std::isfinite(run.loss())) finals.push_back(run.loss());
        table.rows.push_back({norm, batch, seed++, run.trained->result.outcome, run.trained->result.steps,
                              run.trained->result.history.back().nll, finite_or_null(run.loss())});
      }
      if (finals.empty()) continue;
      const auto [low, high] = std::minmax_element(finals.begin(), finals.end());
      series.point(batch, mean_loss(runs.at(norm), batch), *low, *high);
    }
    figure.series.push_back(series);
  }
  result.figures.push_back(figure);
  result.tables.push_back(table);

  const auto [small, large] = std::minmax_element(part.batch_tokens.begin(), part.batch_tokens.end());
  for (const int64_t batch : *small == *large ? std::vector{*small} : std::vector{*small, *large}) {
    std::vector<std::string> finals;
    for (const std::string& norm : part.norms)
      finals.push_back(
          fmt::format("{} with {}", with_interval(judge(losses_at(runs.at(norm), batch), {}).effect), norm));
    result.summary.push_back(
        fmt::format("With {} tokens per batch, the final validation loss is {} ({}; one learning rate).",
                    with_thousands(batch), join(finals, ", "), seeds_in_words(part.seeds)));
  }

  if (runs.count("layernorm") == 0) return;
  const ModelConfig model = model_for(context, context.config.study.schemes.front(), part.layers);
  for (const NormClaim& claim : kNormClaims) {
    const auto of_norm = runs.find(claim.norm);
    if (of_norm == runs.end()) continue;
    for (const int64_t batch : part.batch_tokens) {
      const Judgment judgment =
          judge_difference(losses_at(of_norm->second, batch), losses_at(runs.at("layernorm"), batch), claim.region);
      result.verdicts.push_back(
          {fmt::format("{}_{}", claim.id, batch), fmt::format("{} ({} tokens per batch)", claim.claim, batch),
           claim.source, setting_of(context, model),
           fmt::format("final validation loss of {} − of layernorm (nats per token), at one learning rate", claim.norm),
           not_testable_because(undecided_because(judgment, kOneRate), training_not_testable(context)), "",
           "norms_batch"});
    }
  }
}

/// Training with one batch size in several processes.
void report_processes(const NormsStudy& part, const NormRuns& runs, PartResult& result) {
  Figure figure{
      "norms_processes",
      "Final validation loss by number of processes",
      fmt::format("{} tokens per batch, shared by the processes; one run each. Gradients are summed over all; "
                  "so are BatchNorm's statistics, unless each process computes its own.",
                  part.shared_batch_tokens),
      "line",
      {"processes", true},
      {"validation loss (nats per token)"}};
  Figure cost{"norms_exchange",
              "Communication time per step",
              "All processes exchange the gradient; BatchNorm's statistics are small, but every norm has to wait for "
              "them once, forward and backward. Medians over the steps of one run, on this machine and with whatever "
              "else ran on it.",
              "bar",
              {},
              {"milliseconds per step"}};
  Table table{"norms_processes",
              "Norms by number of processes",
              "Speed and communication time on this machine, whose cores the processes share: medians over the run.",
              {"norm", "processes", "outcome", "loss at step 1", "gradient norm at step 1", "validation loss",
               "target tokens/s", "exchange, ms per step", "exchange, kB per step"}};
  for (const NormVariant& variant : shared_variants(part)) {
    Series series{variant.name(), variant.norm};
    series.style = variant.synchronized ? "solid" : "dashed";
    Series times{variant.name(), variant.name()};
    for (const NormRun& run : runs.at(variant.name())) {
      series.point(run.processes, run.loss());
      if (run.processes > 1) times.point(fmt::format("{} processes", run.processes), run.exchange_seconds() * 1e3);
      const TrainPoint& first = run.trained->result.history.front();
      table.row(variant.name(), run.processes, to_string(run.trained->result.outcome), first.nll,
                first.gradient_norm.value_or(std::nan("")), run.loss(), run.tokens_per_second(),
                run.exchange_seconds() * 1e3, run.exchange_bytes() / 1e3);
    }
    figure.series.push_back(series);
    cost.series.push_back(times);
  }
  result.figures.push_back(figure);
  result.figures.push_back(cost);
  result.tables.push_back(table);
  if (runs.count("batchnorm") == 0 || part.processes.size() < 2) return;

  const NormRun& one = runs.at("batchnorm").front();
  const NormRun& exchanged = runs.at("batchnorm").back();
  const NormRun& own = runs.at("batchnorm, own statistics").back();
  const auto step_one = [](const NormRun& run) {
    return run.trained->result.history.front().gradient_norm.value_or(std::nan(""));
  };
  // Not a claim about training but an identity, which a test verifies; reported as a check of this run.
  result.summary.push_back(fmt::format(
      "The gradient norm of BatchNorm's first step differs between {1} and {2} processes by a fraction of {0:.1g} with "
      "exchanged statistics, and of {3:.1g} if each process computes its own.",
      std::abs(step_one(exchanged) / step_one(one) - 1), one.processes, exchanged.processes,
      std::abs(step_one(own) / step_one(one) - 1)));
}

PartPlan plan(StudyContext& context, const NormsStudy& part) {
  PartPlan plan(context);
  NormRuns alone, shared;
  for (const std::string& norm : part.norms) {
    for (const int64_t batch : part.batch_tokens) {
      for (int64_t seed = 0; seed < part.seeds; ++seed) {
        const RunRequest request = norm_run(context, part, {norm}, batch, 1, seed);
        alone[norm].push_back({batch, 1, planned_run(plan, context, request)});
      }
    }
  }
  for (const NormVariant& variant : shared_variants(part)) {
    for (const int64_t processes : part.processes) {
      const RunRequest request = shared_run(context, part, variant, processes);
      shared[variant.name()].push_back({part.shared_batch_tokens, processes, planned_run(plan, context, request)});
    }
  }
  plan.report = [&context, part, alone, shared] {
    PartResult result;
    report_batches(context, part, alone, result);
    report_processes(part, shared, result);
    return result;
  };
  return plan;
}

[[maybe_unused]] const bool kNorms =
    add_part<NormsStudy>("norms", "training with each norm, over batch sizes and numbers of processes",
                         "Shen et al. 2020, arXiv 2003.07845", {.place = 11, .plan = plan, .trains = kAlways});

}  // namespace
}  // namespace plumb
