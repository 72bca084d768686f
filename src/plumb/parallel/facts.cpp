// Checks that all processes of a run agree on what they are about to do.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/parallel/connection.h"

namespace plumb {
namespace {

/// The first fact in which `theirs` differs, as a sentence; empty if all are equal.
std::string difference(const Facts& ours, const Facts& theirs, const std::string& who, const std::string& zero) {
  const auto value_in = [](const Facts& facts, const std::string& name) {
    const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == name; });
    return found == facts.end() ? std::string("(none)") : found->second;
  };
  for (const Facts* facts : {&ours, &theirs}) {
    for (const auto& [name, value] : *facts) {
      const std::string here = value_in(ours, name), there = value_in(theirs, name);
      if (here != there) return fmt::format("{} = {} in {}, but {} in {}", name, there, who, here, zero);
    }
  }
  return {};
}

}  // namespace

void Group::require_same(const Facts& facts) const {
  if (!connection_) return;
  const std::string own = connection_->membership().own_name();
  const Json zero = Json::parse(broadcast(Json{{"name", own}, {"facts", facts}}.dump()));
  const std::string verdict = difference(zero.at("facts").get<Facts>(), facts, own, zero.at("name"));
  const std::vector<Tensor> differ = all_gather(at::full({1}, !verdict.empty(), at::kByte));
  for (int64_t rank = 0; rank < size(); ++rank) {
    if (differ[static_cast<size_t>(rank)].item<bool>()) {
      throw Error("the processes of this run differ: " + broadcast(verdict, rank),
                  "start all of them with the same program, configuration and data");
    }
  }
}

}  // namespace plumb
