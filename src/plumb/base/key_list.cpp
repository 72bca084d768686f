#include "plumb/base/key_list.h"

#include <utility>

namespace plumb {

void KeyList::add(std::string_view key, std::string value) {
  keys_.push_back(
      {prefix_ + std::string(key), std::move(value), std::string(meaning_), domain_ == nullptr ? Domain() : *domain_});
}

void KeyList::section(std::string_view key, const std::function<void(Fields&)>& visit, bool) {
  const std::string outer = std::exchange(prefix_, prefix_ + std::string(key) + ".");
  visit(*this);
  prefix_ = outer;
}

void KeyList::sections(std::string_view key, size_t count, const std::function<void(size_t)>&,
                       const std::function<void(size_t, Fields&)>& visit) {
  for (size_t i = 0; i < count; ++i)
    section(
        key, [&](Fields& fields) { visit(i, fields); }, true);
}

}  // namespace plumb
