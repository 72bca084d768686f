// Included before every source with Clang and clang-tidy. Clang instantiates the constexpr members of libstdc++'s
// std::vector for incomplete element types, which LibTorch 1.13 uses; so for Clang they are not constexpr.
#include <string>
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_of_vector  // <string> has declared this one constexpr
#include <vector>
#undef __fill_a1
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR constexpr
