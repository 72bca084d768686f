// SentencePiece's visible space: "Hello world" becomes "▁Hello" and "▁world" (Kudo & Richardson, arXiv 1808.06226).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plumb/text/pipeline/components.h"

namespace plumb::tokenization {

class Metaspace {
 public:
  /// From a section "Metaspace" of a pre-tokenizer or decoder. Throws Error on invalid settings.
  explicit Metaspace(const nlohmann::json& settings);

  void split(std::vector<Piece>& pieces) const;
  void decode(std::vector<std::string>& tokens) const;

 private:
  enum class Prepend { always, first, never };
  std::string symbol_;
  Prepend prepend_ = Prepend::always;
  bool split_ = true;
};

}  // namespace plumb::tokenization
