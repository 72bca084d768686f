// How concentrated softmax attention is: the entropy of its weights and its largest logit, by layer.
#pragma once

#include <map>
#include <vector>

#include "plumb/model/model.h"

namespace plumb {

/// Statistics of one attention sub-layer over all queries, heads and sequences seen.
struct AttentionProfile {
  /// −Σ_j p_j·ln p_j/ln n of a query's weights p over the n keys that it sees, averaged over heads and the queries with
  /// n > 1: from 0 (all weight on one key) to 1 (equal weights), whatever the lengths (entropy: Zhai et al. 2023, arXiv
  /// 2303.06296). NaN if there was no such query.
  double relative_entropy = 0;
  double lowest_head_entropy = 0;  // relative too, the lowest of the heads' means over queries
  double largest_logit = 0;        // the largest argument of the softmax (Dehghani et al. 2023, arXiv 2302.05442)
};

/// Collects the scores of forward passes: context.watch_scores(meter.observer()). Empty for models without softmax
/// attention.
class AttentionMeter {
 public:
  /// scores: (heads, queries, keys), as passed to a ScoreObserver.
  void see(const LayerId& attention, const Tensor& scores);
  [[nodiscard]] ScoreObserver observer() {
    return [this](const LayerId& attention, const Tensor& scores) { see(attention, scores); };
  }
  [[nodiscard]] std::map<LayerId, AttentionProfile> profiles() const;

 private:
  struct Sums {
    std::vector<double> entropy;  // relative, by head, summed over queries
    double queries = 0;           // that see more than one key
    double largest = 0;
  };
  std::map<LayerId, Sums> sums_;
};

}  // namespace plumb
