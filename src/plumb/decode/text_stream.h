// Incremental detokenization: which text is final, and where a stop string ends it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/text/tokenizer.h"

namespace plumb {

/// Decodes the continuation of a prompt token by token, with the spacing that follows the prompt; EOS begins a new
/// line. Each token costs decoding a window of recent tokens, regardless of the length of the text.
class TextStream {
 public:
  /// The text ends before the first occurrence of a string in `stop`; these must not be empty.
  TextStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt, std::vector<std::string> stop = {});

  /// Adds the next token. Returns the text that has become final: no incomplete character, and nothing that may begin a
  /// stop string.
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
  size_t settled_tokens_ = 0;    // number of tokens of the window that `base_` covers
  std::string text_, tail_;      // all text in whole characters; bytes of an incomplete one
  size_t settled_ = 0;           // offset in the text where the window's text after `base_` begins
  size_t handed_out_ = 0;        // bytes of the text returned so far
  bool stopped_ = false;
};

/// The number of bytes at the end of a text that may change when more bytes follow: an incomplete UTF-8 character, or
/// the replacement characters that a tokenizer substitutes for its bytes.
size_t incomplete_tail(std::string_view text);

}  // namespace plumb
