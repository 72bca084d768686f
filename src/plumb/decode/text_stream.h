// Text as its tokens arrive: what can already be shown, and where a stop string ends it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/text/tokenizer.h"

namespace plumb {

/// Decodes what follows a prompt, token by token, with the spacing that follows the prompt; an end of sentence begins a
/// new line. Each token costs the decoding of a window of recent tokens, however long the text is.
class TextStream {
 public:
  /// The text ends before the first occurrence of one of the strings in `stop`, which are not empty.
  TextStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt, std::vector<std::string> stop = {});

  /// Adds the next token. Returns the text that has become certain: no part of a character whose remaining bytes may
  /// follow, and nothing that may be the beginning of a stop string.
  std::string add(int32_t id);

  /// Ends the text. Returns what was held back; an incomplete character becomes U+FFFD.
  std::string finish();

  /// Whether a stop string has occurred.
  [[nodiscard]] bool stopped() const { return stopped_; }

  /// The text so far, in whole characters; after a stop string, the text before it.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void begin_line(std::span<const int32_t> ids);
  std::string hand_out(bool last);
  [[nodiscard]] size_t held_back() const;

  Tokenizer tokenizer_;
  std::vector<std::string> stop_;
  std::vector<int32_t> window_;  // the last tokens of the current line
  std::string base_;             // the text of its first `settled_tokens_` tokens, which ends in a whole character
  size_t settled_tokens_ = 0;    // how many tokens of the window `base_` covers
  std::string text_, tail_;      // all text in whole characters; bytes of an incomplete one
  size_t settled_ = 0;           // offset in the text at which the text of the window after `base_` begins
  size_t handed_out_ = 0;        // bytes
  bool stopped_ = false;
};

/// The number of bytes at the end of a text that may change when more bytes follow: an incomplete UTF-8 character, or
/// the replacement characters that a tokenizer substitutes for its bytes.
size_t incomplete_tail(std::string_view text);

}  // namespace plumb
