// How texts become the tokens of a model that is asked how likely they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/text/tokenizer.h"

namespace plumb {

/// The log-likelihood of `continuation` after `context` is asked for; neither is empty.
struct TokenRequest {
  std::vector<int32_t> context;
  std::vector<int32_t> continuation;

  bool operator==(const TokenRequest&) const = default;
};

/// Which special tokens texts get.
enum class EvaluatedText {
  whole,  // of an imported model: those that the tokenizer itself adds, line breaks included in the text
  lines   // of a model trained by Plumb: BOS before the text, EOS between its lines
};

class TextEncoder {
 public:
  TextEncoder(Tokenizer tokenizer, EvaluatedText kind) : tokenizer_(std::move(tokenizer)), kind_(kind) {}

  /// Context and continuation as the harness divides them: white space at the end of the context goes to the
  /// continuation; both together are encoded as one text, and its tokens after as many as the context alone has are
  /// those of the continuation. After an empty context comes the token of the beginning, or else of the end, of a text.
  /// Throws Error if the continuation has no token.
  [[nodiscard]] TokenRequest request(std::string_view context, std::string_view continuation) const;

  /// A text that the model is to continue, by `generate` (decode/generate.h), which puts BOS before the lines of a
  /// model trained by Plumb: the last tokens of the text, so that at most `longest` are read.
  [[nodiscard]] std::vector<int32_t> prompt(std::string_view text, int64_t longest) const;

  /// The windows in which a text is read whose every token is predicted: at most `longest` tokens each, the first after
  /// the token of the beginning of a text, the others after at least one token of the text. Every token is in one
  /// continuation. Throws Error if the text has no token.
  [[nodiscard]] std::vector<TokenRequest> windows(std::string_view text, int64_t longest) const;

  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }
  [[nodiscard]] EvaluatedText kind() const { return kind_; }

 private:
  /// With the special tokens that go before a text, or without.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const;
  /// As the tokenizer of an imported model encodes it; a text that begins with the token of the beginning of a text
  /// gets no second one, as in the harness.
  [[nodiscard]] std::vector<int32_t> encode_whole(std::string_view text) const;
  [[nodiscard]] std::vector<int32_t> encode_bare(std::string_view text) const;
  [[nodiscard]] int32_t prefix() const;

  Tokenizer tokenizer_;
  EvaluatedText kind_;
};

/// The request with at most `longest` + 1 tokens, the last of which is not read: tokens are taken from the front of the
/// context. Throws Error if the continuation alone is longer than `longest`.
TokenRequest shortened(TokenRequest request, int64_t longest);

}  // namespace plumb
