// The extension module plumb._plumb: the judge of runs, the search of plumb.check, figures, and of the solver all but
// the vectors, which PyTorch has. It contains nothing of PyTorch, so that one build serves all versions of it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>

#include "plumb/analysis/curvature/random_signs.h"
#include "plumb/analysis/curvature/recurrence.h"
#include "plumb/analysis/curvature/spectrum_estimate.h"
#include "plumb/analysis/rate_search.h"
#include "plumb/analysis/scaling_exponent.h"
#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/process_memory.h"
#include "plumb/base/timing.h"
#include "plumb/check/search.h"
#include "plumb/check/thresholds.h"
#include "plumb/check/verdict.h"
#include "plumb/check/words.h"
#include "plumb/judge/direction.h"
#include "plumb/judge/judge.h"
#include "plumb/judge/ledger.h"
#include "plumb/ops/gram_schmidt_pass.h"
#include "plumb/report/svg.h"
#include "plumb/report/svg_marks.h"

namespace nb = nanobind;

namespace plumb {
namespace {

/// A dict of keys and their values in turn.
template <typename... Rest>
void add_to(nb::dict& dict, const char* key, const auto& value, const Rest&... rest) {
  dict[key] = nb::cast(value);
  if constexpr (sizeof...(rest) > 0) add_to(dict, rest...);
}
nb::dict dict_of(const auto&... keys_and_values) {
  nb::dict dict;
  add_to(dict, keys_and_values...);
  return dict;
}

std::pair<double, double> pair(const Extreme& extreme) { return {extreme.value, extreme.error}; }
std::pair<double, std::optional<double>> pair(const Estimate& estimate) { return {estimate.mean, estimate.error}; }

/// The arguments of plumb.Spectrum that come from here.
nb::dict as_dict(const Spectrum& found) {
  nb::list probes;
  for (const ProbeSpectrum& probe : found.probes) {
    probes.append(dict_of("steps", probe.steps, "exhausted", probe.exhausted, "rounding", probe.rounding, "values",
                          probe.ritz.values, "weights", probe.ritz.weights, "residuals", probe.ritz.residuals));
  }
  const Density& density = found.density;
  const auto known = [](const std::vector<double>& values) {
    return values.empty() ? std::nullopt : std::optional(values);
  };
  return dict_of("max", pair(found.max), "min", pair(found.min), "trace", pair(found.trace), "frobenius",
                 pair(found.frobenius), "negative", pair(found.negative), "positive", pair(found.positive), "zero_band",
                 found.zero_band, "quantiles", std::map<double, double>(found.quantiles.begin(), found.quantiles.end()),
                 "density",
                 dict_of("sigma", density.sigma, "x", density.x, "y", density.y, "low", known(density.low), "high",
                         known(density.high)),
                 "probes", probes, "eigenvalues", known(found.eigenvalues));
}

nb::dict spectrum_of_probes(const std::vector<const LanczosRecurrence*>& probes, int64_t n, double sigma) {
  std::vector<Tridiagonal> results;
  for (const LanczosRecurrence* probe : probes) results.push_back(probe->result());
  return as_dict(spectrum_of(results, n, sigma));
}

/// The largest Ritz value and its residual.
std::pair<double, double> largest(const LanczosRecurrence& recurrence) {
  const Ritz found = ritz(recurrence.result());
  return {found.values.back(), found.residuals.back()};
}

/// A tensor's elements in the CPU's memory, float32 or float64.
template <typename T>
T* elements(uintptr_t place) {
  return reinterpret_cast<T*>(place);  // NOLINT(performance-no-int-to-ptr): Python's form of a pointer
}

void write_signs(uintptr_t out, bool wide, int64_t n, uint64_t seed, int64_t index) {
  RandomSigns signs(n, seed, index);
  wide ? signs.write(elements<double>(out), n) : signs.write(elements<float>(out), n);
}

template <typename T>
std::vector<double> pass_of(const std::vector<uintptr_t>& places, const std::vector<double>& subtract, bool products,
                            int64_t size, uintptr_t w, int64_t threads) {
  std::vector<const T*> vectors;
  for (const uintptr_t place : places) vectors.push_back(elements<T>(place));
  constexpr int64_t kWorthAThread = int64_t{1} << 21;  // elements
  const int64_t team = std::clamp<int64_t>(size * (std::ssize(places) + 1) / kWorthAThread, 1, threads);
  const auto ranges = [team](int64_t count, const std::function<void(int64_t, int64_t)>& work) {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < team; ++i)
      others.emplace_back([=, &work] { work(count * i / team, count * (i + 1) / team); });
    work(0, count / team);
  };
  return ops::gram_schmidt_pass<T>(vectors, subtract, products, size, elements<T>(w), ranges);
}

/// ops::gram_schmidt_pass() on at most `threads` threads. `wide`: the elements are float64, not float32.
std::vector<double> gram_schmidt(const std::vector<uintptr_t>& vectors, const std::vector<double>& subtract,
                                 bool products, int64_t size, uintptr_t w, bool wide, int64_t threads) {
  return (wide ? pass_of<double> : pass_of<float>)(vectors, subtract, products, size, w, threads);
}

/// Final values of runs: by arm, and within one by learning rate (0 if it is no sweep).
using ArmValues = std::vector<std::pair<std::string, std::vector<std::pair<double, std::vector<double>>>>>;

/// The arguments of plumb.Verdicts. Without a direction, by the metric's name.
nb::dict judge_values(const ArmValues& values, const std::string& metric, std::optional<bool> direction, double margin,
                      bool by_seed, int64_t planned_seeds) {
  if (!direction) direction = larger_is_better_by_name(metric);
  if (!direction) throw Error("is more of \"" + metric + "\" better, or less?", "say larger_is_better=True or False");
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
  nb::list summaries;
  for (const JudgedArm& arm : found.arms) {
    summaries.append(dict_of("name", arm.name, "runs", arm.runs, "failed", arm.failed, "mean", arm.mean, "deviation",
                             arm.deviation, "learning_rate", arm.learning_rate));
  }
  nb::list pairs;
  for (const JudgedPair& pair : found.pairs) {
    pairs.append(dict_of("baseline", pair.baseline, "arm", pair.arm, "outcome", pair.outcome, "gain", pair.gain.mean,
                         "low", pair.gain.low, "high", pair.gain.high, "confidence", pair.confidence, "rule", pair.rule,
                         "reason", pair.reason, "seeds_needed", pair.seeds_needed, "one_run", pair.one_run));
  }
  return dict_of("arms", summaries, "pairs", pairs, "noise_floor", found.noise_floor, "text", verdicts_text(found));
}

/// The arguments of plumb.GateAnswer as JSON. Runs: (arm, seed, value).
std::string ask_ledger(const std::string& ledger, const std::string& base, const std::string& candidate,
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

/// (outcome, whether the trial, of at most `most` steps, need not go on, why, whether it is on the plateau).
/// `reference`: docs/python.md.
std::tuple<std::string, bool, std::string, bool> judge_trial(const std::vector<int64_t>& steps,
                                                             const std::vector<double>& losses, int64_t warm_up,
                                                             int64_t most, std::optional<double> reference,
                                                             bool diverged) {
  const double first = losses.at(0);
  const check::Judged judged =
      reference
          ? check::judge_losses(steps, losses, warm_up, {*reference, std::max(*reference, first), first}, diverged)
          : check::judge_fall(steps, losses, warm_up, diverged);
  return {to_string(judged.outcome), judged.clear && most - warm_up <= check::kBriefTrial, judged.because,
          judged.on_plateau};
}

/// (outcome, why) of a trial on the plateau: check/verdict.h.
std::pair<std::string, std::string> judge_plateau(const std::string& because, double gradient_at_input) {
  const check::Judged judged = check::judge_plateau({.because = because}, gradient_at_input);
  return {to_string(judged.outcome), judged.because};
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
std::tuple<double, std::optional<double>, double, std::string> exponent_of(
    const std::vector<double>& scales, const std::vector<std::vector<double>>& sizes, double margin) {
  const ScalingExponent found = scaling_exponent(scales, sizes, margin);
  const Interval& exponent = found.exponent;
  const bool single = exponent.count < 2 && found.trend != Trend::diverged;
  return {exponent.mean, single ? std::nullopt : std::optional(exponent.high - exponent.mean), found.at_the_end,
          to_string(found.trend)};
}

/// "250g" or "5%", of which the second needs the planned steps; empty: the usual one.
void make_budget(check::Budget* place, const std::string& text, int64_t steps) {
  new (place) check::Budget(text.empty() ? check::usual_budget(steps) : check::parse_budget(text, steps));
}

/// The search, as the document of `plumb check --json`. `attempt`: (learning rate, warm-up, seed, steps, seconds left)
/// to the document of a check::Trial. `spent`: gradients and seconds of the budget.
std::string search_rates(const check::Budget& budget, const std::pair<int64_t, double>& spent, double peak,
                         int64_t warm_up, int64_t steps, double reference, double least_gain, double clear_gain,
                         uint64_t seed, std::optional<double> critical_rate, double momentum_gain,
                         check::StepLength step_length, const nb::callable& attempt,
                         const std::optional<nb::callable>& progress) {
  const check::SearchPlan plan{.schedule = {.peak = peak, .warm_up = warm_up, .steps = steps},
                               .configured_rate = peak,
                               .reference = reference,
                               .gain_to_compare = least_gain,
                               .gain_without_control = clear_gain,
                               .step_length = step_length,
                               .seed = seed,
                               .budget = budget,
                               .seconds = spent.second,
                               .seconds_per_gradient = spent.second / static_cast<double>(spent.first)};
  const Stopwatch watch;
  check::SearchHooks hooks;
  hooks.attempt = [&](const check::TrialPlan& trial, int64_t most) {
    const double left = budget.seconds - spent.second - watch.seconds();
    const nb::object found = attempt(trial.learning_rate, trial.warm_up, trial.seed, most, left);
    return from_described_json<check::Trial>(Json::parse(nb::cast<std::string>(found)));
  };
  if (progress) hooks.progress = [&](const std::string& what, double share) { (*progress)(what, share); };
  check::CheckResult result;
  result.critical_rate = critical_rate;
  result.cost.gradients = spent.first;
  const check::RateBelief before = check::belief_before_trials(critical_rate, momentum_gain, step_length, peak);
  check::search_rates(plan, before, hooks, result);
  Json document = described_json(result);
  document["exit_status"] = check::exit_status(result);
  document["lines"] = Json::array();
  for (const auto& [name, text] : check::lines_of(result)) document["lines"].push_back(Json::array({name, text}));
  return document.dump();
}

/// Errors of the library as plumb.Error, with the hint from the second line on.
void translate(const std::exception_ptr& thrown, void* type) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const std::string hint = error.hint().empty() ? "" : "\n" + error.hint();
    PyErr_SetString(static_cast<PyObject*>(type), (error.what() + hint).c_str());
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming)
NB_MODULE(_plumb, module) {
  PyObject* const error = PyErr_NewException("plumb.Error", PyExc_RuntimeError, nullptr);
  module.attr("Error") = nb::steal(error);
  nb::register_exception_translator(&translate, error);
  module.attr("VERSION") = PLUMB_VERSION;
  module.def("student_t_quantile", &student_t_quantile, nb::arg("probability"), nb::arg("degrees"));
  module.def("figure_svg", &svg_of, nb::arg("figure"));
  module.attr("TEXT_COLOR") = kSvgText;
  module.attr("MUTED_COLOR") = kSvgMuted;
  module.attr("GRID_COLOR") = kSvgGrid;
  module.def("scaling_exponent", &exponent_of, nb::arg("scales"), nb::arg("sizes"), nb::arg("margin"));
  module.def("judge", &judge_values, nb::arg("values"), nb::arg("metric"), nb::arg("larger_is_better"),
             nb::arg("margin"), nb::arg("by_seed"), nb::arg("planned_seeds"));
  module.def("gate", &ask_ledger, nb::arg("ledger"), nb::arg("base"), nb::arg("candidate"), nb::arg("runs"),
             nb::arg("metric"), nb::arg("larger_is_better"), nb::arg("error"), nb::arg("margin"), nb::arg("seeds"),
             nb::call_guard<nb::gil_scoped_release>());
  module.attr("STEPS_BETWEEN_LOSSES") = check::kStepsBetweenLosses;
  module.attr("MEASUREMENTS") = check::kMeasurements;
  module.attr("INITIAL_LOSS_MARGIN") = check::kInitialLossMargin;
  module.attr("CAUSALITY") = check::kCausality;
  module.attr("SMALLEST_STATES") = check::kSmallestStates;
  module.attr("LARGEST_STATES") = check::kLargestStates;
  module.attr("LARGEST_UPDATE") = check::kLargestUpdate;
  module.attr("SMALLEST_UPDATES") = check::kSmallestUpdates;
  module.attr("MOST_BELOW_EPSILON") = check::kMostBelowEpsilon;
  nb::enum_<check::StepLength>(module, "StepLength")
      .value("gradient", check::StepLength::gradient)
      .value("sign", check::StepLength::sign)
      .value("weights", check::StepLength::weights);
  nb::class_<check::Budget>(module, "Budget").def("__init__", &make_budget, nb::arg("text"), nb::arg("steps"));
  module.def("judge_trial", &judge_trial, nb::kw_only(), nb::arg("steps"), nb::arg("losses"), nb::arg("warm_up"),
             nb::arg("most"), nb::arg("reference"), nb::arg("diverged"));
  module.def("judge_plateau", &judge_plateau, nb::arg("because"), nb::arg("gradient_at_input"));
  module.def("critical_rate", &critical_rate, nb::arg("slope"), nb::arg("rise"), nb::arg("start"));
  module.def("search_rates", &search_rates, nb::kw_only(), nb::arg("budget"), nb::arg("spent"), nb::arg("peak"),
             nb::arg("warm_up"), nb::arg("steps"), nb::arg("reference"), nb::arg("least_gain"), nb::arg("clear_gain"),
             nb::arg("seed"), nb::arg("critical_rate"), nb::arg("momentum_gain"), nb::arg("step_length"),
             nb::arg("attempt"), nb::arg("progress"));
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<LanczosRecurrence>(module, "Recurrence")
      .def(nb::init<int64_t, int64_t, double, double>(), nb::arg("size"), nb::arg("steps"), nb::arg("tolerance"),
           nb::arg("epsilon"))
      .def("advance", &LanczosRecurrence::advance, nb::arg("coefficients"), nb::arg("norm"), Unlocked())
      .def("known", [](const LanczosRecurrence& process) { return extremes_so_far(process.result()); })
      .def("largest", &largest)
      .def_prop_ro("done", &LanczosRecurrence::done);
  module.def("spectrum_of_probes", &spectrum_of_probes, nb::arg("probes"), nb::arg("n"), nb::arg("sigma"));
  module.def(
      "spectrum_of_eigenvalues",
      [](const std::vector<double>& values, double error, double sigma) {
        return as_dict(spectrum_of(values, error, sigma));
      },
      nb::arg("values"), nb::arg("error"), nb::arg("sigma"));
  module.def("require_dense_size", &require_dense_size, nb::arg("n"));
  module.def("write_signs", &write_signs, nb::arg("out"), nb::arg("wide"), nb::arg("n"), nb::arg("seed"),
             nb::arg("index"), Unlocked());
  module.def("gram_schmidt", &gram_schmidt, nb::arg("vectors"), nb::arg("subtract"), nb::arg("products"),
             nb::arg("size"), nb::arg("w"), nb::arg("wide"), nb::arg("threads"), Unlocked());
  module.def("allocated_memory", [] { return allocated_memory(); });
  module.def("available_memory", [] { return available_memory(allocated_memory()); });
}

}  // namespace plumb
