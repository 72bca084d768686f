// Errors if processes do not match, or one is lost before or after all have joined.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/base/random.h"
#include "plumb/parallel/network.h"
#include "plumb/parallel/rendezvous.h"
#include "support/contains.h"
#include "support/port.h"
#include "support/ranks.h"

namespace plumb {
namespace {

using test::as_ranks;

/// A join function that changes the rendezvous of one rank.
template <typename Change>
auto changed(int64_t rank, const Change& change) {
  return [rank, change](Rendezvous rendezvous, const JoinEvents& events) {
    rendezvous.join_limit = 10;
    if (rendezvous.rank == rank) change(rendezvous);
    return join_group(rendezvous, events);
  };
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(Facts, ThatDifferAreNamedToAllRanks) {
  std::mutex mutex;
  std::vector<std::string> messages;
  as_ranks(3, [&](const Group& group) {
    group.require_same({{"train.seed", "1"}, {"train.steps", "20"}});
    const std::string seed = group.rank() == 2 ? "7" : "1";
    const std::string message = message_of([&] {
      group.require_same({{"model.d_model", "16"}, {"train.seed", seed}, {"more", "x" + seed}});
    });
    const std::lock_guard lock(mutex);
    messages.push_back(message);
  });
  ASSERT_EQ(messages.size(), 3U);
  for (const std::string& message : messages) {
    EXPECT_EQ(message, messages[0]);
    EXPECT_CONTAINS(message, "train.seed = 7 in rank 2 (process ");
    EXPECT_CONTAINS(message, "but 1 in rank 0 (process ");
  }
}

TEST(Facts, ThatOnlyOneRankHasDiffer) {
  as_ranks(2, [](const Group& group) {
    Facts facts = {{"a", "1"}};
    if (group.rank() == 1) facts.emplace_back("train.lion.beta1", "0.9");
    const std::string message = message_of([&] { group.require_same(facts); });
    EXPECT_CONTAINS(message, "train.lion.beta1 = 0.9 in rank 1");
    EXPECT_CONTAINS(message, "but (none) in rank 0");
  });
}

TEST(Joining, AnotherRunIsRefused) {
  const std::string message = message_of([] {
    as_ranks(
        2, [](const Group&) { FAIL() << "a group of two runs"; },
        changed(1, [](Rendezvous& one) { one.token = "other"; }));
  });
  EXPECT_CONTAINS(message, "another run uses this address and port");
}

TEST(Joining, AnotherNumberOfProcessesIsRefused) {
  const std::string message = message_of([] {
    as_ranks(
        2, [](const Group&) { FAIL() << "a group of two sizes"; }, changed(1, [](Rendezvous& one) { one.size = 3; }));
  });
  EXPECT_CONTAINS(message, "belongs to a run of 3 processes, but rank 0 to one of 2");
}

TEST(Joining, TheRankThatDoesNotComeIsNamed) {
  Rendezvous alone{0, 3};
  alone.join_limit = 0.2;
  const std::string message = message_of([&] { static_cast<void>(join_group(alone)); });
  EXPECT_CONTAINS(message, "ranks 1, 2 have not joined within 0.2 s");
}

/// A listening socket on the loopback interface, like that of another program.
class OtherProgram {
 public:
  OtherProgram() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_, 5) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw Error(std::strerror(errno));
    }
    port_ = ntohs(address.sin_port);
  }
  ~OtherProgram() { ::close(socket_); }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;

  [[nodiscard]] int64_t port() const { return port_; }
  /// Accepts the next connection, sends `text`, and closes the connection.
  void answer(const std::string& text) const {
    const int connection = ::accept(socket_, nullptr, nullptr);
    static_cast<void>(::send(connection, text.data(), text.size(), MSG_NOSIGNAL));
    ::close(connection);
  }

 private:
  int socket_;
  int64_t port_ = 0;
};

TEST(Joining, APortInUseIsAnErrorAtOnce) {
  const OtherProgram other;
  const std::string message = message_of([&] { static_cast<void>(join_group({0, 2, "127.0.0.1", other.port()})); });
  EXPECT_CONTAINS(message, "is in use by another program");
}

TEST(Joining, AnotherProgramAtThePortIsAnErrorAtOnce) {
  for (const std::string& answer : {std::string(), std::string("HTTP/1.1 400 Bad Request\r\n\r\n")}) {
    const OtherProgram other;
    std::thread server([&] { other.answer(answer); });
    const std::string message = message_of([&] { static_cast<void>(join_group({1, 2, "127.0.0.1", other.port()})); });
    server.join();
    EXPECT_CONTAINS(message, "not a Plumb process");
  }
}

// Processes of the run can join whatever other programs send to rank 0 while it waits.
TEST(Joining, StrangersDoNoHarm) {
  as_ranks(
      2, [](const Group& group) { EXPECT_EQ(group.sums({1.0}), std::vector<double>{2.0}); },
      [](const Rendezvous& rendezvous, const JoinEvents& events) {
        const auto disturb = [&](int64_t port) {
          for (const std::string& bytes :
               {std::string("GET / HTTP/1.0\r\n\r\n"), std::string("\xFF\xFF\xFF\xFF\x01", 5),
                std::string("\x06\0\0\0\x01\xFF\0\0\0\x01", 10), std::string(3, '\0')}) {
            const int stranger = ::socket(AF_INET, SOCK_STREAM, 0);
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_port = htons(static_cast<uint16_t>(port));
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            ASSERT_EQ(::connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
            static_cast<void>(::send(stranger, bytes.data(), bytes.size(), MSG_NOSIGNAL));
            ::close(stranger);
          }
          if (events.listening) events.listening(port);
        };
        return join_group(rendezvous, {disturb, events.waiting});
      });
}

/// A client of a run's store, like that of a process that does not do what it should; or the server. Without a token,
/// keys begin with a slash.
c10::intrusive_ptr<c10d::TCPStore> client_of(int64_t port, bool serve = false) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = serve;
  options.waitWorkers = false;
  [](auto& any) {
    if constexpr (requires { any.useLibUV; }) any.useLibUV = false;
  }(options);
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}
void set(c10d::Store& store, const std::string& key, const std::string& value) {
  store.set(key, std::vector<uint8_t>(value.begin(), value.end()));
}

TEST(Joining, NobodyElseCanOnceAllHaveJoined) {
  std::atomic<int64_t> port = 0;
  const auto join = [&](const Rendezvous& rendezvous, const JoinEvents& events) {
    const auto listening = [&](int64_t number) {
      port = number;
      events.listening(number);
    };
    return join_group(rendezvous, {listening, events.waiting});
  };
  as_ranks(
      3,
      [&](const Group& group) {
        group.barrier();  // all have returned from `join_group`
        std::string reason;
        EXPECT_FALSE(route_to("127.0.0.1", port, reason));
        EXPECT_EQ(reason, std::strerror(ECONNREFUSED));
        const Group pair = group.split(group.rank() == 2 ? 1 : 0);  // needs no further connection to the store
        EXPECT_EQ(pair.sums({1.0}), std::vector<double>{group.rank() == 2 ? 1.0 : 2.0});
      },
      join);
}

// Without a launcher's random token: what torchrun sets can be guessed, and here is nothing at all.
TEST(Joining, OnOneMachineAGuessedTokenDoesNotSuffice) {
  const std::string port = std::to_string(test::unused_port());
  std::vector<Rendezvous> launched;
  for (const char* rank : {"0", "1"}) {
    for (const auto& [name, value] : {std::pair("WORLD_SIZE", "2"), {"RANK", rank}, {"MASTER_ADDR", "127.0.0.1"}})
      ::setenv(name, value, 1);
    ::setenv("MASTER_PORT", port.c_str(), 1);
    launched.push_back(rendezvous_of_environment().value());
  }
  for (const char* name : {"WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
  const auto join = [&](const Rendezvous& one, const JoinEvents& events) {
    const auto listening = [&](int64_t number) {
      EXPECT_EQ(PortSecret::read(number).size(), 32U);
      const auto stranger = client_of(number);
      set(*stranger, launched[0].token + "/failure", "+ended by a stranger");
      stranger->add(launched[0].token + "/joined 1", 1);
      events.listening(number);
    };
    return join_group(launched[static_cast<size_t>(one.rank)], {listening, events.waiting});
  };
  as_ranks(
      2,
      [&](const Group& group) {
        EXPECT_EQ(group.sums({1.0}), std::vector<double>{2.0});
        EXPECT_EQ(PortSecret::read(launched[0].port), "") << "is kept longer than it is needed";
      },
      join);
}

// What rank 0 says after this process has given up, and left its thread waiting, has no effect on anything.
TEST(Joining, AnAnswerThatComesTooLateDoesNoHarm) {
  const auto server = client_of(0, true);
  const JoinEvents impatient{{}, [] { throw Error("no time"); }};
  const Rendezvous rendezvous{1, 2, "127.0.0.1", server->getPort()};
  EXPECT_EQ(message_of([&] { static_cast<void>(join_group(rendezvous, impatient)); }), "no time");
  const Json description = {{"run", stream_of("")}, {"size", 2}, {"version", PLUMB_VERSION}, {"name", "rank 0"}};
  set(*server, "plumb", description.dump());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (server->add("/heartbeat 1", 0) >= 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LT(server->add("/heartbeat 1", 0), 0) << "it should say that it is gone";
}

// Gloo alone would wait for the connection until the time limit for joining.
TEST(Losing, ADeathBeforeTheConnectionsAreMadeIsNoticed) {
  std::promise<int64_t> port;
  std::thread other([known = port.get_future()]() mutable {
    const auto store = client_of(known.get());
    store->add("/heartbeat 1", 1);
    const Json member = {{"name", "rank 1 (process 4711 on elsewhere)"}, {"machine", "m"}, {"rank 0", "127.0.0.1"}};
    set(*store, "/member 1", member.dump());
    store->wait({"/members"}, std::chrono::seconds(30));
  });
  Rendezvous impatient{0, 2};
  impatient.timeout = 1;
  const std::string message = message_of([&] {
    static_cast<void>(join_group(impatient, {[&](int64_t number) { port.set_value(number); }, {}}));
  });
  other.join();
  EXPECT_CONTAINS(message, "rank 1 (process 4711 on elsewhere) has sent no heartbeat for 1 s");
}

TEST(Joining, AnotherVersionIsRefusedAndNamed) {
  std::promise<int64_t> port;
  std::thread other([known = port.get_future()]() mutable {
    const int64_t number = known.get();
    const auto store = client_of(number);
    const std::vector<uint8_t> found = store->get("plumb");
    Json description = Json::parse(std::string(found.begin(), found.end()));
    description["version"] = "0.0.1";
    set(*store, "plumb", description.dump());
    const std::string message = message_of([&] { static_cast<void>(join_group({1, 2, "127.0.0.1", number})); });
    EXPECT_CONTAINS(message, "runs Plumb " PLUMB_VERSION ", but rank 0 runs Plumb 0.0.1");
  });
  const std::string message = message_of([&] {
    static_cast<void>(join_group({0, 2}, {[&](int64_t number) { port.set_value(number); }, {}}));
  });
  other.join();
  EXPECT_CONTAINS(message, "rank 1 (process ");
  EXPECT_CONTAINS(message, "runs Plumb " PLUMB_VERSION ", but rank 0 runs Plumb 0.0.1");
}

TEST(Losing, TheReasonOfAFailureReachesAll) {
  std::mutex mutex;
  std::vector<std::string> messages;
  as_ranks(3, [&](const Group& group) {
    if (group.rank() == 1) return group.fail("no memory left\nand a stack trace");
    const std::string message = message_of([&] { group.barrier(); });
    const std::lock_guard lock(mutex);
    messages.push_back(message);
  });
  ASSERT_EQ(messages.size(), 2U);
  for (const std::string& message : messages) {
    EXPECT_TRUE(message.starts_with("lost another process of this run: rank 1 (process ")) << message;
    EXPECT_TRUE(message.ends_with(") has failed: no memory left")) << message;
  }
}

TEST(Losing, TheReasonOfAFailureIsShort) {
  as_ranks(2, [&](const Group& group) {
    if (group.rank() == 1) return group.fail(std::string(100'000, 'x'));
    const std::string message = message_of([&] { group.barrier(); });
    EXPECT_CONTAINS(message, ") has failed: xxx");
    EXPECT_LT(message.size(), 3000U);
  });
}

TEST(Losing, WhoHasLeftIsNamed) {
  as_ranks(3, [&](const Group& group) {
    group.barrier();
    if (group.rank() == 2) return;
    const std::string message = message_of([&] { group.barrier(); });
    EXPECT_TRUE(message.starts_with("lost another process of this run: rank 2 (process ")) << message;
    EXPECT_TRUE(message.ends_with(") has left")) << message;
    EXPECT_THROW(group.barrier(), Error);  // the group stays unusable
  });
}

auto with_timeout(double seconds) {
  return [seconds](Rendezvous rendezvous, const JoinEvents& events) {
    rendezvous.timeout = seconds;
    return join_group(rendezvous, events);
  };
}

TEST(Losing, OneThatComputesForLongIsWaitedFor) {
  as_ranks(
      2,
      [](const Group& group) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(6);
        if (group.rank() == 1) {
          while (std::chrono::steady_clock::now() < end) {
          }
        }
        EXPECT_EQ(group.sums({1.0}), std::vector<double>{2.0});
      },
      with_timeout(3));
}

// A group keeps working after ranks outside it have left.
TEST(Losing, NothingIfItsOwnGroupIsComplete) {
  as_ranks(3, [&](const Group& group) {
    const Group pair = group.split(group.rank() == 2 ? 1 : 0);
    if (group.rank() == 2) return;
    for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(pair.sums({1.0}), std::vector<double>{2.0});
  });
}

}  // namespace
}  // namespace plumb
