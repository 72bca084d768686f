// Time and memory of each kind of attention by length.
#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <map>

#include "plumb/analysis/attention_cost.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/study/part.h"

namespace plumb {
namespace {

struct CostAtLength {
  int64_t length = 0;
  AttentionCost cost;
};
using Costs = std::vector<CostAtLength>;

Json to_json(const Costs& costs) {
  Json rows = Json::array();
  for (const auto& [length, cost] : costs) {
    rows.push_back({{"length", length},
                    {"forward_seconds", cost.forward_seconds},
                    {"gradient_seconds", cost.gradient_seconds},
                    {"held_bytes", cost.held_bytes}});
  }
  return rows;
}

Costs costs_of(const Json& rows) {
  Costs costs;
  for (const Json& row : rows)
    costs.push_back({row.at("length"), {row.at("forward_seconds"), row.at("gradient_seconds"), row.at("held_bytes")}});
  return costs;
}

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
                      {"options", options_text(kind, model.options)},
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
    return to_json(costs);
  };
  return request;
}

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const AttentionCostStudy& part) {
  std::vector<MeasurementRequest> list;
  for (const std::string& kind : part.kinds) list.push_back(cost_request(context, part, kind));
  return list;
}

PartResult measure(StudyContext& context, const AttentionCostStudy& part) {
  std::map<std::string, Costs> measured;
  for (const std::string& kind : part.kinds)
    measured[kind] = costs_of(context.measurements.get(cost_request(context, part, kind)));

  PartResult result;
  const std::string setting = fmt::format(
      "Causal self-attention of one sequence, d_model {}, {} heads, float32, {} "
      "thread{}, without projections.",
      part.d_model, part.heads, omp_get_max_threads(), omp_get_max_threads() == 1 ? "" : "s");
  Figure time{"attention_time", "Time of a gradient by length"};
  time.caption = setting + " Forward and backward.";
  time.kind = "line";
  time.x = {"positions", true};
  time.y = {"seconds", true};
  Figure memory{"attention_memory", "Memory held for the backward pass by length"};
  memory.caption = setting;
  memory.kind = "line";
  memory.x = {"positions", true};
  memory.y = {"MiB", true};
  Table table{"attention_cost",
              "Cost of attention",
              setting,
              {"kind", "positions", "forward (s)", "gradient (s)", "held (MiB)"}};
  std::vector<std::string> evidence;
  for (const std::string& kind : part.kinds) {
    Series seconds{kind, kind};
    Series bytes{kind, kind};
    for (const auto& [length, cost] : measured[kind]) {
      const double mebibytes = static_cast<double>(cost.held_bytes) / 1048576.0;
      seconds.point(length, cost.gradient_seconds);
      bytes.point(length, mebibytes);
      table.rows.push_back({kind, length, cost.forward_seconds, cost.gradient_seconds, mebibytes});
    }
    time.series.push_back(seconds);
    memory.series.push_back(bytes);
    if (part.lengths.size() < 2) continue;
    const double by_time = exponent(measured[kind], &AttentionCost::gradient_seconds);
    const double by_bytes = exponent(measured[kind], &AttentionCost::held_bytes);
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
      const auto faster = [&](size_t i) {
        return measured[kind][i].cost.gradient_seconds < measured["softmax"][i].cost.gradient_seconds;
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

}  // namespace plumb
