#include "page_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/metrics/unicode.h"

namespace plumb::app {
namespace {

using Clock = std::chrono::steady_clock;
using Answer = std::function<PageAnswer(const PageRequest&)>;

constexpr size_t kLongestHead = size_t{64} << 10;  // bytes
constexpr size_t kMostClients = 256;
constexpr std::chrono::seconds kTimeToAsk{5}, kTimeToTake{300}, kTimeToClose{2};

struct Client {
  Descriptor socket;
  Clock::time_point deadline = Clock::now() + kTimeToAsk;
  std::string request = {};  // its head, as far as it has come
  std::string head = {};     // of the answer; empty until the request is complete
  std::shared_ptr<const std::string> body = {};
  size_t sent = 0;

  /// The part of the answer that has not been sent.
  [[nodiscard]] std::string_view rest() const {
    if (sent < head.size() || !body) return std::string_view(head).substr(sent);
    return std::string_view(*body).substr(sent - head.size());
  }
};

bool is_control(char c) { return (c >= 0 && c < ' ' && c != '\t') || c == '\x7F'; }

PageAnswer answer_to(const std::string& head, const Answer& answer) {
  if (head.size() > kLongestHead) return plain_answer(431, "the request is too long\n");
  PageRequest request;
  int hosts = 0;
  std::vector<std::string> lines = split(head, '\n');
  for (std::string& line : lines) {
    line.resize(line.find_last_not_of("\r \t") + 1);
    if (std::any_of(line.begin(), line.end(), is_control)) return plain_answer(400, "a control character\n");
    if (to_lower(line.substr(0, line.find(':'))) != "host") continue;
    request.host = line.substr(std::min(line.find_first_not_of(" \t", line.find(':') + 1), line.size()));
    if (++hosts > 1) return plain_answer(400, "more than one host\n");
  }
  const std::vector<std::string> words = split(lines[0], ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.")) return plain_answer(400, "not a request of HTTP/1.1\n");
  if (words[0] != "GET" && words[0] != "HEAD") return plain_answer(405, "only GET and HEAD\n");
  request.path = words[1].substr(0, words[1].find('?'));
  try {
    return answer(request);
  } catch (const std::exception& error) {
    return plain_answer(500, error.what());
  }
}

/// With headers that keep other web sites from reading or framing a page, and from learning its address.
std::string head_of(const PageAnswer& answer) {
  return fmt::format(
      "HTTP/1.1 {} \r\nContent-Type: {}\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\nConnection: close\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Security-Policy: frame-ancestors "
      "'self'\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n\r\n",
      answer.status, answer.type, answer.text->size());
}

/// Whether the connection goes on after a call that returned `count`.
bool goes_on(ssize_t count) { return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)); }

/// Receives what has come, and begins the answer if the request is complete. Returns false if the connection has ended.
bool receive(Client& client, const Answer& answer) {
  std::array<char, 4096> piece;
  const ssize_t count = ::recv(client.socket.get(), piece.data(), piece.size(), 0);
  // What follows a request, such as a body, is dropped: closing before it has come could destroy the answer on its way.
  if (count <= 0 || !client.head.empty()) return goes_on(count);
  client.request.append(piece.data(), static_cast<size_t>(count));
  const size_t end = client.request.find("\r\n\r\n");
  if (end == std::string::npos && client.request.size() <= kLongestHead) return true;
  if (end != std::string::npos) client.request.resize(end);
  const PageAnswer found = answer_to(client.request, answer);
  client.head = head_of(found);
  if (!client.request.starts_with("HEAD ")) client.body = found.text;
  client.deadline = Clock::now() + kTimeToTake;
  return true;
}

/// Sends as much of the answer as there is room for. Returns false if the connection has ended.
bool send(Client& client) {
  const ssize_t count = ::send(client.socket.get(), client.rest().data(), client.rest().size(), MSG_NOSIGNAL);
  client.sent += static_cast<size_t>(std::max<ssize_t>(count, 0));
  if (!client.rest().empty()) return goes_on(count);
  client.deadline = Clock::now() + kTimeToClose;
  return ::shutdown(client.socket.get(), SHUT_WR) == 0;
}

}  // namespace

PageAnswer plain_answer(int status, const std::string& text) {
  return {.status = status, .text = std::make_shared<const std::string>(text)};
}

PageServer::PageServer(const std::string& address, int port)
    : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port)), .sin_addr = {}, .sin_zero = {}};
  ::inet_pton(AF_INET, address.c_str(), &at.sin_addr);
  auto* const name = reinterpret_cast<sockaddr*>(&at);
  socklen_t size = sizeof at;
  // The port may have been used a moment ago, and clients that take nothing must not fill the system's buffers.
  for (const auto& [option, value] : {std::pair{SO_REUSEADDR, 1}, std::pair{SO_SNDBUF, 128 << 10}})
    ::setsockopt(listener_.get(), SOL_SOCKET, option, &value, sizeof value);
  if (::bind(listener_.get(), name, size) != 0 || ::listen(listener_.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener_.get(), name, &size) != 0) {
    const int reason = errno;
    throw Error(fmt::format("port {} cannot be opened on {}: {}", port, address, std::strerror(reason)),
                reason == EADDRNOTAVAIL
                    ? "--bind takes an address that this machine has, or 0.0.0.0 for all of them"
                    : "another program may be using it: choose another --port, or omit it to use any free port");
  }
  port_ = ntohs(at.sin_port);
}

void PageServer::serve(const Answer& answer) const {
  for (std::vector<Client> clients;;) {
    std::vector<pollfd> waits = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const Client& client : clients) {
      const short event = client.rest().empty() ? POLLIN : POLLOUT;
      waits.push_back({.fd = client.socket.get(), .events = event, .revents = 0});
    }
    if (::poll(waits.data(), waits.size(), 1000) < 0) continue;
    const Clock::time_point now = Clock::now();
    for (size_t i = 0; i < clients.size(); ++i) {
      Client& client = clients[i];
      const bool takes = !client.rest().empty();
      const bool open = waits[i + 1].revents == 0 || (takes ? send(client) : receive(client, answer));
      if (!open || client.deadline < now) client.socket = Descriptor();
    }
    std::erase_if(clients, [](const Client& client) { return !client.socket.is_open(); });
    if (waits[0].revents == 0) continue;
    const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (clients.size() == kMostClients || (socket < 0 && errno == EMFILE && !clients.empty()))
      clients.erase(clients.begin());  // the oldest gives way
    if (socket >= 0) clients.push_back({.socket = Descriptor(socket)});
  }
}

}  // namespace plumb::app
