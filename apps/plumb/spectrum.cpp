// plumb spectrum: eigenvalues of the loss's Hessian.
#include "checks.h"
#include "measured_page.h"
#include "plumb/analysis/curvature/spectrum_json.h"

#include <memory>
#include <optional>
#include <string>

#include "plumb/base/progress.h"
#include "processes.h"
#include "subject.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct SpectrumArguments {
  SubjectArguments subject;
  SpectrumOptions spectrum;
  double graph_gibibytes = 6;
  MeasuringProcesses processes;
  std::string html;
};

/// Measures; rank 0 writes the result.
void measure_and_write(const SpectrumArguments& arguments, const Subject& subject, const Globals& globals,
                       const Mesh& mesh) {
  SpectrumOptions options = arguments.spectrum;
  options.hessian.graph_memory = static_cast<int64_t>(arguments.graph_gibibytes * (1 << 30));
  options.hessian.group = mesh.data;
  options.seed = globals.seed;
  const auto [model, division] = subject.make_model(globals.seed, mesh.tensor);
  if (mesh.tensor.size() > 1) options.hessian.division = &division;
  std::optional<Progress> bar;
  SpectrumProgress progress;
  if (mesh.all.rank() == 0) {
    progress = [&](int64_t done, int64_t total, const std::string& note) {
      if (!bar) bar.emplace("spectrum", total);
      bar->update(done, note);
    };
  }
  const SpectrumReport report = measure_spectrum(*model, subject.batches, options, progress);
  bar.reset();
  if (mesh.all.rank() > 0) return;
  const Results page = page_of(report, subject);
  write_page(arguments.html, page);
  emit(globals, subject.document(to_json(report)), app::text_of(page));
}

void add_spectrum(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<SpectrumArguments>();
  CLI::App* verb = add_verb(
      app, globals, "spectrum", "Measure eigenvalues of the loss's Hessian",
      "plumb spectrum --config post_ln.toml --data data/multi30k --pairs 1000 --steps 80 --json spectrum.json",
      [arguments, &app, &globals] {
        measure_in_processes(
            *app.get_subcommand("spectrum"), arguments->subject, arguments->processes, globals,
            [&](const Subject& subject, const Mesh& mesh) { measure_and_write(*arguments, subject, globals, mesh); });
      });
  add_json_option(*verb, globals);
  add_html_option(*verb, arguments->html);
  add_seed_option(*verb, globals);
  add_subject_options(*verb, arguments->subject);
  SpectrumOptions& options = arguments->spectrum;
  const CLI::Validator count = between(1, 1e6);
  verb->add_option("--steps", options.steps, "Lanczos steps per probe")->check(count);
  verb->add_option("--probes", options.probes, "Random start vectors; two or more give error bars")->check(count);
  verb->add_option("--at-once", options.at_once,
                   "Probes that advance together: faster if gradient graphs are not kept, but needs memory for as many "
                   "Lanczos bases")
      ->check(count);
  verb->add_option("--tolerance", options.tolerance,
                   "End a probe once both extremes have this error, relative to the larger magnitude")
      ->check(not_negative());
  CLI::Option* dense =
      verb->add_flag("--dense", options.dense, "Compute all eigenvalues, for models of a few thousand parameters");
  verb->add_flag("--by-layer", options.by_layer, "Measure each layer's diagonal block instead of the full Hessian")
      ->excludes(dense)
      ->excludes("--at-once");
  verb->add_option("--sigma", options.sigma, "Width of the density's kernel (default: a hundredth of the range)")
      ->check(positive());
  verb->add_option("--label-smoothing", options.hessian.label_smoothing, "Label smoothing of the loss")
      ->check(between(0, 1));
  verb->add_option("--graph-memory", arguments->graph_gibibytes,
                   "Memory in GiB for gradient graphs kept between products, of all processes on this machine")
      ->check(between(0, 1e6));
  add_processes_options(*verb, arguments->processes, "the model and of the Lanczos vectors")->excludes(dense);
  verb->add_option("--basis-directory", options.basis_directory,
                   "Keep the Lanczos vectors in a file in this directory (default: in memory)")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
}

const bool kSpectrumRegistered = register_verb({Heading::measure, 30, add_spectrum, true});

}  // namespace
}  // namespace plumb::app
