// plumb watch from the browser's perspective.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "support/process.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::Finished;
using test::Process;

sockaddr_in address_of(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

/// A TCP socket that is closed at the end of the scope.
class Socket {
 public:
  Socket() : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {}
  ~Socket() { ::close(descriptor_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool connect(const std::string& host, int port) const {
    const sockaddr_in to = address_of(host, port);
    return ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  /// Listens on a free port; returns it.
  [[nodiscard]] int listen() const {
    sockaddr_in at = address_of("127.0.0.1", 0);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(descriptor_, 1), 0);
    ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&at), &size);
    return ntohs(at.sin_port);
  }
  /// Sends the beginning of a request, or as much of it as the other side takes.
  void begin(const std::string& request) const {
    (void)!::send(descriptor_, request.data(), request.size(), MSG_NOSIGNAL);
  }
  /// Ends `exchange` after this time without an answer.
  void give_up_after(int seconds) const {
    const timeval limit{.tv_sec = seconds, .tv_usec = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  [[nodiscard]] std::string exchange(const std::string& request) const {
    begin(request);
    std::string answer;
    std::array<char, 65536> buffer{};
    for (ssize_t count = 0; (count = ::read(descriptor_, buffer.data(), buffer.size())) > 0;)
      answer.append(buffer.data(), static_cast<size_t>(count));
    return answer;
  }

 private:
  int descriptor_;
};

int free_port() { return Socket().listen(); }

/// The whole response, including its header; empty if there is none.
std::string get(int port, const std::string& path, std::string host = "") {
  const Socket socket;
  if (!socket.connect("127.0.0.1", port)) return {};
  if (host.empty()) host = "127.0.0.1:" + std::to_string(port);
  return socket.exchange("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
}

std::string body(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

class WatchVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(*folder_ / "run");
    write("plumb.json", R"({"schema": "plumb.directory/1", "kind": "run"})");
    write("config.toml", "[train]\nsteps = 100\n");
    write("metrics.jsonl", "{\"schema\":\"plumb.metrics/1\"}\n" + point(10));
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(*folder_ / "run" / name, std::ios::binary | std::ios::app) << text;
  }
  static std::string point(int step) {
    return R"({"step":)" + std::to_string(step) +
           R"(,"epoch":0,"learning_rate":0.001,"loss":3.5,"nll":3.25,"tokens_per_second":100,"tokens":100,"metrics":{}})" +
           "\n";
  }
  /// Waits until the server responds.
  static void wait_for(int port) {
    for (int i = 0; i < 1000 && get(port, "/revision").empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  std::unique_ptr<test::TemporaryDirectory> folder_ = std::make_unique<test::TemporaryDirectory>();
};

TEST_F(WatchVerb, WaitsForTheFirstRun) {
  fs::create_directory(*folder_ / "runs");
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "runs", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  EXPECT_CONTAINS(get(port, "/report"), "No run has begun yet");
  EXPECT_EQ(body(get(port, "/revision")), "");
  fs::rename(*folder_ / "run", *folder_ / "runs" / "first");
  EXPECT_NE(body(get(port, "/revision")), "");
  EXPECT_CONTAINS(get(port, "/report"), "<title>first</title>");
}

TEST_F(WatchVerb, ServesTheReportAndTellsWhenThereIsMore) {
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "run", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  EXPECT_CONTAINS(get(port, "/"), "fetch(\"revision\"");
  const std::string report = get(port, "/report");
  EXPECT_TRUE(report.starts_with("HTTP/1.1 200")) << report.substr(0, 100);
  EXPECT_CONTAINS(report, "<title>run</title>");
  EXPECT_LACKS(report, "\"x\":[10,20]");
  const std::string revision = body(get(port, "/revision"));
  EXPECT_NE(revision, "");
  EXPECT_EQ(body(get(port, "/revision")), revision);
  write("metrics.jsonl", point(20));
  EXPECT_NE(body(get(port, "/revision")), revision);
  EXPECT_CONTAINS(get(port, "/report"), "\"x\":[10,20]");
  EXPECT_TRUE(get(port, "/../plumb.json").starts_with("HTTP/1.1 404"));
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait().output, "http://127.0.0.1:" + std::to_string(port) + "/\n");
}

TEST_F(WatchVerb, AnswersThisMachineAlone) {
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "run", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  EXPECT_FALSE(Socket().connect("127.0.0.2", port));  // also this machine, but not served
  for (const std::string& own : {"localhost:" + std::to_string(port), std::string("localhost:1"),
                                 std::string("LocalHost"), std::string("127.0.0.1:80"), std::string("[::1]:80")})
    EXPECT_TRUE(get(port, "/report", own).starts_with("HTTP/1.1 200")) << own;
  for (const std::string host : {"attacker.example", "localhost.attacker.example", "127.0.0.1.attacker.example"}) {
    const std::string answer = get(port, "/report", host + ":" + std::to_string(port));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403")) << answer;
    EXPECT_CONTAINS(body(answer), "not to '" + host + "'") << answer;
    EXPECT_CONTAINS(body(answer), "plumb watch --host " + host) << answer;
  }
}

TEST_F(WatchVerb, AnswersToNamesThatAreAllowed) {
  const int port = free_port();
  Process server(test::plumb_program(),
                 {"watch", "--host", "Lab.example", "--host", "lab", "run", "--port", std::to_string(port)},
                 folder_->path());
  wait_for(port);
  for (const std::string host : {"lab.example:8000", "lab", "localhost"})
    EXPECT_TRUE(get(port, "/report", host).starts_with("HTTP/1.1 200")) << host;
  EXPECT_TRUE(get(port, "/report", "other.example").starts_with("HTTP/1.1 403"));
}

TEST_F(WatchVerb, AnswersOtherMachinesThatKnowTheWholeAddress) {
  std::vector<std::string> roots;
  for (int start = 0; start < 2; ++start) {
    const int port = free_port();
    Process server(test::plumb_program(), {"watch", "run", "--bind", "0.0.0.0", "--port", std::to_string(port)},
                   folder_->path());
    wait_for(port);
    const std::string printed = server.output(), before = ":" + std::to_string(port);
    const std::string root = printed.substr(printed.find(before) + before.size(), 34);  // "/", 32 digits, "/"
    EXPECT_EQ(root.find_first_not_of("0123456789abcdef/"), std::string::npos) << printed;
    EXPECT_CONTAINS(printed, root + "\n");
    EXPECT_LACKS(printed, "0.0.0.0");
    EXPECT_TRUE(Socket().connect("127.0.0.2", port));  // every address of this machine
    for (const char* page : {"", "report", "revision"}) {
      EXPECT_TRUE(get(port, root + page, "192.0.2.7" + before).starts_with("HTTP/1.1 200")) << page;
      for (const std::string host : {"attacker.example", "192.0.2.7.attacker.example"})
        EXPECT_TRUE(get(port, root + page, host).starts_with("HTTP/1.1 403")) << host;
      for (const std::string& wrong : {std::string("/"), "/" + std::string(32, '0') + "/", root.substr(0, 32) + "/",
                                       root.substr(1), root.substr(0, 33), "/?" + root})
        EXPECT_TRUE(get(port, wrong + page).starts_with("HTTP/1.1 403")) << wrong << page;
    }
    EXPECT_CONTAINS(server.errors(), "anybody who has this address can read");
    roots.push_back(root);
  }
  EXPECT_NE(roots[0], roots[1]);
}

TEST_F(WatchVerb, EveryAnswerKeepsToItsOwnSite) {
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "run", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  for (const std::string& answer :
       {get(port, "/"), get(port, "/report"), get(port, "/none"), get(port, "/", "attacker.example")}) {
    for (const char* header : {"X-Content-Type-Options: nosniff", "Content-Security-Policy: frame-ancestors 'self'",
                               "Cross-Origin-Resource-Policy: same-origin", "Referrer-Policy: no-referrer"})
      EXPECT_CONTAINS(answer.substr(0, answer.find("\r\n\r\n")), header);
    EXPECT_LACKS(answer, "Access-Control");
  }
}

TEST_F(WatchVerb, RefusesWhatNoBrowserAsks) {
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "run", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  const auto status = [&](const std::string& request) {
    const Socket socket;
    EXPECT_TRUE(socket.connect("127.0.0.1", port));
    socket.give_up_after(30);
    const std::string answer = socket.exchange(request + "\r\n\r\n");
    return answer.substr(0, answer.find(' ', 9));
  };
  for (const std::string host :
       {"localhost:80@evil.example", "evil.example@localhost", "localhost:x", ":80", "::1", ""})
    EXPECT_EQ(status("GET /report HTTP/1.1\r\nHost: " + host), "HTTP/1.1 403") << host;
  using namespace std::string_literals;
  for (const std::string& bad :
       {"GET /report HTTP/1.1\r\nHost: localhost\0x"s, "GET /report HTTP/1.1\r\nHost: localhost\r\nHost: localhost"s,
        "GET /report HTTP/1.1\r\nHost: localhost\rX: y"s, "GET /report"s, "GET /report FTP/1.1"s, ""s})
    EXPECT_EQ(status(bad), "HTTP/1.1 400") << bad;
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get"})
    EXPECT_EQ(status(std::string(method) + " /report HTTP/1.1\r\nHost: localhost"), "HTTP/1.1 405") << method;
  const Socket asks;
  ASSERT_TRUE(asks.connect("127.0.0.1", port));
  EXPECT_EQ(body(asks.exchange("HEAD /report HTTP/1.1\r\nHost: localhost\r\n\r\n")), "");
}

TEST_F(WatchVerb, KeepsNothingOfWhatIsSent) {
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "run", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  constexpr int64_t kMebibyte = int64_t{1} << 20;
  const int64_t before = test::status_of(server.id()).peak;
  const std::string length = "\r\nContent-Length: 99999999999\r\n\r\n",
                    chunked = "\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& head :
       {"POST /report HTTP/1.1\r\nHost: localhost" + length, "POST /report HTTP/1.1\r\nHost: attacker.example" + length,
        "POST /report HTTP/1.1\r\nHost: localhost" + chunked + "4000000\r\n",
        "GET /revision HTTP/1.1\r\nHost: localhost" + length,
        std::string("GET /report HTTP/1.1\r\nHost: localhost\r\nA: "), std::string()}) {
    const Socket socket;
    ASSERT_TRUE(socket.connect("127.0.0.1", port));
    socket.begin(head);
    for (int i = 0; i < 16; ++i) socket.begin(std::string(4 * kMebibyte, 'x'));
  }
  EXPECT_LT(test::status_of(server.id()).peak - before, 32 * kMebibyte);
  EXPECT_TRUE(get(port, "/report").starts_with("HTTP/1.1 200"));
}

TEST_F(WatchVerb, ReadsOnlyTheRunsThatHaveChanged) {
  const fs::path changed = *folder_ / "runs/b", untouched = *folder_ / "runs/a/metrics.jsonl";
  fs::create_directory(*folder_ / "runs");
  for (const char* name : {"a", "b"}) fs::copy(*folder_ / "run", *folder_ / "runs" / name);
  std::ofstream(changed / "config.toml", std::ios::app) << "log_every = 7\n";  // a curve of its own
  const auto replace = [&](const std::string& from, const std::string& to) {
    std::string metrics = read_file(untouched);
    metrics.replace(metrics.find(from), from.size(), to);
    std::fstream(untouched, std::ios::in | std::ios::out | std::ios::binary) << metrics;
  };
  replace("3.25", "3.2531");
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "runs", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  EXPECT_CONTAINS(get(port, "/report"), "3.2531");
  const std::string revision = body(get(port, "/revision"));
  // The same number of bytes in the same file at the same time: only who reads it again would notice.
  const fs::file_time_type time = fs::last_write_time(untouched);
  replace("3.2531", "9.7531");
  fs::last_write_time(untouched, time);
  EXPECT_EQ(body(get(port, "/revision")), revision);
  std::ofstream(changed / "metrics.jsonl", std::ios::app) << point(20);
  EXPECT_NE(body(get(port, "/revision")), revision);
  const std::string report = get(port, "/report");
  EXPECT_CONTAINS(report, "\"x\":[10,20]");
  EXPECT_CONTAINS(report, "3.2531");
  EXPECT_LACKS(report, "9.7531");
  fs::rename(*folder_ / "runs/a", *folder_ / "runs/c");  // a new name is a new run
  EXPECT_CONTAINS(get(port, "/report"), "9.7531");
}

TEST_F(WatchVerb, APipeInPlaceOfAHistoryDelaysNothing) {
  fs::create_directory(*folder_ / "runs");
  fs::rename(*folder_ / "run", *folder_ / "runs" / "sound");
  fs::create_directory(*folder_ / "runs" / "odd");
  fs::copy(*folder_ / "runs/sound/plumb.json", *folder_ / "runs/odd/plumb.json");
  for (const char* name : {"metrics.jsonl", "config.toml", "result.json"})
    ASSERT_EQ(::mkfifo((*folder_ / "runs/odd" / name).c_str(), 0600), 0);
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "runs", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  EXPECT_CONTAINS(get(port, "/report"), "sound");
}

TEST_F(WatchVerb, RefusesWhatIsNoAddress) {
  const Finished refused = test::run_plumb({"watch", "run", "--bind", "phone"}, folder_->path());
  EXPECT_EQ(refused.status, 2);
  EXPECT_CONTAINS(refused.errors, "not an IPv4 address");
}

TEST_F(WatchVerb, AnswersWhileOthersSendByteAfterByteOrTakeNothing) {
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "run", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  std::vector<std::unique_ptr<Socket>> slow;
  for (int i = 0; i < 300; ++i) {
    slow.push_back(std::make_unique<Socket>());
    ASSERT_TRUE(slow.back()->connect("127.0.0.1", port));
    slow.back()->begin(i < 100 ? "GET /report HTTP/1.1\r\nHost: localhost\r\n\r\n" : "GET /report HTTP/1.1\r\nA: ");
  }
  const std::jthread drips([&](const std::stop_token& end) {
    for (; !end.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(100)))
      for (const auto& socket : slow) socket->begin("x");
  });
  const Socket asks;
  ASSERT_TRUE(asks.connect("127.0.0.1", port));
  asks.give_up_after(30);
  EXPECT_TRUE(asks.exchange("GET /report HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                  .starts_with("HTTP/1.1 200"));
}

TEST_F(WatchVerb, SaysWhatIsWrong) {
  const int port = free_port();
  Process first(test::plumb_program(), {"watch", "run", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  const Finished busy = test::run_plumb({"watch", "run", "--port", std::to_string(port)}, folder_->path());
  EXPECT_EQ(busy.status, 1);
  EXPECT_CONTAINS(busy.errors, "cannot be opened on 127.0.0.1");
  EXPECT_EQ(test::run_plumb({"watch", "absent"}, folder_->path()).status, 1);
}

TEST_F(WatchVerb, ARunThatDisappearsIsSaidAndMayComeBack) {
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "run", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  fs::rename(*folder_ / "run", *folder_ / "moved");
  const std::string answer = get(port, "/revision");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500")) << answer;
  EXPECT_CONTAINS(answer, "run: no such directory");
  fs::rename(*folder_ / "moved", *folder_ / "run");
  EXPECT_TRUE(get(port, "/report").starts_with("HTTP/1.1 200"));
}

}  // namespace
}  // namespace plumb
