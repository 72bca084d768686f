// Registration: the claims of a study are written down before anything is measured, so that the report can say so.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/study/config.h"

namespace plumb {

/// Throws Error if the study makes no claims, is registered already, or has been measured in `out`.
void require_unregistered(const StudyConfig& study, const std::filesystem::path& out);

/// Writes the study with its claims, the date, and the SHA-256 of the study to `out`/registration.json, and returns
/// this document. Throws Error as require_unregistered does.
Json register_study(const StudyConfig& study, const std::filesystem::path& out);

/// A claim, and where it comes from: "registered on 2026-03-01, before anything was measured".
struct SourcedClaim {
  StudyClaim claim;
  std::string source;
};

/// The claims that are registered in `out`, followed by the study's others.
std::vector<SourcedClaim> sourced_claims(const StudyConfig& study, const std::filesystem::path& out);

}  // namespace plumb
