// No positions: a causal model can still infer them from the causal mask (Haviv et al. 2022, arXiv 2203.16634).
#include "plumb/nn/position/position.h"

namespace plumb {
namespace {

const bool kNoPositionsRegistered = positions().add("none", "nothing", "Haviv et al. 2022, arXiv 2203.16634",
                                                    [](Parameters&, const std::string&, const PositionShape&,
                                                       const Options&) { return std::make_unique<Positions>(); });

}  // namespace
}  // namespace plumb
