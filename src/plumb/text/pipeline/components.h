// The components of a tokenizer, arranged as in Hugging Face's `tokenizers`: text is normalized and cut into pieces, a
// model turns each piece into tokens, and a template adds special tokens; decoders turn tokens back into text. Each
// kind of component is one function or class, registered under its name in `tokenizer.json`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/text/pipeline/vocabulary.h"

namespace plumb::tokenization {

/// A part of the text on its way to tokens.
struct Piece {
  std::string text;      // valid UTF-8, never empty
  int32_t token = -1;    // the id if it is an added token, which no component changes
  size_t beginning = 0;  // how many of its first bytes come from the first character of the original text

  /// The bytes from `begin` to before `end`.
  [[nodiscard]] Piece part(size_t begin, size_t end) const {
    return {text.substr(begin, end - begin), -1, std::min(std::max(beginning, begin), end) - begin};
  }
  /// Inserts text that counts as part of the first character.
  void prepend(std::string_view prefix) {
    text.insert(0, prefix);
    if (beginning > 0) beginning += prefix.size();
  }
  /// Replaces the text by `map` of it, a function of strings that treats each character by itself.
  template <typename Map>
  void replace_by(const Map& map) {
    if (beginning > 0) beginning = map(std::string_view(text).substr(0, beginning)).size();
    text = map(std::string_view(text));
  }
};

/// Changes a piece's text and its `beginning` in place.
using Normalize = std::function<void(Piece& piece)>;
/// Splits pieces into parts; pieces with a token are unchanged.
using PreTokenize = std::function<void(std::vector<Piece>& pieces)>;
/// Replaces tokens by parts of the text, which are then concatenated.
using Decode = std::function<void(std::vector<std::string>& tokens)>;

/// Turns a piece into tokens of a vocabulary.
class Model {
 public:
  virtual ~Model() = default;
  /// Appends the ids of a piece. `text` is valid UTF-8. Throws Error if the piece needs an unknown token that the
  /// vocabulary lacks.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }
  /// The token for unknown text; empty if the vocabulary lacks one.
  [[nodiscard]] virtual std::string unknown() const = 0;

 protected:
  Vocabulary vocabulary_;
};

/// The special tokens around a text, and between the two texts of a pair.
struct Template {
  std::vector<int32_t> before, after, between;
};

/// Makes a component from its section of `tokenizer.json`. Throws Error or a JSON exception on invalid settings.
template <typename Component>
using Maker = std::function<Component(const nlohmann::json& settings)>;

Registry<Maker<Normalize>>& normalizers();
Registry<Maker<PreTokenize>>& pre_tokenizers();
Registry<Maker<Decode>>& decoders();
Registry<Maker<std::shared_ptr<const Model>>>& models();
Registry<Maker<Template>>& post_processors();

/// The component that a section describes, looked up by its "type". Without a normalizer, pre-tokenizer or
/// post-processor (null), nothing is changed or added; without a decoder, tokens are joined with spaces. Throws Error
/// naming an unknown type.
Normalize make_normalizer(const nlohmann::json& settings);
PreTokenize make_pre_tokenizer(const nlohmann::json& settings);
Decode make_decoder(const nlohmann::json& settings);
std::shared_ptr<const Model> make_token_model(const nlohmann::json& settings);
Template make_template(const nlohmann::json& settings);

}  // namespace plumb::tokenization
