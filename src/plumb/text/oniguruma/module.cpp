// The regular-expression module (module.h): the only file that includes Oniguruma's headers.
#include "plumb/text/oniguruma/module.h"

#include <oniguruma.h>

#include <memory>

namespace plumb {
namespace {

const OnigUChar* bytes_of(const char* text) { return reinterpret_cast<const OnigUChar*>(text); }

regex_t* regex_of(const OnigurumaHandle* handle) {
  return reinterpret_cast<regex_t*>(const_cast<OnigurumaHandle*>(handle));
}

void report(int code, OnigErrorInfo* info, OnigurumaMessage error, void* receiver) {
  OnigUChar message[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length =
      info == nullptr ? onig_error_code_to_str(message, code) : onig_error_code_to_str(message, code, info);
  error(receiver, reinterpret_cast<const char*>(message), static_cast<size_t>(length));
}

OnigurumaHandle* compile(const char* pattern, size_t size, OnigurumaMessage error, void* receiver) {
  static const int initialized = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1);
  }();
  if (initialized != ONIG_NORMAL) {
    report(initialized, nullptr, error, receiver);
    return nullptr;
  }
  regex_t* regex = nullptr;
  OnigErrorInfo info{};
  const int code = onig_new(&regex, bytes_of(pattern), bytes_of(pattern) + size, ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                            ONIG_SYNTAX_ONIGURUMA, &info);
  if (code == ONIG_NORMAL) return reinterpret_cast<OnigurumaHandle*>(regex);
  report(code, &info, error, receiver);
  return nullptr;
}

void release(OnigurumaHandle* expression) { onig_free(regex_of(expression)); }

int find_all(const OnigurumaHandle* expression, const char* text, size_t size, OnigurumaMatch match,
             OnigurumaMessage error, void* receiver) {
  struct FreeRegion {
    void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
  };
  const std::unique_ptr<OnigRegion, FreeRegion> region(onig_region_new());
  const OnigUChar* const begin = bytes_of(text);
  const OnigUChar* const end = begin + size;
  size_t from = 0;
  bool found = false;
  size_t last_end = 0;
  while (from <= size) {
    const int position =
        onig_search(regex_of(expression), begin, end, begin + from, end, region.get(), ONIG_OPTION_NONE);
    if (position == ONIG_MISMATCH) return 0;
    if (position < 0) {
      report(position, nullptr, error, receiver);
      return 1;
    }
    const auto match_begin = static_cast<size_t>(region->beg[0]);
    const auto match_end = static_cast<size_t>(region->end[0]);
    if (match_begin == match_end && found && match_end == last_end) {
      ++from;
      while (from < size && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
      continue;
    }
    match(receiver, match_begin, match_end);
    found = true;
    last_end = from = match_end;
  }
  return 0;
}

constexpr OnigurumaFunctions kFunctions = {compile, release, find_all};

}  // namespace
}  // namespace plumb

extern "C" __attribute__((visibility("default"))) const plumb::OnigurumaFunctions* plumb_oniguruma() {
  return &plumb::kFunctions;
}
