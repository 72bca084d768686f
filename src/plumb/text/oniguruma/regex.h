// Regular expressions in Oniguruma's syntax, from a module that is loaded on first use.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "plumb/text/oniguruma/module.h"

namespace plumb {

/// Bytes [begin, end) of a text.
struct Span {
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const Span&) const = default;
};

/// A compiled regular expression; copies share it. Safe to use from several threads.
class Regex {
 public:
  /// Throws Error if the expression is invalid or the module is missing.
  explicit Regex(std::string_view pattern);

  /// Replaces `matches` by all matches in `text`, which must be valid UTF-8, from left to right. Throws Error if the
  /// search takes too many steps back or too much memory for them.
  void find_all(std::string_view text, std::vector<Span>& matches) const;

 private:
  std::shared_ptr<const OnigurumaHandle> handle_;
};

}  // namespace plumb
