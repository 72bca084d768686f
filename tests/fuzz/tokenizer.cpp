// A line of text, and a tokenizer.json: an accepted tokenizer encodes and decodes, with ids inside its vocabulary.
#include <cstdlib>
#include <string_view>

#include "folder.h"
#include "memory_file.h"
#include "plumb/base/error.h"
#include "plumb/text/tokenizer_model.h"

namespace {

void check(const plumb::TokenizerModel& tokenizer, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= tokenizer.vocabulary()) std::abort();
  }
}

void use(const plumb::TokenizerModel& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  check(tokenizer, ids);
  check(tokenizer, tokenizer.as_input(ids));
  (void)tokenizer.decode(ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumb;
  const auto parts = fuzz::parts_of({reinterpret_cast<const char*>(data), size}, 2);
  const fuzz::MemoryFile file(reinterpret_cast<const uint8_t*>(parts[1].data()), parts[1].size());
  try {
    const auto tokenizer = load_tokenizer_model(file.path());
    use(*tokenizer, parts[0]);
    use(*tokenizer, "Ein Satz, and 2 more.");
    const Specials& specials = tokenizer->specials();
    for (const int64_t id : {specials.pad, specials.bos, specials.eos, specials.unknown}) {
      if (id < -1 || id >= tokenizer->vocabulary()) std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
