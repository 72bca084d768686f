#include "plumb/decode/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/decode/errors.h"

namespace plumb {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Uniform in [0, 1), 53 bits, as a function of the arguments.
double uniform_at(uint64_t seed, uint64_t stream, uint64_t index) {
  const std::array<uint32_t, 4> words = philox(seed, stream, index);
  return static_cast<double>(uint64_t{words[0] >> 5} << 26 | words[1] >> 6) * 0x1p-53;
}

// A function object, so that sorting can inline it.
constexpr auto kMoreProbable = [](const NextToken& a, const NextToken& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
};

void penalize(std::vector<double>& logits, std::span<const int32_t> seen, double penalty) {
  std::vector<int32_t> once(seen.begin(), seen.end());
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (const int32_t id : once) {
    double& logit = logits.at(static_cast<size_t>(id));
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

/// The index of the largest logit. Throws Error if no logit is finite, or if one is NaN or +∞.
size_t largest(const std::vector<double>& logits) {
  const size_t none = logits.size();
  size_t best = none;
  size_t broken = none;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (std::isfinite(logits[id])) {
      if (best == none || logits[id] > logits[best]) best = id;
    } else if (logits[id] != kNever) {
      broken = std::min(broken, id);
    }
  }
  if (best == none) throw Error("the model has no finite score for any next token", kBrokenModel);
  if (broken != none) {
    throw Error(fmt::format("the model's score of token {} is {}", broken, logits[broken]), kBrokenModel);
  }
  return best;
}

/// The k-th largest logit.
double kth_largest(const std::vector<double>& logits, int64_t k) {
  std::vector<double> best(static_cast<size_t>(k));
  std::partial_sort_copy(logits.begin(), logits.end(), best.begin(), best.end(), std::greater<>());
  return best.back();
}

double add(double sum, const NextToken& token) { return sum + token.probability; }

double total(const std::vector<NextToken>& tokens) { return std::accumulate(tokens.begin(), tokens.end(), 0.0, add); }

/// The last token in the smallest set of most probable tokens with at least the fraction p of the total, found by
/// bisection: the tokens need not be sorted.
NextToken last_of_nucleus(std::vector<NextToken> tokens, double p) {
  const double wanted = p * total(tokens);
  auto begin = tokens.begin();  // the tokens before it are too few; their sum:
  double sum = 0;
  for (auto end = tokens.end() - 1; begin < end;) {  // the tokens up to it suffice
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end + 1, kMoreProbable);
    const double more = std::accumulate(begin, middle + 1, sum, add);
    if (more >= wanted) {
      end = middle;
    } else {
      sum = more;
      begin = middle + 1;
    }
  }
  return *begin;
}

}  // namespace

void validate(const SamplingOptions& options) {
  const auto require = [](bool holds, const char* name, auto value, const char* rule) {
    if (!holds) throw Error(fmt::format("cannot sample with {} = {}", name, value), rule);
  };
  require(std::isfinite(options.temperature) && options.temperature >= 0, "temperature", options.temperature,
          "it must be 0 (greedy) or positive; 1 leaves the model's probabilities unchanged");
  require(options.top_k >= 0, "top_k", options.top_k, "it must be a number of tokens, or 0 for all");
  require(options.top_p > 0 && options.top_p <= 1, "top_p", options.top_p,
          "it must be above 0 and at most 1 (all tokens)");
  require(options.min_p >= 0 && options.min_p <= 1, "min_p", options.min_p, "it must be between 0 (all tokens) and 1");
  require(std::isfinite(options.repetition_penalty) && options.repetition_penalty > 0, "repetition_penalty",
          options.repetition_penalty, "it must be positive; 1 has no effect, 1.2 is a common choice");
}

Sampler::Sampler(const SamplingOptions& options, std::vector<int32_t> forbidden)
    : options_(options), forbidden_(std::move(forbidden)) {
  validate(options_);
}

std::vector<NextToken> Sampler::distribution(std::span<const double> given, std::span<const int32_t> seen) const {
  std::vector<double> logits(given.begin(), given.end());
  if (options_.repetition_penalty != 1) penalize(logits, seen, options_.repetition_penalty);
  for (const int32_t id : forbidden_) logits.at(static_cast<size_t>(id)) = kNever;
  const size_t best = largest(logits);
  if (options_.temperature == 0) return {{static_cast<int32_t>(best), 1.0}};

  const bool all = options_.top_k == 0 || options_.top_k >= std::ssize(logits);
  const double least = all ? kNever : kth_largest(logits, options_.top_k);
  std::vector<NextToken> tokens;
  tokens.reserve(all ? logits.size() : static_cast<size_t>(options_.top_k));
  for (size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] < least || logits[id] == kNever) continue;
    // Subtracting the largest logit prevents overflow at any temperature; normalized below.
    tokens.push_back({static_cast<int32_t>(id), std::exp((logits[id] - logits[best]) / options_.temperature)});
  }
  if (options_.top_p < 1) {
    const NextToken last = last_of_nucleus(tokens, options_.top_p);
    std::erase_if(tokens, [&last](const NextToken& token) { return kMoreProbable(last, token); });
  }
  // The most probable token is always kept; its term is exp(0) = 1.
  std::erase_if(tokens, [this](const NextToken& token) { return token.probability < options_.min_p; });
  const double sum = total(tokens);
  for (NextToken& token : tokens) token.probability /= sum;
  return tokens;
}

int64_t Sampler::deciding() const {
  constexpr size_t kFew = 16;  // finding the best k of a row takes time proportional to k
  const bool greedy = options_.temperature == 0 && options_.repetition_penalty == 1;
  return greedy && forbidden_.size() < kFew ? std::ssize(forbidden_) + 2 : 0;
}

std::optional<int32_t> Sampler::best_of(std::span<const int32_t> ids, std::span<const double> logits) const {
  for (size_t i = 0; i < ids.size() && ids[i] >= 0 && std::isfinite(logits[i]); ++i) {
    if (contains(forbidden_, ids[i])) continue;
    const bool tied = i + 1 < ids.size() && ids[i + 1] >= 0 && logits[i + 1] == logits[i];
    return tied ? std::nullopt : std::optional(ids[i]);
  }
  return std::nullopt;
}

int32_t Sampler::draw(std::span<const double> logits, std::span<const int32_t> seen, int64_t sample,
                      int64_t position) const {
  const std::vector<NextToken> tokens = distribution(logits, seen);
  if (tokens.size() == 1) return tokens.front().id;
  const double wanted =
      uniform_at(static_cast<uint64_t>(options_.seed), stream_of("sampling") + static_cast<uint64_t>(sample),
                 static_cast<uint64_t>(position)) *
      total(tokens);
  double sum = 0;
  int32_t last = tokens.front().id;
  for (const NextToken& token : tokens) {
    if (token.probability == 0) continue;  // underflow
    sum += token.probability;
    last = token.id;
    if (sum > wanted) break;
  }
  return last;
}

}  // namespace plumb
