// Attention as fast weights: the equivalence of the two, and how many associations each kind can store. After Schlag et
// al. 2021, arXiv 2102.11174.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/analysis/retrieval.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/progress.h"
#include "plumb/base/random.h"
#include "plumb/base/text.h"
#include "plumb/nn/init/init.h"
#include "plumb/study/part.h"

namespace plumb {
namespace {

/// The largest difference, relative to the largest output, between linear attention computed as a matrix of weights
/// φ(q)·φ(k)ᵀ over positions, and as a fast weight programmer that writes and reads one position at a time, or in
/// blocks of positions. For `linear` (φ = elu + 1, normalized) and `fwp-1991` (φ = x).
struct Equality {
  std::string kind;
  double programmer = 0;
  double blocks = 0;
};
using Equalities = std::vector<Equality>;
Equalities measure_equality(at::ScalarType type, uint64_t seed) {
  constexpr int64_t kLength = 200;
  constexpr int64_t kHeads = 2;
  constexpr int64_t kSize = 16;
  constexpr int64_t kWidth = kHeads * kSize;
  const at::NoGradGuard no_graph;
  Equalities found;
  for (const char* kind : {"linear", "fwp-1991"}) {
    const bool normalized = std::string(kind) == "linear";
    Parameters parameters(type);
    const auto attention =
        attentions().at(kind).make(parameters, {"attention", kWidth, {kHeads, kHeads, kSize}, {}, nullptr});
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
    found.push_back(
        {kind, difference(at::cat(steps, 0)), difference(attention->self(packed, packed, layout, true, {}))});
  }
  return found;
}

Json to_json(const Equalities& equalities) {
  Json json;
  for (const Equality& each : equalities) json[each.kind] = {{"programmer", each.programmer}, {"blocks", each.blocks}};
  return json;
}

Equalities equalities_of(const Json& json) {
  Equalities equalities;
  for (const auto& [kind, row] : json.items())
    equalities.push_back({kind, number_of(row.at("programmer")), number_of(row.at("blocks"))});
  return equalities;
}

/// Results of one kind by number of keys.
struct Curve {
  std::map<int64_t, std::vector<double>> error, accuracy;  // by number of keys: [seed]
};

/// One row per number of keys.
Json to_json(const Curve& curve, const std::vector<int64_t>& keys) {
  Json rows = Json::array();
  for (const int64_t count : keys)
    rows.push_back({{"keys", count}, {"error", curve.error.at(count)}, {"accuracy", curve.accuracy.at(count)}});
  return rows;
}

Curve curve_of(const Json& rows) {
  Curve curve;
  for (const Json& row : rows) {
    curve.error[row.at("keys")] = numbers_of(row.at("error"));
    curve.accuracy[row.at("keys")] = numbers_of(row.at("accuracy"));
  }
  return curve;
}

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
                      {"options", options_text(kind, options)},
                      {"seed", context.config.study.seed}};
  request.measure = [part, kind, update, options, first = context.config.study.seed, label = request.label] {
    Progress progress(label, std::ssize(part.keys) * part.seeds);
    Curve curve;
    int64_t done = 0;
    for (const int64_t keys : part.keys) {
      for (int64_t i = 0; i < part.seeds; ++i) {
        RetrievalTask task;
        task.keys = keys;
        task.size = part.size;
        task.update = update;
        task.steps = part.steps;
        const Retrieval one = measure_retrieval(kind, options, task, static_cast<uint64_t>(first + i));
        curve.error[keys].push_back(one.error);
        curve.accuracy[keys].push_back(one.accuracy);
        progress.update(++done);
      }
    }
    return to_json(curve, part.keys);
  };
  return request;
}

MeasurementRequest equality_request(const StudyContext& context, at::ScalarType type) {
  const auto seed = static_cast<uint64_t>(context.config.study.seed);
  const char* name = type == at::kDouble ? "float64" : "float32";
  return {fmt::format("equality-{}", name),
          fmt::format("equality, {}", name),
          {{"seed", context.config.study.seed}},
          [type, seed] { return to_json(measure_equality(type, seed)); }};
}

Figure figure_of(const std::map<std::string, Curve>& curves, const FastWeightsStudy& part, bool update) {
  Figure figure{update ? "update" : "capacity",
                update ? "Updating keys: error of the newest value" : "Capacity: error of retrieved values"};
  figure.caption = fmt::format(
      "Mean ‖y − v‖²/‖v‖² of the values read for all keys of a sequence; keys and values of size {}, one head; the key "
      "vectors are trained for the task ({} steps). {}An error of 1 is that of always answering 0. Mean over seeds "
      "({}).",
      part.size, part.steps,
      update ? "Every key is written twice with different values; the second is to be read. "
             : "Every key is written once. ",
      seeds_in_words(part.seeds));
  figure.kind = "line";
  figure.x = {"keys", true};
  figure.y = {"error"};
  for (const auto& [kind, curve] : curves) {
    Series series{kind, kind};
    for (const auto& [keys, values] : curve.error) {
      const Interval interval = positive_interval(values);
      interval.count > 1 ? series.point(keys, interval.mean, interval.low, interval.high)
                         : series.point(keys, interval.mean);
    }
    figure.series.push_back(series);
  }
  if (update && curves.count("softmax") != 0) {
    figure.notes.emplace_back(
        "Attention without positions has no notion of time: softmax and the sum rule return a mixture of both values.");
  }
  return figure;
}

/// [seed]: the error with this number of keys.
const std::vector<double>& errors_at(const Curve& curve, int64_t keys) { return curve.error.at(keys); }

std::string retrieval_setting(const FastWeightsStudy& part) {
  return fmt::format("one head, keys and values of size {}, key vectors trained for {} steps", part.size, part.steps);
}

void judge_capacity(const std::map<std::string, Curve>& curves, const FastWeightsStudy& part, PartResult& result) {
  if (curves.count("linear") == 0) return;
  const Curve& linear = curves.at("linear");
  int64_t few = 0;  // the most keys that leave half of the features free
  int64_t many = 0;
  for (const int64_t keys : part.keys) {
    if (keys <= part.size / 2) few = std::max(few, keys);
    if (keys >= 2 * part.size) many = many == 0 ? keys : std::min(many, keys);
  }
  if (few > 0 && many > 0) {
    std::vector<double> differences;
    for (size_t seed = 0; seed < errors_at(linear, few).size(); ++seed)
      differences.push_back(errors_at(linear, many)[seed] - errors_at(linear, few)[seed]);
    result.verdicts.push_back(
        {"capacity_sum_rule", "The sum rule fails if there are more keys than features",
         "Schlag et al. 2021, section 4.1", retrieval_setting(part),
         fmt::format("error of linear attention with {} keys − with {}", many, few),
         judge(differences, Region::above(0.1, 0)),
         fmt::format("The error is {:.2g} with {} keys.", confidence_interval(errors_at(linear, few)).mean, few),
         "capacity"});
  }
  if (curves.count("dpfp") == 0) return;
  const int64_t most = *std::max_element(part.keys.begin(), part.keys.end());
  std::vector<double> ratios;
  for (size_t seed = 0; seed < errors_at(linear, most).size(); ++seed)
    ratios.push_back(errors_at(curves.at("dpfp"), most)[seed] / errors_at(linear, most)[seed]);
  result.verdicts.push_back({"capacity_dpfp", "More features store more associations: DPFP compared with elu + 1",
                             "Schlag et al. 2021, section 6.1", retrieval_setting(part),
                             fmt::format("error of dpfp / of linear, {} keys", most),
                             judge(ratios, Region::below(0.9, 1), Scale::logarithmic), "", "capacity"});
}

void judge_update(const std::map<std::string, Curve>& curves, const FastWeightsStudy& part, PartResult& result) {
  if (curves.count("delta") == 0 || curves.count("dpfp") == 0) return;
  // At most `size` keys if possible: as many as the sum rule stores easily.
  int64_t few = part.keys.front();
  for (const int64_t keys : part.keys) {
    if (keys <= part.size) few = std::max(few, keys);
  }
  std::vector<double> differences;
  for (size_t seed = 0; seed < errors_at(curves.at("delta"), few).size(); ++seed)
    differences.push_back(errors_at(curves.at("dpfp"), few)[seed] - errors_at(curves.at("delta"), few)[seed]);
  result.verdicts.push_back(
      {"update_delta_rule", "The delta rule replaces the value of a key that is written again; the sum rule cannot",
       "Schlag et al. 2021, section 6.2", retrieval_setting(part),
       fmt::format("error of the newest value, dpfp (sum rule) − delta, {} keys", few),
       judge(differences, Region::above(0.1, 0)),
       fmt::format("The error with delta is {:.2g}.", confidence_interval(errors_at(curves.at("delta"), few)).mean),
       "update"});
}

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const FastWeightsStudy& part) {
  std::vector<MeasurementRequest> list = {equality_request(context, at::kDouble),
                                          equality_request(context, at::kFloat)};
  for (const std::string& kind : part.kinds) {
    list.push_back(curve_request(context, part, kind, false));
    list.push_back(curve_request(context, part, kind, true));
  }
  return list;
}

PartResult measure(StudyContext& context, const FastWeightsStudy& part) {
  PartResult result;
  Table equality{
      "equality",
      "Linear attention and a fast weight programmer",
      "Largest difference over 200 positions and 2 heads, relative to the largest output, from causal linear "
      "attention computed as a matrix of weights over positions: for a programmer that writes outer products "
      "one after another, and for the blocks used in training.",
      {"kind", "precision", "programmer", "blocks"}};
  for (const auto& [name, type] : {std::pair{"float64", at::kDouble}, std::pair{"float32", at::kFloat}}) {
    for (const Equality& each : equalities_of(context.measurements.get(equality_request(context, type))))
      equality.rows.push_back({each.kind, name, each.programmer, each.blocks});
  }
  result.tables.push_back(equality);

  std::map<std::string, Curve> capacity;
  std::map<std::string, Curve> update;
  for (const std::string& kind : part.kinds) {
    capacity[kind] = curve_of(context.measurements.get(curve_request(context, part, kind, false)));
    update[kind] = curve_of(context.measurements.get(curve_request(context, part, kind, true)));
  }
  result.figures.push_back(figure_of(capacity, part, false));
  result.figures.push_back(figure_of(update, part, true));
  Table table{
      "retrieval",
      "Retrieval",
      fmt::format("Error and accuracy (how often the correct value is the nearest of all) by number of keys; means "
                  "over {} seed{}.",
                  part.seeds, part.seeds == 1 ? "" : "s"),
      {"kind", "keys", "error", "accuracy", "error after update", "accuracy after update"}};
  for (const std::string& kind : part.kinds) {
    for (const int64_t keys : part.keys) {
      const auto mean = [&](const std::map<int64_t, std::vector<double>>& values) {
        return confidence_interval(values.at(keys)).mean;
      };
      table.rows.push_back({kind, keys, mean(capacity[kind].error), mean(capacity[kind].accuracy),
                            mean(update[kind].error), mean(update[kind].accuracy)});
    }
  }
  result.tables.push_back(table);
  judge_capacity(capacity, part, result);
  judge_update(update, part, result);
  return result;
}

}  // namespace plumb
