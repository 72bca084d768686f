// The figures and tables of a check.
#pragma once

#include <string>

#include "plumb/base/json.h"
#include "plumb/check/result.h"

namespace plumb::check {

/// A document of schema plumb.study/1 (docs/formats/results.md), which report/html.h renders: every trial's losses by
/// step, its last loss by rate, the reasons and the trials. `about`: what was checked, for the subtitle.
Json check_report(const CheckResult& result, const std::string& about);

}  // namespace plumb::check
