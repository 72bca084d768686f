// Chooses words that make sense together, and puts them into the templates of sentences.txt.
#pragma once

#include "corpus/lexicon.h"
#include "plumb/base/random.h"

namespace plumb::corpus {

/// The next sentence in both languages, drawn from `random`.
Words write_sentence(Random& random);

}  // namespace plumb::corpus
