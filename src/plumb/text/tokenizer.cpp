#include "plumb/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/utf8.h"
#include "plumb/text/kinds/pipeline.h"
#include "plumb/text/sentencepiece/model.h"
#include "plumb/text/tokenizer_model.h"
#include "plumb/text/visible.h"
#include "plumb/text/word_tokenizer.h"

namespace plumb {
namespace {

constexpr size_t kLongestSentence = size_t{1} << 20;  // bytes; SentencePiece ignores longer lines in training

// SentencePiece's message contains "… smaller than required_chars. 20 vs 35. Increase …".
Error training_error(const std::string& message, const TokenizerOptions& options) {
  const size_t found = message.find("required_chars");
  const size_t versus = found == std::string::npos ? found : message.find(" vs ", found);
  if (versus == std::string::npos) return Error(fmt::format("the tokenizer cannot be trained: {}", message));
  const size_t begin = versus + 4;
  const std::string needed = message.substr(begin, message.find_first_not_of("0123456789", begin) - begin);
  return Error(fmt::format("a vocabulary of {} is too small: special tokens and the text's characters need {}",
                           options.vocabulary, needed),
               "increase --vocabulary, or omit rare characters with --character-coverage 0.9995");
}

Error empty_text() { return Error("the tokenizer cannot be trained: the text is empty"); }

void require_id(int32_t id, int64_t vocabulary) {
  if (id >= 0 && id < vocabulary) return;
  throw Error(fmt::format("token id {} is outside the vocabulary of {}", id, vocabulary));
}

/// The lines, with words broken after a thousand bytes and long lines broken at spaces: SentencePiece aborts on words
/// of many thousand characters, and ignores long lines in training. Pieces are much shorter than either.
std::vector<std::string> without_endless_words(const std::vector<std::string>& lines) {
  constexpr size_t kLongestWord = 1000;
  constexpr size_t kLongestLine = 8192;  // SentencePiece's time is superlinear in the length of a line
  std::vector<std::string> result;
  result.reserve(lines.size());
  for (const std::string& line : lines) {
    size_t begin = 0;  // of the text not yet in `result`
    size_t word = 0;   // where the word, or its last break, begins
    for (size_t i = 0; i < line.size(); ++i) {
      const bool space = line[i] == ' ' || line[i] == '\t';
      if (space) word = i + 1;
      if (space ? i - begin >= kLongestLine : !is_continuation(line[i]) && i - word >= kLongestWord) {
        result.push_back(line.substr(begin, i - begin));
        begin = word = i;
      }
    }
    result.push_back(line.substr(begin));
  }
  return result;
}

}  // namespace

struct Tokenizer::Model {
  std::shared_ptr<const TokenizerModel> tokenizer;
  Specials specials = tokenizer->specials();
};

Tokenizer Tokenizer::from_serialized(std::string serialized, const std::string& name) {
  const auto& kind = tokenizer_kinds().at("sentencepiece").make;
  return Tokenizer(std::make_shared<Model>(Model{.tokenizer = kind.load(std::move(serialized), name)}));
}

Tokenizer Tokenizer::from_file(const std::filesystem::path& path) {
  return Tokenizer(std::make_shared<Model>(Model{.tokenizer = load_tokenizer_model(path)}));
}

Tokenizer Tokenizer::train(const std::vector<std::string>& lines, const TokenizerOptions& options) {
  if (options.kind != "bpe" && options.kind != "unigram" && options.kind != "word") {
    throw Error(fmt::format("unknown tokenizer '{}'", options.kind), "known: bpe, unigram, word");
  }
  if (options.vocabulary < 5 || options.vocabulary > 10'000'000) {
    throw Error(fmt::format("the vocabulary size {} is out of range", options.vocabulary),
                "it must be between 5 and 10,000,000; 8000 is a common choice");
  }
  // SentencePiece rejects a coverage below 0.98 by aborting the process.
  if (!(options.character_coverage >= 0.98 && options.character_coverage <= 1.0)) {
    throw Error(fmt::format("the character coverage {} is out of range", options.character_coverage),
                "it must be between 0.98 and 1");
  }
  if (std::none_of(lines.begin(), lines.end(), has_visible_character)) throw empty_text();
  if (options.kind == "word") {
    if (options.character_coverage != 1) {
      throw Error("words have no character coverage", "omit --character-coverage, or train bpe or unigram");
    }
    return Tokenizer(std::make_shared<Model>(
        Model{.tokenizer = make_pipeline(word_tokenizer(lines, options.vocabulary, options.mask), SpecialNames{})}));
  }

  const Specials specials;
  std::vector<std::pair<std::string, std::string>> settings = {
      {"model_type", options.kind},
      {"vocab_size", std::to_string(options.vocabulary)},
      {"character_coverage", fmt::format("{}", options.character_coverage)},
      {"pad_id", std::to_string(specials.pad)},
      {"bos_id", std::to_string(specials.bos)},
      {"eos_id", std::to_string(specials.eos)},
      {"unk_id", std::to_string(specials.unknown)},
      {"hard_vocab_limit", "false"},
      {"max_sentence_length", std::to_string(kLongestSentence)},
      {"num_threads", "2"},  // fixed: the result of unigram training depends on it
      {"minloglevel", "3"},
  };
  if (options.mask) settings.emplace_back("control_symbols", kMaskPiece);
  std::string serialized;
  const std::string message = SentencePieceModel::train(settings, without_endless_words(lines), serialized);
  if (!message.empty()) throw training_error(message, options);
  Tokenizer tokenizer = from_serialized(std::move(serialized), "the new tokenizer");
  const int64_t special_tokens = options.mask ? 5 : 4;
  if (tokenizer.vocabulary() <= special_tokens) throw empty_text();
  return tokenizer;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const { return model_->tokenizer->encode(text); }

std::vector<int32_t> Tokenizer::encode_as_input(std::string_view text) const { return as_input(encode(text)); }

std::vector<int32_t> Tokenizer::as_input(std::vector<int32_t> ids) const {
  return model_->tokenizer->as_input(std::move(ids));
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) require_id(id, vocabulary());
  return model_->tokenizer->decode(ids);
}

std::string Tokenizer::piece(int32_t id) const {
  require_id(id, vocabulary());
  return model_->tokenizer->piece(id);
}

int32_t Tokenizer::find(std::string_view piece) const { return model_->tokenizer->find(piece); }

const Specials& Tokenizer::specials() const { return model_->specials; }

Tokenizer Tokenizer::with_specials(const Specials& specials) const {
  return Tokenizer(std::make_shared<Model>(Model{model_->tokenizer, specials}));
}

int64_t Tokenizer::vocabulary() const { return model_->tokenizer->vocabulary(); }

std::string Tokenizer::definition() const { return model_->tokenizer->definition(); }

bool Tokenizer::is_one_file() const { return model_->tokenizer->is_one_file(); }

std::string Tokenizer::serialized() const { return model_->tokenizer->serialized(); }

void Tokenizer::save(const std::filesystem::path& path) const { model_->tokenizer->save(path); }

void Tokenizer::save_as_json(const std::filesystem::path& path, const TextEnds& ends) const {
  model_->tokenizer->save_as_json(path, ends);
}

}  // namespace plumb
