// Parts of studies from TOML.
#pragma once

#include <string>

#include "plumb/study/config.h"

namespace plumb::test {

/// The parts with these sections, for StudyConfig::parts. Throws Error as read_study does.
inline VariantOptions parts(const std::string& sections) {
  return read_study(Config::from_string(sections, "study.toml")).parts;
}

}  // namespace plumb::test
