// [watch] "gradient_noise": the gradient noise scale, from mini-batches drawn from the training set.
#include "plumb/analysis/watch/gradient_noise.h"

#include "plumb/analysis/noise_scale.h"
#include "plumb/base/random.h"
#include "plumb/run/config.h"

namespace plumb {

void describe(Fields& field, GradientNoiseOptions& options) {
  field("batches", options.batches, "mini-batches drawn from the training set at each measurement; each is a gradient",
        within(2, 100'000));
  field("examples", options.examples, "examples in each of them", within(1, 1'000'000));
}

void describe(Fields& field, GradientNoiseMeasurement& measurement) {
  field("mean_square_norm", measurement.mean_square_norm);
  field("square_norm_of_mean", measurement.square_norm_of_mean);
  field("square_gradient", measurement.square_gradient);
  field("trace", measurement.trace);
  field("examples", measurement.examples);
  field("tokens", measurement.tokens);
  field("gradients", measurement.gradients);
}

namespace {

class GradientNoiseWatch final : public Watch {
 public:
  explicit GradientNoiseWatch(const GradientNoiseOptions& options) : options_(options) {}

  [[nodiscard]] Described measure(const WatchedRun& run) override {
    const std::vector<Batch> batches = draw(run);
    const NoiseScale noise =
        measure_noise_scale(run.model, batches, options_.examples, run.config.label_smoothing, loss_of(run.task));
    const double labels = total_weight(batches) / static_cast<double>(options_.batches * options_.examples);
    return Described(GradientNoiseMeasurement{noise.mean_square_norm, noise.square_norm_of_mean, noise.square_gradient,
                                              noise.trace, noise.examples(), noise.examples() * labels,
                                              options_.batches});
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
    GradientNoiseMeasurement::kWatch,
    "E‖g‖² and ‖E g‖² over mini-batches of the training set; ‖G‖² and tr Σ without bias; the noise scale tr Σ/‖G‖², in "
    "examples and in labels",
    "McCandlish et al. 2018, arXiv 1812.06162, appendix A.1",
    watch_factory<GradientNoiseWatch, GradientNoiseOptions>(),
    Options(GradientNoiseOptions{}));

}  // namespace
}  // namespace plumb
