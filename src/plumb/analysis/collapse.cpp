#include "plumb/analysis/collapse.h"

#include <cmath>
#include <map>
#include <numbers>

namespace plumb {
namespace {

Tensor standardized(const Tensor& x) {
  const Tensor wide = x.detach().to(at::kDouble);
  const Tensor centered = wide - wide.mean(1, true);
  return centered / (centered.square().mean(1, true) + 1e-12).sqrt();
}

/// The sums for one stack over all batches.
struct StackSums {
  struct Sums {
    LayerId id;
    double square = 0;
    double change = 0;
    double similarity = 0;
    std::vector<Tensor> rows;
  };
  std::vector<Sums> points;
  double tokens = 0;
  // For the current batch.
  Tensor previous;
  size_t next = 0;
  // The last sub-layer's stream, until a separate representation may replace it.
  LayerId pending;
  Tensor pending_stream;

  void begin(const Tensor& input) {
    previous = standardized(input);
    next = 0;
    tokens += static_cast<double>(input.size(0));
  }

  void stream(const LayerId& id, const Tensor& stream) {
    finish();
    pending = id;
    pending_stream = stream.detach();
  }

  void representation(const Tensor& x) { pending_stream = x.detach(); }

  /// Adds the last sub-layer.
  void finish() {
    if (!pending_stream.defined()) return;
    const Tensor x = standardized(pending_stream);
    if (next == points.size()) points.push_back({pending, 0, 0, 0, {}});
    Sums& sums = points[next++];
    const auto width = static_cast<double>(x.size(1));
    sums.square += pending_stream.to(at::kDouble).square().sum().item<double>() / width;
    sums.change += (x - previous).abs().sum().item<double>() / width;
    sums.similarity += (x * previous).sum().item<double>() / width;  // both have length √width
    sums.rows.push_back(x);
    previous = x;
    pending_stream = Tensor();
  }

  [[nodiscard]] std::vector<CollapsePoint> profile() const {
    std::vector<CollapsePoint> profile;
    for (const Sums& sums : points) {
      profile.push_back({static_cast<int64_t>(profile.size()) + 1, sums.id, sums.square / tokens, sums.change / tokens,
                         sums.similarity / tokens, effective_rank(at::cat(sums.rows))});
    }
    return profile;
  }
};

}  // namespace

double effective_rank(const Tensor& rows) {
  const Tensor wide = rows.to(at::kDouble);
  const Tensor singular = at::linalg_svdvals(wide - wide.mean(0, true));
  const double sum = singular.sum().item<double>();
  if (sum <= 0) return 0;
  const Tensor p = singular / sum;
  return std::exp(-at::xlogy(p, p).sum().item<double>());
}

CollapseProfile measure_collapse(Model& model, const std::vector<Batch>& batches) {
  const at::NoGradGuard no_graph;
  std::map<StackKind, StackSums> stacks;
  ForwardContext context(Pass::measurement);
  context.watch([&stacks](const ActivationPoint& point, const Tensor& activation) {
    StackSums& stack = stacks[point.id.stack];
    if (point.point == Point::input && !point.id.layer) stack.begin(activation);
    if (point.point == Point::stream) stack.stream(point.id, activation);
    if (point.point == Point::representation) stack.representation(activation);
  });
  for (const Batch& batch : batches) {
    model.states(batch, context);
    for (auto& [kind, stack] : stacks) stack.finish();
  }
  return {stacks[StackKind::encoder].profile(), stacks[StackKind::decoder].profile()};
}

double predicted_pre_ln_change(int64_t depth) {
  const auto k = static_cast<double>(depth);
  return std::sqrt(2 / std::numbers::pi) * std::sqrt(2 - 2 * std::sqrt(k / (k + 1)));
}

}  // namespace plumb
