// Byte-pair encoding: Sennrich et al., arXiv 1508.07909, as in Hugging Face's `tokenizers`.
#pragma once

#include <string>
#include <vector>

#include "plumb/text/pipeline/byte_tokens.h"
#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/pair_table.h"

namespace plumb::tokenization {

/// A piece is cut into characters, and neighbors are merged, always the pair that was learned earliest.
class BytePairModel final : public Model {
 public:
  /// Throws Error or a JSON exception on invalid settings, or on a merge whose parts or result are not tokens.
  explicit BytePairModel(const nlohmann::json& settings);

  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  [[nodiscard]] std::string unknown() const override { return unknown_; }

 private:
  void read_merges(const nlohmann::json& merges);
  void characters(std::string_view text, std::vector<int32_t>& ids) const;
  void append_unknown(bool pending, std::vector<int32_t>& ids) const;
  void merge_short(std::vector<int32_t>& ids, size_t begin) const;
  void merge_long(std::vector<int32_t>& ids, size_t begin) const;

  std::string unknown_;
  int32_t unknown_id_ = -1;
  std::string prefix_;  // of pieces within a word
  std::string suffix_;  // of a piece at the end of a word
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
  bool one_pair_per_token_ = true;  // no two merges give the same token
  PairTable merges_;                // pair → rank, token
  ByteTokens byte_tokens_;
  std::vector<int32_t> common_characters_;  // tokens of the characters below U+0200, without prefix or suffix
};

}  // namespace plumb::tokenization
