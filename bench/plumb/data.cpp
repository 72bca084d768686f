// plumb bench data: the batches of an epoch, from opening the data to the last of them.
#include <cstdint>
#include <memory>
#include <string>

#include "bench.h"
#include "plumb/base/machine.h"
#include "plumb/data/batch_plan.h"
#include "plumb/task/task.h"

namespace plumb::app::bench {
namespace {

struct DataArguments {
  std::string data;
  int64_t batch_tokens = 4096;
};

Json measure(const DataArguments& arguments, uint64_t seed) {
  const Stopwatch watch;
  const DataDirectory data = DataDirectory::open(arguments.data);
  const TaskConfig config;
  const auto task = make_task(config, data, usual_model_kind(config, data));
  const auto examples = task->dataset("train");
  const ExampleCosts costs(examples->size(), [&](int64_t i) { return examples->cost(i); });
  const BatchPlan plan(costs, {.tokens = arguments.batch_tokens, .seed = seed}, 0);
  int64_t tokens = 0;
  double first = 0;
  for (int64_t window = 0; window < plan.windows(); ++window) {
    const auto batches = plan.window(window);
    for (const std::vector<int64_t>& each : *batches) {
      const Batch batch = examples->drawn(each, {.seed = seed, .epoch = 0});
      tokens += static_cast<int64_t>(batch.source.size() + batch.target_input.size());
      if (first == 0) first = watch.seconds();
    }
  }
  const double seconds = watch.seconds();
  Json json = result_document("data", {{"data", arguments.data}, {"batch_tokens", arguments.batch_tokens}});
  json["examples"] = examples->size();
  json["batches"] = plan.size();
  json["tokens"] = tokens;
  json["first_batch_seconds"] = first;
  json["epoch_seconds"] = seconds;
  json["tokens_per_second"] = static_cast<double>(tokens) / seconds;
  json["peak_memory_bytes"] = peak_resident_memory();
  return json;
}

void add_data(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<DataArguments>();
  CLI::App* verb = add_measurement(
      bench, globals, "data", "Time the batches of an epoch, from opening the data",
      [arguments, &globals] { return measure(*arguments, globals.seed); }, "data/wikitext");
  verb->add_option("DATA", arguments->data, "Data directory made by `plumb data`")->required();
  add_size(*verb, "--batch-tokens", arguments->batch_tokens, "Most tokens per batch and side");
}

const bool kDataRegistered = register_verb({Heading::benchmarks, 75, add_data});

}  // namespace
}  // namespace plumb::app::bench
