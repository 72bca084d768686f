#include "plumb/metrics/bleu_smoothing.h"

namespace plumb {
namespace {

// matches / totals, in percent; for an order without a match, 100 · pseudo_matches() / totals.
template <typename PseudoMatches>
std::vector<double> precisions_with(const BleuCounts& counts, PseudoMatches pseudo_matches) {
  std::vector<double> precisions;
  for (size_t n = 0; n < counts.totals.size() && counts.totals[n] > 0; ++n) {
    const double matches = counts.matches[n] > 0 ? static_cast<double>(counts.matches[n]) : pseudo_matches();
    precisions.push_back(100.0 * matches / static_cast<double>(counts.totals[n]));
  }
  return precisions;
}

std::vector<double> unsmoothed(const BleuCounts& counts, double) {
  return precisions_with(counts, [] { return 0.0; });
}

// 1/2 match for the first order without one, 1/4 for the second, …
std::vector<double> exponential(const BleuCounts& counts, double) {
  return precisions_with(counts, [matches = 1.0]() mutable { return matches /= 2; });
}

std::vector<double> with_floor(const BleuCounts& counts, double floor) {
  return precisions_with(counts, [floor] { return floor; });
}

// k additional matches and n-grams in every order but the first.
std::vector<double> with_addition(const BleuCounts& counts, double k) {
  std::vector<double> precisions;
  for (size_t n = 0; n < counts.totals.size(); ++n) {
    const double added = n > 0 ? k : 0;
    const double total = static_cast<double>(counts.totals[n]) + added;
    if (total == 0) break;
    precisions.push_back(100.0 * (static_cast<double>(counts.matches[n]) + added) / total);
  }
  return precisions;
}

Registry<BleuSmoothing> make_smoothings() {
  Registry<BleuSmoothing> registry("BLEU smoothing", {"BLEU smoothings", "plumb score --smoothing",
                                                      "How n-gram orders without a match are counted."});
  const std::string paper = "Chen and Cherry 2014";
  registry.add("exp", "orders without a match count 1/2, 1/4, … matches", paper + ", method 3",
               {std::nullopt, exponential});
  registry.add("floor", "an order without a match counts `--smoothing-value` matches (default: 0.1)",
               paper + ", method 1", {0.1, with_floor});
  registry.add("add-k", "adds `--smoothing-value` matches and n-grams (default: 1) to every order from 2 on",
               paper + ", method 2", {1.0, with_addition});
  registry.add("none", "an order without a match makes the score 0", "Papineni et al. 2002",
               {std::nullopt, unsmoothed});
  return registry;
}

}  // namespace

const Registry<BleuSmoothing>& bleu_smoothings() {
  static const Registry<BleuSmoothing> registry = make_smoothings();
  return registry;
}

}  // namespace plumb
