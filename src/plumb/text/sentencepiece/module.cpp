// The SentencePiece module (module.h): the only file that includes SentencePiece's headers.
#include "plumb/text/sentencepiece/module.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace plumb {
namespace {

namespace sp = sentencepiece;

std::string string_of(SentencePieceText text) { return {text.data, text.size}; }

int report(const sp::util::Status& status, SentencePieceBytes error, void* receiver) {
  if (status.ok()) return 0;
  const std::string message = status.ToString();
  error(receiver, message.data(), message.size());
  return 1;
}

sp::SentencePieceProcessor* processor_of(const SentencePieceHandle* model) {
  return reinterpret_cast<sp::SentencePieceProcessor*>(const_cast<SentencePieceHandle*>(model));
}

SentencePieceHandle* load(SentencePieceText serialized) {
  auto processor = std::make_unique<sp::SentencePieceProcessor>();
  if (!processor->LoadFromSerializedProto(string_of(serialized)).ok() || processor->GetPieceSize() == 0) return nullptr;
  return reinterpret_cast<SentencePieceHandle*>(processor.release());
}

void unload(SentencePieceHandle* model) {
  const std::unique_ptr<sp::SentencePieceProcessor> owner(processor_of(model));
}

int size(const SentencePieceHandle* model) { return processor_of(model)->GetPieceSize(); }

void specials(const SentencePieceHandle* model, int* four) {
  const auto* processor = processor_of(model);
  four[0] = processor->pad_id();
  four[1] = processor->bos_id();
  four[2] = processor->eos_id();
  four[3] = processor->unk_id();
}

int find(const SentencePieceHandle* model, SentencePieceText piece) {
  const std::string text = string_of(piece);
  const int id = processor_of(model)->PieceToId(text);  // unknown pieces have the id of <unk>
  return processor_of(model)->IdToPiece(id) == text ? id : -1;
}

void piece(const SentencePieceHandle* model, int id, SentencePieceBytes sink, void* receiver) {
  const std::string& text = processor_of(model)->IdToPiece(id);
  sink(receiver, text.data(), text.size());
}

int encode(const SentencePieceHandle* model, SentencePieceText text, SentencePieceIds sink, SentencePieceBytes error,
           void* receiver) {
  std::vector<int> ids;
  const auto status = processor_of(model)->Encode({text.data, text.size}, &ids);
  if (status.ok()) sink(receiver, ids.data(), ids.size());
  return report(status, error, receiver);
}

int decode(const SentencePieceHandle* model, const int* ids, size_t count, SentencePieceBytes sink,
           SentencePieceBytes error, void* receiver) {
  std::string text;
  const auto status = processor_of(model)->Decode(std::vector<int>(ids, ids + count), &text);
  if (status.ok()) sink(receiver, text.data(), text.size());
  return report(status, error, receiver);
}

class Lines : public sp::SentenceIterator {
 public:
  Lines(const SentencePieceText* lines, size_t count) : lines_(lines), count_(count) { read(); }
  [[nodiscard]] bool done() const override { return next_ == count_; }
  void Next() override {
    ++next_;
    read();
  }
  [[nodiscard]] const std::string& value() const override { return line_; }
  [[nodiscard]] sp::util::Status status() const override { return {}; }

 private:
  void read() {
    if (next_ < count_) line_ = string_of(lines_[next_]);
  }
  const SentencePieceText* lines_;
  size_t count_;
  size_t next_ = 0;
  std::string line_;
};

int train(const SentencePieceText* settings, size_t setting_count, const SentencePieceText* lines, size_t line_count,
          SentencePieceBytes sink, SentencePieceBytes error, void* receiver) {
  std::unordered_map<std::string, std::string> options;
  for (size_t i = 0; i + 1 < setting_count; i += 2) options[string_of(settings[i])] = string_of(settings[i + 1]);
  Lines iterator(lines, line_count);
  std::string serialized;
  const auto status = sp::SentencePieceTrainer::Train(options, &iterator, &serialized);
  if (status.ok()) sink(receiver, serialized.data(), serialized.size());
  return report(status, error, receiver);
}

constexpr SentencePieceFunctions kFunctions = {load, unload, size, specials, find, piece, encode, decode, train};

}  // namespace
}  // namespace plumb

extern "C" __attribute__((visibility("default"))) const plumb::SentencePieceFunctions* plumb_sentencepiece() {
  return &plumb::kFunctions;
}
