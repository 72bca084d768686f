// A pattern to split at or replace: a string or a regular expression.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/text/oniguruma/regex.h"

namespace plumb::tokenization {

class Pattern {
 public:
  /// Throws Error if the string is empty.
  explicit Pattern(std::string literal);
  explicit Pattern(Regex regex) : regex_(std::move(regex)) {}
  /// From {"String": …} or {"Regex": …}. Throws Error on anything else.
  explicit Pattern(const nlohmann::json& settings);

  /// Sets `matches` to the matches in `text`, from left to right, without overlap.
  void find_all(std::string_view text, std::vector<Span>& matches) const;

  /// `text` with every match replaced. `beginning`, if given, is a number of the text's first bytes, and is set to that
  /// of the bytes that they become; as in `tokenizers`, a replacement comes from the last character of its match.
  /// Throws Error if the text grows too long (text/pipeline/growth.h).
  [[nodiscard]] std::string replaced(std::string_view text, std::string_view replacement,
                                     size_t* beginning = nullptr) const;

 private:
  std::string literal_;
  std::optional<Regex> regex_;
};

}  // namespace plumb::tokenization
