// The interface between Plumb and its SentencePiece module: plain C, and no memory changes hands.
//
// Debian's libsentencepiece exports the old protobuf that it carries, which must not be mixed with the one that
// LibTorch uses. It therefore lives in a module of its own, loaded so that its symbols bind to each other first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb {

extern "C" {

/// Receives bytes, an error message or token ids from the module.
using SentencePieceBytes = void (*)(void* receiver, const char* data, size_t size);
using SentencePieceIds = void (*)(void* receiver, const int* ids, size_t count);

struct SentencePieceText {
  const char* data;
  size_t size;
};

/// A loaded model as the module knows it.
struct SentencePieceHandle;

/// What the module can do. Calls that can fail return 0 on success, else they have sent a message to `error`.
struct SentencePieceFunctions {
  /// Null if the bytes are no model.
  SentencePieceHandle* (*load)(SentencePieceText serialized);
  void (*unload)(SentencePieceHandle* model);
  int (*size)(const SentencePieceHandle* model);
  /// Ids of pad, bos, eos and unknown; -1 where the model has none.
  void (*specials)(const SentencePieceHandle* model, int* four);
  int (*encode)(const SentencePieceHandle* model, SentencePieceText text, SentencePieceIds ids,
                SentencePieceBytes error, void* receiver);
  int (*decode)(const SentencePieceHandle* model, const int* ids, size_t count, SentencePieceBytes text,
                SentencePieceBytes error, void* receiver);
  /// `settings`: SentencePiece's options as name, value, name, value, …
  int (*train)(const SentencePieceText* settings, size_t setting_count, const SentencePieceText* lines,
               size_t line_count, SentencePieceBytes serialized, SentencePieceBytes error, void* receiver);
};

}  // extern "C"

/// The name of the module's one symbol, `const SentencePieceFunctions& (*)()`.
constexpr const char* kSentencePieceEntry = "plumb_sentencepiece";

}  // namespace plumb
