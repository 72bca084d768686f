#include "plumb/study/registration.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "plumb/base/checksum.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/study/transfer_data.h"

namespace plumb {
namespace {

std::filesystem::path registration_of(const std::filesystem::path& out) { return out / "registration.json"; }

/// Whether anything is measured in the directory of a study; preparing its data is not.
bool is_measured(const std::filesystem::path& out) {
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(out / "measurements", none)) {
    const std::string name = file.path().stem();
    if (name != "data" && !name.starts_with(kTransferDataName)) return true;
  }
  return std::filesystem::exists(out / "results.json");
}

}  // namespace

void require_unregistered(const StudyConfig& study, const std::filesystem::path& out) {
  if (study.study.claims.empty())
    throw Error("the study makes no claims, so nothing can be registered", "add [[study.claim]]");
  if (std::filesystem::exists(registration_of(out)))
    throw Error(fmt::format("{}: the study is registered already", registration_of(out).string()),
                "register another one in another directory");
  if (is_measured(out))
    throw Error(fmt::format("{}: the study has been measured", out.string()),
                "claims are registered before: give another --out");
}

Json register_study(const StudyConfig& study, const std::filesystem::path& out) {
  require_unregistered(study, out);
  claim_output_directory(out, "study");
  const std::string toml = write_study(study);
  Json registration = make_document("registration", 1);
  registration["date"] = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  registration["sha256"] = sha256(toml);
  registration["study"] = toml;
  write_json(registration_of(out), registration);
  return registration;
}

std::vector<SourcedClaim> sourced_claims(const StudyConfig& study, const std::filesystem::path& out) {
  std::vector<SourcedClaim> claims;
  const std::filesystem::path path = registration_of(out);
  if (std::filesystem::exists(path)) {
    const auto [date, toml, hash] = take_json(path, [](const Json& json) {
      const auto text = [&](const char* key) { return json.at(key).get<std::string>(); };
      return std::array{text("date"), text("study"), text("sha256")};
    });
    std::string source = fmt::format("registered on {}, before anything was measured", date);
    const StudyConfig registered = read_study(Config::from_string(toml, path.string()));
    // Keys that Plumb got later have their defaults in both.
    if (write_study(registered) != write_study(study)) source += "; the study has been changed since";
    if (sha256(toml) != hash)
      source = "not as registered: registration.json has been edited, so its SHA-256 is another";
    for (const StudyClaim& claim : registered.study.claims)
      claims.push_back({claim, claim.source.empty() ? source : claim.source + "; " + source});
  }
  const size_t count = claims.size();
  for (const StudyClaim& claim : study.study.claims) {
    const bool is_registered = std::any_of(claims.begin(), claims.begin() + static_cast<std::ptrdiff_t>(count),
                                           [&](const SourcedClaim& other) { return other.claim == claim; });
    if (is_registered) continue;
    claims.push_back({claim, claim.source.empty() ? "claimed in this study, not registered" : claim.source});
  }
  return claims;
}

}  // namespace plumb
