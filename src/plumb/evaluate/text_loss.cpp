#include "plumb/evaluate/text_loss.h"

#include <iterator>
#include <utility>

namespace plumb {

TextLoss text_loss(Generates& model, const TextEncoder& encoder, const std::vector<std::string>& texts, int64_t longest,
                   const ScoringOptions& options) {
  std::vector<TokenRequest> requests;
  TextLoss found;
  for (const std::string& text : texts) {
    for (TokenRequest& window : encoder.windows(text, longest)) {
      found.tokens += std::ssize(window.continuation);
      requests.push_back(std::move(window));
    }
  }
  std::vector<double> losses(requests.size());  // answers come in any order, and sums must not depend on it
  score_requests(model, requests, options,
                 [&](size_t number, const Answer& answer) { losses[number] = -answer.log_likelihood; });
  for (const double loss : losses) found.sum += loss;
  return found;
}

}  // namespace plumb
