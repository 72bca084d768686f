#include "plumb/analysis/model_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/base/random.h"
#include "plumb/data/sequences.h"
#include "plumb/model/kind.h"
#include "plumb/nn/layer_id.h"

namespace plumb {
namespace {

/// Tensors by name, in the order in which they were seen.
using Named = std::vector<std::pair<std::string, Tensor>>;

struct Trace {
  Named parameters;  // and buffers
  Named places;
  Named gradients;
};

Trace trace(Model& model, const Batch& batch) {
  Trace found;
  const at::AutoGradMode with_graph(true);
  ForwardContext context;
  std::map<std::string, int> times;  // a scheme with several streams shows some points several times
  context.watch([&](const ActivationPoint& point, const Tensor& activation) {
    const std::string name = to_string(point);
    const int time = ++times[name];
    found.places.emplace_back(time == 1 ? name : fmt::format("{} ({})", name, time), activation.detach().clone());
  });
  const Tensor logits = model.logits(model.states(batch, context));
  const Loss loss = loss_of_logits(logits, batch, {});
  found.places.emplace_back("logits", logits.detach());
  found.places.emplace_back("loss", loss.value.detach());
  const Parameters& parameters = model.parameters();
  const std::vector<Tensor> gradient = gradients({loss.value}, parameters.values(), {});
  for (size_t i = 0; i < gradient.size(); ++i) {
    found.parameters.emplace_back(parameters.all()[i].name, parameters.all()[i].value.detach());
    found.gradients.emplace_back(parameters.all()[i].name, gradient[i]);
  }
  for (const Parameter& buffer : parameters.buffers())
    found.parameters.emplace_back(buffer.name, buffer.value.detach());
  return found;
}

std::string shape_of(const Tensor& tensor) {
  std::string text = "(";
  for (const int64_t size : tensor.sizes()) text += fmt::format("{}{}", text.size() > 1 ? ", " : "", size);
  return text + ")";
}

double norm_of(const Tensor& tensor) { return tensor.norm(2, at::kDouble).item<double>(); }

TensorDifference difference_of(const std::string& name, const Tensor& first, const Tensor& second) {
  TensorDifference difference{.name = name, .size = norm_of(first)};
  if (first.sizes() != second.sizes()) {
    difference.shapes = shape_of(first) + " and " + shape_of(second);
    difference.difference = std::nan("");
    return difference;
  }
  const double apart = norm_of(first - second);
  const double larger = std::max(difference.size, norm_of(second));
  // Infinities that are equal agree, though they have no difference.
  difference.difference = at::equal(first, second) ? 0 : apart / larger;
  return difference;
}

std::vector<TensorDifference> differences(const Named& first, const Named& second) {
  std::vector<TensorDifference> all;
  for (const auto& [name, tensor] : first) {
    const Tensor* other = find_value(second, name);
    all.push_back(other == nullptr ? TensorDifference{.name = name, .only_in = "first", .difference = std::nan("")}
                                   : difference_of(name, tensor, *other));
  }
  for (const auto& [name, tensor] : second) {
    if (find_value(first, name) == nullptr)
      all.push_back({.name = name, .only_in = "second", .difference = std::nan("")});
  }
  return all;
}

/// "decoder.layers.2.feed_forward" of "decoder.layers.2.feed_forward.output"; empty for logits and the loss.
std::string part_of(const std::string& place) {
  const size_t dot = place.rfind('.');
  return dot == std::string::npos ? "" : place.substr(0, dot);
}

/// Whether a parameter belongs to the part that computes a place: the sub-layer, or its layer, whose norms count as the
/// layer's; of a stack's input and result, the stack; of logits and the loss, none of the stacks.
bool belongs(const std::string& parameter, const std::string& part) {
  const std::optional<LayerId> owner = LayerId::of_parameter(parameter);
  const std::optional<LayerId> computing = LayerId::parse(part);
  if (!computing) return !owner;
  if (!owner || owner->stack != computing->stack || owner->layer != computing->layer) return false;
  return !owner->sub_layer || !computing->sub_layer || owner->sub_layer == computing->sub_layer;
}

std::optional<FirstDifference> first_of(const ModelDifference& difference) {
  for (size_t i = 0; i < difference.places.size(); ++i) {
    const TensorDifference& place = difference.places[i];
    if (!place.differs(kRounding)) continue;
    FirstDifference first{.place = place.name, .part = part_of(place.name), .difference = place.difference};
    if (i > 0) first.last_equal = difference.places[i - 1].name;
    for (const TensorDifference& parameter : difference.parameters) {
      if (parameter.differs(kRounding) && belongs(parameter.name, first.part))
        first.parameters.push_back(parameter.name);
    }
    return first;
  }
  return {};
}

}  // namespace

void describe(Fields& field, TensorDifference& difference) {
  field("name", difference.name);
  field("only_in", difference.only_in);
  field("shapes", difference.shapes);
  field("size", difference.size);
  field("difference", difference.difference);
}

void describe(Fields& field, FirstDifference& first) {
  field("place", first.place);
  field("part", first.part);
  field("difference", first.difference);
  field("last_equal", first.last_equal);
  field("parameters", first.parameters);
}

void describe(Fields& field, ModelDifference& difference) {
  field.section("first", difference.first);
  field.sections("parameters", difference.parameters);
  field.sections("places", difference.places);
  field.sections("gradients", difference.gradients);
}

ModelDifference compare_computations(Model& first, Model& second, const Batch& batch) {
  const Trace a = trace(first, batch);
  const Trace b = trace(second, batch);
  ModelDifference difference{.parameters = differences(a.parameters, b.parameters),
                             .places = differences(a.places, b.places)};
  for (TensorDifference& one : differences(a.gradients, b.gradients)) {
    if (one.only_in.empty() && one.shapes.empty()) difference.gradients.push_back(std::move(one));
  }
  difference.first = first_of(difference);
  return difference;
}

Batch common_batch(const ModelConfig& first, const ModelConfig& second, uint64_t seed) {
  const ModelKind& kind = kind_of(first);
  const ModelKind& other = kind_of(second);
  const bool same = kind.translates() == other.translates() && kind.only_encodes() == other.only_encodes() &&
                    (first.labels > 0) == (second.labels > 0);
  if (!same)
    throw Error(fmt::format("a model of kind \"{}\" and one of kind \"{}\" do not read the same batches", first.kind,
                            second.kind),
                "compare models for one purpose");
  Random random(seed, "batch for two models");
  const std::array<int64_t, 4> lengths = {16, 11, 7, 3};
  const auto sequences = [&](int64_t below) {
    Json all = Json::array();
    for (const int64_t length : lengths) {
      Json& sequence = all.emplace_back(Json::array());
      const int64_t shown = std::min({length, first.max_positions - 2, second.max_positions - 2});
      for (int64_t i = 0; i < std::max<int64_t>(shown, 1); ++i)
        sequence.push_back(random.below(static_cast<uint64_t>(below)));
    }
    return all;
  };
  const auto smaller = [](int64_t x, int64_t y) { return std::min(x, y); };
  const int64_t source = smaller(source_vocabulary_of(first), source_vocabulary_of(second));
  const int64_t target = smaller(first.target_vocabulary, second.target_vocabulary);
  if (kind.translates()) return batch_from_json({{"source", sequences(source)}, {"target", sequences(target)}});
  Json json = {{"tokens", sequences(kind.only_encodes() ? source : target)}};
  const int64_t labels = smaller(first.labels, second.labels);
  if (kind.only_encodes() && first.labels == 0) {
    json["labels"] = sequences(source);
  } else if (first.labels > 0) {
    for (size_t i = 0; i < lengths.size(); ++i) json["labels"].push_back(random.below(static_cast<uint64_t>(labels)));
  }
  Batch batch = batch_from_json(json);
  if (first.labels > 0 && !kind.only_encodes()) move_to_target(batch);
  return batch;
}

}  // namespace plumb
