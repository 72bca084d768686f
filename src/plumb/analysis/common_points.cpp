#include "plumb/analysis/common_points.h"

#include "plumb/base/error.h"
#include "plumb/ops/torch.h"

namespace plumb {
namespace {

constexpr int64_t kNumbersPerPoint = 4;
constexpr int64_t kNoNumber = -1;

/// (points, 4): stack, layer, sub-layer, and point.
Tensor as_numbers(const std::vector<ActivationPoint>& points) {
  std::vector<int64_t> numbers;
  for (const ActivationPoint& point : points) {
    numbers.push_back(static_cast<int64_t>(point.id.stack));
    numbers.push_back(point.id.layer.value_or(kNoNumber));
    numbers.push_back(point.id.sub_layer ? static_cast<int64_t>(*point.id.sub_layer) : kNoNumber);
    numbers.push_back(static_cast<int64_t>(point.point));
  }
  return at::tensor(numbers, at::kLong).view({std::ssize(points), kNumbersPerPoint});
}

std::vector<ActivationPoint> from_numbers(const Tensor& rows) {
  std::vector<ActivationPoint> points;
  const int64_t* number = rows.data_ptr<int64_t>();
  for (int64_t i = 0; i < rows.size(0); ++i, number += kNumbersPerPoint) {
    ActivationPoint point{{static_cast<StackKind>(number[0])}, static_cast<Point>(number[3])};
    if (number[1] != kNoNumber) point.id.layer = number[1];
    if (number[2] != kNoNumber) point.id.sub_layer = static_cast<SubLayerKind>(number[2]);
    points.push_back(point);
  }
  return points;
}

}  // namespace

std::vector<ActivationPoint> common_points(const std::vector<ActivationPoint>& own, const Group& group) {
  if (group.size() == 1) return own;
  int64_t root = 0, count = 0;  // the first rank that has seen any
  const std::vector<Tensor> counts = group.all_gather(at::full({1}, std::ssize(own), at::kLong));
  while (root < group.size() && (count = counts[static_cast<size_t>(root)].item<int64_t>()) == 0) ++root;
  if (count == 0) return {};
  const Tensor rows = group.rank() == root ? as_numbers(own) : at::empty({count, kNumbersPerPoint}, at::kLong);
  group.broadcast(rows, root);
  std::vector<ActivationPoint> points = from_numbers(rows);
  if (!own.empty() && own != points) throw Error("the processes have measured different activations");
  return points;
}

}  // namespace plumb
