#include "plumb/text/pipeline/pattern.h"

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

std::string Pattern::replaced(std::string_view text, std::string_view replacement, bool* first_is_dropped) const {
  std::string result;
  result.reserve(text.size());
  size_t copied = 0;
  const auto replace = [&](const Span& match) {
    result.append(text.substr(copied, match.begin - copied)).append(replacement);
    check_growth(text.size(), result.size());
    copied = match.end;
    if (first_is_dropped != nullptr && match.begin == 0 && match.end > 0 && replacement.empty())
      *first_is_dropped = true;
  };
  if (regex_) {
    std::vector<Span> matches;
    regex_->find_all(text, matches);
    for (const Span& match : matches) replace(match);
  } else {
    for (size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, copied))
      replace({at, at + literal_.size()});
  }
  return result.append(text.substr(copied));
}

}  // namespace plumb::tokenization
