#include "plumb/judge/direction.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

namespace plumb {

std::optional<bool> larger_is_better_by_name(const std::string& metric) {
  std::set<std::string> words;
  std::string word;
  for (const char c : metric + " ") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      words.insert(std::exchange(word, ""));
    }
  }
  const auto holds = [&](const std::set<std::string>& known) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& one) { return known.contains(one); });
  };
  const bool less =
      holds({"loss", "nll",  "perplexity", "ppl",     "error", "bits", "bpb", "bpc",  "wer", "cer",  "ter",
             "mse",  "rmse", "mae",        "entropy", "brier", "fid",  "kid", "crps", "ece", "lpips"});
  const bool more = holds({"acc", "accuracy", "bleu", "chrf", "f", "auc", "auroc", "reward", "return", "match", "mcc",
                           "precision", "recall", "rouge", "elo"});
  if (less != more) return more;
  return !less && holds({"score"}) ? std::optional(true) : std::nullopt;
}

}  // namespace plumb
