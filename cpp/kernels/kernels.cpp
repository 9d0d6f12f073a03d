#include "kernels/kernels.hpp"

#include <cstdlib>
#include <string_view>

namespace blockgreedy {

extern const Kernels kernels_baseline;
#if defined(BLOCKGREEDY_X86)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

namespace {

const Kernels& choose() {
#if defined(BLOCKGREEDY_X86)
  const char* asked_for = std::getenv("BLOCKGREEDY_ISA");
  const std::string_view limit = asked_for ? asked_for : "avx512";
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  if (has_avx512 && limit == "avx512") return kernels_avx512;
  if (has_avx2 && limit != "baseline") return kernels_avx2;
#endif
  return kernels_baseline;
}

// When the library is loaded: what is made at the first call has a lock, which another thread may hold at a fork().
const Kernels& chosen = choose();

}  // namespace

const Kernels& kernels() { return chosen; }

}  // namespace blockgreedy
