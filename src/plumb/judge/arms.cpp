#include "plumb/judge/arms.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/judge/direction.h"
#include "plumb/judge/histories.h"
#include "plumb/judge/log_table.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using Records = std::vector<RunRecord>;

std::vector<std::string> expanded(const std::string& pattern) {
  if (fs::exists(pattern) || pattern.find_first_of("*?[") == std::string::npos) return {pattern};
  const char* hint = "check the pattern: `plumb runs DIR` lists the runs in a directory";
  glob_t found{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&found, globfree);
  if (glob(pattern.c_str(), 0, nullptr, &found) != 0) throw Error(fmt::format("{}: nothing matches", pattern), hint);
  return {found.gl_pathv, found.gl_pathv + found.gl_pathc};
}

/// The names of metrics that at least half of the runs have: one that failed early may lack what others measured.
std::vector<std::string> common_metrics(const Records& records) {
  std::map<std::string, size_t> runs;
  for (const RunRecord& record : records) {
    for (const auto& [name, values] : record.series) ++runs[name];
  }
  std::vector<std::string> names;
  for (const auto& [name, count] : runs) {
    if (2 * count >= records.size()) names.push_back(name);
  }
  return names;
}

std::string metric_of(const Records& records, const std::string& wanted) {
  const std::vector<std::string> names = common_metrics(records);
  if (!wanted.empty()) {
    if (contains(names, wanted)) return wanted;
    std::vector<std::string> ending;
    std::copy_if(names.begin(), names.end(), std::back_inserter(ending),
                 [&](const std::string& name) { return name.ends_with("." + wanted) || name.ends_with("/" + wanted); });
    if (ending.size() == 1) return ending.front();
    throw UsageError(fmt::format("the runs have no common metric '{}'", wanted),
                     did_you_mean(wanted, names, "they have: " + join(names)));
  }
  for (const char* usual : {"valid_loss", "valid_nll", "eval_loss", "eval/loss", "val_loss", "val/loss",
                            "validation_loss", "validation/loss", "test_loss", "loss"}) {
    if (contains(names, usual)) return usual;
  }
  throw UsageError("which metric?", "name it with --metric; the runs have: " + join(names));
}

bool direction_of(const std::string& metric) {
  const std::optional<bool> more = larger_is_better_by_name(metric);
  if (!more)
    throw UsageError(fmt::format("is more of \"{}\" better, or less?", metric), "say --better more or --better less");
  return *more;
}

/// What a run counts with at most, if all runs say the same.
double limit_of(const Records& records, const std::string& metric, bool larger_is_better) {
  std::set<double> limits;
  for (const RunRecord& record : records) {
    const auto found = record.most.find(metric);
    limits.insert(found == record.most.end() ? kNoLimit : found->second);
  }
  return limits.size() == 1 && !larger_is_better ? *limits.begin() : kNoLimit;
}

/// The value of a run at a place of its history; infinite, the sign of a bad one, if the run failed. One that has
/// learned nothing keeps its loss if a limit says how much that is.
double loss_of(const RunRecord& record, const RunArms& arms, const std::string& at) {
  const bool larger_is_better = arms.larger_is_better, limited = std::isfinite(arms.failed_at);
  const std::string& metric = arms.metric;
  constexpr double kFailed = kNoLimit;
  const auto found = record.series.find(metric);
  if ((limited ? record.diverged : record.failed) || found == record.series.end() || found->second.empty())
    return kFailed;
  const std::vector<RunRecord::Value>& values = found->second;
  const double sign = larger_is_better ? -1 : 1;
  double loss = sign * values.back().value;
  if (at == "best") {
    for (const RunRecord::Value& one : values)
      loss = std::isfinite(loss) ? std::fmin(loss, sign * one.value) : sign * one.value;
  } else if (at != "last") {
    const std::optional<double> step = number_in(at);
    if (!step) throw UsageError(fmt::format("\"{}\" is no place in a history", at), "give last, best or a step");
    const RunRecord::Value* point = find_by(values, &RunRecord::Value::step, *step);
    if (point == nullptr)
      throw Error(fmt::format("{}: has no {} at step {}", record.name, metric, at),
                  fmt::format("its last one is at step {:g}", values.back().step));
    loss = sign * point->value;
  }
  return std::isfinite(loss) ? loss : kFailed;
}

/// How a run ended: "failed", "not ended", and the program's word for it.
std::string state_of(const RunRecord& record, double loss) {
  const std::string state = record.failed || !std::isfinite(loss) ? "failed" : record.ended ? "" : "not ended";
  if (state.empty() || record.state == state) return record.state;
  return record.state.empty() ? state : fmt::format("{} ({})", state, record.state);
}

/// The setting that is called as asked, or as programs call it; empty if no run has one.
template <typename Is>
std::string key_of(const Records& records, const std::string& wanted, const Is& is) {
  for (const RunRecord& record : records) {
    for (const auto& [key, value] : record.settings) {
      if (wanted.empty() ? is(key) : key == wanted) return key;
    }
  }
  if (!wanted.empty()) throw UsageError(fmt::format("no run has a setting \"{}\"", wanted));
  return {};
}

/// Settings that differ between runs.
std::vector<std::string> differing(const Records& records) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : records.front().settings) {
    const bool differs = std::any_of(records.begin(), records.end(), [&, k = key, v = value](const RunRecord& record) {
      const std::string* other = record.setting(k);
      return other == nullptr || *other != v;
    });
    if (differs) keys.push_back(key);
  }
  return keys;
}

std::string what_differs(const Records& records) {
  const std::vector<std::string> keys = differing(records);
  return "runs differ in: " + (keys.empty() ? "nothing" : join(keys));
}

/// The arm of each run by names that differ in a last number: "base" of "base-s1/metrics.csv" and
/// "base-s2/metrics.csv". Nothing unless all names have one and make several arms, one of them of several runs.
std::vector<std::string> arms_of_names(const Records& records) {
  std::vector<std::string> arms;
  for (const RunRecord& record : records) arms.push_back(record.name);
  const auto same = [&](const auto& part) {  // of all names
    return std::all_of(arms.begin(), arms.end(), [&](const auto& arm) { return part(arm) == part(arms[0]); });
  };
  while (same([](const std::string& arm) { return arm.empty() ? '0' : arm.back(); }) && !arms[0].empty() &&
         std::isdigit(static_cast<unsigned char>(arms[0].back())) == 0) {
    for (std::string& arm : arms) arm.pop_back();
  }
  for (std::string& arm : arms) {
    const size_t number = arm.find_last_not_of("0123456789") + 1;
    if (number == 0 || number == arm.size()) return {};
    arm.resize(number);
    for (const char* word : {"-seed", "_seed", "-run", "_run", "-s", "_s"}) {
      if (arm.ends_with(word)) arm.resize(arm.rfind(word));
    }
    arm.resize(arm.find_last_not_of("-_./ ") + 1);
  }
  for (size_t end = 0; (end = arms[0].find_first_of("/ ")) != std::string::npos;) {
    if (!same([&](const std::string& arm) { return arm.substr(0, end + 1); })) break;
    for (std::string& arm : arms) arm.erase(0, end + 1);
  }
  const size_t several = std::set<std::string>(arms.begin(), arms.end()).size();
  return several < 2 || several == arms.size() ? std::vector<std::string>{} : arms;
}

/// The settings whose values make the arms; none if runs differ in no other than seed and learning rate.
std::vector<std::string> arm_keys(const Records& records, const ArmOptions& options, const std::string& seed,
                                  const std::string& rate) {
  if (!options.by.empty()) {
    std::vector<std::string> keys;
    for (const std::string& wanted : options.by) {
      keys.push_back(
          key_of(records, "", [&](const std::string& key) { return key == wanted || key.ends_with("." + wanted); }));
      if (keys.back().empty())
        throw UsageError(fmt::format("no run has a setting \"{}\"", wanted), what_differs(records));
    }
    return keys;
  }
  std::vector<std::string> keys = differing(records);
  for (const char* usual : {"arm", "variant", "group", "method"}) {
    if (contains(keys, usual)) return {usual};
  }
  std::erase_if(keys, [&](const std::string& key) {
    // A number that is a metric too is a result, and what names a run does not describe it.
    const bool result = records.front().series.contains(key);
    return key == seed || key == rate || result || is_state_key(key) || (is_run_key(key) && key != "experiment");
  });
  if (keys.size() < 2) return keys;
  throw UsageError("which settings make the arms? The runs differ in: " + join(keys),
                   "name them with --by KEY, or the runs of each arm: NAME=DIR NAME=DIR");
}

/// Adds a run to its arm's sweep, at its place by seed.
void add_run(RunArm& arm, double rate, const std::string& seed, double loss, const std::string& run) {
  auto& points = arm.sweep.points;
  auto point = std::find_if(points.begin(), points.end(), [&](const auto& one) { return one.learning_rate >= rate; });
  const auto at = point - points.begin();
  if (point == points.end() || point->learning_rate != rate) {
    points.insert(point, {.learning_rate = rate});
    arm.seeds.insert(arm.seeds.begin() + at, std::vector<std::string>{});
  }
  std::vector<std::string>& seeds = arm.seeds[static_cast<size_t>(at)];
  if (!seed.empty() && contains(seeds, seed))
    throw Error(fmt::format("{}: the arm {} has another run with the seed {}{}", run, arm.name, seed,
                            rate > 0 ? fmt::format(" and the learning rate {:g}", rate) : ""),
                "name what tells them apart with --by KEY, or leave some out with --where KEY=VALUE");
  const auto before = [](const std::string& a, const std::string& b) {
    const auto x = number_in(a), y = number_in(b);
    return x && y ? *x < *y : a < b;
  };
  const auto place = std::upper_bound(seeds.begin(), seeds.end(), seed, before) - seeds.begin();
  seeds.insert(seeds.begin() + place, seed);
  auto& losses = points[static_cast<size_t>(at)].losses;
  losses.insert(losses.begin() + place, loss);
}

std::string without_prefix(const std::string& key) { return key.substr(key.rfind('.') + 1); }

bool fits(const RunRecord& record, const ArmOptions& options) {
  return std::all_of(options.where.begin(), options.where.end(), [&](const auto& condition) {
    const std::string* value = record.setting(condition.first);
    return value != nullptr && *value == condition.second;
  });
}

/// What a place is called; the whole path if another one has that name.
std::string name_of_place(const std::vector<ArmPlace>& places, size_t which) {
  const auto name = [](const std::string& place) {
    return fs::is_directory(place) ? fs::path(place + "/").parent_path().filename().string()
                                   : fs::path(place).stem().string();
  };
  const std::string own = name(places[which].place);
  const auto same =
      std::count_if(places.begin(), places.end(), [&](const ArmPlace& one) { return name(one.place) == own; });
  return same > 1 ? places[which].place : own;
}

/// Reads the runs. Returns the name of each run's arm; empty if its settings make the arm.
std::vector<std::string> read_places(const std::vector<ArmPlace>& places, const ArmOptions& options, Records& records,
                                     std::vector<std::string>& notes) {
  std::vector<std::string> keys = options.by;
  for (const std::string& key : {options.seed, options.rate}) {
    if (!key.empty()) keys.push_back(key);
  }
  for (const auto& [key, value] : options.where) keys.push_back(key);
  std::vector<size_t> place_of;  // by run
  bool several = false;          // runs at one place
  for (size_t i = 0; i < places.size(); ++i) {
    Records found = read_run_records(places[i].place, {keys, options.lines}, &notes);
    std::erase_if(found, [&](const RunRecord& record) { return !fits(record, options); });
    several |= found.size() > 1;
    place_of.insert(place_of.end(), found.size(), i);
    std::move(found.begin(), found.end(), std::back_inserter(records));
  }
  if (records.empty()) throw Error("no run has the settings of --where");
  const auto named = std::count_if(places.begin(), places.end(), [](const ArmPlace& one) { return !one.arm.empty(); });
  if (named > 0 && named < std::ssize(places))
    throw UsageError("some arms have names and others do not", "give each as NAME=PLACE, or none");
  // Several places with several runs are arms, unless settings make them.
  const bool by_place = named == 0 && options.by.empty() && places.size() > 1 && several;
  std::vector<std::string> names;
  for (const size_t i : place_of) names.push_back(by_place ? name_of_place(places, i) : places[i].arm);
  return names;
}

/// Throws UsageError if a place is named twice, or lies within another: its runs would be compared with themselves.
void require_places_once(const std::vector<ArmPlace>& places) {
  const char* hint = "each run belongs to one arm";
  std::map<fs::path, std::string> seen;
  for (const ArmPlace& one : places) {
    std::error_code absent;
    const fs::path place = fs::weakly_canonical(one.place, absent);
    if (!seen.emplace(absent ? fs::path(one.place) : place, one.place).second)
      throw UsageError(fmt::format("{}: is named twice", one.place), hint);
  }
  for (const auto& [place, name] : seen) {
    for (fs::path above = place; above.has_relative_path();) {
      above = above.parent_path();
      if (const auto outer = seen.find(above); outer != seen.end())
        throw UsageError(fmt::format("{} lies within {}", name, outer->second), hint);
    }
  }
}

/// Notes on what makes losses of Plumb's runs unlike: ends that are none, and vocabularies.
void note_unlike(RunArms& arms, const Records& records) {
  const auto open = std::count_if(records.begin(), records.end(), [](const auto& record) { return !record.ended; });
  if (open > 0)
    arms.notes.push_back(
        fmt::format("{} of {} runs have not ended; their last values are compared", open, records.size()));
  std::set<double> sizes;
  for (const RunRecord& record : records) {
    if (const std::string* size = record.setting("model.target_vocabulary")) sizes.insert(number_in(*size).value_or(0));
  }
  if (sizes.size() > 1)
    arms.notes.push_back(fmt::format(
        "vocabularies of {:g} to {:g} tokens: a token is not the same for all runs, so their losses per token differ",
        *sizes.begin(), *sizes.rbegin()));
}

/// Notes on the lengths of runs that did not fail.
void note_lengths(RunArms& arms, const Records& records) {
  std::set<double> ends;
  for (const RunRecord& record : records) {
    const auto found = record.series.find(arms.metric);
    if (!record.failed && found != record.series.end() && !found->second.empty())
      ends.insert(found->second.back().step);
  }
  if (ends.size() > 1)
    arms.notes.push_back(
        fmt::format("runs end at different steps, from {:g} to {:g}; --at STEP compares them at the "
                    "same one",
                    *ends.begin(), *ends.rbegin()));
}

}  // namespace

std::vector<ArmPlace> arm_places(const std::vector<std::string>& arguments) {
  std::vector<ArmPlace> places;
  for (const std::string& argument : arguments) {
    const size_t equals = fs::exists(argument) ? std::string::npos : argument.find('=');
    const bool named = equals != std::string::npos && argument.find('/') > equals;
    for (const std::string& place : expanded(named ? argument.substr(equals + 1) : argument))
      places.push_back({named ? argument.substr(0, equals) : "", place});
  }
  return places;
}

RunArms gather_arms(const std::vector<ArmPlace>& places, const ArmOptions& options) {
  if (places.empty()) throw UsageError("no runs", "name directories or files of runs");
  require_places_once(places);
  Records records;
  RunArms arms;
  std::vector<std::string> names = read_places(places, options, records, arms.notes);
  join_resumed(records, names, arms.notes);
  arms.metric = metric_of(records, options.metric);
  arms.larger_is_better = options.larger_is_better ? *options.larger_is_better : direction_of(arms.metric);
  arms.failed_at = limit_of(records, arms.metric, arms.larger_is_better);
  const std::string seed = key_of(records, options.seed, is_seed_key);
  const std::string rate = key_of(records, options.rate, is_rate_key);
  const bool unnamed = names.front().empty();
  const std::vector<std::string> by = unnamed ? arm_keys(records, options, seed, rate) : std::vector<std::string>{};
  if (unnamed && by.empty()) {
    names = arms_of_names(records);
    if (names.empty())
      throw UsageError("no setting but seed and learning rate tells the runs apart",
                       "name the runs of each arm: base='DIR/base-*' new='DIR/new-*'; " + what_differs(records));
    arms.notes.emplace_back("arms are those of the runs' names, which differ in a last number");
  }
  const bool rates_are_arms = contains(by, rate);
  settle_histories(records, arms.metric, options.at == "best", arms.notes);
  for (size_t i = 0; i < records.size(); ++i) {
    RunRecord& record = records[i];
    std::string name = names[i];
    for (const std::string& key : by) {
      const std::string* value = record.setting(key);
      name += (name.empty() ? "" : ", ") + (by.size() > 1 ? without_prefix(key) + " " : "");
      name += value == nullptr ? "unset" : *value;
    }
    auto arm = std::find_if(arms.arms.begin(), arms.arms.end(), [&](const RunArm& one) { return one.name == name; });
    if (arm == arms.arms.end())
      arm = arms.arms.insert(arms.arms.end(), RunArm{.name = name, .sweep = {.failed_at = arms.failed_at}});
    const std::string* seed_text = record.setting(seed);
    const std::string* rate_text = rates_are_arms ? nullptr : record.setting(rate);
    const double loss = loss_of(record, arms, options.at);
    const double number = rate_text == nullptr ? 0 : number_in(*rate_text).value_or(0);
    const std::vector<RunRecord::Value>& values = record.series[arms.metric];
    arms.runs.push_back({.name = record.name,
                         .arm = name,
                         .seed = seed_text == nullptr ? "" : *seed_text,
                         .learning_rate = number > 0 ? std::optional(number) : std::nullopt,
                         .points = std::ssize(values),
                         .last_step = values.empty() ? std::nan("") : values.back().step,
                         .state = state_of(record, loss),
                         .value = !std::isfinite(loss)    ? std::nan("")
                                  : arms.larger_is_better ? -loss
                                                          : loss});
    add_run(*arm, number, arms.runs.back().seed, loss, record.name);
  }
  note_unlike(arms, records);
  note_lengths(arms, records);
  return arms;
}

}  // namespace plumb
