// The implementations of Tokenizer, and the registry of their kinds, which are in text/kinds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/text/specials.h"

namespace plumb {

/// An immutable, thread-safe tokenizer. The methods are those of Tokenizer.
class TokenizerModel {
 public:
  virtual ~TokenizerModel() = default;
  [[nodiscard]] virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// By default, nothing is added.
  [[nodiscard]] virtual std::vector<int32_t> as_input(std::vector<int32_t> ids) const { return ids; }
  /// All ids must be within the vocabulary.
  [[nodiscard]] virtual std::string decode(std::span<const int32_t> ids) const = 0;
  [[nodiscard]] virtual const Specials& specials() const = 0;
  [[nodiscard]] virtual int64_t vocabulary() const = 0;
  [[nodiscard]] virtual int32_t find(std::string_view token) const = 0;
  /// The token of an id within the vocabulary, as `find` expects it; empty if the id has no token.
  [[nodiscard]] virtual std::string piece(int32_t id) const = 0;
  [[nodiscard]] virtual std::string definition() const { return serialized(); }
  [[nodiscard]] virtual bool is_one_file() const { return true; }
  [[nodiscard]] virtual std::string serialized() const = 0;
  virtual void save(const std::filesystem::path& path) const;
  virtual void save_as_json(const std::filesystem::path& path, const TextEnds& ends) const = 0;
};

struct TokenizerKind {
  std::vector<std::string> files;  // its possible file names in a model's folder
  int precedence;                  // in a folder with files of several kinds, the highest wins
  /// Whether a file's bytes are of this kind.
  bool (*recognizes)(std::string_view bytes);
  /// Throws Error naming the file if it is damaged or contains something unknown.
  std::shared_ptr<const TokenizerModel> (*load)(std::string bytes, const std::filesystem::path& path);
};

Registry<TokenizerKind>& tokenizer_kinds();

/// Loads a tokenizer of any kind, from a file or from a model's folder. Throws Error if the path cannot be read or no
/// kind recognizes it.
std::shared_ptr<const TokenizerModel> load_tokenizer_model(const std::filesystem::path& path);

}  // namespace plumb
