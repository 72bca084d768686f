// plumb probe: measures activations and gradients of a model at initialization, or with given weights, and compares
// them with theory.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checks.h"
#include "measured_page.h"
#include "plumb/analysis/initialization_json.h"
#include "plumb/analysis/probe_json.h"
#include "plumb/base/progress.h"
#include "processes.h"
#include "subject.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct ProbeArguments {
  SubjectArguments subject;
  int64_t seeds = 10;
  double label_smoothing = 0;
  bool gains = false;
  bool first_step = false;
  int64_t curvature = 0;
  int64_t layer_curvature = 0;
  MeasuringProcesses processes;
  std::string html;
};

/// The optional measurements, if any are requested; nullopt in ranks above 0, since only rank 0 has complete results.
std::optional<InitializationReport> more_measurements(const ProbeArguments& arguments, const Subject& subject,
                                                      const Globals& globals, const Mesh& mesh) {
  InitializationOptions options;
  options.gains = arguments.gains;
  if (arguments.first_step) options.first_steps = {"adam", "sgd"};
  options.curvature_steps = arguments.curvature;
  options.layer_curvature_steps = arguments.layer_curvature;
  options.label_smoothing = arguments.label_smoothing;
  options.seed = globals.seed;
  options.group = mesh.data;
  if (!options.any()) return std::nullopt;
  const int64_t models = subject.weights ? 1 : arguments.seeds;
  Progress progress("probe, first steps", models);
  std::vector<InitializationMeasurement> measurements;
  for (int64_t i = 0; i < models; ++i) {
    const DividedModel divided = subject.make_model(globals.seed + static_cast<uint64_t>(i), mesh.tensor);
    measurements.push_back(measure_initialization(*divided.model, subject.batches, options));
    progress.update(i + 1);
  }
  return mesh.all.rank() == 0 ? std::optional(summarize(measurements)) : std::nullopt;
}

/// Measures; rank 0 writes the result.
void measure_and_report(const ProbeArguments& arguments, const Subject& subject, const Globals& globals,
                        const Mesh& mesh) {
  ProbeOptions options;
  options.seeds.clear();
  for (int64_t i = 0; i < arguments.seeds; ++i) options.seeds.push_back(globals.seed + static_cast<uint64_t>(i));
  options.label_smoothing = arguments.label_smoothing;
  options.type = subject.type;
  options.weights_origin = subject.weights_origin;
  options.group = mesh.data;
  options.layers = mesh.tensor;
  const ProbeReport report = probe(subject.config, subject.weights, subject.batches, options);
  const std::optional<InitializationReport> more = more_measurements(arguments, subject, globals, mesh);
  if (mesh.all.rank() > 0) return;
  Json document = to_json(report);
  if (more) document.update(to_json(*more));
  const Results page = page_of(report, more, subject);
  write_page(arguments.html, page);
  emit(globals, subject.document(document), app::text_of(page));
}

void add_probe(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<ProbeArguments>();
  CLI::App* verb = add_verb(
      app, globals, "probe", "Measure activations and gradients at initialization and compare them with theory",
      "plumb probe --config model.toml --data data/multi30k --set model.residual=post-ln", [arguments, &app, &globals] {
        measure_in_processes(
            *app.get_subcommand("probe"), arguments->subject, arguments->processes, globals,
            [&](const Subject& subject, const Mesh& mesh) { measure_and_report(*arguments, subject, globals, mesh); });
      });
  add_json_option(*verb, globals);
  add_html_option(*verb, arguments->html);
  add_seed_option(*verb, globals);
  add_subject_options(*verb, arguments->subject);
  verb->add_option("--seeds", arguments->seeds,
                   "Number of initializations, starting at --seed; ignored for given weights")
      ->check(between(1, 1e6));
  verb->add_option("--label-smoothing", arguments->label_smoothing,
                   "Label smoothing of the loss whose gradient is measured")
      ->check(between(0, 1));
  verb->add_flag("--gains", arguments->gains, "Also measure how much of the gradient each sub-layer passes back");
  verb->add_flag("--first-step", arguments->first_step,
                 "Also measure the first step of Adam and SGD: change of the logits by layer, critical learning rate");
  verb->add_option("--curvature", arguments->curvature,
                   "Also measure the Hessian, its Gauss-Newton part and the rest, with N Lanczos steps each; 0: off")
      ->check(between(0, 1e5));
  verb->add_option("--layer-curvature", arguments->layer_curvature,
                   "With --curvature, also their diagonal blocks, one per layer, with N Lanczos steps each; 0: off")
      ->check(between(0, 1e5))
      ->needs("--curvature");
  CLI::Option* divided = add_processes_options(*verb, arguments->processes, "the model");
  for (const char* whole : {"--first-step", "--curvature", "--layer-curvature"}) divided->excludes(whole);
}

const bool kProbeRegistered = register_verb({Heading::measure, 20, add_probe, true});

}  // namespace
}  // namespace plumb::app
