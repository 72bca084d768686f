// plumb new: begins a plug-in, a shared library with a variant of one's own, from the example that Plumb's tests build.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"
#include "plumb/nn/norm/norm.h"
#include "shared_files.h"
#include "verb.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

/// The name of the norm in the example.
constexpr std::string_view kExample = "absolute";

/// "my-norm" → "MyNorm".
std::string as_class(const std::string& name) {
  std::string text;
  for (const std::string& word : split(name, '-'))
    text += static_cast<char>(std::toupper(static_cast<unsigned char>(word.front()))) + word.substr(1);
  return text;
}

/// A text of the example with the new name in place of its own.
std::string renamed(std::string text, const std::string& name) {
  replace_all(text, kExample, name);
  replace_all(text, as_class(std::string(kExample)), as_class(name));
  return text;
}

void require_new_name(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-';
  });
  if (!plain || name.empty() || std::islower(static_cast<unsigned char>(name.front())) == 0 || name.back() == '-' ||
      name.find("--") != std::string::npos)
    throw UsageError(fmt::format("'{}' is no name for a variant", name),
                     "use lower-case letters, digits and hyphens, such as my-norm");
  for (const char* target : {"all", "clean", "help", "install", "package", "test"}) {
    if (name == target) throw UsageError(fmt::format("'{}' is a target of CMake", name), "choose another name");
  }
  if (norms().entries().contains(name)) throw UsageError(fmt::format("a norm is called '{}' already", name));
}

/// Where this Plumb is installed; empty if it is not.
std::string prefix() {
  const fs::path installed = places_of_shared("plugin", "examples/plugin").front();
  return fs::exists(installed) ? installed.parent_path().parent_path().parent_path().string() : "";
}

/// The files of the new plug-in, in order.
std::vector<std::string> write_plugin(const std::string& name, const fs::path& out) {
  if (fs::exists(out)) throw Error(fmt::format("{}: exists", out.string()), "give another --out");
  std::vector<fs::path> sources;
  for (const fs::path& folder : places_of_shared("plugin", "examples/plugin")) {
    if (!sources.empty() || !fs::exists(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_regular_file()) sources.push_back(entry.path());
    }
  }
  if (sources.empty()) throw Error("the example of a plug-in is missing", "install Plumb again");
  std::sort(sources.begin(), sources.end());
  std::vector<std::string> written;
  write_directory_atomic(out, "plug-in", [&](const fs::path& folder) {
    for (const fs::path& source : sources) {
      const std::string file = renamed(source.filename().string(), name);
      write_file_atomic(folder / file, renamed(read_file(source), name));
      written.push_back((out / file).string());
    }
  });
  return written;
}

void add_new(CLI::App& app, Globals& globals) {
  struct Arguments {
    std::string kind, name, out;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = add_verb(
      app, globals, "new", "Begin a plug-in: a shared library with a variant of your own, its test and a CMake project",
      "plumb new norm my-norm --out my-norm", [arguments] {
        const std::string& name = arguments->name;
        require_new_name(name);
        const fs::path out = arguments->out.empty() ? name : arguments->out;
        const std::string installed = prefix();
        std::cout << join(write_plugin(name, out), "\n") << '\n'
                  << (installed.empty() ? "install Plumb first, in its sources: make install PREFIX=\"$HOME/.local\"\n"
                                        : "")
                  << fmt::format(
                         "build and test it, then use it in any command:\n"
                         "  cmake -S {0} -B {0}/build -DCMAKE_PREFIX_PATH={2}\n"
                         "  cmake --build {0}/build && ctest --test-dir {0}/build\n"
                         "  plumb probe --load {0}/build/lib{1}.so --set model.norm={1} …\n",
                         out.string(), name, installed.empty() ? "\"$HOME/.local\"" : installed);
      });
  verb->add_option("KIND", arguments->kind, "What it is: norm")->check(CLI::IsMember({"norm"}))->required();
  verb->add_option("NAME", arguments->name, "Its name in configurations, such as my-norm")->required();
  verb->add_option("--out", arguments->out, "Directory to create (default: NAME)")->type_name("DIR");
}

const bool kNewRegistered = register_verb({Heading::tools, 30, add_new});

}  // namespace
}  // namespace plumb::app
