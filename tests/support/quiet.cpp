// Linked into every test program: its tests show no progress, unless one sets the verbosity itself.
#include "plumb/base/progress.h"

namespace plumb {
namespace {

[[maybe_unused]] const bool kQuiet = (set_verbosity(Verbosity::quiet), true);

}  // namespace
}  // namespace plumb
