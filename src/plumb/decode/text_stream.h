// Text as its tokens come: what may be shown already, and where a stop string ends it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/text/tokenizer.h"

namespace plumb {

/// Decodes what follows a prompt, token by token, with the spacing that it has behind the prompt; an end of sentence
/// begins a new line. A token costs the decoding of a window of the last ones, however long the text is.
class TextStream {
 public:
  /// The text ends before the first occurrence of one of the strings in `stop`, which are not empty.
  TextStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt, std::vector<std::string> stop = {});

  /// Takes in the next token. Returns the text that is certain now and was not before: no part of a character whose
  /// other bytes may follow, and nothing that a stop string may begin with.
  std::string add(int32_t id);

  /// Nothing follows. Returns what was held back; an incomplete character becomes U+FFFD.
  std::string finish();

  /// Whether a stop string has come.
  [[nodiscard]] bool stopped() const { return stopped_; }

  /// The text so far, in whole characters; after a stop string, that before it.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void begin_line(std::span<const int32_t> ids);
  std::string hand_out(bool last);
  [[nodiscard]] size_t held_back() const;

  Tokenizer tokenizer_;
  std::vector<std::string> stop_;
  std::vector<int32_t> window_;  // the last tokens of the line at hand
  std::string base_;             // the text of those of them that end in a whole character
  std::string text_, tail_;      // all text in whole characters; bytes of one that may be incomplete
  size_t settled_ = 0;           // where, in the text, that of the window behind `base_` begins
  size_t handed_out_ = 0;        // bytes
  bool stopped_ = false;
};

/// How many bytes at the end of a text may become others when more bytes follow: an incomplete UTF-8 character, or
/// the replacement characters that a tokenizer puts in place of its bytes.
size_t incomplete_tail(std::string_view text);

}  // namespace plumb
