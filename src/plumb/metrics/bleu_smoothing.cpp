#include "plumb/metrics/bleu_smoothing.h"

namespace plumb {
namespace {

using Precisions = std::array<double, kBleuOrder>;

// matches / totals, in percent; of an order without a match, 100 · pseudo_matches() / totals.
template <typename PseudoMatches>
Precisions precisions_with(const BleuCounts& counts, PseudoMatches pseudo_matches) {
  Precisions precisions{};
  for (size_t n = 0; n < kBleuOrder && counts.totals[n] > 0; ++n) {
    const double matches = counts.matches[n] > 0 ? static_cast<double>(counts.matches[n]) : pseudo_matches();
    precisions[n] = 100.0 * matches / static_cast<double>(counts.totals[n]);
  }
  return precisions;
}

Precisions unsmoothed(const BleuCounts& counts) {
  return precisions_with(counts, [] { return 0.0; });
}

// 1/2 of a match for the first order without one, 1/4 for the second, …
Precisions exponential(const BleuCounts& counts) {
  return precisions_with(counts, [matches = 1.0]() mutable { return matches /= 2; });
}

Precisions with_floor(const BleuCounts& counts) {
  return precisions_with(counts, [] { return 0.1; });
}

// One match and one n-gram more in every order but the first.
Precisions add_one(const BleuCounts& counts) {
  BleuCounts more = counts;
  for (size_t n = 1; n < kBleuOrder; ++n) {
    ++more.matches[n];
    ++more.totals[n];
  }
  return unsmoothed(more);
}

Registry<BleuSmoothing> make_smoothings() {
  Registry<BleuSmoothing> registry("BLEU smoothing");
  const std::string paper = "Chen and Cherry 2014";
  registry.add("exp", "orders without a match count 1/2, 1/4, … matches", paper + ", method 3", {"exp", exponential});
  registry.add("floor", "an order without a match counts 0.1 matches", paper + ", method 1",
               {"floor[0.10]", with_floor});
  registry.add("add-k", "adds one match and one n-gram to orders 2 to 4", paper + ", method 2",
               {"add-k[1.00]", add_one});
  registry.add("none", "an order without a match makes the score 0", "Papineni et al. 2002", {"none", unsmoothed});
  return registry;
}

}  // namespace

const Registry<BleuSmoothing>& bleu_smoothings() {
  static const Registry<BleuSmoothing> registry = make_smoothings();
  return registry;
}

}  // namespace plumb
