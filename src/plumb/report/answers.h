// What a study answers, in words, and first.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/report/results.h"

namespace plumb {

/// How one sentence tells what was measured of each arm: the values, or what they say of a change.
struct Telling {
  std::string subject;                     // "gradient at initialization"; empty: it is not told
  std::string over{};                      // of a change: "over the decoder"; empty: the values themselves are told
  std::function<double(double)> factor{};  // of a change, from a value such as an exponent; empty: the value is it
};

/// "grows 6.9-fold (5.8 to 8.2)", "shrinks to 30%", "hardly changes": by a factor of less than 1.5.
std::string change_in_words(const Interval& factor);

/// "Post-LN's gradient grows 6.9-fold (5.8 to 8.2) over the decoder; Pre-LN's hardly changes (×0.9 to ×1.2).", or
/// "Final loss: Post-LN 4.2 (4.1 to 4.3), Pre-LN 4.0 (3.9 to 4.1).". `named`: the values, or the factors of the change,
/// by arm; of more than four only the smallest and the largest are named. Empty if none is finite. `remark`: ends it.
std::string told(const Telling& telling, std::vector<std::pair<std::string, Interval>> named,
                 const std::string& remark = "");

/// "B: supported; ratio: 2 (95% interval 1 to 3; 5 seeds).", without the numbers if its quantity is told anyway; and
/// with the reason if nothing is decided.
std::string in_words(const Verdict& verdict);

/// At most three verdicts as sentences, each with another figure: the decided ones or else that none is decided, and
/// then what was seen of the others: "C: not proven; ratio: 2 (1 seed); one seed has no interval." Empty without
/// verdicts.
std::vector<std::string> answers_in_words(const std::vector<Verdict>& verdicts);

/// Orders results by what the study asks. The last `sentences` of the summary, which are about its own claims, come
/// before the others; and the figure of the first decided verdict (or else of the first), with its parts, before the
/// other figures. Without sentences on own claims, the answers in words end the summary.
void put_answers_first(Results& results, size_t sentences);

}  // namespace plumb
