// Replaces the page of web/report, which is built with the whole library; the tests use the real one.
#include "plumb/report/template.h"

namespace plumb {

std::string_view report_template() { return "<title>@PLUMB_TITLE@</title><script>@PLUMB_RESULTS@</script>"; }

}  // namespace plumb
