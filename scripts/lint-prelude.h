// Read by clang-tidy before every source. Clang instantiates the constexpr members of GCC 12's std::vector for
// element types that are still incomplete, as LibTorch 1.13 has them; so for clang-tidy they are not constexpr.
#include <string>
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_of_vector  // <string> has declared this one constexpr
#include <vector>
#undef __fill_a1
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR constexpr
