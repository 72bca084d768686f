#include "plumb/report/display_name.h"

#include <vector>

#include "plumb/base/text.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/report/report_parts.h"

namespace plumb {

std::string display_name(const std::string& arm) {
  std::vector<std::string> parts = name_parts(arm);
  for (std::string& part : parts) part = residual_schemes().title(part);
  return join(parts);
}

}  // namespace plumb
