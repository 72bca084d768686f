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
  Resampling resampling;
};

void compare(CompareArguments arguments, const Globals& globals) {
  arguments.resampling.seed = globals.seed;
  ModelComparison comparison = compare_models(read_task_scores(arguments.first), read_task_scores(arguments.second),
                                              arguments.metrics, arguments.resampling);
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
  verb->add_option("--interval-samples", arguments->resampling.samples,
                   "Bootstrap samples of the 95% intervals; tests by randomization take ten times as many")
      ->check(between(1, 1'000'000));
  add_json_option(*verb, globals);
  add_seed_option(*verb, globals);
}

const bool kCompareRegistered = register_verb({Heading::models, 130, add_compare});

}  // namespace
}  // namespace plumb::app
