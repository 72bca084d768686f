// The regular-expression module (module.h): the only file that includes Oniguruma's headers.
#include "plumb/text/oniguruma/module.h"

#include <oniguruma.h>

#include <algorithm>
#include <memory>

#include "plumb/base/utf8.h"

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
  struct Free {
    void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
    void operator()(OnigMatchParam* limits) const { onig_free_match_param(limits); }
  };
  const std::unique_ptr<OnigRegion, Free> region(onig_region_new());
  const std::unique_ptr<OnigMatchParam, Free> limits(onig_new_match_param());
  onig_initialize_match_param(limits.get());
  const size_t stack = std::min<size_t>((size_t{1} << 20) + 4 * size, ~0U);  // places to step back to
  onig_set_match_stack_limit_size_of_match_param(limits.get(), static_cast<unsigned int>(stack));
  onig_set_retry_limit_in_match_of_match_param(limits.get(), ~0UL);  // that of a search is enough
  // Oniguruma can limit the steps back of a search, but does not tell how many it took. So each is tried with few of
  // them, and then with more.
  constexpr size_t kSteps = 20'000'000, kStepsPerByte = 1000;
  size_t steps_left = kSteps + kStepsPerByte * size;
  const OnigUChar* const begin = bytes_of(text);
  const OnigUChar* const end = begin + size;
  const auto search = [&](size_t from) {
    int position = ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
    for (size_t steps = kStepsPerByte; position == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER && steps_left > 0; steps *= 16) {
      steps = std::min(steps, steps_left);
      steps_left -= steps;
      onig_set_retry_limit_in_search_of_match_param(limits.get(), steps);
      position = onig_search_with_param(regex_of(expression), begin, end, begin + from, end, region.get(),
                                        ONIG_OPTION_NONE, limits.get());
    }
    return position;
  };
  size_t from = 0;
  bool found = false;
  size_t last_end = 0;
  while (from <= size) {
    const int position = search(from);
    if (position == ONIG_MISMATCH) return 0;
    if (position < 0) {
      report(position, nullptr, error, receiver);
      return 1;
    }
    const auto match_begin = static_cast<size_t>(region->beg[0]);
    const auto match_end = static_cast<size_t>(region->end[0]);
    if (match_begin == match_end && found && match_end == last_end) {
      from = next_beginning({text, size}, from + 1);
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
