// The one instruction set there is: the compiler's.
#pragma once

#include <cstdint>
#include <vector>

namespace hwy {

inline int64_t SupportedTargets() { return 1; }
inline void SetSupportedTargetsForTest(int64_t /*targets*/) {}
inline std::vector<int64_t> SupportedAndGeneratedTargets() { return {1}; }
inline const char* TargetName(int64_t /*target*/) { return "PORTABLE"; }

}  // namespace hwy
