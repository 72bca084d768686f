// The program's entry point: answers what the written manual can answer; loads a module without LibTorch for commands
// that only read; for all others checks and configures what must be done before OpenMP and OpenBLAS are loaded, then
// loads and runs the rest.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "console.h"
#include "manual.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "words.h"

namespace {

/// Whether the limit of the address space leaves room for the libraries, and says so if not: OpenBLAS tries forever to
/// allocate its buffers of 128 MiB, one for each core or, if OMP_NUM_THREADS is set and smaller, each thread.
bool has_address_space() {
  constexpr rlim_t kMebibyte = rlim_t{1} << 20, kLibraries = 768 * kMebibyte, kBuffer = 128 * kMebibyte;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  long threads = std::max(::sysconf(_SC_NPROCESSORS_CONF), 1L);
  const char* asked = std::getenv("OMP_NUM_THREADS");
  if (const long wanted = asked == nullptr ? 0 : std::atol(asked); wanted > 0) threads = std::min(threads, wanted);
  const rlim_t needed = kLibraries + static_cast<rlim_t>(threads) * kBuffer;
  if (limit.rlim_cur >= needed) return true;
  std::fprintf(stderr,
               "plumb: error: the address space is limited to %llu MiB, but the libraries alone need about %llu MiB "
               "with %ld thread%s\n"
               "hint: raise the limit (ulimit -v, or what your batch system calls virtual memory), or set "
               "OMP_NUM_THREADS=1\n",
               static_cast<unsigned long long>(limit.rlim_cur / kMebibyte),
               static_cast<unsigned long long>(needed / kMebibyte), threads, threads == 1 ? "" : "s");
  return false;
}

/// Opens those of the descriptors 0, 1 and 2 that are closed: otherwise the next file that is opened would get their
/// numbers, and be overwritten with messages. Opened in the wrong direction, they still cannot be used.
void occupy_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) < 0) (void)::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
  }
}

/// The manual that the build has written, beside the program or installed with it (cmake/Manual.cmake). Empty if it is
/// missing, or older than the libraries that it was written from.
std::optional<plumb::app::Manual> written_manual() {
  namespace fs = std::filesystem;
  try {
    const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
    fs::path file = folder.parent_path() / "share/plumb/manual.json";
    if (fs::exists(folder / "libplumb_program.so")) {  // not installed
      file = folder / "manual/manual.json";
      for (const char* library : {"libplumb_program.so", "libplumb.so"})
        if (fs::last_write_time(folder / library) > fs::last_write_time(file)) return {};
    }
    return plumb::from_described_json<plumb::app::Manual>(plumb::read_json(file));
  } catch (const std::exception&) {
    return {};
  }
}

/// Whether processes wait for this one, which must be told of an error.
bool is_launched() {
  return std::getenv("WORLD_SIZE") != nullptr || std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ||
         std::getenv("SLURM_STEP_ID") != nullptr;
}

/// The exit status if the words are answered or wrong; empty if the program is needed, which takes time to load.
std::optional<int> status_by_manual(const std::vector<std::string>& words) {
  // The manual does not know what libraries of users add.
  if (std::any_of(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--load"); }))
    return {};
  const std::optional<plumb::app::Manual> manual = written_manual();
  if (!manual) return {};
  try {
    const std::string text = plumb::app::answered(*manual, words);
    if (text.empty()) return {};
    std::cout << text;
    plumb::app::check_standard_output();
    return 0;
  } catch (const plumb::UsageError& error) {
    if (is_launched()) return {};
    plumb::app::print_error(error.what(), error.hint());
    return 2;
  } catch (const plumb::Error& error) {
    plumb::app::print_error(error.what(), error.hint());
    return 1;
  }
}

// Set while the program starts itself again.
constexpr const char* kWhole = "PLUMB_WHOLE_PROGRAM";

/// Whether a command only reads files of text and numbers. With libraries of users, it may be another.
bool only_reads(const std::vector<std::string>& words) {
  if (std::getenv(kWhole) != nullptr) return ::unsetenv(kWhole), false;
  constexpr std::array<std::string_view, 6> kReading = {"compare", "judge", "report", "runs", "score", "watch"};
  return !words.empty() && plumb::contains(kReading, words.front()) &&
         std::none_of(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--load"); });
}

/// Runs the command line by one of the two modules of the program. Of LibTorch's and its libraries' functions, a
/// command calls few: each is looked up when it is first called.
int run_module(const char* library, int argc, char** argv) {
  void* module = ::dlopen(library, RTLD_LAZY | RTLD_GLOBAL);
  void* entry = module == nullptr ? nullptr : ::dlsym(module, "plumb_main");
  if (entry == nullptr) {
    std::fprintf(stderr, "plumb: error: %s\nhint: reinstall Plumb\n", ::dlerror());
    return 1;
  }
  return reinterpret_cast<int (*)(int, char**)>(entry)(argc, argv);
}

/// Ends the process without taking LibTorch's thousands of operators out of its registry one by one.
int leave(int status) {
  std::cout.flush();
  std::fflush(nullptr);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they report at the end
  ::_exit(status);
#endif
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  const std::vector<std::string> words{argv + std::min(argc, 1), argv + argc};
  if (const std::optional<int> status = status_by_manual(words)) return *status;
  if (only_reads(words)) {
    const int status = run_module("libplumb_reading.so", argc, argv);
    if (status != plumb::app::kNeedsWholeProgram) return status;
    ::setenv(kWhole, "1", 1);
    ::execv("/proc/self/exe", argv);  // two modules in one process would share some of their variables
  }
  if (!has_address_space()) return 1;
  // Waiting threads spin for tens of microseconds, about the time between our parallel loops, instead of milliseconds:
  // if another process needs the cores, spinning threads delay the very process that they wait for.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "20000", 0);
  // Other programs may have set this, which would restrict OpenBLAS (used for float64 only) to older instructions.
  ::unsetenv("OPENBLAS_CORETYPE");
  return leave(run_module("libplumb_program.so", argc, argv));
}
