#include "plumb/data/corpus_mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/permutation.h"
#include "plumb/base/random.h"

namespace plumb {
namespace {

/// `total` divided in these proportions, which add up to 1, by the largest-remainder method; of equal remainders, the
/// first is rounded up.
std::vector<int64_t> divided(int64_t total, const std::vector<double>& proportions) {
  std::vector<int64_t> parts;
  std::vector<double> remainders;
  for (const double proportion : proportions) {
    const double exact = proportion * static_cast<double>(total);
    parts.push_back(static_cast<int64_t>(std::floor(exact)));
    remainders.push_back(exact - std::floor(exact));
  }
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  int64_t left = total - std::accumulate(parts.begin(), parts.end(), int64_t{0});
  for (size_t i = 0; left > 0; ++i, --left) ++parts[order[i % order.size()]];
  return parts;
}

}  // namespace

std::vector<double> corpus_probabilities(std::span<const WeightedCorpus> corpora, double temperature) {
  if (!(temperature > 0) || !std::isfinite(temperature))
    throw Error(fmt::format("the temperature of corpora must be above 0, not {}", temperature));
  double largest = 0;
  for (const WeightedCorpus& corpus : corpora) {
    if (corpus.size <= 0) throw Error(fmt::format("the corpus '{}' is empty", corpus.name));
    if (!(corpus.weight > 0) || !std::isfinite(corpus.weight))
      throw Error(fmt::format("the weight of the corpus '{}' must be above 0, not {}", corpus.name, corpus.weight));
    largest = std::max(largest, static_cast<double>(corpus.size));
  }
  std::vector<double> probabilities;
  double sum = 0;
  for (const WeightedCorpus& corpus : corpora) {  // relative to the largest size: its power might overflow
    probabilities.push_back(corpus.weight * std::pow(static_cast<double>(corpus.size) / largest, 1 / temperature));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

CorpusMixture::CorpusMixture(std::vector<WeightedCorpus> corpora, double temperature, uint64_t seed)
    : corpora_(std::move(corpora)) {
  if (corpora_.empty()) throw Error("there is no corpus to draw from");
  const std::vector<double> probabilities = corpus_probabilities(corpora_, temperature);
  for (const WeightedCorpus& corpus : corpora_) size_ += corpus.size;
  shares_ = divided(size_, probabilities);
  for (size_t c = 0; c < corpora_.size(); ++c) {
    if (shares_[c] == 0) {
      throw Error(fmt::format("the corpus '{}' has a share of {:.2g} in an epoch of {} examples: none of it is drawn",
                              corpora_[c].name, probabilities[c], size_),
                  "increase its weight, or prepare the data without it");
    }
    const auto words = philox(seed, stream_of("corpora"), c);
    seeds_.push_back(static_cast<uint64_t>(words[0]) << 32 | words[1]);
  }
}

bool CorpusMixture::every_example_once() const {
  return std::equal(corpora_.begin(), corpora_.end(), shares_.begin(),
                    [](const WeightedCorpus& corpus, int64_t share) { return corpus.size == share; });
}

int64_t CorpusMixture::example(int64_t epoch, int64_t draw) const {
  int64_t first = 0;  // the corpus's first example
  size_t corpus = 0;
  for (; draw >= shares_[corpus]; ++corpus) {
    draw -= shares_[corpus];
    first += corpora_[corpus].size;
  }
  const int64_t size = corpora_[corpus].size, drawn = epoch * shares_[corpus] + draw;  // from this corpus since epoch 0
  const auto pass = static_cast<uint64_t>(drawn / size);
  return first + Permutation(size, seeds_[corpus], stream_of("passes") + pass)(drawn % size);
}

}  // namespace plumb
