// plumb watch: serves the report of training runs, up to date while they train: to this machine alone, or with --bind
// to others, such as a phone.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"
#include "plumb/metrics/unicode.h"
#include "plumb/report/html.h"
#include "plumb/report/runs_report.h"
#include "verb.h"
#include "watch_page.h"

#ifdef PLUMB_HTTPLIB
#include <arpa/inet.h>
#include <httplib.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <mutex>
#endif

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

#ifdef PLUMB_HTTPLIB

constexpr const char* kAllAddresses = "0.0.0.0";
constexpr size_t kThreads = 64;

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

/// Whether directories are there, but no run has begun in them.
bool waits_for_runs(const std::vector<std::string>& places) {
  return std::all_of(places.begin(), places.end(),
                     [](const std::string& place) { return fs::is_directory(place) && !contains_runs(place); });
}

/// Changes whenever a run has new content to show.
std::string revision_of(const std::vector<std::string>& places) {
  std::string revision;
  if (waits_for_runs(places)) return revision;
  for (const fs::path& run : find_runs(places)) {
    for (const char* file : {"config.toml", "metrics.jsonl", "result.json"}) {
      std::error_code absent;
      const auto size = fs::file_size(run / file, absent);
      const auto time = fs::last_write_time(run / file, absent);
      revision += absent ? "-" : fmt::format("{}.{} ", size, time.time_since_epoch().count());
    }
    revision += is_being_trained(run) ? "t;" : ";";
  }
  return revision;
}

/// The report, rendered again only if a run has new content.
class LatestReport {
 public:
  explicit LatestReport(std::vector<std::string> places) : places_(std::move(places)) {}

  std::shared_ptr<const std::string> page() {
    const std::lock_guard lock(mutex_);
    if (std::string now = revision_of(places_); now != revision_ || !page_) {
      page_ = std::make_shared<const std::string>(now.empty() ? std::string(kNoRunsPage)
                                                              : render_report(runs_report(read_runs(places_))));
      revision_ = std::move(now);
    }
    return page_;
  }

 private:
  std::vector<std::string> places_;
  std::mutex mutex_;
  std::string revision_;
  std::shared_ptr<const std::string> page_;
};

/// The name in a request's header "Host", without its port, in lower case: "localhost:8000" → "localhost".
std::string host_of(const httplib::Request& request) {
  std::string host = request.get_header_value("Host");
  if (const size_t colon = host.rfind(':'); colon != std::string::npos && host.find(']', colon) == std::string::npos)
    host.resize(colon);
  return to_lower(host);
}

/// Refuses requests for other host names, a protection against DNS rebinding: a web site whose name is made to mean
/// this machine could read the runs. The port does not matter, since `ssh -L` may forward another one. With
/// `any_address`, it may be asked for by any address, since no web site has one in place of its name.
httplib::Server::HandlerWithResponse refuse_other_hosts(std::vector<std::string> names, bool any_address) {
  return [names = std::move(names), any_address](const httplib::Request& request, httplib::Response& response) {
    const std::string host = host_of(request);
    if (contains(names, host) || (any_address && is_address(host))) return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_content(fmt::format("plumb watch answers to the names {}, not to '{}', so that no other web site can "
                                     "read your runs.\nTo answer to it as well, start: plumb watch --host {}\n",
                                     join(names), host, host.empty() ? "NAME" : host),
                         "text/plain; charset=utf-8");
    return httplib::Server::HandlerResponse::Handled;
  };
}

/// Responds with the text that `make` returns, or with the message of its error. The server does not compress it, as
/// Brotli at its highest level would take a second for each page.
template <typename Make>
httplib::Server::Handler answer(const char* type, Make make) {
  return [type, make](const httplib::Request&, httplib::Response& response) {
    response.set_header("Cache-Control", "no-store");
    try {
      const std::shared_ptr<const std::string> text = make();
      if (text->empty()) return response.set_content("", type);
      response.set_content_provider(text->size(), type, [text](size_t offset, size_t length, httplib::DataSink& sink) {
        return sink.write(text->data() + offset, length);
      });
    } catch (const std::exception& error) {
      response.status = 500;
      response.set_content(error.what(), "text/plain; charset=utf-8");
    }
  };
}

/// The addresses to type into a browser, one a line.
std::string urls(const WatchArguments& arguments, int port) {
  std::vector<std::string> addresses = {arguments.bind};
  if (arguments.bind == kAllAddresses) addresses = own_addresses();
  if (addresses.empty()) addresses.emplace_back("127.0.0.1");
  std::string text;
  for (const std::string& address : addresses) text += fmt::format("http://{}:{}/\n", address, port);
  return text;
}

void watch(const WatchArguments& arguments) {
  if (!is_address(arguments.bind))
    throw UsageError(fmt::format("--bind {}: not an IPv4 address", arguments.bind),
                     "give an address of this machine, or 0.0.0.0 for all of them");
  LatestReport report(arguments.places);
  (void)report.page();  // reports mistakes in the request now
  httplib::Server server;
  // A connection occupies a thread until its request has come, or it has sent nothing for a second.
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };  // the server takes ownership
  server.set_keep_alive_timeout(1);
  server.set_read_timeout(1);
  std::vector<std::string> names = {arguments.bind, "127.0.0.1", "localhost", "[::1]"};
  for (const std::string& host : arguments.hosts) names.push_back(to_lower(host));
  server.set_pre_routing_handler(refuse_other_hosts(names, !arguments.only_here()));
  const char* html = "text/html; charset=utf-8";
  server.Get("/", answer(html, [] { return std::make_shared<const std::string>(kWatchPage); }));
  server.Get("/report", answer(html, [&] { return report.page(); }));
  server.Get("/revision", answer("text/plain; charset=utf-8",
                                 [&] { return std::make_shared<const std::string>(revision_of(arguments.places)); }));
  // Without SO_REUSEPORT, which would let a second server share the port.
  server.set_socket_options([](auto socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  int port = arguments.port;
  if (port == 0) {
    port = server.bind_to_any_port(arguments.bind);
    if (port < 0)
      throw Error(fmt::format("no port can be opened on {}", arguments.bind),
                  arguments.only_here() ? "" : "--bind takes an address that this machine has, or 0.0.0.0 for all");
  } else if (!server.bind_to_port(arguments.bind, port)) {
    throw Error(fmt::format("port {} cannot be opened on {}", port, arguments.bind),
                "another program may be using it: choose another --port, or omit it to use any free port");
  }
  fmt::print("{}", urls(arguments, port));
  std::fflush(stdout);
  if (!arguments.only_here()) say("anybody who can reach this address can read these runs; nobody can change them");
  if (!server.listen_after_bind()) throw Error(fmt::format("the server on port {} failed", port));
}

#else

void watch(const WatchArguments&) {
  throw Error("this build of Plumb has no HTTP server",
              "install libcpp-httplib-dev and build again; `plumb report` writes the same page to a file");
}

#endif

void add_watch(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<WatchArguments>();
  CLI::App* verb = add_verb(app, globals, "watch", "Serve the report of training runs, updated while they train",
                            "plumb watch runs/base", [arguments] { watch(*arguments); });
  verb->add_option("RUN", arguments->places, "Run directories, or directories that are searched for them")
      ->type_name("RUN")
      ->required();
  verb->add_option("--port", arguments->port, "Port to listen on (default: any that is free)")
      ->check(CLI::Range(1, 65535))
      ->type_name("N");
  verb->add_option("--bind", arguments->bind,
                   "Address at which browsers on other machines or phones can read the page: one of this machine, or "
                   "0.0.0.0 for all of them (default: 127.0.0.1, this machine alone)")
      ->type_name("ADDRESS");
  verb->add_option("--host", arguments->hosts,
                   "Another name by which browsers reach this machine, besides localhost; may be repeated")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("NAME");
}

const bool kWatchRegistered = register_verb({Heading::measure, 90, add_watch});

}  // namespace
}  // namespace plumb::app
