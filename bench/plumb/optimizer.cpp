// plumb bench optimizer: one update of a random decoder's parameters by each optimizer.
#include "plumb/optim/optimizer.h"
#include "plumb/base/machine.h"

#include <cmath>
#include <filesystem>
#include <numeric>

#include "bench.h"
#include "declared_manual.h"
#include "plumb/base/timing.h"
#include "plumb/ops/device.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/cautious.h"
#include "plumb/plan/model_cost.h"

namespace plumb::app::bench {
namespace {

constexpr double kRate = 1e-3, kDecay = 0.1, kGradientDeviation = 1e-2;

/// Steps before the first timed one. RAdam divides by √v from the sixth step on.
constexpr int64_t kUntimedSteps = 6;

struct OptimizerArguments {
  DecoderSizes model{512, 2048, 8, 8, 32000};
  int64_t runs = 10;
  std::vector<std::string> names;  // empty: all
  bool cautious = false;
  std::string precision = "float32";
  std::string directory;  // to export to, if any
};

Json sizes_of(const OptimizerArguments& a) {
  Json json = sizes_json(a.model);
  json.update({{"cautious", a.cautious}, {"runs", a.runs}, {"precision", a.precision}});
  return json;
}

/// Parameters with a random gradient that is the same in every step.
class UpdatedParameters {
 public:
  UpdatedParameters(const Parameters& parameters, uint64_t seed)
      : parameters_(parameters),
        initial_(parameters.flat().detach().clone()),
        settings_(parameters.all().size(), {.learning_rate = kRate, .weight_decay = kDecay}) {
    at::manual_seed(seed);
    gradients_ = parameters.split(at::randn({parameters.count()}, parameters.options()).mul_(kGradientDeviation));
  }

  void reset() {
    const at::NoGradGuard no_graph;
    parameters_.flat().copy_(initial_);
  }

  void step(Optimizer& optimizer) {
    optimizer.step(gradients_, settings_);
    ops::synchronize(parameters_.device());
  }

  /// The root mean square change of the parameters since reset().
  [[nodiscard]] double moved() const {
    const at::NoGradGuard no_graph;
    return (parameters_.flat() - initial_).square_().mean(at::kDouble).sqrt().item<double>();
  }

  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

  /// The parameters by name, and their gradients as gradient.NAME.
  [[nodiscard]] NamedTensors tensors() const {
    NamedTensors named;
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const Parameter& parameter = parameters_.all()[i];
      named.emplace_back(parameter.name, parameter.value.detach());
      named.emplace_back("gradient." + parameter.name, gradients_[i]);
    }
    return named;
  }

 private:
  Parameters parameters_;
  Tensor initial_;
  std::vector<ParameterStep> settings_;
  std::vector<Tensor> gradients_;
};

/// Reports validation losses that grow, so that an optimizer that waits for this starts averaging.
void begin_averaging(Optimizer& optimizer) {
  constexpr int64_t kValidations = 10;
  for (int64_t i = 0; i < kValidations; ++i) optimizer.see_validation(static_cast<double>(i));
}

/// The median and the mean time of a step: some optimizers do more work in some steps than in others.
Json timed_steps(Optimizer& optimizer, UpdatedParameters& updated, int64_t runs) {
  std::vector<double> seconds;
  const double median = median_seconds(runs, [&] {
    const Stopwatch watch;
    updated.step(optimizer);
    seconds.push_back(watch.seconds());
  });
  if (seconds.size() > 1) seconds.erase(seconds.begin());  // the warm-up
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return {{"seconds", median}, {"mean_seconds", sum / static_cast<double>(seconds.size())}};
}

/// Bytes per parameter and throughput of updates with a state of this size.
Json traffic(double state_bytes, int64_t parameters, double seconds) {
  const auto count = static_cast<double>(parameters);
  const double moved = 3 * count * sizeof(float) + 2 * state_bytes;  // parameters and state are read and written
  return {{"state_bytes_per_parameter", state_bytes / count}, {"gigabytes_per_second", 1e-9 * moved / seconds}};
}

/// Null if the optimizer is skipped: when all are measured, those that average the weights cannot be cautious.
std::unique_ptr<Optimizer> optimizer_of(const OptimizerArguments& arguments, const std::string& name,
                                        const Parameters& parameters) {
  std::unique_ptr<Optimizer> optimizer = make_optimizer(name, parameters, {});
  if (!arguments.cautious) return optimizer;
  if (arguments.names.empty() && optimizer->averages_weights()) return nullptr;
  return make_cautious(std::move(optimizer), parameters);
}

Json measure(const OptimizerArguments& arguments, uint64_t seed) {
  for (const std::string& name : arguments.names) static_cast<void>(optimizers().at(name));  // check names first
  const std::unique_ptr<Model> model = make_model(decoder_config(arguments.model));
  model->initialize(seed);
  UpdatedParameters updated(model->parameters(), seed);
  ops::MatrixPrecision precision(ops::precision_of(arguments.precision));
  const ops::PrecisionGuard guard(precision);
  Json json = result_document("optimizer", sizes_of(arguments));
  json["parameters"] = updated.parameters().count();
  json["optimizers"] = Json::array();
  Json moved = Json::object();
  for (const std::string& name : arguments.names.empty() ? optimizers().names() : arguments.names) {
    const std::unique_ptr<Optimizer> optimizer = optimizer_of(arguments, name, updated.parameters());
    if (!optimizer) continue;
    updated.reset();
    begin_averaging(*optimizer);
    for (int64_t i = 0; i < kUntimedSteps; ++i) updated.step(*optimizer);
    moved[name] = updated.moved();
    Json row = {{"optimizer", name}};
    row.update(timed_steps(*optimizer, updated, arguments.runs));
    const double state = plan::optimizer_bytes(model->config(), name, {});
    row.update(traffic(state, updated.parameters().count(), row["seconds"].get<double>()));
    json["optimizers"].push_back(row);
  }
  json["peak_memory_bytes"] = peak_resident_memory();
  if (!arguments.directory.empty()) {
    updated.reset();
    export_work(
        arguments.directory, "optimizer", sizes_of(arguments),
        {{"learning_rate", kRate}, {"weight_decay", kDecay}, {"untimed_steps", kUntimedSteps}, {"moved", moved}});
    save_safetensors(std::filesystem::path(arguments.directory) / "model.safetensors", updated.tensors());
  }
  return json;
}

void add_optimizer(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<OptimizerArguments>();
  CLI::App* verb =
      add_measurement(bench, globals, "optimizer", "Time one update of a decoder's parameters by each optimizer",
                      [arguments, &globals] { return measure(*arguments, globals.seed); });
  suggest(verb->add_option("--optimizer", arguments->names, "Optimizers, separated by commas; all by default")
              ->type_name("NAME")
              ->delimiter(','),
          optimizers().names());
  verb->add_flag("--cautious", arguments->cautious,
                 "Take cautious steps (train.cautious); leaves out optimizers that average the weights");
  add_precision_option(*verb, arguments->precision);
  add_sizes(*verb, arguments->model);
  add_size(*verb, "--runs", arguments->runs, "Timed updates; the median and the mean are reported");
  add_export_option(*verb, arguments->directory);
}

const bool kOptimizerRegistered = register_verb({Heading::benchmarks, 80, add_optimizer});

}  // namespace
}  // namespace plumb::app::bench
