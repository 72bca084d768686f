// SentencePiece models, from a module that is loaded on first use.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumb/text/sentencepiece/module.h"
#include "plumb/text/specials.h"

namespace plumb {

/// The piece for masked tokens, if a model has it as a control symbol.
inline constexpr const char* kMaskPiece = "<mask>";

/// A loaded model. `encode`, `decode` and `train` return an error message, which is empty on success.
class SentencePieceModel {
 public:
  /// Empty (operator bool is false) if the bytes are not a model. Throws Error if the module is missing.
  explicit SentencePieceModel(std::string_view serialized);
  SentencePieceModel(SentencePieceModel&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  SentencePieceModel& operator=(SentencePieceModel&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  SentencePieceModel(const SentencePieceModel&) = delete;
  SentencePieceModel& operator=(const SentencePieceModel&) = delete;
  ~SentencePieceModel();

  explicit operator bool() const { return handle_ != nullptr; }
  [[nodiscard]] std::string encode(std::string_view text, std::vector<int>& ids) const;
  [[nodiscard]] std::string decode(const std::vector<int>& ids, std::string& text) const;
  [[nodiscard]] int size() const;
  /// The id of a piece, or -1.
  [[nodiscard]] int find(std::string_view piece) const;
  /// The piece of an id, 0 ≤ id < size().
  [[nodiscard]] std::string piece(int id) const;

  [[nodiscard]] Specials specials() const;

  /// Trains a model with SentencePiece's own options and stores it in `serialized`.
  [[nodiscard]] static std::string train(const std::vector<std::pair<std::string, std::string>>& options,
                                         const std::vector<std::string>& lines, std::string& serialized);

 private:
  SentencePieceHandle* handle_;
};

}  // namespace plumb
