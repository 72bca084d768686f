// Parts of studies, and claims, from TOML.
#pragma once

#include <string>
#include <vector>

#include "plumb/study/config.h"
#include "support/paths.h"

namespace plumb::test {

/// The parts with these sections, for StudyConfig::parts. Throws Error as read_study does.
inline VariantOptions parts(const std::string& sections) {
  return read_study(Config::from_string(sections, "study.toml")).parts;
}

/// The claims of a study that comes with Plumb, such as "layernorm".
inline std::vector<StudyClaim> claims_of(const std::string& study) {
  return read_study(Config::from_file(source_directory() / "studies" / (study + ".toml"))).study.claims;
}

}  // namespace plumb::test
