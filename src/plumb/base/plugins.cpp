#include "plumb/base/plugins.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "plumb/base/checksum.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/registry.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

std::vector<std::string>& plugins() {
  static std::vector<std::string> loaded;
  return loaded;
}

std::vector<std::string>& taken_names() {
  static std::vector<std::string> taken;
  return taken;
}

/// The user's own list of the libraries that documents may load.
std::filesystem::path trust_file() {
  const char* configuration = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path folder = configuration != nullptr && *configuration == '/' ? configuration
                                       : home != nullptr && *home == '/' ? std::filesystem::path(home) / ".config"
                                                                         : std::filesystem::path();
  return folder.empty() ? folder : folder / "plumb" / "trusted-libraries";
}

bool is_trusted(const std::filesystem::path& library) {
  const std::filesystem::path list = trust_file();
  if (list.empty() || !std::filesystem::exists(list)) return false;
  const std::string digest = digest_of(library).sha256;
  const std::vector<std::string> lines = read_lines(list, kSettingsFile);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return split(line, ' ').front() == digest; });
}

}  // namespace

void note_taken_name(const std::string& variant) { taken_names().push_back(variant); }

void load_plugin(const std::filesystem::path& library) {
  std::error_code missing;
  const std::filesystem::path whole = std::filesystem::canonical(library, missing);
  std::vector<std::string>& loaded = plugins();
  // A run may name a place that its plug-in has left; --load then says where it is.
  const auto alike = std::find_if(loaded.begin(), loaded.end(), [&](const std::string& other) {
    return std::filesystem::path(other).filename() == library.filename();
  });
  if (missing && alike != loaded.end()) return;
  if (missing)
    throw Error(fmt::format("{}: {}", library.string(), missing.message()),
                "load names a shared library, such as build/libmine.so; `plumb new norm mine` begins one");
  if (contains(loaded, whole.string())) return;
  const size_t taken = taken_names().size();
  if (::dlopen(whole.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw Error(::dlerror(), "build it against this version of Plumb: " PLUMB_VERSION);
  // A library of the same file name is another build of the same plug-in: the one that was named first counts.
  if (taken_names().size() > taken && alike == loaded.end())
    throw Error(fmt::format("{}: the {} exists already", library.string(), taken_names()[taken]),
                "give it another name in the plug-in's source, and build it again");
  loaded.push_back(whole.string());
}

void require_plugin(const std::filesystem::path& library) {
  const auto same_name = [&](const std::string& other) {
    return std::filesystem::path(other).filename() == library.filename();
  };
  if (std::any_of(plugins().begin(), plugins().end(), same_name)) return;
  std::error_code missing;
  const std::filesystem::path whole = std::filesystem::canonical(library, missing);
  if (!missing && is_trusted(whole)) return load_plugin(whole);
  const std::string shown = missing ? library.string() : whole.string();
  throw Error(fmt::format("needs the library {}, whose code would run here", shown),
              fmt::format("if you trust it, add --load {0} (in Python: libraries=[\"{0}\"]); or, for every command: "
                          "sha256sum {0} >> {1}",
                          shown, trust_file().string()));
}

const std::vector<std::string>& loaded_plugins() { return plugins(); }

}  // namespace plumb
