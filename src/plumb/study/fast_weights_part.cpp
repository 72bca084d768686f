// Attention as fast weights: the equivalence of the two, and how many associations each kind can store. After Schlag et
// al. 2021, arXiv 2102.11174.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "plumb/analysis/retrieval.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/progress.h"
#include "plumb/base/random.h"
#include "plumb/nn/init/init.h"
#include "plumb/study/changed_keys.h"
#include "plumb/study/plan.h"

namespace plumb {
namespace {

struct FastWeightsStudy {
  std::vector<std::string> kinds = {"softmax", "linear", "favor", "dpfp", "delta"};
  int64_t size = 16;
  std::vector<int64_t> keys = {4, 8, 16, 32, 64};
  int64_t seeds = 3;
  int64_t steps = 300;
};

void describe(Fields& field, FastWeightsStudy& part) {
  field("kinds", part.kinds, "the attentions", name_in(attentions()));
  field("size", part.size, "size of keys and values, with one head", within(1, 65'536));
  field("keys", part.keys, "number of keys written", count_from(1).each_once());
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("steps", part.steps, "training steps for the key vectors and the attention's parameters", count_from(0));
}

/// The largest difference, relative to the largest output, between linear attention computed as a matrix of weights
/// φ(q)·φ(k)ᵀ over positions, and as a fast weight programmer that writes and reads one position at a time, or in
/// blocks of positions. For `linear` (φ = elu + 1, normalized) and `fwp-1991` (φ = x).
using Equalities = std::map<std::string, std::map<std::string, double>>;  // by kind
constexpr const char* kEqualKinds[] = {"linear", "fwp-1991"};
Equalities measure_equality(at::ScalarType type, uint64_t seed) {
  constexpr int64_t kLength = 200;
  constexpr int64_t kHeads = 2;
  constexpr int64_t kSize = 16;
  constexpr int64_t kWidth = kHeads * kSize;
  const at::NoGradGuard no_graph;
  Equalities found;
  for (const char* kind : kEqualKinds) {
    const bool normalized = std::string(kind) == "linear";
    Parameters parameters(type);
    const auto attention =
        make_attention(kind, parameters, {"attention", kWidth, {kHeads, kHeads, kSize}, {}, nullptr});
    parameters.allocate();
    const Tensor packed = at::empty({kLength, 3 * kWidth}, parameters.options());
    Random random(seed, "equality");
    fill_normal(packed, 1, random);
    const Ragged layout({kLength});

    const auto heads = [&](int64_t part) {
      return packed.narrow(1, part * kWidth, kWidth).reshape({kLength, kHeads, kSize}).transpose(0, 1);
    };
    const auto phi = [&](const Tensor& x) { return normalized ? at::elu(x) + 1 : x; };
    const Tensor weights = at::matmul(phi(heads(0)), phi(heads(1)).transpose(1, 2)).tril();
    Tensor as_attention = at::matmul(weights, heads(2));
    if (normalized) as_attention = as_attention / weights.sum(-1, true);
    as_attention = as_attention.transpose(0, 1).reshape({kLength, kWidth});

    const auto state = attention->start(1);
    std::vector<Tensor> steps;
    for (int64_t t = 0; t < kLength; ++t) {
      const Tensor row = packed.narrow(0, t, 1);
      steps.push_back(
          attention->read(row.narrow(1, 0, kWidth), row.narrow(1, kWidth, 2 * kWidth), row, Ragged({1}), *state));
    }
    const double scale = as_attention.abs().max().item<double>();
    const auto difference = [&](const Tensor& other) {
      return (other - as_attention).abs().max().item<double>() / scale;
    };
    found[kind] = {{"programmer", difference(at::cat(steps, 0))},
                   {"blocks", difference(attention->self(packed, packed, layout, true, {}))}};
  }
  return found;
}

/// Results of one kind with one number of keys.
struct AtKeys {
  int64_t keys = 0;
  std::vector<double> error, accuracy;  // [seed]
};
void describe(Fields& field, AtKeys& at) {
  field("keys", at.keys);
  field("error", at.error);
  field("accuracy", at.accuracy);
}
using RetrievalCurve = std::vector<AtKeys>;
using CurvesByKind = std::map<std::string, Planned<RetrievalCurve>>;

MeasurementRequest curve_request(StudyContext& context, const FastWeightsStudy& part, const std::string& kind,
                                 bool update) {
  const VariantOptions& options = context.config.model.options;
  MeasurementRequest request;
  const std::string task_name = update ? "update" : "retrieval";
  request.name = fmt::format("{}-{}", task_name, kind);
  request.label = fmt::format("{}, {}", task_name, kind);
  request.settings = {{"size", part.size},
                      {"keys", part.keys},
                      {"seeds", part.seeds},
                      {"steps", part.steps},
                      {"options", changed_options(attentions(), options)},
                      {"seed", context.config.study.seed}};
  request.measure = [part, kind, update, options, first = context.config.study.seed, label = request.label] {
    Progress progress(label, std::ssize(part.keys) * part.seeds);
    RetrievalCurve curve;
    int64_t done = 0;
    for (const int64_t keys : part.keys) {
      AtKeys& at = curve.emplace_back(AtKeys{keys, {}, {}});
      for (int64_t i = 0; i < part.seeds; ++i) {
        RetrievalTask task;
        task.keys = keys;
        task.size = part.size;
        task.update = update;
        task.steps = part.steps;
        const Retrieval one = measure_retrieval(kind, options, task, static_cast<uint64_t>(first + i));
        at.error.push_back(one.error);
        at.accuracy.push_back(one.accuracy);
        progress.update(++done);
      }
    }
    return result_json(curve);
  };
  return request;
}

MeasurementRequest equality_request(const StudyContext& context, at::ScalarType type) {
  const auto seed = static_cast<uint64_t>(context.config.study.seed);
  const char* name = type == at::kDouble ? "float64" : "float32";
  return {fmt::format("equality-{}", name),
          fmt::format("equality, {}", name),
          {{"seed", context.config.study.seed}},
          [type, seed] { return result_json(measure_equality(type, seed)); }};
}

Figure retrieval_figure(const CurvesByKind& curves, const FastWeightsStudy& part, bool update) {
  Figure figure{
      update ? "update" : "capacity",
      update ? "Updating keys: error of the newest value" : "Capacity: error of retrieved values",
      fmt::format("Mean ‖y − v‖²/‖v‖² of the values read for all keys of a sequence, {}; {}. An error of 1 is "
                  "that of always answering 0.",
                  update ? "each written twice with different values" : "each written once",
                  seeds_in_words(part.seeds)),
      "line",
      {"keys", true},
      {"error"}};
  for (const auto& [kind, curve] : curves) {
    Series& line = figure.add(kind, kind);
    for (const AtKeys& at : *curve) {
      const Interval interval = positive_interval(at.error);
      interval.count > 1 ? line.point(at.keys, interval) : line.point(at.keys, interval.mean);
    }
  }
  return figure;
}

/// The errors by kind and number of keys, a combination of which is an arm to claims.
void add_quantities(PartPlan& plan, const StudyContext& context, const FastWeightsStudy& part,
                    const CurvesByKind& capacity, const CurvesByKind& update) {
  const auto arms = std::make_shared<std::vector<StudyArm>>();
  plan.arms = arms;
  for (const std::string& kind : part.kinds) {
    for (size_t i = 0; i < part.keys.size(); ++i) {
      StudyArm& arm = arms->emplace_back(context.arms.front());
      arm.name = fmt::format("{}, {} keys", kind, part.keys[i]);
      arm.axes["fast_weights.kind"] = arm.settings["fast_weights.kind"] = kind;
      arm.axes["fast_weights.keys"] = arm.settings["fast_weights.keys"] = std::to_string(part.keys[i]);
      const auto add = [&](const char* name, const char* meaning, Scale scale, const CurvesByKind& curves,
                           const char* figure) -> Quantity& {
        Quantity& added =
            plan.quantity(name, meaning, scale, arm.name, [curve = curves.at(kind), i] { return curve->at(i).error; });
        added.in_comparison_table = false;
        added.figure = figure;
        added.setting = [part](const std::string&) {
          return fmt::format("one head, keys and values of size {}, key vectors trained for {} steps", part.size,
                             part.steps);
        };
        return added;
      };
      add("capacity_error", "error", Scale::linear, capacity, "capacity").telling = {"error of retrieved values"};
      add("capacity_error_ratio", "error", Scale::logarithmic, capacity, "capacity");
      add("update_error", "error of the newest value", Scale::linear, update, "update").telling = {
          "error of the newest value of keys that are written twice"};
    }
  }
}

PartPlan plan(StudyContext& context, const FastWeightsStudy& part) {
  PartPlan plan(context);
  const auto in_double = plan.add<Equalities>(equality_request(context, at::kDouble));
  const auto in_float = plan.add<Equalities>(equality_request(context, at::kFloat));
  CurvesByKind capacity, update;
  for (const std::string& kind : part.kinds) {
    capacity.emplace(kind, plan.add<RetrievalCurve>(curve_request(context, part, kind, false)));
    update.emplace(kind, plan.add<RetrievalCurve>(curve_request(context, part, kind, true)));
  }
  add_quantities(plan, context, part, capacity, update);
  plan.report = [part, in_double, in_float, capacity, update] {
    PartResult result;
    Table equality{"equality",
                   "Linear attention and a fast weight programmer",
                   "Largest difference, relative to the largest output, from causal linear attention computed as a "
                   "matrix of weights over positions: for a programmer that writes outer products one after another, "
                   "and for the blocks used in training.",
                   {"kind", "precision", "programmer", "blocks"}};
    for (const auto& [name, measured] : {std::pair{"float64", in_double}, {"float32", in_float}}) {
      for (const char* kind : kEqualKinds)
        equality.row(kind, name, measured->at(kind).at("programmer"), measured->at(kind).at("blocks"));
    }
    Table table{"retrieval",
                "Retrieval",
                "Means over seeds; accuracy: how often the correct value is the nearest of all.",
                {"kind", "keys", "error", "accuracy", "error after update", "accuracy after update"}};
    const auto mean = [](const std::vector<double>& values) { return confidence_interval(values).mean; };
    for (const std::string& kind : part.kinds) {
      for (size_t i = 0; i < part.keys.size(); ++i) {
        const AtKeys& once = capacity.at(kind)->at(i);
        const AtKeys& again = update.at(kind)->at(i);
        table.row(kind, once.keys, mean(once.error), mean(once.accuracy), mean(again.error), mean(again.accuracy));
      }
    }
    result.figures = {retrieval_figure(capacity, part, false), retrieval_figure(update, part, true)};
    result.tables = {equality, table};
    return result;
  };
  return plan;
}

[[maybe_unused]] const bool kFastWeights = add_part<FastWeightsStudy>(
    "fast_weights", "attention as fast weights, and how many associations each kind can store",
    "Schlag et al. 2021, arXiv 2102.11174", {.order = 7, .plan = plan});

}  // namespace
}  // namespace plumb
