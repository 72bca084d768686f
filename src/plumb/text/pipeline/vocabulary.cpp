#include "plumb/text/pipeline/vocabulary.h"

#include <fmt/format.h>

#include "plumb/base/error.h"

namespace plumb::tokenization {

void Vocabulary::add(std::string_view token, int64_t id) {
  if (id < 0 || id >= kLargest) throw Error(fmt::format("the id {} of the token '{}' is out of range", id, token));
  const auto entry = ids_.insert_or_assign(std::string(token), static_cast<int32_t>(id)).first;
  if (static_cast<size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<size_t>(id) + 1, nullptr);
  tokens_[static_cast<size_t>(id)] = &entry->first;
}

}  // namespace plumb::tokenization
