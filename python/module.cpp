// The extension module plumb._plumb: the solver, for losses that are computed by Python, the judge of runs, the search
// of plumb.check, and figures.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cmath>

#include "errors.h"
#include "plumb/analysis/curvature/function_gauss_newton.h"
#include "plumb/analysis/curvature/function_hessian.h"
#include "plumb/analysis/curvature/lanczos.h"
#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/analysis/rate_search.h"
#include "plumb/analysis/scaling_exponent.h"
#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/timing.h"
#include "plumb/check/search.h"
#include "plumb/check/thresholds.h"
#include "plumb/check/verdict.h"
#include "plumb/check/words.h"
#include "plumb/judge/direction.h"
#include "plumb/judge/judge.h"
#include "plumb/judge/ledger.h"
#include "plumb/report/svg.h"
#include "plumb/report/svg_marks.h"

namespace py = pybind11;

namespace plumb {
namespace {

/// Also where Ctrl-C interrupts a measurement.
SpectrumProgress progress_of(const SpectrumProgress& callback) {
  return [callback](int64_t done, int64_t planned, const std::string& known) {
    const py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (callback) callback(done, planned, known);
  };
}

py::array_t<double> array(const std::vector<double>& values) {
  return py::array_t<double>(static_cast<py::ssize_t>(values.size()), values.data());
}
py::tuple pair(const Extreme& extreme) { return py::make_tuple(extreme.value, extreme.error); }
py::tuple pair(const Estimate& estimate) { return py::make_tuple(estimate.mean, estimate.error); }

/// The arguments of plumb.Spectrum that come from here.
py::dict as_dict(const Spectrum& found) {
  using namespace pybind11::literals;
  py::list probes;
  for (const ProbeSpectrum& probe : found.probes) {
    probes.append(py::dict("steps"_a = probe.steps, "exhausted"_a = probe.exhausted, "rounding"_a = probe.rounding,
                           "values"_a = array(probe.ritz.values), "weights"_a = array(probe.ritz.weights),
                           "residuals"_a = array(probe.ritz.residuals)));
  }
  py::dict density("sigma"_a = found.density.sigma, "x"_a = array(found.density.x), "y"_a = array(found.density.y));
  const bool band = !found.density.low.empty();
  density["low"] = band ? py::object(array(found.density.low)) : py::none();
  density["high"] = band ? py::object(array(found.density.high)) : py::none();
  return py::dict("max"_a = pair(found.max), "min"_a = pair(found.min), "trace"_a = pair(found.trace),
                  "frobenius"_a = pair(found.frobenius), "negative"_a = pair(found.negative),
                  "positive"_a = pair(found.positive), "zero_band"_a = found.zero_band,
                  "quantiles"_a = std::map<double, double>(found.quantiles.begin(), found.quantiles.end()),
                  "density"_a = density, "probes"_a = probes,
                  "eigenvalues"_a = found.eigenvalues.empty() ? py::none() : py::object(array(found.eigenvalues)));
}

SpectrumOptions make_options(int64_t steps, int64_t probes, uint64_t seed, double tolerance, bool dense, double sigma,
                             const std::string& basis_directory) {
  SpectrumOptions options;
  options.steps = steps;
  options.probes = probes;
  options.seed = seed;
  options.tolerance = tolerance;
  options.dense = dense;
  options.sigma = sigma;
  options.basis_directory = basis_directory;
  return options;
}

template <typename Matrix>
py::dict spectrum(Matrix& matrix, const SpectrumOptions& options, const SpectrumProgress& progress) {
  Spectrum found;
  {
    const py::gil_scoped_release unlocked;
    const SeveralProducts multiply = [&](const std::vector<Tensor>& vectors) { return matrix.multiply(vectors); };
    found = measure_spectrum(multiply, matrix.size(), matrix.options(), options, progress);
  }
  return as_dict(found);
}

template <typename Matrix>
std::vector<py::dict> block_spectra(Matrix& matrix, const std::vector<std::vector<size_t>>& blocks,
                                    const SpectrumOptions& options, const SpectrumProgress& progress) {
  std::vector<Spectrum> found;
  {
    const py::gil_scoped_release unlocked;
    std::vector<VectorSpace> spaces;
    for (const std::vector<size_t>& block : blocks) spaces.emplace_back(matrix.size_of(block));
    const auto multiply = [&](const std::vector<int64_t>& which, const std::vector<Tensor>& vectors) {
      std::vector<std::vector<size_t>> some;
      for (const int64_t i : which) some.push_back(blocks.at(static_cast<size_t>(i)));
      return matrix.multiply_blocks(some, vectors);
    };
    found = measure_spectra(multiply, spaces, matrix.options(), options, progress);
  }
  std::vector<py::dict> dicts;
  for (const Spectrum& one : found) dicts.push_back(as_dict(one));
  return dicts;
}

/// What a matrix of a function is measured with.
template <typename Matrix>
void add_measurements(py::class_<Matrix>& type) {
  type.def("multiply", &Matrix::multiply, py::call_guard<py::gil_scoped_release>())
      .def("point",
           [](Matrix& matrix) {
             FunctionHessian::Point point;
             {
               const py::gil_scoped_release unlocked;
               point = matrix.point();
             }
             return py::make_tuple(point.value, point.gradient, point.curved);
           })
      .def("spectrum",
           [](Matrix& matrix, const SpectrumOptions& options, const SpectrumProgress& progress) {
             return spectrum(matrix, options, progress_of(progress));
           })
      .def("block_spectra",
           [](Matrix& matrix, const std::vector<std::vector<size_t>>& blocks, const SpectrumOptions& options,
              const SpectrumProgress& progress) {
             return block_spectra(matrix, blocks, options, progress_of(progress));
           })
      .def_property_readonly("kept", &Matrix::kept);
}

/// Final values of runs: by arm, and within one by learning rate (0 if it is no sweep).
using ArmValues = std::vector<std::pair<std::string, std::vector<std::pair<double, std::vector<double>>>>>;

/// The arguments of plumb.Verdicts. Without a direction, by the metric's name.
py::dict judge_values(const ArmValues& values, const std::string& metric, std::optional<bool> direction, double margin,
                      bool by_seed, int64_t planned_seeds) {
  using namespace pybind11::literals;
  if (!direction) direction = larger_is_better_by_name(metric);
  if (!direction)
    throw Error("is more of \"" + metric + "\" better, or less?", "say larger_is_better=True or False");
  const bool larger_is_better = *direction;
  RunArms arms{.metric = metric, .larger_is_better = larger_is_better};
  for (const auto& [name, rates] : values) {
    RunArm& arm = arms.arms.emplace_back(RunArm{.name = name});
    for (const auto& [rate, finals] : rates) {
      Sweep::Point& point = arm.sweep.points.emplace_back(Sweep::Point{.learning_rate = rate});
      std::vector<std::string>& seeds = arm.seeds.emplace_back();
      for (const double value : finals) {
        point.losses.push_back(!std::isfinite(value) ? INFINITY : larger_is_better ? -value : value);
        seeds.push_back(std::to_string(seeds.size()));
      }
    }
  }
  const ArmRule rule{.margin = margin, .by_seed = by_seed, .planned_seeds = planned_seeds};
  const ArmVerdicts found = judge_arms(arms, rule);
  py::list summaries;
  for (const JudgedArm& arm : found.arms) {
    summaries.append(py::dict("name"_a = arm.name, "runs"_a = arm.runs, "failed"_a = arm.failed, "mean"_a = arm.mean,
                              "deviation"_a = arm.deviation, "learning_rate"_a = arm.learning_rate));
  }
  py::list pairs;
  for (const JudgedPair& pair : found.pairs) {
    pairs.append(py::dict("baseline"_a = pair.baseline, "arm"_a = pair.arm, "outcome"_a = pair.outcome,
                          "gain"_a = pair.gain.mean, "low"_a = pair.gain.low, "high"_a = pair.gain.high,
                          "confidence"_a = pair.confidence, "rule"_a = pair.rule, "reason"_a = pair.reason,
                          "seeds_needed"_a = pair.seeds_needed, "one_run"_a = pair.one_run));
  }
  return py::dict("arms"_a = summaries, "pairs"_a = pairs, "noise_floor"_a = found.noise_floor,
                  "text"_a = verdicts_text(found));
}

/// The arguments of plumb.GateAnswer as JSON. Runs: (arm, seed, value).
std::string ask_ledger(const std::filesystem::path& ledger, const std::string& base, const std::string& candidate,
                       const std::vector<std::tuple<std::string, std::string, double>>& runs, const std::string& metric,
                       std::optional<bool> larger_is_better, std::optional<double> error, std::optional<double> margin,
                       std::optional<int64_t> seeds) {
  GateRequest request{base, "", candidate, {}, metric, larger_is_better, error, margin, seeds};
  for (const auto& [arm, seed, value] : runs) request.runs.push_back({arm, seed, value});
  std::vector<std::string> notes;
  const GateAnswer answer = ask_gate(ledger, request, notes);
  Json json = described_json(answer);
  json["notes"] = notes;
  json["text"] = gate_text(answer);
  return json.dump();
}

/// (outcome, whether the trial, of at most `most` steps, need not go on, why, whether it is on the plateau). `reference`:
/// docs/python.md.
py::tuple judge_trial(const std::vector<int64_t>& steps, const std::vector<double>& losses, int64_t warm_up,
                      int64_t most, std::optional<double> reference, bool diverged) {
  const double first = losses.at(0);
  const check::Judged judged =
      reference
          ? check::judge_losses(steps, losses, warm_up, {*reference, std::max(*reference, first), first}, diverged)
          : check::judge_fall(steps, losses, warm_up, diverged);
  return py::make_tuple(to_string(judged.outcome), judged.clear && most - warm_up <= check::kBriefTrial,
                        judged.because, judged.on_plateau);
}

/// (outcome, why) of a trial on the plateau: check/verdict.h.
py::tuple judge_plateau(const std::string& because, double gradient_at_input) {
  const check::Judged judged = check::judge_plateau({.because = because}, gradient_at_input);
  return py::make_tuple(to_string(judged.outcome), judged.because);
}

std::optional<double> critical_rate(double slope, const std::function<double(double)>& rise, double start) {
  const std::optional<CriticalRate> found = find_critical_rate(slope, rise, {.start = start});
  return found ? std::optional(found->rate()) : std::nullopt;
}

/// A figure of results.json as SVG.
std::string svg_of(const std::string& figure) {
  const Json parsed = Json::parse(figure);
  return figure_svg(parsed, groups_of(Json::array({parsed})));
}

/// (exponent, half of its interval or none of a single seed, slope at the end, trend).
py::tuple exponent_of(const std::vector<double>& scales, const std::vector<std::vector<double>>& sizes, double margin) {
  const ScalingExponent found = scaling_exponent(scales, sizes, margin);
  const Interval& exponent = found.exponent;
  const bool single = exponent.count < 2 && found.trend != Trend::diverged;
  return py::make_tuple(exponent.mean, single ? std::nullopt : std::optional(exponent.high - exponent.mean),
                        found.at_the_end, to_string(found.trend));
}

/// "250g" or "5%", of which the second needs the planned steps; empty: the usual one.
check::Budget budget_of(const std::string& text, int64_t steps) {
  return text.empty() ? check::usual_budget(steps) : check::parse_budget(text, steps);
}

/// The search, as the document of `plumb check --json`. `attempt`: (learning rate, warm-up, seed, steps, seconds left)
/// to the document of a check::Trial. `spent`: gradients and seconds of the budget.
std::string search_rates(const check::Budget& budget, const std::pair<int64_t, double>& spent, double peak,
                         int64_t warm_up, int64_t steps, double reference, double least_gain, double clear_gain,
                         uint64_t seed, std::optional<double> critical_rate, double momentum_gain, bool signs,
                         const py::function& attempt, const std::optional<py::function>& progress) {
  const check::SearchPlan plan{.schedule = {.peak = peak, .warm_up = warm_up, .steps = steps},
                               .configured_rate = peak,
                               .reference = reference,
                               .gain_to_compare = least_gain,
                               .gain_without_control = clear_gain,
                               .steps_like_signs = signs,
                               .seed = seed,
                               .budget = budget,
                               .seconds = spent.second,
                               .seconds_per_gradient = spent.second / static_cast<double>(spent.first)};
  const Stopwatch watch;
  check::SearchHooks hooks;
  hooks.attempt = [&](const check::TrialPlan& trial, int64_t most) {
    const double left = budget.seconds - spent.second - watch.seconds();
    const py::object found = attempt(trial.learning_rate, trial.warm_up, trial.seed, most, left);
    return from_described_json<check::Trial>(Json::parse(found.cast<std::string>()));
  };
  if (progress) hooks.progress = [&](const std::string& what, double share) { (*progress)(what, share); };
  check::CheckResult result;
  result.critical_rate = critical_rate;
  result.cost.gradients = spent.first;
  const check::RateBelief before = critical_rate ? check::belief_of_critical_rate(*critical_rate, momentum_gain, signs)
                                                 : check::belief_of_planned_rate(peak);
  check::search_rates(plan, before, hooks, result);
  Json document = described_json(result);
  document["exit_status"] = check::exit_status(result);
  document["lines"] = Json::array();
  for (const auto& [name, text] : check::lines_of(result)) document["lines"].push_back(Json::array({name, text}));
  return document.dump();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming)
PYBIND11_MODULE(_plumb, module) {
  py::exception<Error>(module, "Error", PyExc_RuntimeError).attr("__module__") = "plumb";
  translate_exceptions();
  module.def("student_t_quantile", &student_t_quantile, py::arg("probability"), py::arg("degrees"));
  module.def("figure_svg", &svg_of, py::arg("figure"));
  module.attr("TEXT_COLOR") = kSvgText;
  module.attr("MUTED_COLOR") = kSvgMuted;
  module.attr("GRID_COLOR") = kSvgGrid;
  module.def("scaling_exponent", &exponent_of, py::arg("scales"), py::arg("sizes"), py::arg("margin"));
  module.def("largest_eigenvalue", &largest_eigenvalue, py::arg("multiply"), py::arg("start"), py::arg("steps"),
             py::call_guard<py::gil_scoped_release>());
  module.def("judge", &judge_values, py::arg("values"), py::arg("metric"), py::arg("larger_is_better"),
             py::arg("margin"), py::arg("by_seed"), py::arg("planned_seeds"));
  module.def("gate", &ask_ledger, py::arg("ledger"), py::arg("base"), py::arg("candidate"), py::arg("runs"),
             py::arg("metric"), py::arg("larger_is_better"), py::arg("error"), py::arg("margin"), py::arg("seeds"),
             py::call_guard<py::gil_scoped_release>());
  module.attr("STEPS_BETWEEN_LOSSES") = check::kStepsBetweenLosses;
  module.attr("MEASUREMENTS") = check::kMeasurements;
  module.attr("INITIAL_LOSS_MARGIN") = check::kInitialLossMargin;
  module.attr("CAUSALITY") = check::kCausality;
  module.attr("SMALLEST_STATES") = check::kSmallestStates;
  module.attr("LARGEST_STATES") = check::kLargestStates;
  module.attr("LARGEST_UPDATE") = check::kLargestUpdate;
  module.attr("SMALLEST_UPDATES") = check::kSmallestUpdates;
  module.attr("MOST_BELOW_EPSILON") = check::kMostBelowEpsilon;
  py::class_<check::Budget>(module, "Budget").def(py::init(&budget_of), py::arg("text"), py::arg("steps"));
  module.def("judge_trial", &judge_trial, py::kw_only(), py::arg("steps"), py::arg("losses"), py::arg("warm_up"),
             py::arg("most"), py::arg("reference"), py::arg("diverged"));
  module.def("judge_plateau", &judge_plateau, py::arg("because"), py::arg("gradient_at_input"));
  module.def("critical_rate", &critical_rate, py::arg("slope"), py::arg("rise"), py::arg("start"));
  module.def("search_rates", &search_rates, py::kw_only(), py::arg("budget"), py::arg("spent"), py::arg("peak"),
             py::arg("warm_up"), py::arg("steps"), py::arg("reference"), py::arg("least_gain"), py::arg("clear_gain"),
             py::arg("seed"), py::arg("critical_rate"), py::arg("momentum_gain"), py::arg("signs"), py::arg("attempt"),
             py::arg("progress"));
  py::class_<SpectrumOptions>(module, "Options")
      .def(py::init(&make_options), py::kw_only(), py::arg("steps"), py::arg("probes"), py::arg("seed"),
           py::arg("tolerance"), py::arg("dense"), py::arg("sigma"), py::arg("basis_directory"));
  py::class_<FunctionHessian> hessian(module, "FunctionHessian");
  hessian.def(py::init([](std::vector<Tensor> variables, std::vector<FunctionTerm> terms, int64_t memory) {
                const py::gil_scoped_release unlocked;
                return std::make_unique<FunctionHessian>(std::move(variables), std::move(terms), memory);
              }),
              py::arg("variables"), py::arg("terms"), py::arg("graph_memory"));
  add_measurements(hessian);
  py::class_<FunctionGaussNewton> gauss_newton(module, "FunctionGaussNewton");
  using Composed = std::pair<decltype(ComposedTerm::outputs), decltype(ComposedTerm::loss)>;
  gauss_newton.def(py::init([](std::vector<Tensor> variables, const std::vector<Composed>& functions, int64_t memory) {
                     const py::gil_scoped_release unlocked;
                     std::vector<ComposedTerm> terms;
                     for (const auto& [outputs, loss] : functions) terms.push_back({outputs, loss});
                     return std::make_unique<FunctionGaussNewton>(std::move(variables), std::move(terms), memory);
                   }),
                   py::arg("variables"), py::arg("terms"), py::arg("graph_memory"));
  add_measurements(gauss_newton);
}

}  // namespace plumb
