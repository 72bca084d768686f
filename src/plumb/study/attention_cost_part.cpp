// Time and memory of each kind of attention by length.
#include <fmt/format.h>
#include <omp.h>

#include <map>

#include "plumb/analysis/attention_cost.h"
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

constexpr size_t kFitted = 3;  // the most lengths, the last ones, to which a power law is fitted
size_t first_fitted(size_t lengths) { return lengths > kFitted ? lengths - kFitted : 0; }

/// The exponent of a quantity as a power of length.
template <typename Quantity>
double exponent(const Costs& costs, Quantity AttentionCost::*quantity) {
  std::vector<double> lengths;
  std::vector<std::vector<double>> values;
  for (size_t i = first_fitted(costs.size()); i < costs.size(); ++i) {
    lengths.push_back(static_cast<double>(costs[i].length));
    values.push_back({std::max(static_cast<double>(costs[i].cost.*quantity), 1e-9)});
  }
  return power_exponents(lengths, values).front();
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
  const std::string setting =
      fmt::format("Causal self-attention of one sequence, d_model {}, {} heads, float32, threads: {}.", part.d_model,
                  part.heads, omp_get_max_threads());
  Figure time{"attention_time", "Time of forward and backward by length", setting, "line", {"positions", true},
              {"seconds", true}};
  Figure memory{"attention_memory", "Memory held for the backward pass by length", setting, "line", {"positions", true},
                {"MiB", true}};
  Table table{"attention_cost",
              "Cost of attention",
              setting,
              {"kind", "positions", "forward (s)", "gradient (s)", "held (MiB)"}};
  std::vector<std::string> powers;
  for (const std::string& kind : part.kinds) {
    Series& seconds = time.add(kind, kind);
    Series& bytes = memory.add(kind, kind);
    const Costs& costs = *measured.at(kind);
    for (const auto& [length, cost] : costs) {
      const double mebibytes = static_cast<double>(cost.held_bytes) / 1048576.0;
      seconds.point(length, cost.gradient_seconds);
      bytes.point(length, mebibytes);
      table.row(kind, length, cost.forward_seconds, cost.gradient_seconds, mebibytes);
    }
    if (part.lengths.size() > 1) {
      powers.push_back(fmt::format("{}: time n^{:.2f}, memory n^{:.2f}", kind,
                                   exponent(costs, &AttentionCost::gradient_seconds),
                                   exponent(costs, &AttentionCost::held_bytes)));
    }
  }
  if (measured.count("softmax") != 0)
    memory.notes.emplace_back("Softmax attention recomputes its weights in the backward pass.");
  result.figures = {time, memory};
  result.tables = {table};
  if (!powers.empty()) {
    // Times on a shared machine are observations, not evidence for a claim.
    result.summary.push_back(
        fmt::format("Cost of attention as a power of the length n, from {} to {} positions, on this machine: {}.",
                    with_thousands(part.lengths[first_fitted(part.lengths.size())]),
                    with_thousands(part.lengths.back()), join(powers, "; ")));
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
                                 {.order = 8, .plan = plan, .check = check});

}  // namespace
}  // namespace plumb
