// Norms over single tokens and norms over a batch, trained with different numbers of processes sharing a batch.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "plumb/nn/norm/norm.h"
#include "plumb/study/trained_run.h"

namespace plumb {
namespace {

struct NormsStudy {
  std::vector<std::string> norms = {"layernorm", "rmsnorm", "batchnorm"};
  int64_t layers = 3;
  std::vector<int64_t> processes = {1, 2, 4};
};

void describe(Fields& field, NormsStudy& part) {
  field("norms", part.norms, "the norms; `batchnorm` is also trained with separate statistics in each process",
        name_in(norms()));
  field("layers", part.layers, kLayersMeaning, count_from(1));
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
                    int64_t processes) {
  const std::string& arm = context.arms.front().name;
  RunRequest request{fmt::format("norms-{}{}-processes{}", variant.norm, variant.synchronized ? "" : "-own", processes),
                     fmt::format("{}, processes: {}", variant.name(), processes),
                     run_config(context, model_for(context, arm, part.layers), train_for(context, arm))};
  request.config.model.norm = variant.norm;
  request.config.train.processes = processes;
  request.config.train.synchronize_norms = variant.synchronized;
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

using NormRuns = std::map<std::string, std::vector<Planned<TrainedRun>>>;  // by variant

PartResult report_norms(const NormsStudy& part, const NormRuns& runs) {
  Figure figure{"norms_processes",
                "Final validation loss by number of processes",
                "The processes share a batch; one run each.",
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
  PartResult result;
  std::vector<std::pair<std::string, Interval>> last;  // of the most processes
  for (const auto& [name, of_variant] : runs)
    last.emplace_back(name, Interval{of_variant.back()->loss(), std::nan(""), std::nan(""), 1});
  result.summary.push_back(fmt::format("Final validation loss (nats per token), processes: {}: {}.",
                                       part.processes.back(), with_intervals(last)));
  result.figures = {figure, cost};
  result.tables = {table};
  return result;
}

PartPlan plan(StudyContext& context, const NormsStudy& part) {
  PartPlan plan(context);
  NormRuns runs;
  for (const NormVariant& variant : shared_variants(part)) {
    for (const int64_t processes : part.processes) {
      const NormVariant trained{variant.norm, variant.synchronized || processes == 1};
      const RunRequest request = norm_run(context, part, trained, processes).with_seed(0);
      runs[variant.name()].push_back(planned_run(plan, context, request));
    }
  }
  plan.report = [part, runs] { return report_norms(part, runs); };
  return plan;
}

[[maybe_unused]] const bool kNorms =
    add_part<NormsStudy>("norms", "training with each norm, over numbers of processes that share a batch",
                         "Shen et al. 2020, arXiv 2003.07845", {.place = 12, .plan = plan, .trains = kAlways});

}  // namespace
}  // namespace plumb
