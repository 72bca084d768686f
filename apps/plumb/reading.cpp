// The module of the commands that only read: without LibTorch, it is loaded in a tenth of the time.
#include "computing.h"

namespace plumb::app {

void begin_computing() {}

Manual whole_manual(const CLI::App&) { throw NotHere{}; }

void compute(const Globals&, const std::function<void()>& run) { run(); }

void tell_others(int, const char* const*, const Globals&, const std::string&) {}

Json report_unfinished_study(const std::filesystem::path&) { throw NotHere{}; }

}  // namespace plumb::app
