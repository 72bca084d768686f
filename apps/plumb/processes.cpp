#include "processes.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checks.h"
#include "manual.h"
#include "plumb/base/machine.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/divided/divisible.h"
#include "plumb/ops/device.h"
#include "plumb/parallel/rendezvous.h"
#include "plumb/parallel/workers.h"
#include "plumb/train/launched.h"

namespace plumb::app {
namespace {

constexpr const char* kProcesses = "--processes";

/// The verb's options as given, for a process that computes but prints and writes nothing.
std::vector<std::string> arguments_of_worker(const CLI::App& verb, int64_t threads) {
  std::vector<std::string> arguments = {verb.get_name(), "--quiet", "--threads=" + std::to_string(threads),
                                        std::string("--device=") + (ops::default_device().is_cuda() ? "cuda" : "cpu")};
  const std::set<std::string> own = {kProcesses, "--json", "--quiet", "--verbose", "--threads", "--device"};
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    if (own.contains(name)) continue;
    for (const std::string& value : option->results())
      arguments.push_back(option->get_positional() ? value : fmt::format("{}={}", name, value));
  }
  return arguments;
}

/// The options that determine what is measured, except paths, which may differ, and --set, whose effect is compared
/// instead.
Facts facts_of_options(const CLI::App& verb) {
  Facts facts = {{"the version of LibTorch", TORCH_VERSION}};
  const std::set<std::string> places = {"FILE", "DIR", "RUN", "KEY=VALUE"};
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    const std::string type = option->get_type_name();  // "DIR:DIR" with a check
    const bool common = option->get_group() == kCommonOptions && name != "--seed";
    if (common || name == kProcesses || places.contains(type.substr(0, type.find(':')))) continue;
    facts.emplace_back(name, option->count() > 0 ? join(option->results()) : option->get_default_str());
  }
  return facts;
}

/// The group of this process, as rank 0, and the workers that it starts on this machine.
Group with_workers(Workers& workers, const CLI::App& verb, int64_t processes, int64_t threads) {
  Rendezvous rendezvous{0, processes};
  rendezvous.local_size = processes;
  rendezvous.token = random_token();
  const auto start = [&](int64_t port) {
    workers.start(arguments_of_worker(verb, threads), processes, port, rendezvous.token);
  };
  return join_group(rendezvous, {start, [&] { workers.check(); }});
}

}  // namespace

CLI::Option* add_processes_options(CLI::App& verb, MeasuringProcesses& processes, const std::string& divided) {
  verb.add_option(kProcesses, processes.processes, "Number of processes sharing the micro-batches and the CPU threads")
      ->check(between(1, 1024))
      ->default_str("1")
      ->type_name("N");
  return verb
      .add_option("--tensor-parallel", processes.tensor_parallel,
                  fmt::format("Processes that compute every layer together, each with its part of {}; --processes is a "
                              "multiple of it, by default the same",
                              divided))
      ->check(between(1, 1024))
      ->type_name("N");
}

void measure_in_processes(const CLI::App& verb, const SubjectArguments& arguments, const MeasuringProcesses& given,
                          Globals& globals, const std::function<void(const Subject&, const Mesh&)>& measure_subject) {
  const int64_t processes = given.processes > 0 ? given.processes : given.tensor_parallel;
  const auto require = [&](const Subject& subject, int64_t started) {
    Mesh::require(started, given.tensor_parallel);
    if (given.tensor_parallel > 1) require_divisible(subject.config, given.tensor_parallel, "--tensor-parallel");
  };
  const auto measure = [&](const Subject& subject, const Group& group) {
    require(subject, group.size());
    if (group.size() > 1) {
      Facts facts = facts_of_options(verb);
      for (auto& fact : facts_of(subject)) facts.push_back(std::move(fact));
      group.require_same(facts);
    }
    const Mesh mesh(group, given.tensor_parallel);
    measure_subject(subject, mesh);
    if (given.tensor_parallel == 1) return;
    mesh.data.leave();
    mesh.tensor.leave();
  };
  if (const std::optional<Rendezvous> launched = rendezvous_of_environment()) {
    if (launched->rank > 0) set_verbosity(Verbosity::quiet);
    globals.joins = true;
    const Group group = join_group(*launched);
    std::optional<ThreadShare> share;
    if (globals.threads == 0 && std::getenv("OMP_NUM_THREADS") == nullptr) share.emplace(group.neighbors());
    telling_others(group, [&] { measure(open_subject(arguments), group); });
    return;
  }
  // Before starting workers, so that mistakes are reported once.
  const Subject subject = open_subject(arguments);
  require(subject, processes);
  const ThreadShare share(processes);
  Workers workers;  // outlives the group, which tells running workers why the measurement failed
  const Group group = processes == 1 ? Group() : with_workers(workers, verb, processes, share.own());
  telling_others(group, [&] { measure(subject, group); });
  group.leave();
  workers.wait();
}

}  // namespace plumb::app
