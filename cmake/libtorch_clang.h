// Clang and clang-tidy read this before every source. Clang instantiates the constexpr members of libstdc++'s
// std::vector for element types that are still incomplete, as LibTorch 1.13 has them; so for Clang they are not
// constexpr.
#include <string>
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_of_vector  // <string> has declared this one constexpr
#include <vector>
#undef __fill_a1
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR constexpr
