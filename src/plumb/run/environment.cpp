#include "plumb/run/environment.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <torch/version.h>
#include <unistd.h>

#include <ctime>
#include <thread>

#include "plumb/base/descriptor.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"
#include "plumb/base/version.h"
#include "plumb/ops/device.h"

namespace plumb {
namespace {

#ifdef __clang__
constexpr const char* kRunCompiler = "Clang " __clang_version__;
#else
constexpr const char* kRunCompiler = "GCC " __VERSION__;
#endif

/// The name of the first processor; empty if unknown.
std::string processor() {
  try {
    for (const std::string& line : split(read_file("/proc/cpuinfo"), '\n')) {
      const size_t colon = line.find(": ");
      if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
    }
  } catch (const Error&) {
    // Not Linux.
  }
  return {};
}

}  // namespace

Json describe_environment() {
  Json json;
  json["plumb_version"] = PLUMB_VERSION;
  if (!commit().empty()) json["commit"] = commit();
  json["compiler"] = kRunCompiler;
  json["libtorch"] = TORCH_VERSION;
  utsname system{};
  if (::uname(&system) == 0) {
    json["host"] = system.nodename;
    json["system"] = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  }
  if (const std::string name = processor(); !name.empty()) json["processor"] = name;
  json["cores"] = std::thread::hardware_concurrency();
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0) json["memory_bytes"] = static_cast<int64_t>(pages) * size;
  json["device"] = ops::default_device().str();
  json["threads"] = at::get_num_threads();
  return json;
}

void record_environment(const std::filesystem::path& run, int64_t step, int64_t processes) {
  Json line;
  line["started"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  line["step"] = step;
  line["command"] = command_line();
  line["processes"] = processes;
  line.update(describe_environment());
  const std::filesystem::path file = run / "environment.jsonl";
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!out.is_open() || !out.write(line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n'))
    throw write_failure(file.string());
}

}  // namespace plumb
