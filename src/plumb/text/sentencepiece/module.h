// The interface between Plumb and its SentencePiece module: plain C, and no memory changes ownership.
//
// Debian's libsentencepiece exports the symbols of its bundled, older protobuf, which must not mix with LibTorch's. It
// is therefore linked into a separate module, loaded so that its symbols bind to each other first.
#pragma once

#include <cstddef>

namespace plumb {

extern "C" {

/// Receives bytes, an error message or token ids from the module.
using SentencePieceBytes = void (*)(void* receiver, const char* data, size_t size);
using SentencePieceIds = void (*)(void* receiver, const int* ids, size_t count);

struct SentencePieceText {
  const char* data;
  size_t size;
};

/// A loaded model, opaque outside the module.
struct SentencePieceHandle;

/// The functions of the module. Calls that can fail return 0 on success; otherwise they send a message to `error`.
struct SentencePieceFunctions {
  /// Null if the bytes are not a model.
  SentencePieceHandle* (*load)(SentencePieceText serialized);
  void (*unload)(SentencePieceHandle* model);
  int (*size)(const SentencePieceHandle* model);
  /// Ids of pad, bos, eos and unknown; -1 if the model lacks one.
  void (*specials)(const SentencePieceHandle* model, int* four);
  /// The id of a piece, or −1.
  int (*find)(const SentencePieceHandle* model, SentencePieceText piece);
  /// The piece of an id, 0 ≤ id < size.
  void (*piece)(const SentencePieceHandle* model, int id, SentencePieceBytes text, void* receiver);
  int (*encode)(const SentencePieceHandle* model, SentencePieceText text, SentencePieceIds ids,
                SentencePieceBytes error, void* receiver);
  int (*decode)(const SentencePieceHandle* model, const int* ids, size_t count, SentencePieceBytes text,
                SentencePieceBytes error, void* receiver);
  /// `settings`: SentencePiece's options as name, value, name, value, …
  int (*train)(const SentencePieceText* settings, size_t setting_count, const SentencePieceText* lines,
               size_t line_count, SentencePieceBytes serialized, SentencePieceBytes error, void* receiver);
};

}  // extern "C"

/// The name of the module's only symbol, `const SentencePieceFunctions* (*)()`.
constexpr const char* kSentencePieceEntry = "plumb_sentencepiece";

}  // namespace plumb
