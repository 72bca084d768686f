// Time and memory of each kind of attention by length.
#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <map>

#include "plumb/analysis/attention_cost.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/study/changed_keys.h"
#include "plumb/study/plan.h"

namespace plumb {
namespace {

struct AttentionCostStudy {
  std::vector<std::string> kinds = {"softmax", "linear", "favor", "delta"};
  std::vector<int64_t> lengths = {256, 1024, 4096, 16384, 65536};
  int64_t d_model = 64;
  int64_t heads = 2;
  int64_t runs = 1;
};

void describe(Fields& field, AttentionCostStudy& part) {
  field("kinds", part.kinds, "the attentions", name_in(attentions()));
  field("lengths", part.lengths, "sequence lengths", count_from(1).each_once());
  field("d_model", part.d_model, "width of the sequence", count_from(1));
  field("heads", part.heads, "number of heads, which divides the width", count_from(1));
  field("runs", part.runs, "timed runs; the median is reported", count_from(1));
}

void check(const StudyConfig&, const AttentionCostStudy& part) {
  if (part.d_model % part.heads != 0) {
    throw Error(fmt::format("attention_cost.d_model is {} and heads {}", part.d_model, part.heads),
                "the heads divide d_model");
  }
}

struct CostAtLength {
  int64_t length = 0;
  AttentionCost cost;
};
void describe(Fields& field, CostAtLength& row) {
  field("length", row.length);
  field("forward_seconds", row.cost.forward_seconds);
  field("gradient_seconds", row.cost.gradient_seconds);
  field("held_bytes", row.cost.held_bytes);
}
using Costs = std::vector<CostAtLength>;
using CostsByKind = std::map<std::string, Planned<Costs>>;

/// The exponent of a quantity as a power of length, fitted to at most the last three lengths.
template <typename Quantity>
double exponent(const Costs& costs, Quantity AttentionCost::*quantity) {
  std::vector<double> x;
  std::vector<double> y;
  for (size_t i = costs.size() > 3 ? costs.size() - 3 : 0; i < costs.size(); ++i) {
    x.push_back(std::log(static_cast<double>(costs[i].length)));
    y.push_back(std::log(std::max(static_cast<double>(costs[i].cost.*quantity), 1e-9)));
  }
  return fit_line(x, y).slope;
}

MeasurementRequest cost_request(const StudyContext& context, const AttentionCostStudy& part, const std::string& kind) {
  const ModelConfig& model = context.config.model;
  MeasurementRequest request;
  request.name = "attention-cost-" + kind;
  request.label = "cost of attention, " + kind;
  request.settings = {{"lengths", part.lengths},
                      {"d_model", part.d_model},
                      {"heads", part.heads},
                      {"runs", part.runs},
                      {"options", changed_options(attentions(), model.options)},
                      {"threads", omp_get_max_threads()},
                      {"seed", context.config.study.seed}};
  request.alone = true;
  request.measure = [part, kind, options = model.options, seed = context.config.study.seed, label = request.label] {
    Progress progress(label, std::ssize(part.lengths));
    Costs costs;
    for (const int64_t length : part.lengths) {
      costs.push_back({length, measure_attention_cost(kind, options, part.d_model, part.heads, length, part.runs,
                                                      static_cast<uint64_t>(seed))});
      progress.update(std::ssize(costs));
    }
    return result_json(costs);
  };
  return request;
}

PartResult report_costs(const AttentionCostStudy& part, const CostsByKind& measured) {
  PartResult result;
  const int threads = omp_get_max_threads();
  const std::string setting = fmt::format(
      "Causal self-attention of one sequence, d_model {}, {} heads, float32, {} thread{}, without "
      "projections.",
      part.d_model, part.heads, threads, threads == 1 ? "" : "s");
  Figure time{
      "attention_time", "Time of a gradient by length", setting + " Forward and backward.", "line", {"positions", true},
      {"seconds", true}};
  Figure memory{"attention_memory", "Memory held for the backward pass by length", setting, "line", {"positions", true},
                {"MiB", true}};
  Table table{"attention_cost",
              "Cost of attention",
              setting,
              {"kind", "positions", "forward (s)", "gradient (s)", "held (MiB)"}};
  std::vector<std::string> evidence;
  for (const std::string& kind : part.kinds) {
    Series seconds{kind, kind};
    Series bytes{kind, kind};
    const Costs& costs = *measured.at(kind);
    for (const auto& [length, cost] : costs) {
      const double mebibytes = static_cast<double>(cost.held_bytes) / 1048576.0;
      seconds.point(length, cost.gradient_seconds);
      bytes.point(length, mebibytes);
      table.row(kind, length, cost.forward_seconds, cost.gradient_seconds, mebibytes);
    }
    time.series.push_back(seconds);
    memory.series.push_back(bytes);
    if (part.lengths.size() < 2) continue;
    const double by_time = exponent(costs, &AttentionCost::gradient_seconds);
    const double by_bytes = exponent(costs, &AttentionCost::held_bytes);
    evidence.push_back(fmt::format("{}: time n^{:.2f}, memory n^{:.2f}", kind, by_time, by_bytes));
  }
  if (measured.count("softmax") != 0) {
    memory.notes.emplace_back(
        "Softmax attention recomputes its weights in the backward pass, so its memory is linear here too.");
  }
  result.figures.push_back(time);
  result.figures.push_back(memory);
  result.tables.push_back(table);
  if (!evidence.empty()) {
    // Times on a shared machine are observations, not evidence for a claim.
    const size_t first = part.lengths.size() > 3 ? part.lengths.size() - 3 : 0;
    result.summary.push_back(fmt::format(
        "Cost of attention as a power of the length n, fitted from {} to {} positions ({}, on this machine): {}.",
        with_thousands(part.lengths[first]), with_thousands(part.lengths.back()),
        part.runs == 1 ? "timed once" : fmt::format("timed {} times", part.runs), join(evidence, "; ")));
  }
  // The length from which each kind is faster than softmax.
  if (measured.count("softmax") != 0) {
    for (const std::string& kind : part.kinds) {
      if (kind == "softmax") continue;
      const Costs& costs = *measured.at(kind);
      const Costs& softmax = *measured.at("softmax");
      const auto faster = [&](size_t at) {
        return costs[at].cost.gradient_seconds < softmax[at].cost.gradient_seconds;
      };
      size_t first = part.lengths.size();
      while (first > 0 && faster(first - 1)) --first;
      result.summary.push_back(
          first < part.lengths.size()
              ? fmt::format("Compared with softmax, {} took less time at every measured length from {} positions on.",
                            kind, with_thousands(part.lengths[first]))
              : fmt::format("Compared with softmax, {} took no less time at the longest of these lengths.", kind));
    }
  }
  return result;
}

PartPlan plan(StudyContext& context, const AttentionCostStudy& part) {
  PartPlan plan(context);
  CostsByKind measured;
  for (const std::string& kind : part.kinds) measured.emplace(kind, plan.add<Costs>(cost_request(context, part, kind)));
  plan.report = [part, measured] { return report_costs(part, measured); };
  return plan;
}

[[maybe_unused]] const bool kAttentionCost =
    add_part<AttentionCostStudy>("attention_cost", "time and memory of causal self-attention by length", "",
                                 {.place = 7, .plan = plan, .check = check});

}  // namespace
}  // namespace plumb
