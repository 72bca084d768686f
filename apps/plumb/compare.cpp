// plumb compare: are two models' scores on the same items different?
#include "plumb/judge/compare.h"

#include <memory>
#include <string>
#include <vector>

#include "checks.h"
#include "plumb/base/json_fields.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct CompareArguments {
  std::string first, second;
  std::vector<std::string> metrics;
  bool repeated = false;
  std::vector<int64_t> ks;
  Resampling resampling;
};

void compare(CompareArguments arguments, const Globals& globals) {
  arguments.resampling.seed = globals.seed;
  const auto scores_in = [&](const std::string& place) { return read_task_scores(place, arguments.repeated); };
  ModelComparison comparison = compare_models(scores_in(arguments.first), scores_in(arguments.second),
                                              arguments.metrics, arguments.resampling, arguments.ks);
  comparison.first = arguments.first;
  comparison.second = arguments.second;
  Json document = make_document("comparison", 1);
  document.update(described_json(comparison));
  emit(globals, document, comparison_text(comparison));
}

void add_compare(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<CompareArguments>();
  CLI::App* verb =
      add_verb(app, globals, "compare", "Test whether two models' scores on the same evaluation items differ",
               "plumb compare evaluations/small evaluations/large --metric acc",
               [arguments, &globals] { compare(*arguments, globals); });
  constexpr const char* kHelp =
      "Output of `plumb evaluate --samples`, or of lm-evaluation-harness with --log_samples: a directory, or one file "
      "of samples";
  verb->add_option("FIRST", arguments->first, kHelp)->type_name("PLACE")->required();
  verb->add_option("SECOND", arguments->second, "The same of the other model")->type_name("PLACE")->required();
  verb->add_option("--metric", arguments->metrics,
                   "Metrics to compare, separated by commas (default: the first of each task)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...");
  auto* repeated = verb->add_flag("--repeated", arguments->repeated,
                                  "All lines of an item, in all files of its task, are samples of it");
  verb->add_option("--pass-at", arguments->ks, "k of pass@k and pass^k (default: the fewest samples of an item)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(between(1, 1'000'000))
      ->type_name("K,...")
      ->needs(repeated);
  verb->add_option("--interval-samples", arguments->resampling.samples,
                   "Bootstrap samples of the 95% intervals; tests by randomization take ten times as many")
      ->check(between(1, 1'000'000));
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
}

const bool kCompareRegistered = register_verb({Heading::models, 130, add_compare});

}  // namespace
}  // namespace plumb::app
