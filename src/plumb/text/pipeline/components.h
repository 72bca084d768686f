// The components of a tokenizer as Hugging Face's `tokenizers` arranges them: text is normalized, cut into pieces, each
// piece becomes tokens by a model, and a template adds special tokens; decoders turn tokens back into text. Each kind
// of component is one function or class, registered under the name that stands in `tokenizer.json`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/text/pipeline/template.h"
#include "plumb/text/pipeline/vocabulary.h"

namespace plumb::tokenization {

/// A part of the text on its way to tokens.
struct Piece {
  std::string text;       // valid UTF-8, never empty
  int32_t token = -1;     // if the part is an added token, which no component changes
  bool at_start = false;  // begins with the first character of the original text
  size_t beginning = 0;   // bytes that a normal form has made of that character
};

/// Changes a piece's text in place, and `at_start` if it drops the first character.
using Normalize = std::function<void(Piece& piece)>;
/// Replaces pieces by parts of them; pieces with a token stay.
using PreTokenize = std::function<void(std::vector<Piece>& pieces)>;
/// Replaces tokens by parts of the text, to be joined.
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

/// Makes a component from its section of `tokenizer.json`. Throws Error or a JSON exception on invalid settings.
template <typename Component>
using Maker = std::function<Component(const nlohmann::json& settings)>;

Registry<Maker<Normalize>>& normalizers();
Registry<Maker<PreTokenize>>& pre_tokenizers();
Registry<Maker<Decode>>& decoders();
Registry<Maker<std::shared_ptr<const Model>>>& models();
Registry<Maker<Templates>>& post_processors();

/// The component that a section describes, looked up by its "type"; null stands for none, which leaves everything as it
/// is. Throws Error that names an unknown type.
Normalize make_normalizer(const nlohmann::json& settings);
PreTokenize make_pre_tokenizer(const nlohmann::json& settings);
Decode make_decoder(const nlohmann::json& settings);
std::shared_ptr<const Model> make_token_model(const nlohmann::json& settings);
Templates make_templates(const nlohmann::json& settings);

}  // namespace plumb::tokenization
