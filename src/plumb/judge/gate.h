// Is a candidate better than the best so far, at an error that holds over a whole series of candidates?
//
// A series is one of runs in the order of time, and decisions follow from the runs alone. Candidate k may err with
// probability error · c/((c + k − 1)(c + k)); over all k, these add up to `error` (Foster & Stine 2008: alpha-investing
// without returns). Its looks, one after each seed from the third, have spent (n/N)³ of that after n of N seeds (Lan &
// DeMets 1983; here they share it by Bonferroni's inequality).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumb/analysis/statistics.h"

namespace plumb {

struct GateRule {
  double error = 0.05;       // the largest probability that any candidate is kept that is not better
  double margin = 0;         // ≥ 0: only a gain of more than this counts
  int64_t seeds = 12;        // of a candidate at most, 3 to 50
  int64_t candidates = 100;  // c: the first c candidates share half of the error
};
void describe(Fields& field, GateRule& rule);

/// What is known of a candidate.
struct GateAnswer {
  std::string candidate;
  std::string best;      // what it is compared with; the candidate itself if it was kept
  std::string decision;  // "keep", "reject" or "more seeds"
  std::string next;      // the arm that needs one more seed; empty if the candidate is decided
  std::string reason;
  Interval gain{};        // over the best, positive: better; of `confidence`, NaN without a look
  double confidence = 0;  // 1 − 2 · what the look may err
};
void describe(Fields& field, GateAnswer& answer);
std::string gate_text(const GateAnswer& answer);

class Gate {
 public:
  /// A series that begins with the arm `base`. Throws UsageError if a value of the rule is out of range.
  Gate(const GateRule& rule, const std::string& base);

  /// A run has ended; one with a loss that is not finite has failed. An unknown arm is the next candidate. Throws Error
  /// if three runs of an arm have equal losses, or the first three of the best have failed.
  void add(const std::string& arm, double loss);

  /// Throws UsageError if the candidate is the arm that the series began with.
  [[nodiscard]] GateAnswer answer(const std::string& candidate) const;

  [[nodiscard]] const std::string& best() const { return arms_[best_].name; }

 private:
  struct Run {
    double loss;
    int64_t time;
  };
  struct Arm {
    std::string name;
    std::vector<Run> runs{};  // that did not fail, without those from before a drift
    int64_t ended = 0;        // runs that did not fail, all of them
    int64_t failed = 0;
    int64_t newest = 0;  // how many arms there were at its last run
    int64_t looked = 0;  // seeds at its last look
    bool was_best = false;
    GateAnswer answer{};
  };

  [[nodiscard]] GateAnswer judged(size_t place) const;
  void judge(size_t place);
  void leave_out_drift(Arm& arm) const;
  /// Between the runs of an arm: the variance and its degrees of freedom.
  [[nodiscard]] std::pair<double, int64_t> noise() const;

  GateRule rule_;
  std::vector<Arm> arms_;  // arms_[k]: candidate k
  size_t best_ = 0;
  int64_t time_ = 0;
};

}  // namespace plumb
