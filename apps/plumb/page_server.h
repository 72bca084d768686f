// A web server for a few pages: HTTP/1.1, GET and HEAD, one request per connection. Whatever clients send or leave out,
// each costs some kilobytes for some seconds and delays no other: one thread reads all requests side by side, and keeps
// no body.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "plumb/base/descriptor.h"

namespace plumb::app {

struct PageRequest {
  std::string path;  // without the query: "/report"
  std::string host;  // the header "Host"; empty if there is none
};

struct PageAnswer {
  int status = 200;
  std::shared_ptr<const std::string> text;
  const char* type = "text/plain; charset=utf-8";
};

PageAnswer plain_answer(int status, const std::string& text);

class PageServer {
 public:
  /// Listens at an IPv4 address of this machine, or at 0.0.0.0 for all of them; port 0: at any that is free. Throws
  /// Error if it cannot.
  PageServer(const std::string& address, int port);

  [[nodiscard]] int port() const { return port_; }

  /// Answers until the process ends. What `answer` throws becomes an answer of status 500.
  [[noreturn]] void serve(const std::function<PageAnswer(const PageRequest&)>& answer) const;

 private:
  Descriptor listener_;
  int port_;
};

}  // namespace plumb::app
