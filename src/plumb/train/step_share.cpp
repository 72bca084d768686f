#include "plumb/train/step_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

/// The indices in a batch of `size` examples that a process takes.
std::vector<int64_t> places_of(int64_t size, int64_t rank, int64_t processes) {
  std::vector<int64_t> own;
  for (int64_t place = rank; place < size; place += processes) own.push_back(place);
  return own;
}

/// The first sequence of each example of a batch, followed by the number of sequences. Throws Error if unknown.
std::vector<int64_t> first_sequences(const Ragged& layout, const Batch& whole, const std::vector<int64_t>& examples) {
  std::vector<int64_t> first(examples.size() + 1, layout.sequences());
  if (layout.sequences() == std::ssize(examples)) {
    std::iota(first.begin(), first.end(), int64_t{0});
    return first;
  }
  int64_t sequence = 0;
  if (std::ssize(whole.examples) == layout.sequences()) {  // some examples have several
    for (size_t place = 0; place < examples.size();) {
      size_t after = place + 1;  // an example may be repeated in a row, with the same number of sequences
      while (after < examples.size() && examples[after] == examples[place]) ++after;
      const int64_t begin = sequence;
      while (sequence < layout.sequences() && whole.examples[static_cast<size_t>(sequence)] == examples[place])
        ++sequence;
      const int64_t each = (sequence - begin) / static_cast<int64_t>(after - place);
      for (int64_t next = begin; place < after; ++place, next += each) first[place] = next;
    }
  }
  if (sequence != layout.sequences())
    throw Error(fmt::format("a batch of {} examples has {} sequences, which cannot be assigned to the examples",
                            examples.size(), layout.sequences()),
                "train in one process with train.micro_batch_tokens = 0 and train.accumulate = 1");
  return first;
}

/// The first row in the step of each sequence of the examples at these places, if `before` rows precede the batch.
std::vector<int64_t> origins_of(const Ragged& layout, const Batch& whole, const std::vector<int64_t>& examples,
                                const std::vector<int64_t>& places, int64_t before) {
  if (layout.sequences() == 0) return {};
  const std::vector<int64_t> first = first_sequences(layout, whole, examples);
  std::vector<int64_t> origins;
  for (const int64_t place : places) {
    const auto at = static_cast<size_t>(place);
    for (int64_t s = first[at]; s < first[at + 1]; ++s) origins.push_back(before + layout.begin(s));
  }
  return origins;
}

/// The numbers of rows of the step that precede a batch.
struct Before {
  int64_t source = 0, target = 0;
};

/// The part of a batch with the examples at these places.
Batch part_of(const Dataset& dataset, const Draw& draw, const std::vector<int64_t>& examples, const Batch& whole,
              const std::vector<int64_t>& places, const Before& before) {
  std::vector<int64_t> chosen;
  chosen.reserve(places.size());
  for (const int64_t place : places) chosen.push_back(examples[static_cast<size_t>(place)]);
  Batch part = dataset.drawn(chosen, draw);
  part.source_layout.set_origins(origins_of(whole.source_layout, whole, examples, places, before.source));
  part.target_layout.set_origins(origins_of(whole.target_layout, whole, examples, places, before.target));
  return part;
}

/// The parts of a batch that process `rank` computes, as places in the batch.
std::vector<std::vector<int64_t>> parts_of(const std::vector<ExampleCost>& costs, int64_t rank,
                                           const Division& division) {
  return divide_batch(costs, places_of(std::ssize(costs), rank, division.processes), division.micro_batch_tokens);
}

}  // namespace

StepShare step_share(const Dataset& dataset, const ExampleCosts& costs, std::span<const std::vector<int64_t>> batches,
                     const Division& division, const Draw& draw) {
  StepShare share;
  Before before;
  for (const std::vector<int64_t>& examples : batches) {
    std::vector<ExampleCost> own_costs;  // by place in the batch
    for (const int64_t example : examples) own_costs.push_back(costs[example]);
    const auto parts = parts_of(own_costs, division.rank, division);
    size_t most = parts.size();
    for (int64_t rank = 0; division.micro_batch_tokens > 0 && rank < division.processes; ++rank)
      most = std::max(most, parts_of(own_costs, rank, division).size());

    Batch whole = dataset.drawn(examples, draw);
    share.weight += whole.weight();
    const int64_t source = whole.source_layout.tokens(), target = whole.target_layout.tokens();
    if (batches.size() == 1 && division.processes == 1 && parts.size() == 1) {
      share.micro_batches.push_back({std::move(whole)});
    } else {
      for (size_t i = 0; i < most; ++i) {
        const bool placeholder = i >= parts.size() || parts[i].empty();
        const std::vector<int64_t> places = placeholder ? std::vector<int64_t>{0} : parts[i];
        share.micro_batches.push_back({part_of(dataset, draw, examples, whole, places, before), placeholder});
      }
    }
    before.source += source;
    before.target += target;
  }
  return share;
}

std::vector<size_t> largest_batches(const ExampleCosts& costs, const std::vector<std::vector<int64_t>>& plan) {
  std::vector<int64_t> tokens(plan.size(), 0), longest(plan.size(), 0);
  for (size_t i = 0; i < plan.size(); ++i) {
    for (const int64_t example : plan[i]) {
      const ExampleCost cost = costs[example];
      tokens[i] += cost.source + cost.target;
      longest[i] = std::max(longest[i], cost.larger());
    }
  }
  std::vector<size_t> order(plan.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (order.empty()) return {};
  const auto largest = [&](const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
    return *std::max_element(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(first[a], second[a]) < std::pair(first[b], second[b]);
    });
  };
  const size_t by_tokens = largest(tokens, longest), by_length = largest(longest, tokens);
  return by_tokens == by_length ? std::vector{by_tokens} : std::vector{by_tokens, by_length};
}

std::string describe_batches(const ExampleCosts& costs, std::span<const std::vector<int64_t>> batches) {
  constexpr size_t kShown = 8;
  ExampleCost sum;
  int64_t longest = 0;
  std::vector<std::string> shown;
  int64_t examples = 0;
  for (const std::vector<int64_t>& batch : batches) {
    examples += std::ssize(batch);
    for (const int64_t example : batch) {
      const ExampleCost cost = costs[example];
      sum.source += cost.source;
      sum.target += cost.target;
      longest = std::max(longest, cost.larger());
      if (shown.size() < kShown) shown.push_back(std::to_string(example));
    }
  }
  std::string text = sum.source > 0 ? with_thousands(sum.source) + " source and " : "";
  text += fmt::format("{} target tokens, longest sequence {}, ", with_thousands(sum.target), longest);
  if (examples == 1) return text + "sentence " + shown.front();
  text += "sentences " + join(shown);
  return examples <= std::ssize(shown) ? text : text + fmt::format(", … ({} in all)", with_thousands(examples));
}

}  // namespace plumb
