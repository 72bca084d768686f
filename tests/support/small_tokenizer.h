// A tokenizer for tests of decoding.
#pragma once

#include "plumb/text/tokenizer.h"

namespace plumb::test {

/// Of at most 40 pieces, for sentences about cats and dogs.
inline Tokenizer small_tokenizer() {
  TokenizerOptions options;
  options.vocabulary = 40;
  return Tokenizer::train({"the cat sat on the mat", "the dog sees the cat and the mat", "a cat and a dog sat"},
                          options);
}

}  // namespace plumb::test
