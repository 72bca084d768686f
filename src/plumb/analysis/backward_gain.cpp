#include "plumb/analysis/backward_gain.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "plumb/analysis/batch_share.h"
#include "plumb/analysis/common_points.h"
#include "plumb/analysis/result_fields.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

double square_of(const std::vector<Tensor>& tensors) {
  double sum = 0;
  for (const Tensor& tensor : tensors) {
    const auto norm = tensor.norm(2, at::kDouble).item<double>();
    sum += norm * norm;
  }
  return sum;
}

/// The tensors that one part of a model passes to the next.
struct Boundary {
  ActivationPoint point;
  std::vector<Tensor> arriving;  // with the graph of the part before
  std::vector<Tensor> leaving;   // where the graph of the part after begins

  [[nodiscard]] bool begins_stack() const { return point.point == Point::input; }
  [[nodiscard]] bool is_memory() const { return point.point == Point::memory; }
};

/// A forward pass in which `separate` turns each tensor that arrives at a boundary into the one that leaves it.
struct BoundaryPass {
  std::vector<Boundary> boundaries;  // in the order of the pass
  Tensor loss;
};
BoundaryPass run_with_boundaries(Model& model, const Batch& batch, const LossFunction& loss, const LossOptions& options,
                                 const std::function<Tensor(const Tensor&)>& separate) {
  BoundaryPass pass;
  ForwardContext context(Pass::measurement);
  context.tap([&](const ActivationPoint& point, const Tensor& x) {
    if (pass.boundaries.empty() || pass.boundaries.back().point != point) pass.boundaries.push_back({point, {}, {}});
    pass.boundaries.back().arriving.push_back(x);
    pass.boundaries.back().leaving.push_back(separate(x));
    return pass.boundaries.back().leaving.back();
  });
  pass.loss = loss(model, batch, options, context).value;
  return pass;
}

/// Squared norms of gradients by point, in the order of a forward pass, summed over batches.
struct Squares {
  std::vector<ActivationPoint> order;
  std::map<ActivationPoint, double> at;

  void add(const ActivationPoint& point, double square) {
    if (at.count(point) == 0) order.push_back(point);
    at[point] += square;
  }
};

/// The sums over the batches of all processes.
Squares summed_over_processes(const Squares& own, const Group& group) {
  Squares all;
  std::vector<double> squares;
  for (const ActivationPoint& point : common_points(own.order, group)) {
    all.add(point, 0);
    const auto found = own.at.find(point);
    squares.push_back(found == own.at.end() ? 0 : found->second);
  }
  squares = group.sums(squares);
  for (size_t i = 0; i < squares.size(); ++i) all.at[all.order[i]] = squares[i];
  return all;
}

/// Differentiates the whole model with respect to the tensors at the boundaries.
void add_profile(Model& model, const Batch& batch, const LossFunction& loss, const LossOptions& options,
                 Squares& squares) {
  const auto alias = [](const Tensor& x) { return x.view_as(x); };  // a separate place in the graph
  const BoundaryPass pass = run_with_boundaries(model, batch, loss, options, alias);
  std::vector<Tensor> all;
  for (const Boundary& boundary : pass.boundaries)
    all.insert(all.end(), boundary.leaving.begin(), boundary.leaving.end());
  const std::vector<Tensor> gradient = gradients({pass.loss}, all, {});
  auto next = gradient.begin();
  for (const Boundary& boundary : pass.boundaries) {
    const auto end = next + std::ssize(boundary.leaving);
    squares.add(boundary.point, square_of({next, end}));
    next = end;
  }
}

/// Differentiates part by part, from the loss to the stacks' inputs. For a memory, `squares` has the gradient that the
/// cross-attention passes back to the encoder.
void add_chain(Model& model, const Batch& batch, const LossFunction& loss, const LossOptions& options,
               Squares& squares) {
  const auto cut = [](const Tensor& x) { return x.detach().requires_grad_(true); };
  const BoundaryPass pass = run_with_boundaries(model, batch, loss, options, cut);
  const std::vector<Boundary>& boundaries = pass.boundaries;
  for (const Boundary& boundary : boundaries) squares.add(boundary.point, 0);
  std::vector<Tensor> given = gradients({pass.loss}, boundaries.back().leaving, {});
  Tensor to_encoder;
  for (size_t i = boundaries.size(); i-- > 0;) {
    const Boundary& boundary = boundaries[i];
    if (boundary.is_memory()) continue;
    squares.add(boundary.point, square_of(given));
    if (boundary.begins_stack()) {
      if (i > 0) given = {to_encoder};  // the result of the previous stack, which only cross-attention reads
      continue;
    }
    const Boundary* memory = boundaries[i - 1].is_memory() ? &boundaries[i - 1] : nullptr;
    const std::vector<Tensor>& stream = boundaries[i - (memory != nullptr ? 2 : 1)].leaving;
    std::vector<Tensor> read = stream;
    if (memory != nullptr) read.insert(read.end(), memory->leaving.begin(), memory->leaving.end());
    std::vector<Tensor> passed = gradients(boundary.arriving, read, given);
    if (memory != nullptr) {
      squares.add(memory->point, square_of({passed.back()}));
      to_encoder = to_encoder.defined() ? to_encoder + passed.back() : passed.back();
      passed.pop_back();
    }
    given = std::move(passed);
  }
}

double relative_difference(double a, double b) {
  const double larger = std::max(std::abs(a), std::abs(b));
  return larger > 0 ? std::abs(a - b) / larger : 0;
}

}  // namespace

void describe(Fields& field, BackwardGain& gain) {
  LayerId& id = gain.point.id;
  describe_place(field, "part", id);
  gain.point.point = id.layer ? Point::stream : Point::result;
  field("gradient", gain.gradient);
  field("gain", gain.gain);
  field("memory_gain", gain.memory_gain);
}

void describe(Fields& field, StackGains& gains) {
  describe_place(field, "stack", gains.stack);
  field("input_gradient", gains.input_gradient);
  field.sections("parts", gains.parts);
}

void describe(Fields& field, BackwardGains& gains) {
  field.sections("stacks", gains.stacks);
  field("error", gains.error);
}

BackwardGains measure_backward_gains(Model& model, const std::vector<Batch>& batches, double label_smoothing,
                                     const LossFunction& loss, const Group& group) {
  const LossOptions options{.label_smoothing = label_smoothing, .scale = 1 / total_weight(batches)};
  const at::AutoGradMode with_graph(true);
  Squares profile;
  Squares chain;
  for (const Batch& batch : share_of_batches(batches, group)) {
    if (batch.weight() == 0) continue;
    add_profile(model, batch, loss, options, profile);
    add_chain(model, batch, loss, options, chain);
  }
  profile = summed_over_processes(profile, group);
  chain = summed_over_processes(chain, group);
  BackwardGains gains;
  double passed = 0;  // gradient norm that the current part passes back to the stream
  std::optional<double> to_memory;
  for (const ActivationPoint& point : chain.order) {
    const double given = std::sqrt(chain.at.at(point));
    const double gradient = std::sqrt(profile.at.at(point));
    if (point.point == Point::memory) {
      to_memory = given;
      continue;
    }
    gains.error = std::max(gains.error, relative_difference(given, gradient));
    if (point.point == Point::input) {
      gains.stacks.push_back({point.id.stack, gradient, {}});
    } else {
      BackwardGain part{point, gradient, passed / given};
      if (to_memory) part.memory_gain = *to_memory / given;
      gains.stacks.back().parts.push_back(part);
    }
    passed = given;
    to_memory.reset();
  }
  return gains;
}

double predicted_cross_attention_gain(double memory_similarity, double branch_square) {
  return 1 / std::sqrt(1 + memory_similarity * branch_square);
}

BackwardGainReport summarize(const std::vector<BackwardGains>& measurements) {
  if (measurements.empty()) throw Error("no backward gains to summarize");
  const auto over = [&](const auto& number) { return geometric_interval(numbers_in(measurements, number)); };
  BackwardGainReport report;
  for (size_t s = 0; s < measurements.front().stacks.size(); ++s) {
    const StackGains& first = measurements.front().stacks[s];
    BackwardGainReport::Stack stack{
        first.stack, over([&](const auto& each) { return each.stacks[s].input_gradient; }), {}};
    for (size_t i = 0; i < first.parts.size(); ++i) {
      const auto part = [&](const BackwardGains& each) -> const BackwardGain& { return each.stacks[s].parts[i]; };
      stack.parts.push_back({first.parts[i].point, over([&](const auto& each) { return part(each).gradient; }),
                             over([&](const auto& each) { return part(each).gain; }), std::nullopt});
      if (first.parts[i].memory_gain)
        stack.parts.back().memory_gain = over([&](const auto& each) { return part(each).memory_gain.value(); });
    }
    report.stacks.push_back(std::move(stack));
  }
  for (const BackwardGains& each : measurements) report.error = std::max(report.error, each.error);
  return report;
}

}  // namespace plumb
