// A task for tests of the division of steps: wraps another task, adds label weights, and lets tests observe batches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "plumb/task/task.h"

namespace plumb::test {

/// The examples of another dataset; the labels of example i have weight (i mod 3)/2: 0, 0.5 or 1.
class WeightedDataset final : public Dataset {
 public:
  explicit WeightedDataset(std::unique_ptr<Dataset> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] int64_t size() const override { return inner_->size(); }
  [[nodiscard]] ExampleCost cost(int64_t i) const override { return inner_->cost(i); }
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override {
    Batch batch = inner_->batch(examples);
    for (int64_t s = 0; s < batch.target_layout.sequences(); ++s) {
      const double weight = static_cast<double>(examples[static_cast<size_t>(s)] % 3) / 2;
      batch.weights.insert(batch.weights.end(), static_cast<size_t>(batch.target_layout.length(s)), weight);
    }
    return batch;
  }

 private:
  std::unique_ptr<Dataset> inner_;
};

class WeightedTask final : public Task {
 public:
  explicit WeightedTask(const Task& inner) : Task(inner.data()), inner_(inner) {}
  [[nodiscard]] std::string name() const override { return "weighted"; }
  [[nodiscard]] std::string model_kind() const override { return inner_.model_kind(); }
  void complete(ModelConfig& config) const override { inner_.complete(config); }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return std::make_unique<WeightedDataset>(inner_.dataset(split));
  }
  [[nodiscard]] Loss loss(Model& model, const Batch& batch, const LossOptions& options,
                          ForwardContext& context) const override {
    if (before_loss) before_loss(batch, context);
    return inner_.loss(model, batch, options, context);
  }

  std::function<void(const Batch&, const ForwardContext&)> before_loss;  // called before every loss

 private:
  const Task& inner_;
};

}  // namespace plumb::test
