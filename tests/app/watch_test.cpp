// plumb watch from the browser's perspective.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
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
  /// Sends the beginning of a request.
  void begin(const std::string& request) const { (void)!::write(descriptor_, request.data(), request.size()); }
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
    const Socket taken;
    const Finished refused =
        test::run_plumb({"watch", "run", "--port", std::to_string(taken.listen())}, folder_->path());
    if (refused.errors.find("no HTTP server") != std::string::npos) GTEST_SKIP() << "built without cpp-httplib";
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
  EXPECT_CONTAINS(get(port, "/"), "fetch(\"/revision\"");
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

TEST_F(WatchVerb, AnswersOtherMachinesAtTheAddressesThatItIsBoundTo) {
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "run", "--bind", "0.0.0.0", "--port", std::to_string(port)},
                 folder_->path());
  wait_for(port);
  EXPECT_TRUE(Socket().connect("127.0.0.2", port));  // every address of this machine
  EXPECT_TRUE(get(port, "/report", "192.0.2.7:" + std::to_string(port)).starts_with("HTTP/1.1 200"));
  for (const std::string host : {"attacker.example", "192.0.2.7.attacker.example"})
    EXPECT_TRUE(get(port, "/report", host).starts_with("HTTP/1.1 403")) << host;
  server.signal(SIGTERM);
  const Finished ended = server.wait();
  EXPECT_CONTAINS(ended.output, ":" + std::to_string(port) + "/\n");
  EXPECT_LACKS(ended.output, "0.0.0.0");
  EXPECT_CONTAINS(ended.errors, "anybody who can reach this address can read");
}

TEST_F(WatchVerb, RefusesWhatIsNoAddress) {
  const Finished refused = test::run_plumb({"watch", "run", "--bind", "phone"}, folder_->path());
  EXPECT_EQ(refused.status, 2);
  EXPECT_CONTAINS(refused.errors, "not an IPv4 address");
}

TEST_F(WatchVerb, AnswersWhileOthersSendNothing) {
  const int port = free_port();
  Process server(test::plumb_program(), {"watch", "run", "--port", std::to_string(port)}, folder_->path());
  wait_for(port);
  std::vector<std::unique_ptr<Socket>> silent;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(std::make_unique<Socket>());
    ASSERT_TRUE(silent.back()->connect("127.0.0.1", port));
    silent.back()->begin("GET /report HTTP/1.1\r\n");
  }
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
