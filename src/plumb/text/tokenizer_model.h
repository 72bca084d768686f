// What a Tokenizer is made of, and the registry of its kinds. A kind is one file in text/kinds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/text/encoding.h"
#include "plumb/text/specials.h"

namespace plumb {

/// An immutable tokenizer, safe to use from several threads. The methods are those of Tokenizer.
class TokenizerModel {
 public:
  virtual ~TokenizerModel() = default;
  [[nodiscard]] virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  [[nodiscard]] virtual Encoding as_input(std::vector<int32_t> ids) const = 0;
  [[nodiscard]] Encoding encode_as_input(std::string_view text) const { return as_input(encode(text)); }
  [[nodiscard]] virtual Encoding encode_as_input(std::string_view first, std::string_view second) const = 0;
  /// All ids are within the vocabulary.
  [[nodiscard]] virtual std::string decode(std::span<const int32_t> ids, bool keep_specials) const = 0;
  [[nodiscard]] virtual const Specials& specials() const = 0;
  [[nodiscard]] virtual int64_t vocabulary() const = 0;
  [[nodiscard]] virtual int32_t find(std::string_view token) const = 0;
  /// The token of an id within the vocabulary, as `find` knows it; empty if the id stands for no token.
  [[nodiscard]] virtual std::string piece(int32_t id) const = 0;
  [[nodiscard]] virtual bool is_one_file() const { return true; }
  virtual void save(const std::filesystem::path& path) const = 0;
  virtual void save_as_json(const std::filesystem::path& path, const TextEnds& ends) const = 0;
};

struct TokenizerKind {
  std::vector<std::string> files;  // under which names a model's folder has it
  int precedence;                  // in a folder with files of several kinds the largest wins
  /// Whether a file's bytes are of this kind.
  bool (*recognizes)(std::string_view bytes);
  /// Throws Error that names the file if it is damaged or contains something unknown.
  std::shared_ptr<const TokenizerModel> (*load)(std::string bytes, const std::filesystem::path& path);
};

Registry<TokenizerKind>& tokenizer_kinds();

/// A tokenizer of whatever kind: a file, or the folder of a model that has one. Throws Error if the path cannot be read
/// or no kind recognizes it.
std::shared_ptr<const TokenizerModel> load_tokenizer_model(const std::filesystem::path& path);

}  // namespace plumb
