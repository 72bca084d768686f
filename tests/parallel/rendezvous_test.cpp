#include "plumb/parallel/rendezvous.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "plumb/base/error.h"
#include "support/ranks.h"

namespace plumb {
namespace {

TEST(Rendezvous, ComesFromTheEnvironment) {
  EXPECT_FALSE(rendezvous_of_environment());
  ::setenv("WORLD_SIZE", "4", 1);
  EXPECT_THROW(rendezvous_of_environment(), Error);
  ::setenv("RANK", "3", 1);
  ::setenv("MASTER_ADDR", "node0", 1);
  ::setenv("MASTER_PORT", "29500", 1);
  const auto rendezvous = rendezvous_of_environment();
  ASSERT_TRUE(rendezvous);
  EXPECT_EQ(rendezvous->rank, 3);
  EXPECT_EQ(rendezvous->size, 4);
  EXPECT_EQ(rendezvous->host, "node0");
  EXPECT_EQ(rendezvous->port, 29500);
  ::setenv("RANK", "4", 1);
  EXPECT_THROW(rendezvous_of_environment(), Error);
  for (const char* name : {"WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
}

TEST(Rendezvous, OneProcessNeedsNone) {
  const JoinEvents events{[](int64_t) { FAIL() << "listens"; }, [] { FAIL() << "waits"; }};
  EXPECT_EQ(join_group({0, 1, "no such host", 1}, events).size(), 1);
}

TEST(Rendezvous, EndsWithWhatIsThrownWhileWaiting) {
  int64_t port = 0;
  const JoinEvents events{[&](int64_t number) { port = number; }, [] { throw Error("nobody will join"); }};
  try {
    static_cast<void>(join_group({0, 2}, events));
    FAIL() << "met a process that does not exist";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "nobody will join");
  }
  EXPECT_GT(port, 0);
}

// Tests as_ranks: whichever rank fails, and however early, the others do not wait for it.
TEST(Rendezvous, ARankThatCannotJoinEndsTheOthers) {
  for (int64_t broken = 0; broken < 3; ++broken) {
    const auto join = [&](const Rendezvous& rendezvous, const JoinEvents& events) {
      if (rendezvous.rank == broken) throw Error("no sockets here");
      return join_group(rendezvous, events);
    };
    try {
      test::as_ranks(
          3, [](const Group&) { FAIL() << "a group without one of its ranks"; }, join);
      FAIL() << "rank " << broken << " has failed silently";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "no sockets here");
    }
  }
}

}  // namespace
}  // namespace plumb
