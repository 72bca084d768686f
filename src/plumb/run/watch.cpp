#include "plumb/run/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/base/timing.h"

namespace plumb {
namespace {

std::unique_ptr<Watch> make_watch(const std::string& name, const VariantOptions& options) {
  const auto& entry = watches().at(name);
  return entry.make(options_of(options, name, entry));
}

}  // namespace

Registry<WatchFactory>& watches() {
  static Registry<WatchFactory> registry(
      "watch",
      {"Watches", "watch.what",
       "What `plumb train` measures along a run, before training, after the first step and after every `watch.every` "
       "steps, on the first `watch.examples` examples of `watch.split` unless stated otherwise, without dropout. A "
       "measurement does not change the run. [formats/run.md](formats/run.md#watches) lists the numbers."});
  return registry;
}

bool WatchConfig::operator==(const WatchConfig& other) const {
  return ConfigWriter().section("watch", *this).text() == ConfigWriter().section("watch", other).text();
}

void describe(Fields& field, WatchConfig& config) {
  field("every", config.every,
        "duration between measurements, besides one before training and one after the first step; 0: none",
        count_from(0));
  field("what", config.what, "what is measured", name_in(watches()));
  field("split", config.split, "the split whose first examples are measured, the same ones each time");
  field("examples", config.examples, "their number", count_from(1));
  for (const auto& [name, entry] : watches().entries()) {
    if (!entry.options) continue;
    Options& own = config.options.try_emplace(name, entry.options).first->second;
    const bool chosen = !config.every.is_zero() && contains(config.what, name);
    field.section(
        name, [&own](Fields& inner) { own.visit(inner); }, chosen || !(own == entry.options));
  }
}

RunWatches::RunWatches(const WatchConfig& config, const Task& task, int64_t batch_tokens) : config_(config) {
  require_valid("watch", config);
  if (config.every.is_zero()) return;
  if (config.what.empty()) throw Error("watch.what = []: nothing is measured", "name watches, or set watch.every to 0");
  for (const std::string& name : config.what) {
    if (find_by(watches_, &Named::name, name) != nullptr) throw Error(fmt::format("watch.what has '{}' twice", name));
    watches_.push_back({name, make_watch(name, config.options), false});
  }
  batches_ = evaluation_batches(*task.dataset(config.split), batch_tokens, config.examples);
  if (batches_.empty()) throw Error(fmt::format("watch.split = \"{}\": the split is empty", config.split));
}

void RunWatches::before_step(const WatchedRun& run) {
  for (const Named& each : watches_) each.watch->before_step(run);
}

WatchRecord RunWatches::measure(const WatchedRun& run) {
  WatchRecord record{run.step, {}};
  for (Named& each : watches_) {
    const Stopwatch stopwatch;
    WatchMeasurement found;
    try {
      const Described measured = each.watch->measure(run);
      if (!measured) continue;
      found.values = described_json(measured);
    } catch (const Error& error) {
      found.error = error.what();
      if (!std::exchange(each.failed, true))
        say(fmt::format("watch '{}' at step {}: {}", each.name, run.step, error.what()));
    }
    found.seconds = stopwatch.seconds();
    record.watches.emplace(each.name, std::move(found));
  }
  return record;
}

NamedTensors RunWatches::state() const {
  NamedTensors all;
  for (const Named& each : watches_) {
    for (auto& [name, tensor] : each.watch->state()) all.emplace_back(each.name + "." + name, tensor);
  }
  return all;
}

void RunWatches::load_state(const NamedTensors& tensors) {
  for (const Named& each : watches_) {
    NamedTensors own;
    for (const auto& [name, tensor] : tensors) {
      if (name.starts_with(each.name + ".")) own.emplace_back(name.substr(each.name.size() + 1), tensor);
    }
    each.watch->load_state(own);
  }
}

}  // namespace plumb
