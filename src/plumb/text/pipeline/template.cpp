#include "plumb/text/pipeline/template.h"

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

}  // namespace plumb::tokenization
