// plumb average: the mean of several checkpoints of a run.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "checks.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/run/checkpoint_average.h"
#include "plumb/run/checkpoints.h"
#include "verb.h"

namespace plumb::app {
namespace {

struct AverageArguments {
  std::string run, out;
  std::optional<int64_t> last, best;
};

void average(const AverageArguments& arguments, const Globals& globals) {
  if (arguments.last.has_value() == arguments.best.has_value())
    throw UsageError("exactly one of --last and --best is required", "give either --last N or --best N");
  const auto checkpoints = arguments.last ? last_checkpoints(arguments.run, *arguments.last)
                                          : best_checkpoints(arguments.run, *arguments.best);
  average_checkpoints(arguments.run, checkpoints, arguments.out);
  Json json = make_document("average", 1);
  json["run"] = arguments.run;
  json["out"] = arguments.out;
  std::vector<std::string> steps;
  for (const auto& checkpoint : checkpoints) {
    json["checkpoints"].push_back(checkpoint.string());
    steps.push_back(with_thousands(step_of(checkpoint).value()));
  }
  emit(globals, json,
       fmt::format("{}: the mean of the weights at step{} {}\n", arguments.out, steps.size() == 1 ? "" : "s",
                   join(steps)));
}

void add_average(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<AverageArguments>();
  CLI::App* verb = add_verb(app, globals, "average", "Average the weights of several checkpoints of a run",
                            "plumb average runs/pre-ln --last 5 --out runs/pre-ln-averaged",
                            [arguments, &globals] { average(*arguments, globals); });
  add_json_option(*verb, globals);
  verb->add_option("RUN", arguments->run, "A run directory")->type_name("RUN")->required();
  verb->add_option("--last", arguments->last, "Average the last N checkpoints")->type_name("N")->check(positive());
  verb->add_option("--best", arguments->best,
                   "Average the N checkpoints with the best train.best_metric, among those that were validated")
      ->type_name("N")
      ->check(positive());
  verb->add_option("--out", arguments->out, "Directory to write, which can be used like a run")
      ->type_name("DIR")
      ->required();
}

const bool kAverageRegistered = register_verb({Heading::models, 40, add_average});

}  // namespace
}  // namespace plumb::app
