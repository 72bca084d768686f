// Checks that all processes of a run agree on what they are about to do.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/parallel/connection.h"
#include "plumb/parallel/frame.h"

namespace plumb {
namespace {

std::string encoded(const Facts& facts) {
  Frame frame;
  for (const auto& [name, value] : facts) {
    frame.fields.push_back(name);
    frame.fields.push_back(value);
  }
  return encode(frame);
}

Facts decoded(const std::string& bytes) {
  FrameReader reader;
  reader.append(bytes);
  const auto frame = reader.next();
  Facts facts;
  for (size_t i = 0; frame && i + 1 < frame->fields.size(); i += 2)
    facts.emplace_back(frame->fields[i], frame->fields[i + 1]);
  return facts;
}

/// The first fact in which `theirs` differs, as a sentence; empty if all are equal.
std::string difference(const Facts& ours, const Facts& theirs, const std::string& who, const std::string& zero) {
  const auto value_in = [](const Facts& facts, const std::string& name) {
    const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == name; });
    return found == facts.end() ? std::string("(none)") : found->second;
  };
  const auto sentence = [&](const std::string& name, const std::string& here, const std::string& there) {
    return fmt::format("{} = {} in {}, but {} in {}", name, there, who, here, zero);
  };
  for (const auto& [name, value] : ours) {
    if (const std::string there = value_in(theirs, name); there != value) return sentence(name, value, there);
  }
  for (const auto& [name, value] : theirs) {
    if (const std::string here = value_in(ours, name); here != value) return sentence(name, here, value);
  }
  return {};
}

}  // namespace

void Connection::require_same(const Facts& facts) {
  Membership& membership = *assembly_->membership;
  const std::string prefix = fmt::format("{} facts {} ", name_, comparisons_++);
  const auto key = [&](int64_t rank) { return prefix + std::to_string(rank); };
  membership.set(key(rank_), encoded(facts));
  if (rank_ == 0) {
    const auto name = [&](int64_t rank) {
      const Member& member = membership.members()[static_cast<size_t>(rank)];
      return describe_process(rank, member.process, member.host);
    };
    std::string verdict;
    for (int64_t rank = 1; rank < size_ && verdict.empty(); ++rank)
      verdict = difference(facts, decoded(membership.get(key(rank))), name(rank), name(0));
    membership.set(prefix + "verdict", verdict);
  }
  if (const std::string verdict = membership.get(prefix + "verdict"); !verdict.empty())
    throw Error("the processes of this run differ: " + verdict,
                "start all of them with the same program, configuration and data");
}

}  // namespace plumb
