// Norms over single tokens compared with norms over a batch: training with different batch sizes, and with different
// numbers of processes sharing a batch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

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
  int64_t seeds = 3;
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

/// The median of value(point) over the points of a run's history.
template <typename Value>
double median(const TrainedRun& run, const Value& value) {
  return median_of(numbers_in(run.result.history, value));
}

/// The run with the study's seed, which its name leaves out.
RunRequest norm_run(const StudyContext& context, const NormsStudy& part, const NormVariant& variant,
                    int64_t batch_tokens, int64_t processes) {
  const TrainConfig& given = train_for(context, context.arms.front().name);
  RunRequest request{fmt::format("norms-{}{}-batch{}-processes{}", variant.norm, variant.synchronized ? "" : "-own",
                                 batch_tokens, processes),
                     fmt::format("{}, batches of {} tokens, processes: {}", variant.name(), batch_tokens, processes),
                     run_config(context, model_for(context, context.arms.front().name, part.layers), given)};
  request.config.model.norm = variant.norm;
  TrainConfig& train = request.config.train;
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

/// [seed]: the runs with one batch size.
std::vector<Planned<TrainedRun>> runs_at(std::vector<Planned<TrainedRun>> runs, int64_t batch_tokens) {
  std::erase_if(runs, [&](const auto& run) { return run->config.train.batch_tokens != batch_tokens; });
  return runs;
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

using NormRuns = std::map<std::string, std::vector<Planned<TrainedRun>>>;  // by norm, or variant

/// Training with different batch sizes in one process.
void report_batches(const StudyContext& context, const NormsStudy& part, const NormRuns& runs, PartResult& result) {
  Figure figure{
      "norms_batch",
      "Final validation loss by batch size",
      fmt::format("Every run is trained on {} tokens; the learning rate is proportional to the square root of "
                  "the batch. Means over {} seeds, with bands from the smallest to the largest; no run counts "
                  "with more than a model that ignores its input, {:.2f}.",
                  with_thousands(part.tokens), part.seeds, label_frequencies(context)),
      "line",
      {"tokens per batch", true},
      {"validation loss (nats per token)"}};
  Table table{"norms_batch",
              "Norms by batch size",
              "BatchNorm normalizes by the batch in training, and by running averages in validation.",
              {"norm", "tokens per batch", "seed", "outcome", "steps", "training loss", "validation loss"}};
  for (const std::string& norm : part.norms) {
    Series& line = figure.add(norm, norm);
    for (const int64_t batch : part.batch_tokens) {
      for (const Planned<TrainedRun>& run : runs_at(runs.at(norm), batch)) {
        const TrainResult& trained = run->result;
        table.row(norm, batch, run->config.train.seed, to_string(trained.outcome), trained.steps,
                  trained.history.back().nll, run->loss());
      }
      std::vector<double> finals = counted_losses(context, runs_at(runs.at(norm), batch));
      std::erase_if(finals, [](double loss) { return !std::isfinite(loss); });
      if (finals.empty()) continue;
      const auto [low, high] = std::minmax_element(finals.begin(), finals.end());
      line.point(batch, confidence_interval(finals).mean, *low, *high);
    }
  }
  result.figures.push_back(figure);
  result.tables.push_back(table);

  if (runs.count("layernorm") == 0) return;
  const ModelConfig model = model_for(context, context.arms.front().name, part.layers);
  for (const NormClaim& claim : kNormClaims) {
    const auto of_norm = runs.find(claim.norm);
    if (of_norm == runs.end()) continue;
    for (const int64_t batch : part.batch_tokens) {
      result.verdicts.push_back(
          {fmt::format("{}_{}", claim.id, batch), fmt::format("{} ({} tokens per batch)", claim.claim, batch),
           claim.source, setting_of(context, model),
           fmt::format("final validation loss of {} − of layernorm (nats per token), at one learning rate", claim.norm),
           judge_at_one_rate(context, runs_at(of_norm->second, batch), runs_at(runs.at("layernorm"), batch),
                             claim.region),
           "", "norms_batch"});
    }
  }
}

/// Training with one batch size in several processes.
void report_processes(const NormsStudy& part, const NormRuns& runs, PartResult& result) {
  Figure figure{"norms_processes",
                "Final validation loss by number of processes",
                fmt::format("{} tokens per batch, shared by the processes; one run each.", part.shared_batch_tokens),
                "line",
                {"processes", true},
                {"validation loss (nats per token)"}};
  Figure cost{"norms_exchange",
              "Communication time per step",
              "Of gradients and BatchNorm's statistics: medians over the steps of one run, on this machine and with "
              "whatever else ran on it.",
              "bar",
              {},
              {"milliseconds per step"}};
  Table table{"norms_processes",
              "Norms by number of processes",
              "Speed and communication on this machine, whose cores the processes share: medians over the run.",
              {"norm", "processes", "outcome", "loss at step 1", "gradient norm at step 1", "validation loss",
               "target tokens/s", "exchange, ms per step", "exchange, kB per step"}};
  for (const NormVariant& variant : shared_variants(part)) {
    Series& losses = figure.add(variant.name(), variant.norm, variant.synchronized ? "solid" : "dashed");
    Series& times = cost.add(variant.name(), variant.name());
    for (const Planned<TrainedRun>& run : runs.at(variant.name())) {
      const double exchange =
          median(*run, [](const TrainPoint& point) { return point.exchange_seconds.value_or(0) * 1e3; });
      losses.point(run->config.train.processes, run->loss());
      if (run->config.train.processes > 1)
        times.point(fmt::format("{} processes", run->config.train.processes), exchange);
      const TrainPoint& first = run->result.history.front();
      table.row(variant.name(), run->config.train.processes, to_string(run->result.outcome), first.nll,
                first.gradient_norm.value_or(std::nan("")), run->loss(),
                median(*run, [](const TrainPoint& point) { return point.tokens_per_second; }), exchange,
                median(*run, [](const TrainPoint& point) { return point.exchange_bytes.value_or(0) / 1e3; }));
    }
  }
  result.figures.push_back(figure);
  result.figures.push_back(cost);
  result.tables.push_back(table);
}

PartPlan plan(StudyContext& context, const NormsStudy& part) {
  PartPlan plan(context);
  NormRuns alone, shared;
  for (const std::string& norm : part.norms) {
    for (const int64_t batch : part.batch_tokens) {
      for (const auto& run : planned_runs(plan, context, norm_run(context, part, {norm}, batch, 1), part.seeds))
        alone[norm].push_back(run);
    }
  }
  for (const NormVariant& variant : shared_variants(part)) {
    for (const int64_t processes : part.processes) {
      const NormVariant trained{variant.norm, variant.synchronized || processes == 1};
      const RunRequest request = norm_run(context, part, trained, part.shared_batch_tokens, processes).with_seed(0);
      shared[variant.name()].push_back(planned_run(plan, context, request));
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
                         "Shen et al. 2020, arXiv 2003.07845", {.place = 12, .plan = plan, .trains = kAlways});

}  // namespace
}  // namespace plumb
