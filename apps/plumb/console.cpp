#include "console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/terminal.h"

namespace plumb::app {

void print_error(std::string_view what, std::string_view hint) {
  write_line(fmt::format("plumb: error: {}", shortened(what)));
  if (!hint.empty()) write_line(fmt::format("hint: {}", shortened(hint)));
}

void print(std::string_view text) {
  if (::isatty(STDOUT_FILENO) != 0) {
    std::cout << printable(text, "\n\t");
  } else {
    std::cout << text;
  }
  check_standard_output();
}

void check_standard_output() {
  std::cout.flush();
  const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!std::cout || !printed) throw Error("cannot write to standard output");
}

}  // namespace plumb::app
