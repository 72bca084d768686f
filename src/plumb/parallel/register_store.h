// The register's key-value store as a c10d::Store, for Gloo. Only used in this folder.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <memory>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/parallel/membership.h"

namespace plumb {

class RegisterStore : public c10d::Store {
 public:
  /// Puts `prefix` before each key. All uses after the membership has ended throw Error.
  RegisterStore(std::weak_ptr<Membership> membership, std::string prefix)
      : membership_(std::move(membership)), prefix_(std::move(prefix)) {}

  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    membership()->set(prefix_ + key, {value.begin(), value.end()});
  }
  std::vector<uint8_t> get(const std::string& key) override {
    const std::string value = membership()->get(prefix_ + key);
    return {value.begin(), value.end()};
  }
  int64_t add(const std::string& key, int64_t value) override { return membership()->add(prefix_ + key, value); }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& /*timeout*/) override { wait(keys); }
  bool deleteKey(const std::string& /*key*/) override { return false; }
  bool check(const std::vector<std::string>& /*keys*/) override { throw Error("this store cannot look for keys"); }
  int64_t getNumKeys() override { throw Error("this store does not count keys"); }
  using c10d::Store::set;
  /// A pure virtual function of LibTorch 2.8 and later.
  c10::intrusive_ptr<c10d::Store> clone() { return c10::make_intrusive<RegisterStore>(membership_, prefix_); }

 private:
  [[nodiscard]] std::shared_ptr<Membership> membership() const {
    if (auto found = membership_.lock()) return found;
    throw Error("the run's register is closed");
  }

  std::weak_ptr<Membership> membership_;
  std::string prefix_;
};

}  // namespace plumb
