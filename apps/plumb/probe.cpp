// plumb probe: signal and gradients of a model at initialization, or with weights, beside what theory says.
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "plumb/analysis/probe.h"
#include "plumb/base/text.h"
#include "subject.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct ProbeArguments {
  SubjectOptions subject;
  int64_t seeds = 10;
  double label_smoothing = 0;
};

/// "1.234 ± 0.056", the half-width of the interval; the mean alone where there is one value.
std::string with_interval(const Json& interval, double unit = 1) {
  const double mean = interval["mean"].is_null() ? NAN : interval["mean"].get<double>() / unit;
  if (interval["low"].is_null()) return fmt::format("{:.4g}", mean);
  return fmt::format("{:.4g} ± {:.2g}", mean, interval["high"].get<double>() / unit - mean);
}

const Json* find(const Json& list, const std::string& key, const std::string& value) {
  for (const Json& entry : list) {
    if (entry[key] == value) return &entry;
  }
  return nullptr;
}

/// fmt counts "±" as one column, as a terminal does.
std::string line(const std::string& layer, const std::string& first, const std::string& second,
                 const std::string& signal, const std::string& theory, const std::string& delta) {
  std::string text = fmt::format("{:<8} {:<19} {:<19} {:<19} {:<15} {}", layer, first, second, signal, theory, delta);
  return text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
}

std::string interval_of_theory(const Json& theory, double d) {
  if (theory.is_null()) return {};
  const double low = theory["adapted"][0].get<double>() / d;
  const double high = theory["adapted"][1].get<double>() / d;
  return low == high ? fmt::format("{:.4g}", low) : fmt::format("{:.4g} .. {:.4g}", low, high);
}

/// One stack: a line a layer.
std::string stack_table(const Json& document, const std::string& stack, double d) {
  const bool post = document["theory"]["placement"] == "post-ln";
  std::string table = line(stack, "|dL/dW1|", "|dL/dW2|", post ? "|x post,5|²/d" : "|x|²/d", "theory", "delta(0.1)");
  if (const Json* input = find(document["signal"], "name", stack + ".input")) {
    table += line("  input", "", "", with_interval((*input)["mean_square"], d), "", "");
  }
  for (const Json& entry : document["feed_forward"]) {
    if (entry["stack"] != stack || entry["matrix"] != "W1") continue;
    const int64_t layer = entry["layer"];
    const std::string prefix = fmt::format("{}.layers.{}.", stack, layer - 1);
    const Json* second = find(document["feed_forward"], "parameter", prefix + "linear2.weight");
    const Json* point = find(document["signal"], "name", prefix + (post ? "feed_forward.sum" : "feed_forward.stream"));
    table += line(fmt::format("{:>7}", layer), with_interval(entry["batch_mean_gradient_norm"]),
                  second != nullptr ? with_interval((*second)["batch_mean_gradient_norm"]) : "",
                  point != nullptr ? with_interval((*point)["mean_square"], d) : "",
                  point != nullptr ? interval_of_theory((*point)["theory"], d) : "",
                  point != nullptr ? with_interval((*point)["delta_at_0_1"]) : "");
  }
  return table;
}

std::string human(const Json& document) {
  const Json& model = document["model"];
  const Json& theory = document["theory"];
  const double d = model["d_model"];
  const std::string initialization = model["initialization"];
  const std::string start = initialization.empty() ? model["weights"].get<std::string>() : initialization;
  std::string text = fmt::format("{}, {} + {} layers, d_model {}, {}; {} pairs, {} target tokens; {} measurement{}\n",
                                 model["residual"].get<std::string>(), model["layers"][0].get<int64_t>(),
                                 model["layers"][1].get<int64_t>(), model["d_model"].get<int64_t>(), start,
                                 with_thousands(model["pairs"]), with_thousands(model["target_tokens"]),
                                 document["intervals"]["loss"]["count"].get<int64_t>(),
                                 document["intervals"]["loss"]["count"] == 1 ? "" : "s, 95 % confidence");
  text += fmt::format("loss {}   gradient norm {}\n\n", with_interval(document["intervals"]["loss"]),
                      with_interval(document["intervals"]["gradient_norm_total"]));
  if (model["kind"] != "decoder") text += stack_table(document, "encoder", d) + '\n';
  text += stack_table(document, "decoder", d);
  text += "\nslope of log |gradient| over layers (theory: " +
          (theory["layer_slopes"].empty() || theory["layer_slopes"][0]["predicted"].is_null()
               ? "none"
               : fmt::format("{:.4f}", theory["layer_slopes"][0]["predicted"].get<double>())) +
          ")\n";
  for (const Json& slope : theory["layer_slopes"]) {
    const std::string error = slope["slope_error"].is_number() && std::isfinite(slope["slope_error"].get<double>())
                                  ? fmt::format("   standard error {:.4f}", slope["slope_error"].get<double>())
                                  : "";
    text += fmt::format("  {} {}   {:+.4f}{}\n", slope["stack"].get<std::string>(), slope["matrix"].get<std::string>(),
                        slope["slope"].get<double>(), error);
  }
  if (const Json& theorem = theory["theorem_1"]; !theorem.is_null()) {
    text += fmt::format("\nTheorem 1, last W2: norm {} = constant {} × bound {:.1f} ({})\n",
                        with_interval(theorem["norm"]), with_interval(theorem["constant"]),
                        theorem["bound"].get<double>(), theory["placement"] == "post-ln" ? "d √ln d" : "d √(ln d / L)");
  }
  if (!theory["setting"]["holds"].get<bool>()) {
    text += "\nNot the theory's setting: " + join(theory["setting"]["differs"].get<std::vector<std::string>>(), "; ") +
            "\n";
  }
  return text;
}

void run_probe(const ProbeArguments& arguments, const Globals& globals) {
  const Subject subject = open_subject(arguments.subject);
  ProbeOptions options;
  options.seeds.clear();
  for (int64_t i = 0; i < arguments.seeds; ++i) options.seeds.push_back(globals.seed + static_cast<uint64_t>(i));
  options.label_smoothing = arguments.label_smoothing;
  options.type = subject.type;
  options.weights_origin = subject.weights_origin;
  const Json measured = probe(subject.config, subject.weights, subject.batches, options);
  const Json document = subject.document(measured);
  emit(globals, document, human(document));
}

}  // namespace

void add_probe(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<ProbeArguments>();
  CLI::App* verb =
      add_verb(app, globals, "probe", "Measure signal and gradients at initialization, beside what theory says",
               "plumb probe --config model.toml --data data/multi30k --set model.residual=post-ln",
               [arguments, &globals] { run_probe(*arguments, globals); });
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
  add_subject_options(*verb, arguments->subject);
  verb->add_option("--seeds", arguments->seeds,
                   "Initializations to measure, from --seed on; of weights there is one measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--label-smoothing", arguments->label_smoothing,
                   "Label smoothing of the loss whose gradient is measured")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
}

}  // namespace plumb::app
