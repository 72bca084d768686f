// plumb probe: measures activations and gradients of a model at initialization, or with given weights, and compares
// them with theory.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checks.h"
#include "in_words.h"
#include "initialization_text.h"
#include "measured_page.h"
#include "plumb/analysis/initialization_json.h"
#include "plumb/analysis/probe_json.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
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

std::string adapted_bounds(const std::optional<SignalReport::Lemma2>& theory, double d) {
  if (!theory) return {};
  const auto [low, high] = theory->adapted;
  return low == high ? fmt::format("{:.4g}", low / d) : fmt::format("{:.4g} .. {:.4g}", low / d, high / d);
}

/// One stack: one line per layer.
std::string stack_table(const ProbeReport& report, StackKind stack, int64_t layers, double d) {
  const bool post = report.theory.placement == theory::Placement::post_ln;
  std::vector<std::vector<std::string>> rows = {
      {to_string(stack), "|dL/dW1|", "|dL/dW2|", post ? "|x post,5|²/d" : "|x|²/d", "theory", "delta(0.1)"}};
  if (const SignalReport* input = report.find(ActivationPoint{{stack}, Point::input}))
    rows.push_back({"  input", "", "", interval_text(input->mean_square, d)});
  for (int64_t layer = 0; layer < layers; ++layer) {
    const LayerId id{stack, layer};
    const auto gradient = [&](int matrix) {
      const FeedForwardReport* found = report.find(id, matrix);
      return found != nullptr ? interval_text(found->batch_mean_gradient_norm) : "";
    };
    const SignalReport* point =
        report.find(ActivationPoint{{stack, layer, SubLayerKind::feed_forward}, post ? Point::sum : Point::stream});
    rows.push_back({fmt::format("{:>7}", id.number()), gradient(1), gradient(2)});
    if (point == nullptr) continue;
    rows.back().insert(rows.back().end(), {interval_text(point->mean_square, d), adapted_bounds(point->theory, d),
                                           interval_text(point->delta_at_0_1)});
  }
  return aligned(rows, rows.front().size());
}

/// One line per sub-layer.
std::string branches_text(const std::vector<BranchReport>& branches) {
  if (branches.empty()) return {};
  std::vector<std::vector<std::string>> rows = {
      {"branch / stream, tokens' similarity", "ratio", "theory", "similarity after", "theory"}};
  for (const BranchReport& branch : branches) {
    const auto theory = [&](double BranchPoint::*field) {
      return branch.predicted ? fmt::format("{:.3f}", *branch.predicted.*field) : std::string();
    };
    rows.push_back({"  " + to_string(branch.id), interval_text(branch.ratio), theory(&BranchPoint::ratio),
                    interval_text(branch.similarity), theory(&BranchPoint::similarity)});
  }
  return '\n' + aligned(rows, rows.front().size());
}

std::string theory_text(const TheoryReport& theory) {
  const bool predicted = !theory.layer_slopes.empty() && theory.layer_slopes.front().predicted;
  std::string text = fmt::format("\nslope of log |gradient| over layers (theory: {})\n",
                                 predicted ? fmt::format("{:.4f}", *theory.layer_slopes.front().predicted) : "none");
  for (const TheoryReport::Slope& slope : theory.layer_slopes) {
    const double error = slope.fit.slope_error;
    text += fmt::format("  {} W{}   {:+.4f}{}\n", to_string(slope.stack), slope.matrix, slope.fit.slope,
                        std::isfinite(error) ? fmt::format("   standard error {:.4f}", error) : "");
  }
  if (theory.theorem_1) {
    text += fmt::format("\nTheorem 1, last W2: norm {} = constant {} × bound {:.1f} ({})\n",
                        interval_text(theory.theorem_1->norm), interval_text(theory.theorem_1->constant),
                        theory.theorem_1->bound,
                        theory.placement == theory::Placement::post_ln ? "d √ln d" : "d √(ln d / L)");
  }
  if (!theory.differs.empty()) text += "\nDiffers from the theory's setting: " + join(theory.differs, "; ") + "\n";
  return text;
}

std::string text_of(const ProbeReport& report, const Subject& subject) {
  const ModelConfig& config = subject.config;
  const auto d = static_cast<double>(width_of(config));
  const auto [encoder_layers, decoder_layers] = depth_of(config);
  const int64_t count = report.loss.count;
  std::string text =
      fmt::format("{}, {} + {} layers, d_model {}, {}; {} pairs, {} target tokens; {} measurement{}\n", config.residual,
                  encoder_layers, decoder_layers, width_of(config),
                  subject.weights ? subject.weights_origin : config.initialization, with_thousands(subject.examples()),
                  with_thousands(subject.target_tokens()), count, count == 1 ? "" : "s, 95% confidence");
  text += fmt::format("loss {}   gradient norm {}\n\n", interval_text(report.loss),
                      interval_text(report.gradient_norm_total));
  if (encoder_layers > 0) text += stack_table(report, StackKind::encoder, encoder_layers, d);
  if (encoder_layers > 0 && decoder_layers > 0) text += '\n';
  if (decoder_layers > 0) text += stack_table(report, StackKind::decoder, decoder_layers, d);
  text += branches_text(report.branches);
  text += theory_text(report.theory);
  const std::string words = in_words(report.theory, depth_of(config), count);
  return words.empty() ? text : text + '\n' + words;
}

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
  write_page(arguments.html, page_of(report, more, subject));
  emit(globals, subject.document(document), text_of(report, subject) + (more ? app::text_of(*more) : ""));
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
