#include "plumb/text/sentencepiece/model.h"

#include "plumb/text/loaded_module.h"

namespace plumb {
namespace {

const SentencePieceFunctions& load_functions() {
  void* entry = load_module("plumb_sentencepiece", kSentencePieceEntry, "SentencePiece", ModuleScope::self_first);
  return *reinterpret_cast<const SentencePieceFunctions* (*)()>(entry)();
}

const SentencePieceFunctions& functions() {
  static const SentencePieceFunctions& loaded = load_functions();
  return loaded;
}

SentencePieceText text_of(std::string_view text) { return {text.data(), text.size()}; }

/// Receives the result and error message of a call.
template <typename Result>
struct Receiver {
  Result& result;
  std::string error;

  static void take(void* receiver, const char* data, size_t size) {
    static_cast<Receiver*>(receiver)->result.assign(data, data + size);
  }
  static void take_ids(void* receiver, const int* ids, size_t count) {
    static_cast<Receiver*>(receiver)->result.assign(ids, ids + count);
  }
  static void take_error(void* receiver, const char* data, size_t size) {
    static_cast<Receiver*>(receiver)->error.assign(data, size);
  }
};

}  // namespace

SentencePieceModel::SentencePieceModel(std::string_view serialized) : handle_(functions().load(text_of(serialized))) {}

SentencePieceModel::~SentencePieceModel() {
  if (handle_ != nullptr) functions().unload(handle_);
}

std::string SentencePieceModel::encode(std::string_view text, std::vector<int>& ids) const {
  using Ids = Receiver<std::vector<int>>;
  Ids receiver{ids, {}};
  functions().encode(handle_, text_of(text), &Ids::take_ids, &Ids::take_error, &receiver);
  return receiver.error;
}

std::string SentencePieceModel::decode(const std::vector<int>& ids, std::string& text) const {
  using Text = Receiver<std::string>;
  Text receiver{text, {}};
  functions().decode(handle_, ids.data(), ids.size(), &Text::take, &Text::take_error, &receiver);
  return receiver.error;
}

int SentencePieceModel::size() const { return functions().size(handle_); }

int SentencePieceModel::find(std::string_view piece) const { return functions().find(handle_, text_of(piece)); }

std::string SentencePieceModel::piece(int id) const {
  std::string text;
  using Text = Receiver<std::string>;
  Text receiver{text, {}};
  functions().piece(handle_, id, &Text::take, &receiver);
  return text;
}

Specials SentencePieceModel::specials() const {
  int four[4];
  functions().specials(handle_, four);
  const int mask = find(kMaskPiece);
  std::string text;
  // A control symbol decodes to an empty text, unlike a piece learned from text that contains "<mask>".
  const bool control = mask >= 0 && decode({mask}, text).empty() && text.empty();
  return {four[0], four[1], four[2], four[3], control ? mask : -1};
}

std::string SentencePieceModel::train(const std::vector<std::pair<std::string, std::string>>& options,
                                      const std::vector<std::string>& lines, std::string& serialized) {
  std::vector<SentencePieceText> settings;
  for (const auto& [name, value] : options) {
    settings.push_back(text_of(name));
    settings.push_back(text_of(value));
  }
  std::vector<SentencePieceText> texts;
  texts.reserve(lines.size());
  for (const std::string& line : lines) texts.push_back(text_of(line));
  using Text = Receiver<std::string>;
  Text receiver{serialized, {}};
  functions().train(settings.data(), settings.size(), texts.data(), texts.size(), &Text::take, &Text::take_error,
                    &receiver);
  return receiver.error;
}

}  // namespace plumb
