// The client of torchrun's store, tested with the store of the LibTorch that Plumb is built with.
#include "plumb/parallel/agent_store.h"

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "plumb/base/error.h"
#include "plumb/parallel/rendezvous.h"
#include "support/ranks.h"

namespace plumb {
namespace {

/// Debian's LibTorch is built without libuv, which newer versions use by default; older versions lack the option.
template <typename Options>
void without_libuv(Options& options) {
  if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
}

class LibTorchStore : public ::testing::Test {
 protected:
  LibTorchStore() {
    c10d::TCPStoreOptions options;
    options.isServer = true;
    options.port = 0;
    options.waitWorkers = false;
    without_libuv(options);
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }
  [[nodiscard]] int64_t port() const { return store_->getPort(); }

  c10::intrusive_ptr<c10d::TCPStore> store_;
};

TEST_F(LibTorchStore, KeepsWhatIsSet) {
  AgentStore one("127.0.0.1", port(), 5, {}), other("127.0.0.1", port(), 5, {});
  EXPECT_EQ(one.own_address(), "127.0.0.1");
  EXPECT_THROW(other.get("plumb/address", 0.1, {}), Error);
  one.set("plumb/address", "29500 node0");
  EXPECT_EQ(other.get("plumb/address", 5, {}), "29500 node0");
  const std::vector<uint8_t> theirs = store_->get("plumb/address");
  EXPECT_EQ(std::string(theirs.begin(), theirs.end()), "29500 node0");
}

TEST_F(LibTorchStore, BringsRanksTogether) {
  test::as_ranks(
      3, [](const Group& group) { EXPECT_EQ(group.sums({1.0}), std::vector<double>{3.0}); },
      [&](Rendezvous rendezvous, const Reception& reception) {
        rendezvous.agent_store = true;
        rendezvous.agent_key = "plumb/test/0";
        rendezvous.host = "127.0.0.1";
        rendezvous.port = port();
        return meet(rendezvous, reception);
      });
}

TEST_F(LibTorchStore, ThatIsNotThereIsAnError) {
  const int64_t gone = port();
  store_.reset();
  EXPECT_THROW(AgentStore("127.0.0.1", gone, 0.1, {}), Error);
}

}  // namespace
}  // namespace plumb
