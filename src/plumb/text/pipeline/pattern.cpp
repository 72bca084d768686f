#include "plumb/text/pipeline/pattern.h"

#include <algorithm>

#include "plumb/text/pipeline/growth.h"
#include "plumb/text/pipeline/settings.h"

namespace plumb::tokenization {

Pattern::Pattern(std::string literal) : literal_(std::move(literal)) {
  if (literal_.empty()) throw Error("a pattern is empty");
}

Pattern::Pattern(const Settings& settings) {
  if (settings.is_string()) {  // older files
    literal_ = settings.get<std::string>();
  } else if (settings.contains("String")) {
    literal_ = settings.at("String").get<std::string>();
  } else {
    regex_ = Regex(settings.at("Regex").get<std::string>());
  }
  if (!regex_ && literal_.empty()) throw Error("a pattern is empty");
}

void Pattern::find_all(std::string_view text, std::vector<Span>& matches) const {
  if (regex_) {
    regex_->find_all(text, matches);
    return;
  }
  matches.clear();
  for (size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, at + literal_.size())) {
    matches.push_back({at, at + literal_.size()});
  }
}

std::string Pattern::replaced(std::string_view text, std::string_view replacement, size_t* beginning) const {
  std::string result;
  result.reserve(text.size());
  size_t copied = 0;
  const size_t first = beginning == nullptr ? 0 : *beginning;
  size_t of_first = 0;
  const auto copy_until = [&](size_t end) {
    if (copied < first) of_first = result.size() + std::min(end, first) - copied;
    result.append(text.substr(copied, end - copied));
  };
  const auto replace = [&](const Span& match) {
    copy_until(match.begin);
    result.append(replacement);
    check_growth(text.size(), result.size());
    copied = match.end;
    if (match.end <= first) of_first = result.size();
  };
  if (regex_) {
    std::vector<Span> matches;
    regex_->find_all(text, matches);
    for (const Span& match : matches) replace(match);
  } else {
    for (size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, copied))
      replace({at, at + literal_.size()});
  }
  copy_until(text.size());
  if (first > 0) *beginning = of_first;
  return result;
}

}  // namespace plumb::tokenization
