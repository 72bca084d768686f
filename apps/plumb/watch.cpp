// plumb watch: serves the report of training runs, up to date while they train: to this machine alone, or with --bind
// to others, such as a phone.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checks.h"
#include "console.h"
#include "page_server.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/machine.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/judge/log_file.h"
#include "plumb/judge/records_report.h"
#include "plumb/metrics/unicode.h"
#include "plumb/report/html.h"
#include "plumb/report/runs_report.h"
#include "verb.h"
#include "watch_page.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

struct WatchArguments {
  std::vector<std::string> places;
  std::vector<std::string> hosts;  // further names of this machine
  std::string bind = "127.0.0.1";  // IPv4 address at which it listens
  int port = 0;

  [[nodiscard]] bool only_here() const { return bind.starts_with("127."); }
};

constexpr const char* kAllAddresses = "0.0.0.0";

/// Whether the text is an IPv4 address, such as "192.168.1.5".
bool is_address(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

/// The IPv4 addresses by which other machines may reach this one.
std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    std::string text(INET_ADDRSTRLEN, '\0');
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), INET_ADDRSTRLEN) == nullptr) continue;
    text.resize(text.find('\0'));
    if (!text.starts_with("127.")) addresses.push_back(text);
  }
  ::freeifaddrs(first);
  return addresses;
}

/// Changes whenever a run has new content to show.
std::string stamp_of(const fs::path& run) {
  std::string stamp = is_being_trained(run) ? "t" : "-";
  for (const char* file : {"config.toml", "metrics.jsonl", "result.json"}) stamp += file_stamp(run / file) + ';';
  return stamp;
}

/// The report of the runs at some places. What has not changed is neither read nor rendered again.
class LatestReport {
 public:
  explicit LatestReport(std::vector<std::string> places) : places_(std::move(places)) {}

  /// Changes whenever the page does; empty before the first run has begun.
  std::string revision() {
    look();
    std::string all;
    for (const Watched& run : runs_) all += run.directory.string() + '\0' + run.stamp;
    if (runs_.empty()) all = stamp_of_files();
    return all.empty() ? all : fmt::format("{:x}", std::hash<std::string>()(all));
  }

  std::shared_ptr<const std::string> page() {
    if (std::string now = revision(); now != revision_ || !page_) {
      page_ = std::make_shared<const std::string>(now.empty() ? std::string(kNoRunsPage) : render());
      revision_ = std::move(now);
    }
    return page_;
  }

 private:
  struct Watched {
    fs::path directory;
    std::string stamp;
    std::optional<RunSummary> summary;  // empty until the page needs it
  };

  void look() {
    const std::vector<Watched> known = std::exchange(runs_, {});
    for (const fs::path& directory : directories()) {
      Watched& run = runs_.emplace_back(Watched{directory, stamp_of(directory), {}});
      for (const Watched& before : known) {
        if (before.directory == run.directory && before.stamp == run.stamp) run.summary = before.summary;
      }
    }
  }

  /// None if directories are there, but no run has begun in them.
  [[nodiscard]] std::vector<fs::path> directories() const {
    try {
      return find_runs(places_);
    } catch (const Error&) {
      const auto waits = [](const std::string& place) { return fs::exists(place) && !contains_runs(place); };
      if (std::all_of(places_.begin(), places_.end(), waits)) return {};
      throw;
    }
  }

  /// Changes whenever another program writes into the files; empty without one.
  [[nodiscard]] std::string stamp_of_files() const {
    std::string stamp;
    const auto add = [&](const fs::path& file) {
      if (const std::string own = file_stamp(file); !own.empty()) stamp += fmt::format("{} {};", file.string(), own);
    };
    for (const std::string& place : places_) {
      add(place);
      if (!fs::is_directory(place)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(place)) add(entry.path());
    }
    return stamp;
  }

  /// Of runs of other programs; the page that waits for one if no file is of a run.
  std::string render_others() {
    try {
      return render_report(records_report(read_all_records(places_, &logs_)));
    } catch (const Error&) {  // no run has begun, or its log is being written
      return std::string(kNoRunsPage);
    }
  }

  std::string render() {
    if (runs_.empty()) return render_others();
    std::vector<RunSummary> summaries;
    for (Watched& run : runs_) {
      if (!run.summary) run.summary = summarize_run(run.directory);
      summaries.push_back(*run.summary);
    }
    name_runs(summaries);
    return render_report(runs_report(summaries));
  }

  std::vector<std::string> places_;
  std::vector<Watched> runs_;
  LogFiles logs_;         // of other programs
  std::string revision_;  // of the page
  std::shared_ptr<const std::string> page_;
};

/// The name in a header "Host", without its port, in lower case: "localhost:8000" → "localhost". With anything else
/// after the name, the whole.
std::string name_of(const std::string& host) {
  const size_t colon = host.rfind(':');
  const bool port = colon != std::string::npos && host.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return to_lower(port ? host.substr(0, colon) : host);
}

/// Compares in a time that does not tell where two texts differ.
bool is_same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

/// The addresses to type into a browser, one a line.
std::string urls(const WatchArguments& arguments, int port, const std::string& root) {
  std::vector<std::string> addresses = {arguments.bind};
  if (arguments.bind == kAllAddresses) addresses = own_addresses();
  if (addresses.empty()) addresses.emplace_back("127.0.0.1");
  std::string text;
  for (const std::string& address : addresses) text += fmt::format("http://{}:{}{}\n", address, port, root);
  return text;
}

void watch(const WatchArguments& arguments) {
  if (!is_address(arguments.bind))
    throw UsageError(fmt::format("--bind {}: not an IPv4 address", arguments.bind),
                     "give an address of this machine, or 0.0.0.0 for all of them");
  LatestReport report(arguments.places);
  (void)report.page();  // reports mistakes in the request now
  const PageServer server(arguments.bind, arguments.port);
  // Whoever may ask at all on this machine may read the runs; others must have been told the address.
  const std::string root = arguments.only_here() ? "/" : fmt::format("/{}/", random_token());
  std::vector<std::string> names = {arguments.bind, "127.0.0.1", "localhost", "[::1]"};
  for (const std::string& host : arguments.hosts) names.push_back(to_lower(host));
  const auto frame = std::make_shared<const std::string>(kWatchPage);
  print(urls(arguments, server.port(), root));
  if (!arguments.only_here())
    say("anybody who has this address can read these runs, but change nothing; the connection is not encrypted");
  server.serve([&](const PageRequest& request) -> PageAnswer {
    // A protection against DNS rebinding: a web site whose name is made to mean this machine could read the runs. No
    // web site has an address in place of its name. The port does not matter, since `ssh -L` may forward another one.
    const std::string host = name_of(request.host);
    if (!contains(names, host) && (arguments.only_here() || !is_address(host))) {
      return plain_answer(403,
                          fmt::format("plumb watch answers to the names {}, not to '{}', so that no other web site "
                                      "can read your runs.\nTo answer to it as well, start: plumb watch --host {}\n",
                                      join(names), host, host.empty() ? "NAME" : host));
    }
    const std::string_view path = request.path;
    if (!is_same(path.substr(0, root.size()), root))
      return plain_answer(403, "The address is incomplete: open the one that plumb watch has printed.\n");
    const std::string_view page = path.substr(root.size());
    if (page == "revision") return plain_answer(200, report.revision());
    if (page == "report" || page.empty())
      return {.text = page.empty() ? frame : report.page(), .type = "text/html; charset=utf-8"};
    return plain_answer(404, "no such page\n");
  });
}

void add_watch(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<WatchArguments>();
  CLI::App* verb = add_verb(app, globals, "watch", "Serve the report of training runs, updated while they train",
                            "plumb watch runs/base", [arguments] { watch(*arguments); });
  verb->add_option("RUN", arguments->places,
                   "Run directories, or directories that are searched for them; without runs of Plumb, the logs of "
                   "other programs")
      ->type_name("RUN")
      ->required();
  verb->add_option("--port", arguments->port, "Port to listen on (default: any that is free)")
      ->check(between(1, 65535))
      ->type_name("N");
  verb->add_option("--bind", arguments->bind,
                   "Address at which browsers on other machines or phones can read the page: one of this machine, or "
                   "0.0.0.0 for all of them (default: 127.0.0.1, this machine alone)")
      ->type_name("ADDRESS");
  repeatable(verb->add_option("--host", arguments->hosts,
                              "Another name by which browsers reach this machine, besides localhost; may be repeated"))
      ->type_name("NAME");
}

const bool kWatchRegistered = register_verb({Heading::measure, 90, add_watch});

}  // namespace
}  // namespace plumb::app
