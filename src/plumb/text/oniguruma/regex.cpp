#include "plumb/text/oniguruma/regex.h"

#include <fmt/format.h>

#include <string>

#include "plumb/base/error.h"
#include "plumb/text/loaded_module.h"

namespace plumb {
namespace {

const OnigurumaFunctions& oniguruma() {
  static const OnigurumaFunctions& functions = *reinterpret_cast<const OnigurumaFunctions* (*)()>(
      load_module("plumb_oniguruma", kOnigurumaEntry, "Oniguruma", ModuleScope::local))();
  return functions;
}

struct RegexReceiver {
  std::vector<Span>* matches = nullptr;
  std::string error = {};

  static void take_error(void* receiver, const char* data, size_t size) {
    static_cast<RegexReceiver*>(receiver)->error.assign(data, size);
  }
  static void take_match(void* receiver, size_t begin, size_t end) {
    static_cast<RegexReceiver*>(receiver)->matches->push_back({begin, end});
  }
};

}  // namespace

Regex::Regex(std::string_view pattern) {
  RegexReceiver receiver;
  OnigurumaHandle* handle = oniguruma().compile(pattern.data(), pattern.size(), &RegexReceiver::take_error, &receiver);
  if (handle == nullptr) {
    throw Error(fmt::format("the regular expression '{}' is invalid: {}", pattern, receiver.error));
  }
  handle_ = std::shared_ptr<const OnigurumaHandle>(
      handle, [](const OnigurumaHandle* released) { oniguruma().release(const_cast<OnigurumaHandle*>(released)); });
}

void Regex::find_all(std::string_view text, std::vector<Span>& matches) const {
  matches.clear();
  RegexReceiver receiver{&matches};
  if (oniguruma().find_all(handle_.get(), text.data(), text.size(), &RegexReceiver::take_match,
                           &RegexReceiver::take_error, &receiver) != 0) {
    throw Error(fmt::format("text cannot be split by a regular expression: {}", receiver.error));
  }
}

}  // namespace plumb
