#include "console.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#include "plumb/base/error.h"
#include "plumb/base/progress.h"

namespace plumb::app {

void print_error(std::string_view what, std::string_view hint) {
  write_line(fmt::format("plumb: error: {}", what));
  if (!hint.empty()) write_line(fmt::format("hint: {}", hint));
}

void check_standard_output() {
  std::cout.flush();
  const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!std::cout || !printed) throw Error("cannot write to standard output");
}

}  // namespace plumb::app
