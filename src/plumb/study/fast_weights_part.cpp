// Attention as fast weights: the equivalence of the two, and how many associations each kind can store. After Schlag et
// al. 2021, arXiv 2102.11174.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

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
    parameters.finish();
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

/// [seed]: the error with this number of keys.
const std::vector<double>& errors_at(const Planned<RetrievalCurve>& curve, int64_t keys) {
  return std::find_if(curve->begin(), curve->end(), [&](const AtKeys& at) { return at.keys == keys; })->error;
}

/// The most of the numbers of keys that are at most `limit`; 0 if none is.
int64_t most_keys(const FastWeightsStudy& part, int64_t limit) {
  int64_t most = 0;
  for (const int64_t keys : part.keys) most = keys <= limit ? std::max(most, keys) : most;
  return most;
}

void judge_retrieval(const CurvesByKind& capacity, const CurvesByKind& update, const FastWeightsStudy& part,
                     PartResult& result) {
  const auto add_verdict = [&](const char* id, const char* claim, const char* source, const std::string& quantity,
                               const Judgment& judgment, const char* figure) {
    const std::string setting =
        fmt::format("one head, keys and values of size {}, key vectors trained for {} steps", part.size, part.steps);
    result.verdicts.push_back({id, claim, source, setting, quantity, judgment, "", figure});
  };
  const auto measured = [&](const char* kind) { return capacity.count(kind) != 0; };
  const int64_t most = *std::max_element(part.keys.begin(), part.keys.end());
  const int64_t few = most_keys(part, part.size / 2);  // leaves half of the features free
  int64_t many = most;                                 // the fewest that are at least twice the features
  for (const int64_t keys : part.keys) many = keys >= 2 * part.size ? std::min(many, keys) : many;
  if (measured("linear") && few > 0 && many >= 2 * part.size) {
    add_verdict(
        "capacity_sum_rule", "The sum rule fails if there are more keys than features",
        "Schlag et al. 2021, section 4.1", fmt::format("error of linear attention with {} keys − with {}", many, few),
        judge(
            seed_by_seed(errors_at(capacity.at("linear"), many), errors_at(capacity.at("linear"), few), std::minus<>()),
            Region::above(0.1, 0)),
        "capacity");
  }
  if (measured("linear") && measured("dpfp")) {
    add_verdict("capacity_dpfp", "More features store more associations: DPFP compared with elu + 1",
                "Schlag et al. 2021, section 6.1", fmt::format("error of dpfp / of linear, {} keys", most),
                judge(seed_by_seed(errors_at(capacity.at("dpfp"), most), errors_at(capacity.at("linear"), most),
                                   std::divides<>()),
                      Region::below(0.9, 1), Scale::logarithmic),
                "capacity");
  }
  if (measured("delta") && measured("dpfp")) {
    // At most `size` keys if possible: as many as the sum rule stores easily.
    const int64_t easy = std::max(part.keys.front(), most_keys(part, part.size));
    add_verdict(
        "update_delta_rule", "The delta rule replaces the value of a key that is written again; the sum rule cannot",
        "Schlag et al. 2021, section 6.2",
        fmt::format("error of the newest value, dpfp (sum rule) − delta, {} keys", easy),
        judge(seed_by_seed(errors_at(update.at("dpfp"), easy), errors_at(update.at("delta"), easy), std::minus<>()),
              Region::above(0.1, 0)),
        "update");
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
    judge_retrieval(capacity, update, part, result);
    return result;
  };
  return plan;
}

[[maybe_unused]] const bool kFastWeights = add_part<FastWeightsStudy>(
    "fast_weights", "attention as fast weights, and how many associations each kind can store",
    "Schlag et al. 2021, arXiv 2102.11174", {.place = 7, .plan = plan});

}  // namespace
}  // namespace plumb
