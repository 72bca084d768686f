// Tokenization of texts for evaluation requests.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plumb/text/tokenizer.h"

namespace plumb {

/// Asks for log p(continuation | context), where neither is empty, or for a completion of `context`, where
/// `continuation` is empty.
struct TokenRequest {
  std::vector<int32_t> context;
  std::vector<int32_t> continuation;

  bool operator==(const TokenRequest&) const = default;
};

/// Which special tokens are added to texts.
enum class EvaluatedText {
  whole,  // for imported models: those that the tokenizer itself adds; line breaks are part of the text
  lines   // for models trained by Plumb: BOS before the text, EOS between its lines
};

class TextEncoder {
 public:
  TextEncoder(Tokenizer tokenizer, EvaluatedText kind) : tokenizer_(std::move(tokenizer)), kind_(kind) {}

  /// Context and continuation, divided as in the harness: white space at the end of the context moves to the
  /// continuation; both are encoded as one text, and if the context alone has n tokens, the continuation has those
  /// after the first n. An empty context becomes BOS, or EOS if there is no BOS. Throws Error if the continuation has
  /// no token.
  [[nodiscard]] TokenRequest request(std::string_view context, std::string_view continuation) const;

  /// A prompt for `generate` (decode/generate.h): the last tokens of the text, so that at most `longest` are read,
  /// including the BOS that `generate` inserts for models trained by Plumb.
  [[nodiscard]] std::vector<int32_t> prompt(std::string_view text, int64_t longest) const;

  /// The windows in which a text is read to predict each of its tokens once: at most `longest` tokens are read in each.
  /// The context of the first is BOS (or EOS); the others have at least one token of the text as context. Throws Error
  /// if the text has no token.
  [[nodiscard]] std::vector<TokenRequest> windows(std::string_view text, int64_t longest) const;

  /// How many bytes of a text its tokens do not give back, in any order: of unknown characters, of spaces that the
  /// tokenizer drops, of what it replaces by something else.
  [[nodiscard]] int64_t lost_bytes(std::string_view text) const;

  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }
  [[nodiscard]] EvaluatedText kind() const { return kind_; }

 private:
  /// The tokens of a text, with the special tokens before it.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const;
  /// As the tokenizer of an imported model encodes it; a text that begins with BOS gets no second one, as in the
  /// harness.
  [[nodiscard]] std::vector<int32_t> encode_whole(std::string_view text) const;
  [[nodiscard]] std::vector<int32_t> encode_bare(std::string_view text) const;
  [[nodiscard]] int32_t prefix() const;

  Tokenizer tokenizer_;
  EvaluatedText kind_;
};

/// The request cut to at most `longest` + 1 tokens, the last of which is not read, by removing tokens from the front of
/// the context. Throws Error if the continuation alone is longer than `longest`.
TokenRequest shortened(TokenRequest request, int64_t longest);

}  // namespace plumb
