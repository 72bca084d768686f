// Where the time of training steps goes: by operation, forward and backward.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plumb/base/timing.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Of a forward and a backward pass: the operations of matrix products, 2mnk each, and the bytes that have to be read
/// and written at least, if caches hold nothing.
struct Cost {
  double operations = 0, bytes = 0;
  double backward_operations = 0, backward_bytes = 0;
};

/// Of x·Wᵀ, with x of (rows, in) and W of (out, in). Backward, two products of the same size.
Cost product_cost(int64_t rows, int64_t in, int64_t out, int64_t bytes_per_number);

/// Of passes that read and write this many vectors like x.
Cost pass_cost(const Tensor& x, int64_t vectors, int64_t backward_vectors);

/// Times the operations of this thread while it exists: those of ops/, an operation within another one as part of it,
/// and what autograd computes besides. There may be one in a thread. Results are those of PyTorch's engine on
/// processors, which computes a backward pass in the thread that asks for it.
class Profile {
 public:
  struct Operation {
    std::string name;  // "linear layer", "linear layer, backward"; of other nodes of the graph, theirs
    int64_t calls = 0;
    double seconds = 0, operations = 0, bytes = 0;
  };

  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// What has been timed so far; the longest first.
  [[nodiscard]] std::vector<Operation> operations() const;

 private:
  friend class Timed;
  class Node;

  /// Whether what begins is not part of something that is timed.
  bool begin() { return depth_++ == 0; }
  void record(const std::string& name, double seconds, double operations, double bytes);
  /// The nodes of the graph with numbers from `first` to those of this moment belong to an operation.
  void own_nodes(uint64_t first, const char* name, const Cost& cost);

  struct Owner {
    uint64_t end = 0;  // of its nodes' numbers
    const char* name = nullptr;
    Cost cost;
    bool counted = false;  // its backward cost
  };
  std::map<std::string, Operation> found_;
  std::map<uint64_t, Owner> owners_;  // by the number of the first node
  int64_t depth_ = 0;
  Stopwatch watch_;
  uint64_t handle_ = 0;
};

/// An operation of ops/, from its construction to its destruction, if there is a profile.
class Timed {
 public:
  /// `cost`: of the operation, without arguments; called only if there is a profile.
  template <typename CostOf>
  Timed(const char* name, const CostOf& cost) : profile_(current()) {
    if (profile_ != nullptr) begin(name, cost());
  }
  ~Timed() {
    if (profile_ != nullptr) end();
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  static Profile* current();
  void begin(const char* name, const Cost& cost);
  void end();

  Profile* profile_;
  bool outermost_ = false;
  const char* name_ = nullptr;
  Cost cost_;
  uint64_t first_node_ = 0;
};

}  // namespace plumb::ops
