#include "plumb/text/pipeline/template.h"

#include <algorithm>

namespace plumb::tokenization {

Encoding Template::fill(std::span<const std::vector<int32_t>> texts) const {
  Encoding encoding;
  for (const Item& item : items) {
    const auto& ids = item.text < 0 ? item.tokens : texts[static_cast<size_t>(item.text)];
    encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
    encoding.segments.resize(encoding.ids.size(), item.segment);
  }
  return encoding;
}

int32_t Template::count_between_texts(int32_t token) const {
  int32_t found = 0;
  bool between = false;
  for (const Item& item : items) {
    if (item.text >= 0) between = item.text == 0;
    if (between) found += static_cast<int32_t>(std::count(item.tokens.begin(), item.tokens.end(), token));
  }
  return found;
}

}  // namespace plumb::tokenization
