#include "plumb/optim/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/glob.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

bool decays(const Parameter& parameter) {
  const Role role = parameter.role;
  return parameter.value.dim() >= 2 && role != Role::position && role != Role::gain && role != Role::shift &&
         role != Role::bias;
}

bool matches(const ParameterGroup& group, const std::string& name) {
  return std::any_of(group.pattern.begin(), group.pattern.end(),
                     [&](const std::string& pattern) { return glob_matches(pattern, name); });
}

void check(const ParameterGroup& group, const Parameters& parameters) {
  if (group.pattern.empty()) {
    throw Error("a group of [[train.groups]] has no pattern", "select parameters by name: pattern = \"encoder.*\"");
  }
  require_valid("train.groups", group);
  if (group.weight_decay < 0 && group.weight_decay != -1) {
    throw Error(fmt::format("train.groups.weight_decay = {} must be at least 0, or -1", group.weight_decay));
  }
  for (const std::string& pattern : group.pattern) {
    const auto distance = [&](const Parameter& parameter) { return glob_distance(pattern, parameter.name); };
    const auto nearest =
        std::min_element(parameters.all().begin(), parameters.all().end(),
                         [&](const Parameter& a, const Parameter& b) { return distance(a) < distance(b); });
    if (nearest == parameters.all().end() || distance(*nearest) == 0) continue;
    throw Error(fmt::format("[[train.groups]]: the pattern '{}' matches no parameter", pattern),
                fmt::format("the closest is '{}'; * matches any characters", nearest->name));
  }
}

std::string number_of_elements(const Parameters& parameters, const std::vector<size_t>& which) {
  int64_t count = 0;
  for (const size_t i : which) count += parameters.all()[i].value.numel();
  return with_thousands(count);
}

}  // namespace

void describe(Fields& field, ParameterGroup& group) {
  field("pattern", group.pattern,
        "parameter names, as one pattern or a list; `*` matches any characters, `?` any single one");
  field("learning_rate_factor", group.learning_rate_factor, "multiplies the learning rate of the schedule",
        at_least(0));
  field("weight_decay", group.weight_decay, "applied to all parameters in the group; -1: same as without the group",
        at_least(-1));
  field(
      "warm_up", group.warm_up,
      "multiplies their learning rate by min(1, step/warm_up), besides what the schedule does; 0: no warm-up of their "
      "own",
      count_from(0));
  field("frozen_until", group.frozen_until,
        "the first step that updates them, or the tokens or epochs for which they are frozen; 0: trained from the "
        "start; -1: never trained",
        at_least(-1));
  field("frozen_again_from", group.frozen_again_from,
        "the first step that leaves them as they are once more, or the tokens or epochs after which they are frozen",
        at_least(0));
  field("frozen_again_until", group.frozen_again_until,
        "the first step that updates them after that, or the tokens or epochs until which they stay frozen; 0: not "
        "frozen again",
        at_least(0));
}

std::vector<ParameterSettings> parameter_settings(const Parameters& parameters,
                                                  const std::vector<ParameterGroup>& groups, double weight_decay) {
  for (const ParameterGroup& group : groups) check(group, parameters);
  std::vector<ParameterSettings> all;
  for (const Parameter& parameter : parameters.all()) {
    ParameterSettings settings{.weight_decay = decays(parameter) ? weight_decay : 0};
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& candidate) {
      return matches(candidate, parameter.name);
    });
    if (group != groups.end()) {
      settings.rate_factor = group->learning_rate_factor;
      if (group->weight_decay >= 0) settings.weight_decay = group->weight_decay;
      settings.warm_up = group->warm_up.in_steps();
      settings.frozen_until = group->frozen_until.in_steps();
      settings.frozen_again_from = group->frozen_again_from.in_steps();
      settings.frozen_again_until = group->frozen_again_until.in_steps();
    }
    all.push_back(settings);
  }
  return all;
}

std::vector<ParameterStep> parameter_steps(const std::vector<ParameterSettings>& settings, int64_t step,
                                           double learning_rate) {
  std::vector<ParameterStep> steps;
  steps.reserve(settings.size());
  for (const ParameterSettings& each : settings) {
    const double grown = static_cast<double>(step) / static_cast<double>(std::max<int64_t>(each.warm_up, 1));
    steps.push_back({.learning_rate = learning_rate * each.rate_factor * std::min(1.0, grown),
                     .weight_decay = each.weight_decay,
                     .frozen = each.frozen_at(step)});
  }
  return steps;
}

std::vector<std::string> settings_summary(const Parameters& parameters,
                                          const std::vector<ParameterSettings>& settings) {
  std::map<double, std::vector<size_t>> decay, factor;
  std::map<int64_t, std::vector<size_t>> frozen, warming;
  std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> again;
  for (size_t i = 0; i < settings.size(); ++i) {
    decay[settings[i].weight_decay].push_back(i);
    if (settings[i].rate_factor != 1) factor[settings[i].rate_factor].push_back(i);
    if (settings[i].warm_up > 1) warming[settings[i].warm_up].push_back(i);
    if (settings[i].frozen_until != 0) frozen[settings[i].frozen_until].push_back(i);
    if (settings[i].frozen_again_until > settings[i].frozen_again_from)
      again[{settings[i].frozen_again_from, settings[i].frozen_again_until}].push_back(i);
  }
  const std::vector<size_t> without = decay[0];
  decay.erase(0);
  const std::string total = with_thousands(parameters.count());
  std::vector<std::string> lines;
  for (const auto& [value, which] : decay) {
    lines.push_back(
        fmt::format("weight decay {} for {} of {} parameters", value, number_of_elements(parameters, which), total));
  }
  if (!lines.empty() && !without.empty()) {
    const bool by_kind =
        std::none_of(without.begin(), without.end(), [&](size_t i) { return decays(parameters.all()[i]); });
    lines.back() += by_kind ? "; none for norms, biases, scalars and positions" : "; none for the rest";
  }
  for (const auto& [value, which] : factor) {
    lines.push_back(fmt::format("learning rate × {:.4g} for {} of {} parameters", value,
                                number_of_elements(parameters, which), total));
  }
  for (const auto& [value, which] : warming) {
    lines.push_back(fmt::format("a warm-up of {} steps for {} of {} parameters", with_thousands(value),
                                number_of_elements(parameters, which), total));
  }
  for (const auto& [value, which] : frozen) {
    lines.push_back(fmt::format("{} of {} parameters are frozen{}", number_of_elements(parameters, which), total,
                                value < 0 ? "" : fmt::format(" until step {}", value)));
  }
  for (const auto& [steps, which] : again) {
    lines.push_back(fmt::format("{} of {} parameters are frozen again from step {} until step {}",
                                number_of_elements(parameters, which), total, steps.first, steps.second));
  }
  return lines;
}

}  // namespace plumb
