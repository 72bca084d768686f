// [watch] "gradient_noise": the gradient noise scale, from mini-batches drawn from the training set.
#include "plumb/analysis/noise_scale.h"
#include "plumb/base/random.h"
#include "plumb/optim/checks.h"
#include "plumb/run/config.h"

namespace plumb {
namespace {

struct GradientNoiseOptions {
  int64_t batches = 8;
  int64_t examples = 16;
};
void describe(Fields& field, GradientNoiseOptions& options) {
  field("batches", options.batches, "mini-batches drawn from the training set at each measurement; each is a gradient");
  field("examples", options.examples, "examples in each of them");
}

class GradientNoiseWatch final : public Watch {
 public:
  explicit GradientNoiseWatch(const GradientNoiseOptions& options) : options_(options) {
    check_within("watch.gradient_noise.batches", options.batches, int64_t{2}, int64_t{100'000});
    check_within("watch.gradient_noise.examples", options.examples, int64_t{1}, int64_t{1'000'000});
  }

  [[nodiscard]] Json measure(const WatchedRun& run) override {
    const std::vector<Batch> batches = draw(run);
    double weight = 0;
    for (const Batch& batch : batches) weight += batch.weight();
    const LossFunction loss = [&run](Model& model, const Batch& batch, const LossOptions& options,
                                     ForwardContext& context) { return run.task.loss(model, batch, options, context); };
    const NoiseScale noise =
        measure_noise_scale(run.model, batches, options_.examples, run.config.label_smoothing, loss);
    const double per_example = weight / static_cast<double>(options_.batches * options_.examples);
    Json json;
    json["mean_square_norm"] = noise.mean_square_norm;
    json["square_norm_of_mean"] = noise.square_norm_of_mean;
    json["square_gradient"] = noise.square_gradient;
    json["trace"] = noise.trace;
    json["examples"] = noise.examples();
    json["tokens"] = noise.examples() * per_example;
    json["gradients"] = options_.batches;
    return json;
  }

 private:
  /// Independent draws with replacement, a function of the seed and step only.
  [[nodiscard]] std::vector<Batch> draw(const WatchedRun& run) const {
    Random random(static_cast<uint64_t>(run.config.seed),
                  stream_of("gradient noise") + static_cast<uint64_t>(run.step));
    std::vector<Batch> batches;
    for (int64_t k = 0; k < options_.batches; ++k) {
      std::vector<int64_t> examples;
      for (int64_t i = 0; i < options_.examples; ++i)
        examples.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(run.train_set.size()))));
      batches.push_back(run.train_set.batch(examples));
    }
    return batches;
  }

  GradientNoiseOptions options_;
};

[[maybe_unused]] const bool kGradientNoiseRegistered = watches().add(
    "gradient_noise",
    "E‖g‖² and ‖E g‖² over mini-batches of the training set; ‖G‖² and tr Σ without bias; the noise scale tr Σ/‖G‖², in "
    "examples and in labels",
    "McCandlish et al. 2018, arXiv 1812.06162, appendix A.1",
    [](const Options& options) { return std::make_unique<GradientNoiseWatch>(options.as<GradientNoiseOptions>()); },
    Options(GradientNoiseOptions{}));

}  // namespace
}  // namespace plumb
